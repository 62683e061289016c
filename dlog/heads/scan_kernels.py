"""Owns the kernels of scan predicates: first and last rows of prefixes, scans, runs of rows, words of texts.

Knows nothing of groups or types.
"""

from __future__ import annotations

from dlog.jit import Bytes, Words, helper, kernel
from dlog.storage.arena.arena_kernels import RESULT, ROW
from dlog.storage.arena.pointer import pointer
from dlog.storage.dictionary.text_sort_kernels import BYTES, is_before_from, word_at
from dlog.storage.index.trie_kernels import (
    end_position,
    key_at,
    next_position,
    rows_between,
    run_end,
    seek_lub,
)
from dlog.storage.layout import (
    ENTRY,
    FANOUT,
    FILL,
    FLAT_BASE,
    N_ENTRIES,
    N_ROWS,
    NODE_HEADER,
    OFFSET_BITS,
    ROOT_HEADER,
    SCAN_MAX,
    SCAN_MIN,
)
from dlog.storage.scan.scan_kernels import scan_rows


@kernel
def edge_rows(
    arena: Words, root: int, d: int, k: int, keys: Words, n: int, found: Words, first: Words, last: Words
) -> None:
    """For each of n keys of d words: whether rows of an index of arity k begin with it, and the words after
    it in the first and in the last of them.  O(n d log rows).
    """
    rest = k - d
    for i in range(n):
        lo, hi = find_run(arena, root, d, keys, i * d)
        found[i] = 1 if lo < hi else 0
        if lo < hi:
            final = previous_position(arena, root, hi)
            for c in range(rest):
                first[i * rest + c] = key_at(arena, root, d + c, lo)
                last[i * rest + c] = key_at(arena, root, d + c, final)


@kernel
def scan_prefixes(
    arena: Words, root: int, d: int, keys: Words, n: int, column: int, found: Words, first: Words, last: Words
) -> None:
    """For each of n keys of d words: how many rows begin with it, the least and the greatest word of a column
    whose scans are maintained.  O(n (log rows + a page)).  REQUIRES: the arena's lock is held.
    """
    A = pointer(arena)
    for i in range(n):
        for c in range(d):
            A[ROW + c] = keys[i * d + c]
        found[i] = scan_rows(A, root, ROW, d, ROW, d, column)
        first[i] = A[RESULT + SCAN_MIN]
        last[i] = A[RESULT + SCAN_MAX]


@kernel
def count_runs(arena: Words, root: int, d: int, keys: Words, n: int, bounds: Words) -> None:
    """bounds[i + 1] - bounds[i] = how many rows begin with key i.  O(n (d log rows + pages between))."""
    bounds[0] = 0
    for i in range(n):
        lo, hi = find_run(arena, root, d, keys, i * d)
        bounds[i + 1] = bounds[i] + rows_between(arena, root, lo, hi)


@kernel
def read_runs(arena: Words, root: int, d: int, k: int, keys: Words, n: int, out: Words) -> None:
    """The words after each key in all rows that begin with it, key by key."""
    at, rest = 0, k - d
    for i in range(n):
        lo, hi = find_run(arena, root, d, keys, i * d)
        while lo < hi:
            for c in range(rest):
                out[at * rest + c] = key_at(arena, root, d + c, lo)
            at += 1
            lo = next_position(arena, root, lo)


@helper
def find_run(arena: Words, root: int, d: int, keys: Words, at: int) -> tuple[int, int]:
    """The positions of the rows that begin with d words of keys; (0, 0) when there is none."""
    if arena[root + N_ROWS] == 0:
        return 0, 0
    lo, hi = 0, end_position(arena, root)
    for c in range(d):
        key = keys[at + c]
        lo = seek_lub(arena, root, c, lo, hi, key)
        if lo >= hi or key_at(arena, root, c, lo) != key:
            return 0, 0
        hi = run_end(arena, root, c, lo, hi)
    return lo, hi


@helper
def previous_position(arena: Words, root: int, position: int) -> int:
    """The position of the previous row.  O(1).  REQUIRES: there is one."""
    if arena[root + FLAT_BASE] >= 0 or position & ((1 << OFFSET_BITS) - 1) > 0:
        return position - 1
    ordinal = (position >> OFFSET_BITS) - 1
    node = arena[root + ROOT_HEADER + ordinal // FANOUT]
    e = min(ordinal % FANOUT, arena[node + N_ENTRIES] - 1)
    fill = arena[node + NODE_HEADER + ENTRY * e + FILL]
    return ((ordinal // FANOUT * FANOUT + e) << OFFSET_BITS) + fill - 1


# ---- texts


@kernel
def text_words(text: Bytes, ends: Words, codes: Words, n: int, width: int, out: Words) -> None:
    """The first bytes of texts as `width` words each, which sort like the texts."""
    for i in range(n):
        start, end = ends[codes[i]], ends[codes[i] + 1]
        for w in range(width):
            out[i * width + w] = word_at(text, min(start + BYTES * w, end), end)


@kernel
def extreme_texts(
    text: Bytes, ends: Words, codes: Words, bounds: Words, n: int, sign: int, out: Words
) -> None:
    """For each of n runs of codes, the one whose text is least (sign 1) or greatest (sign -1).

    REQUIRES: no run is empty.  O(codes), and the bytes in which they agree.
    """
    for i in range(n):
        best = codes[bounds[i]]
        for j in range(bounds[i] + 1, bounds[i + 1]):
            code = codes[j]
            before = is_before_from(text, ends, code, best, 0)
            if before == (sign > 0):
                best = code
        out[i] = best
