"""Owns the steps from rows to roots: bulk load and batches of changes.  Knows nothing of handles.

REQUIRES, everywhere: the caller holds the arena's lock.  A root that is returned carries one reference, which
the caller owns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.arena_kernels import RECORD, RECORD_SLAB, RESULT, ROW, ROW_WORDS
from dlog.storage.arena.kernels import clone_root, node_words, release_root
from dlog.storage.index.kernels import (
    apply_ops,
    build_tree,
    change_row,
    flatten,
    locate,
    merge_ops,
    merge_tree,
    select_ops,
    set_ops,
    spread_tree,
)
from dlog.storage.index.leaf_kernels import ERASE, INSERT, ITEM, OP_COLUMNS
from dlog.storage.index.row_kernels import NEEDS_BATCH, UNCHANGED
from dlog.storage.index.sort import Rows, SortedRows, sort_rows
from dlog.storage.layout import (
    FANOUT,
    FLAT_BASE,
    FLAT_STRIDE,
    LEAF_ROWS,
    N_NODES,
    N_ROWS,
    ROOT_REFERENCES,
    ROOT_SCAN,
)

REBUILD_SHARE = 4  # a batch of more than a quarter of the rows is merged into a new flat extent


class Change(NamedTuple):
    """The net effect of a batch: sorted rows that are new, and sorted rows that were removed."""

    inserted: Words
    erased: Words

    def __bool__(self) -> bool:
        return len(self.inserted) > 0 or len(self.erased) > 0


def build_root(arena: Arena, rows: Rows, k: int, scan: int) -> int:
    """A flat tree over any rows.  `scan` is the root's scan word."""
    if k == 0 or rows.n == 0:
        return build_tree(arena.A, 0, 0, 0, min(rows.n, 1), k, scan)
    return _tree(arena, sort_rows(arena, rows), k, scan)


def put_root(arena: Arena, k: int, n: int, put: Callable[[Words, int], None], scan: int = 0) -> int:
    """A flat tree over n sorted rows that `put` writes into its extent.  `scan` is the root's scan word."""
    owner, base = arena.new_extent(n * k)
    put(arena.A, base)
    return _tree(arena, SortedRows(owner, base, n, n), k, scan)


def compact_root(arena: Arena, root: int, k: int) -> int:
    """A flat tree over the same rows.  O(n)."""
    n = arena.words[root + N_ROWS]
    if n == 0 or k == 0:
        return clone_root(arena.A, root)
    owner, base = arena.new_extent(n * k)
    flatten(arena.A, root, k, base, n)
    return _tree(arena, SortedRows(owner, base, n, n), k, arena.words[root + ROOT_SCAN])


