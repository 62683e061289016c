"""Owns the change of one row: the short path through an index for changes that split or join no leaves."""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, prefetch
from dlog.storage.arena.arena_kernels import (
    BUMP,
    EXTENT_BASE,
    LARGE_WORDS,
    LIMIT,
    LINE,
    ROW,
    clone_root,
    new_extent,
    release_extent,
)
from dlog.storage.index.change_kernels import own_node, set_first, set_flat, total_scan
from dlog.storage.index.fold_kernels import refold
from dlog.storage.index.leaf_kernels import INSERT, is_private, page_rows, scan_leaf, shift_left, shift_right
from dlog.storage.index.tree_kernels import compare, copy_rows, entry_bound, leaf_bound, node_bound
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FILL,
    LEAF_ROWS,
    N_ENTRIES,
    N_NODES,
    N_ROWS,
    NODE_FIRST,
    NODE_HEADER,
    NODE_ROWS,
    NODE_SCAN,
    OWNER,
    ROOT_HEADER,
    ROOT_SCAN,
    SCAN_WORDS,
    STRIDE,
)

# Results of change_row besides a root.
UNCHANGED: Final = 0
NEEDS_BATCH: Final = -1


@helper
def change_row(A: Words, root: int, k: int, op: int, in_place: int) -> int:
    """Insert or erase the row at ROW.  Returns the new root, UNCHANGED, or NEEDS_BATCH if a leaf would be
    split, dropped or joined: then nothing has been done.  O(log n + n_nodes + FANOUT + LEAF_ROWS).
    """
    n_nodes = A[root + N_NODES]
    if n_nodes == 0 or A[LIMIT] - A[BUMP] < LARGE_WORDS + 2 * (n_nodes + LEAF_ROWS * k):
        return NEEDS_BATCH
    ni = node_bound(A, root, 0, ROW, 1, 0, k, 1)
    ei = entry_bound(A, A[root + ROOT_HEADER + ni], 0, ROW, 1, 0, k, 1)
    entry = A[root + ROOT_HEADER + ni] + NODE_HEADER + ENTRY * ei
    base, stride, fill = A[entry + BASE], A[entry + STRIDE], A[entry + FILL]
    fetch_rows(A, base, stride, fill, k)
    position = leaf_bound(A, base, stride, 0, fill, ROW, 1, 0, k, 0)
    present = position < fill and compare(A, base, stride, position, ROW, 1, 0, k) == 0
    if present == (op == INSERT):
        return UNCHANGED
    if not is_plain(A, A[root + ROOT_HEADER + ni], ei, op):
        return NEEDS_BATCH
    if in_place == 0:
        root = clone_root(A, root)
    node = own_node(A, root, ni)
    own_change(A, node, ei, position, k, op, A[root + ROOT_SCAN])
    A[node + NODE_ROWS] += 2 * op - 1
    A[root + N_ROWS] += 2 * op - 1
    set_first(A, root, ni)
    refold(A, root, ni)
    set_flat(A, root)
    return root


@helper
def fetch_rows(A: Words, base: int, stride: int, fill: int, k: int) -> None:
    """Prefetch a whole leaf, which is to be searched and copied: its lines come at once, not each when the
    last has been examined.  O(lines)."""
    for c in range(k):
        for x in range(0, fill, LINE):
            prefetch(A, base + c * stride + x)


@helper
def is_plain(A: Words, node: int, e: int, op: int) -> bool:
    """Whether inserting or erasing one row preserves the leaf, with no neighbour to join."""
    entry = node + NODE_HEADER + ENTRY * e
    fill = A[entry + FILL] + 2 * op - 1
    if op == INSERT:
        return fill <= LEAF_ROWS
    if fill == 0:
        return False
    if e > 0 and A[entry - ENTRY + FILL] + fill <= LEAF_ROWS // 2:
        return False
    return e + 1 == A[node + N_ENTRIES] or A[entry + ENTRY + FILL] + fill > LEAF_ROWS // 2


@helper
def own_change(A: Words, node: int, e: int, position: int, k: int, op: int, scan: int) -> None:
    """Insert or erase one row of a leaf of a private node; the leaf is copied if it is not private."""
    entry = node + NODE_HEADER + ENTRY * e
    base, stride, fill, owner = A[entry + BASE], A[entry + STRIDE], A[entry + FILL], A[entry + OWNER]
    kept = position + 1 - op  # the first row after the change's place
    if fill + op <= stride and is_private(A, base, owner):
        if op == INSERT:
            shift_right(A, base, stride, position, fill, 1, k)
        else:
            shift_left(A, base, stride, kept, fill, 1, k)
    else:
        room = page_rows(fill + 1)
        copy = new_extent(A, room * k, 1)
        to = A[copy + EXTENT_BASE]
        copy_rows(A, base, stride, 0, position, to, room, 0, k)
        copy_rows(A, base, stride, kept, fill - kept, to, room, position + op, k)
        release_extent(A, owner, 1)
        base, stride = to, room
        A[entry + BASE] = base
        A[entry + STRIDE] = stride
        A[entry + OWNER] = copy
    if op == INSERT:
        copy_rows(A, ROW, 1, 0, 1, base, stride, position, k)
    A[entry + FILL] = fill + 2 * op - 1
    A[node + NODE_FIRST + e] = A[base]
    if scan > 0:
        scan_leaf(A, base + (scan - 1) * stride, A[entry + FILL], node + NODE_SCAN + SCAN_WORDS * (e + 1))
        total_scan(A, node)
