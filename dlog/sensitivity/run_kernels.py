"""Owns the kernel that finds how many rows of an index begin alike.  Knows nothing of what they mean."""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.sensitivity.index_kernels import following
from dlog.storage.index.trie_kernels import end_of, entry_of
from dlog.storage.layout import BASE, FLAT_BASE, FLAT_STRIDE, OFFSET_BITS, STRIDE


@kernel
def longest_run(arena: Words, root: int, p: int) -> int:
    """The greatest number of rows that agree in their first p columns.

    O(rows * p); if the index is flat, rather O(rows * p * average / greatest)."""
    words = pointer(arena)
    if words[root + FLAT_BASE] >= 0:
        return int(longest_flat_run(words, root, p))
    return int(find_longest_run(words, root, p))


@helper
def longest_flat_run(A, root, p):
    """From each row a look at the one that a longer run would have to reach; if it begins otherwise, no
    longer run begins before its own."""
    base, stride, end = A[root + FLAT_BASE], A[root + FLAT_STRIDE], end_of(A, root)
    longest, at = min(np.int64(1), end), np.int64(0)
    while at + longest < end:
        ahead = at + longest
        if begin_alike(A, base + at, stride, base + ahead, stride, p):
            while ahead < end and begin_alike(A, base + at, stride, base + ahead, stride, p):
                ahead += 1
            longest = ahead - at
            at = ahead
        else:
            at = ahead
            while begin_alike(A, base + at - 1, stride, base + ahead, stride, p):
                at -= 1
    return longest


@helper
def find_longest_run(A, root, p):
    """As `longest_run`, over a pointer."""
    end, longest, run = end_of(A, root), np.int64(0), np.int64(0)
    at, before, stride_before = np.int64(0), np.int64(-1), np.int64(0)
    while at < end:
        row, stride = address(A, root, at)
        is_next = before >= 0 and begin_alike(A, before, stride_before, row, stride, p)
        run = run + 1 if is_next else np.int64(1)
        longest = max(longest, run)
        before, stride_before = row, stride
        at = following(A, root, at)
    return longest


@helper
def address(A, root, position):
    """Where the first word of a row is, and how far apart its words are."""
    if A[root + FLAT_BASE] >= 0:
        return A[root + FLAT_BASE] + position, A[root + FLAT_STRIDE]
    entry = entry_of(A, root, position >> OFFSET_BITS)
    return A[entry + BASE] + (position & ((1 << OFFSET_BITS) - 1)), A[entry + STRIDE]


@helper
def begin_alike(A, a, a_stride, b, b_stride, p):
    """Whether two rows agree in their first p columns."""
    same = True
    for c in range(p):
        same = same and A[a + c * a_stride] == A[b + c * b_stride]
    return same
