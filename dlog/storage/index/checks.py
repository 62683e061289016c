"""Owns the invariants of an index.  Knows nothing of how they are maintained; shares no code with the
kernels.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from dlog.jit import Words
from dlog.storage import layout
from dlog.storage.arena import arena_kernels as memory
from dlog.storage.arena.arena import Arena


def check_index(arena: Arena, root: int, arity: int) -> None:
    """Assert all invariants of one version.  O(n)."""
    A = arena.A
    n_nodes, n_rows = int(A[root + layout.N_NODES]), int(A[root + layout.N_ROWS])
    assert A[root + layout.ARITY] == arity
    assert A[root + layout.ROOT_REFERENCES] >= 1
    assert A[root + layout.CAPACITY] >= n_nodes
    if arity == 0:
        assert n_nodes == 0 and n_rows in (0, 1) and A[root + layout.FLAT_BASE] == 0
        return
    nodes = A[root + layout.ROOT_HEADER : root + layout.ROOT_HEADER + n_nodes]
    scan = int(A[root + layout.ROOT_SCAN])
    leaves = [leaf for node in nodes for leaf in _check_node(A, int(node), arity, scan)]
    firsts = root + layout.ROOT_HEADER + int(A[root + layout.CAPACITY])
    first_keys = A[firsts : firsts + n_nodes]
    assert np.array_equal(first_keys, A[nodes + layout.NODE_FIRST]), "a first key is not that of its node"
    _check_neighbours([int(A[node + layout.N_ENTRIES]) for node in nodes], layout.FANOUT)
    _check_folds(A, root, nodes, scan)
    columns = np.concatenate(leaves, axis=1) if leaves else np.empty((arity, 0), np.int64)
    assert columns.shape[1] == n_rows
    _check_sorted(columns)
    _check_flat(A, root, columns)


def _check_node(A: Words, node: int, arity: int, scan: int) -> list[Words]:
    """The node's leaves, as (arity, fill) arrays."""
    n = int(A[node + layout.N_ENTRIES])
    assert 1 <= n <= layout.FANOUT
    assert A[node + layout.NODE_REFERENCES] >= 1
    start = node + layout.NODE_HEADER
    entries = A[start : start + layout.ENTRY * n].reshape(n, layout.ENTRY)
    leaves: list[Words] = []
    for base, stride, fill, owner in entries.tolist():
        assert 1 <= fill <= layout.LEAF_ROWS and fill <= stride
        first, words = int(A[owner + memory.EXTENT_BASE]), int(A[owner + memory.EXTENT_WORDS])
        assert A[owner + memory.COUNT] >= 1, "a leaf in free memory"
        assert first <= base and base + (arity - 1) * stride + fill <= first + words
        assert A[node + layout.NODE_FIRST + len(leaves)] == A[base], "a first key is not that of its leaf"
        leaves.append(np.stack([A[base + c * stride : base + c * stride + fill] for c in range(arity)]))
    assert A[node + layout.NODE_ROWS] == sum(leaf.shape[1] for leaf in leaves)
    _check_neighbours([leaf.shape[1] for leaf in leaves], layout.LEAF_ROWS)
    if scan:
        _check_scan(A, node, [leaf[scan - 1] for leaf in leaves])
    return leaves


def _check_neighbours(sizes: list[int], full: int) -> None:
    """No two neighbours fit in half of a page."""
    for left, right in pairwise(sizes):
        assert left + right > full // 2, f"neighbours of {left} and {right}"


def _check_scan(A: Words, node: int, columns: list[Words]) -> None:
    area = node + layout.NODE_SCAN
    for e, values in enumerate([np.concatenate(columns), *columns]):
        least, most, low, high = A[area + layout.SCAN_WORDS * e : area + layout.SCAN_WORDS * (e + 1)].tolist()
        assert (least, most) == (values.min(), values.max())
        assert (high << 32) + low == sum(values.tolist())


def _check_folds(A: Words, root: int, nodes: Words, scan: int) -> None:
    """Every fold is that of the nodes below it."""
    room, at, span = int(A[root + layout.CAPACITY]), int(A[root + layout.ROOT_FOLDS]), layout.FOLD
    assert (at != 0) == (room >= layout.FOLD)
    rows = A[nodes + layout.NODE_ROWS]
    scans = A[nodes[:, None] + layout.NODE_SCAN + np.arange(layout.SCAN_WORDS)] if scan else None
    while room >= layout.FOLD:
        room = -(-room // layout.FOLD)
        for start in range(0, len(nodes), span):
            assert A[at] == rows[start : start + span].sum(), "a fold of rows"
            if scans is not None:
                of = scans[start : start + span]
                folded = [of[:, 0].min(), of[:, 1].max(), of[:, 2].sum(), of[:, 3].sum()]
                assert A[at + 1 : at + 1 + layout.SCAN_WORDS].tolist() == folded, "a fold of scans"
            at += 1 + (layout.SCAN_WORDS if scan else 0)
        at += (room - -(-len(nodes) // span)) * (1 + (layout.SCAN_WORDS if scan else 0))
        span *= layout.FOLD


def _check_sorted(columns: Words) -> None:
    """Rows ascend strictly: at the first column that differs the later row is greater."""
    undecided = np.ones(max(columns.shape[1] - 1, 0), bool)
    for column in columns:
        assert not np.any(undecided & (column[1:] < column[:-1])), "rows out of order"
        undecided &= column[1:] == column[:-1]
    assert not undecided.any(), "a row twice"


def _check_flat(A: Words, root: int, columns: Words) -> None:
    base, stride = int(A[root + layout.FLAT_BASE]), int(A[root + layout.FLAT_STRIDE])
    if base < 0:
        assert A[root + layout.N_NODES] > 0
        return
    for c, column in enumerate(columns):
        assert np.array_equal(A[base + c * stride : base + c * stride + len(column)], column)
