"""Owns scans over intervals of rows.  Knows nothing of how the scan areas of nodes are maintained."""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.fold_kernels import add_scan, level_above, rows_of, scan_of
from dlog.storage.index.leaf_kernels import scan_leaf
from dlog.storage.index.tree_kernels import entry_bound, leaf_bound, node_bound
from dlog.storage.layout import (
    BASE,
    CAPACITY,
    ENTRY,
    FILL,
    FOLD,
    FOLD_BITS,
    N_ENTRIES,
    N_NODES,
    NODE_HEADER,
    NODE_SCAN,
    ROOT_HEADER,
    ROOT_SCAN,
    SCAN_WORDS,
    STRIDE,
)

# The result, in words from RESULT: scan words, then the number of rows, then the work done.
COUNT_AT: Final = RESULT + SCAN_WORDS
WORK_AT: Final = RESULT + SCAN_WORDS + 1
LEAF_AT: Final = RESULT + 8  # room for the scan of one leaf
PLACE_AT: Final = RESULT + 16  # two places: node, entry, row


@helper
def scan_rows(A: Words, root: int, lower: int, d: int, upper: int, e: int, column: int) -> int:
    """Scan a column over the rows from the key at `lower` (d columns) to the one at `upper` (e columns).

    Both ends belong to it, as prefixes; d = 0 or e = 0 leaves that end open.  Returns the number of rows.
    O(log n + FANOUT + LEAF_ROWS) if the index has scans of the column, else O(log n + rows).
    """
    for x in range(RESULT, WORK_AT + 1):
        A[x] = 0
    if A[root + N_NODES] == 0:
        return 0
    find_place(A, root, lower, d, 0, PLACE_AT)
    find_place(A, root, upper, e, 1, PLACE_AT + 3)
    if e == 0:
        A[PLACE_AT + 3] = A[root + N_NODES]
        A[PLACE_AT + 4] = 0
        A[PLACE_AT + 5] = 0
    kept = A[root + ROOT_SCAN] == column + 1
    last, last_entry, last_row = A[PLACE_AT + 3], A[PLACE_AT + 4], A[PLACE_AT + 5]
    ni, ei, row = A[PLACE_AT], A[PLACE_AT + 1], A[PLACE_AT + 2]
    while ni < last or (ni == last and (ei < last_entry or (ei == last_entry and row < last_row))):
        node = A[root + ROOT_HEADER + ni]
        if kept and ei == 0 and row == 0 and ni < last:
            add_nodes(A, root, ni, last)
            ni = last
            continue
        entry = node + NODE_HEADER + ENTRY * ei
        end = last_row if ni == last and ei == last_entry else A[entry + FILL]
        if kept and row == 0 and end == A[entry + FILL]:
            add_part(A, node + NODE_SCAN + SCAN_WORDS * (ei + 1), end)
        elif row < end:
            scan_leaf(A, A[entry + BASE] + column * A[entry + STRIDE] + row, end - row, LEAF_AT)
            A[WORK_AT] += end - row
            add_part(A, LEAF_AT, end - row)
        row = 0
        ei += 1
        if ei == A[node + N_ENTRIES]:
            ni, ei = ni + 1, 0
    return A[COUNT_AT]


@helper
def add_nodes(A: Words, root: int, lo: int, hi: int) -> None:
    """Add the scans of the nodes lo to before hi to the result.  O(FOLD log n_nodes)."""
    level, room = 0, A[root + CAPACITY]
    while lo < hi:
        while lo < hi and lo & (FOLD - 1):
            add_part(A, scan_of(A, root, level, lo), rows_of(A, root, level, lo))
            lo += 1
        while lo < hi and hi & (FOLD - 1):
            hi -= 1
            add_part(A, scan_of(A, root, level, hi), rows_of(A, root, level, hi))
        if lo < hi:
            level, room = level_above(A, root, level, room)
            lo, hi = lo >> FOLD_BITS, hi >> FOLD_BITS


@helper
def find_place(A: Words, root: int, key: int, d: int, bias: int, at: int) -> None:
    """The place (node, entry, row) of the first row not before the key (bias 0) or after it (bias 1)."""
    ni = node_bound(A, root, 0, key, 1, 0, d, bias)
    node = A[root + ROOT_HEADER + ni]
    ei = entry_bound(A, node, 0, key, 1, 0, d, bias)
    entry = node + NODE_HEADER + ENTRY * ei
    A[at] = ni
    A[at + 1] = ei
    A[at + 2] = leaf_bound(A, A[entry + BASE], A[entry + STRIDE], 0, A[entry + FILL], key, 1, 0, d, bias)


@helper
def add_part(A: Words, scan: int, rows: int) -> None:
    """Add the scan of some rows to the result."""
    A[WORK_AT] += 1
    if A[COUNT_AT] == 0:
        for x in range(SCAN_WORDS):
            A[RESULT + x] = A[scan + x]
    else:
        add_scan(A, RESULT, scan)
    A[COUNT_AT] += rows