def spread_root(arena: Arena, root: int, k: int) -> int:
    """A tree over the same rows, in leaves with room.  O(n).  REQUIRES: it is flat."""
    words = arena.words
    n, base, stride = words[root + N_ROWS], words[root + FLAT_BASE], words[root + FLAT_STRIDE]
    if n == 0 or k == 0:
        return clone_root(arena.A, root)
    assert base >= 0
    scan, leaves = words[root + ROOT_SCAN], 1 + n // (LEAF_ROWS // 4)
    leaf = LEAF_ROWS * k * 9 // 16 + 16 + 2 * RECORD  # a leaf of three eighths, a third more, and its class
    arena.reserve(leaves * leaf + (2 + leaves // (FANOUT // 2)) * node_words(scan) * 5 // 4 + 2 * leaves)
    return spread_tree(arena.A, base, stride, n, k, scan)


def changed_root(
    arena: Arena, root: int, k: int, inserts: Rows | None, erases: Rows | None, *, in_place: bool
) -> tuple[int, Change]:
    """The root after a batch and the net change.  In place the caller's reference to `root` is used up."""
    n = arena.words[root + N_ROWS]
    if k == 0:
        return _changed_proposition(arena, root, inserts, erases, in_place)
    if n == 0:
        return _first_rows(arena, root, k, inserts, in_place)
    if (inserts.n if inserts else 0) + (erases.n if erases else 0) == 1:
        done = _changed_row(arena, root, k, inserts, erases, in_place)
        if done is not None:
            return done
    batch = _load_batch(arena, k, inserts, erases)
    if batch is None:
        return _same(arena, root, in_place), _no_change(k)
    try:
        m = locate(arena.A, root, batch.base, batch.stride, batch.n, k)
        n_inserts = arena.words[RESULT]
        change = _read_change(arena, batch, m, k, n_inserts)
        if m == 0:
            return _same(arena, root, in_place), change
        if m * REBUILD_SHARE > n and n + n_inserts > LEAF_ROWS:
            return _merged(arena, root, batch, m, k, n + 2 * n_inserts - m, in_place), change
        return _edited(arena, root, batch, m, k, in_place), change
    finally:
        arena.release_extent(batch.owner)


def _changed_row(
    arena: Arena, root: int, k: int, inserts: Rows | None, erases: Rows | None, in_place: bool
) -> tuple[int, Change] | None:
    """A batch of one row, which is most transactions; None if it needs the general path."""
    rows, op = (inserts, INSERT) if inserts and inserts.n else (erases, ERASE)
    assert rows is not None
    row = np.array([[data[offset] for data, offset, _ in rows.columns]], np.int64)
    if k > ROW_WORDS:
        return None
    arena.A[ROW : ROW + k] = row[0]
    owned = in_place and arena.words[root + ROOT_REFERENCES] == 1
    changed = change_row(arena.A, root, k, op, 1 if owned else 0)
    if changed == NEEDS_BATCH:
        return None
    if changed == UNCHANGED:
        return _same(arena, root, in_place), _no_change(k)
    change = Change(row, _no_rows(k)) if op == INSERT else Change(_no_rows(k), row)
    return (changed if owned else _replace(arena, root, changed, in_place)), change


def _tree(arena: Arena, rows: SortedRows, k: int, scan: int) -> int:
    """A flat tree that takes ownership of the rows' extent."""
    leaves = 2 + 2 * rows.n // LEAF_ROWS
    arena.reserve((2 + 2 * leaves // FANOUT) * (node_words(scan) * 5 // 4) + 2 * leaves)
    root = build_tree(arena.A, rows.owner, rows.base, rows.stride, rows.n, k, scan)
    arena.release_extent(rows.owner)
    return root


def _load_batch(arena: Arena, k: int, inserts: Rows | None, erases: Rows | None) -> SortedRows | None:
    """Sorted operations; None if there are none."""
    new = sort_rows(arena, inserts, OP_COLUMNS) if inserts and inserts.n else None
    old = sort_rows(arena, erases, OP_COLUMNS) if erases and erases.n else None
    if new is None or old is None:
        batch = new or old
        if batch is not None:
            set_ops(arena.A, batch.base, batch.stride, batch.n, k, INSERT if new else ERASE)
        return batch
    n = new.n + old.n
    owner, base = arena.new_extent(n * (k + OP_COLUMNS))
    n_ops = merge_ops(arena.A, new.base, new.stride, new.n, old.base, old.stride, old.n, k, base, n)
    arena.release_extent(new.owner)
    arena.release_extent(old.owner)
    return SortedRows(owner, base, n, n_ops)


def _read_change(arena: Arena, batch: SortedRows, m: int, k: int, n_inserts: int) -> Change:
    inserted = np.empty((n_inserts, k), np.int64)
    erased = np.empty((m - n_inserts, k), np.int64)
    for op, out in ((INSERT, inserted), (ERASE, erased)):
        if len(out):
            select_ops(arena.A, batch.base, batch.stride, m, k, op, out.reshape(-1))
    return Change(inserted, erased)


def _same(arena: Arena, root: int, in_place: bool) -> int:
    if not in_place:
        arena.words[root + ROOT_REFERENCES] += 1
    return root


def _replace(arena: Arena, old: int, new: int, in_place: bool) -> int:
    if in_place:
        release_root(arena.A, old)
        arena.reclaim()
    return new


def _first_rows(arena: Arena, root: int, k: int, inserts: Rows | None, in_place: bool) -> tuple[int, Change]:
    """A batch on an empty index is a bulk load."""
    if inserts is None or inserts.n == 0:
        return _same(arena, root, in_place), _no_change(k)
    rows = sort_rows(arena, inserts)
    inserted = np.empty((rows.n, k), np.int64)
    for c in range(k):
        start = rows.base + c * rows.stride
        inserted[:, c] = arena.A[start : start + rows.n]
    new = _tree(arena, rows, k, arena.words[root + ROOT_SCAN])
    return _replace(arena, root, new, in_place), Change(inserted, _no_rows(k))


def _merged(arena: Arena, root: int, batch: SortedRows, m: int, k: int, n: int, in_place: bool) -> int:
    """A new flat tree of n rows.  O(n)."""
    scan = arena.words[root + ROOT_SCAN]
    if n == 0:
        return _replace(arena, root, build_tree(arena.A, 0, 0, 0, 0, k, scan), in_place)
    owner, base = arena.new_extent(n * k)
    merge_tree(arena.A, root, batch.base, batch.stride, m, k, base, n)
    return _replace(arena, root, _tree(arena, SortedRows(owner, base, n, n), k, scan), in_place)


def _edited(arena: Arena, root: int, batch: SortedRows, m: int, k: int, in_place: bool) -> int:
    """The tree with touched pages changed or copied.  O(m log n + touched pages)."""
    A, n_nodes = arena.A, arena.words[root + N_NODES]
    # A touched leaf is written again and may join both neighbours; splits make half-full pages.
    pages = 3 * min(m, n_nodes * FANOUT) + m // (LEAF_ROWS // 4) + 4
    nodes = 2 * min(m, n_nodes) + pages // (FANOUT // 2) + 4
    n_items = 4 * FANOUT + m // (LEAF_ROWS // 4) + 8
    n_list = 2 * n_nodes + nodes
    page_bound = (LEAF_ROWS * k * 9 // 8 + 16 + 2 * RECORD) * pages
    arena.reserve(page_bound + nodes * node_words(1) * 9 // 8 + 3 * n_list + 2 * RECORD_SLAB * RECORD)
    work, items = arena.new_extent(n_items * ITEM + n_list)
    if not in_place or arena.words[root + ROOT_REFERENCES] > 1:
        root = _replace(arena, root, clone_root(A, root), in_place)
    root = apply_ops(A, root, batch.base, batch.stride, m, k, items, items + n_items * ITEM)
    arena.release_extent(work)
    return root


def _changed_proposition(
    arena: Arena, root: int, inserts: Rows | None, erases: Rows | None, in_place: bool
) -> tuple[int, Change]:
    """An index without columns holds the empty row or nothing."""
    before = arena.words[root + N_ROWS]
    after = 1 if inserts and inserts.n else (0 if erases and erases.n else before)
    change = Change(
        np.empty((max(after - before, 0), 0), np.int64), np.empty((max(before - after, 0), 0), np.int64)
    )
    if not change:
        return _same(arena, root, in_place), change
    return _replace(arena, root, build_tree(arena.A, 0, 0, 0, after, 0, 0), in_place), change


def _no_rows(k: int) -> Words:
    return np.empty((0, k), np.int64)


def _no_change(k: int) -> Change:
    return Change(_no_rows(k), _no_rows(k))
