"""Owns the iteration of complements by counts.  Knows nothing of the meaning of the sets."""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.index.tree_kernels import rank
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FILL,
    FLAT_BASE,
    FLAT_STRIDE,
    N_NODES,
    N_ROWS,
    NODE_HEADER,
    NODE_ROWS,
    ROOT_HEADER,
    STRIDE,
)

PROBES: Final = 0  # how often rows of the subset were counted


@kernel
def missing_rows(A: Words, whole: int, part: int, k: int, out: Words, state: Words) -> int:
    """The rows of one index that another, which holds some of its rows, lacks; row by row; their number.

    The j-th of them is the first row with j rows missing before it that is missing itself.  How many are
    missing before row i is i minus the number of rows of the other before it, which rises with i: it is found
    by doubling steps from the last one, then by halving.  O(missing log n) counts of O(log n + a page).
    REQUIRES: the second is inside the first; room for all that are missing.
    """
    return find_missing(pointer(A), whole, part, k, pointer(out), pointer(state))


@helper
def find_missing(A: Words, whole: int, part: int, k: int, out: Words, state: Words) -> int:
    n = A[whole + N_ROWS]
    total = n - A[part + N_ROWS]
    row = 0  # all rows before it have been examined, `j` of them are missing
    for j in range(total):
        lo, step = row, 1
        while lo + step < n and missing_before(A, whole, part, k, lo + step, state) <= j:
            lo += step
            step *= 2
        hi = min(lo + step, n)  # more than j are missing before hi, at most j before lo
        while lo + 1 < hi:
            middle = (lo + hi) >> 1
            if missing_before(A, whole, part, k, middle, state) <= j:
                lo = middle
            else:
                hi = middle
        base, stride = place_of(A, whole, lo)
        for c in range(k):
            out[j * k + c] = A[base + c * stride]
        row = lo + 1
    return total


@helper
def missing_before(A: Words, whole: int, part: int, k: int, i: int, state: Words) -> int:
    """How many of the first i rows are missing.  O(log n + a page)."""
    state[PROBES] += 1
    base, stride = place_of(A, whole, i)
    if A[part + N_NODES] == 0:
        return i
    return i - rank(A, part, base, stride, 0, k, 0)


@helper
def place_of(A: Words, root: int, row: int) -> tuple[int, int]:
    """(Address of the first column of a row, by its number; distance of columns).  O(nodes + FANOUT)."""
    if A[root + FLAT_BASE] >= 0:
        return A[root + FLAT_BASE] + row, A[root + FLAT_STRIDE]
    ni = 0
    while row >= A[A[root + ROOT_HEADER + ni] + NODE_ROWS]:
        row -= A[A[root + ROOT_HEADER + ni] + NODE_ROWS]
        ni += 1
    entry = A[root + ROOT_HEADER + ni] + NODE_HEADER
    while row >= A[entry + FILL]:
        row -= A[entry + FILL]
        entry += ENTRY
    return A[entry + BASE] + row, A[entry + STRIDE]
