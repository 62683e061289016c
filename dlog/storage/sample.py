"""Owns samples of an index, for statistics: rows spread evenly over it, from a few leaves."""

from __future__ import annotations

import numpy as np

from dlog.jit import Words
from dlog.storage.index import Index
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FILL,
    FLAT_BASE,
    FLAT_STRIDE,
    N_ENTRIES,
    N_NODES,
    NODE_HEADER,
    ROOT_HEADER,
    STRIDE,
)

_LEAVES = 256


def sample(index: Index, size: int) -> Words:
    """About `size` rows, evenly spread, as an (m, arity) array in index order; all rows when there are fewer.

    O(size + nodes).
    """
    n, k = len(index), index.arity
    if n <= size or k == 0:
        return index.rows()
    A, root = index.arena.A, index.root
    flat, stride = int(A[root + FLAT_BASE]), int(A[root + FLAT_STRIDE])
    if flat >= 0:
        at = np.linspace(0, n - 1, size).astype(np.int64)
        return np.stack([A[flat + c * stride + at] for c in range(k)], axis=1)
    return np.concatenate([_from_leaf(A, e, k, max(1, size // _LEAVES)) for e in _leaves(A, root)])


def _leaves(A: Words, root: int) -> list[int]:
    """Addresses of the entries of up to _LEAVES leaves, evenly spread."""
    nodes = A[root + ROOT_HEADER : root + ROOT_HEADER + int(A[root + N_NODES])]
    ends = np.cumsum(A[nodes + N_ENTRIES])
    chosen = np.unique(np.linspace(0, ends[-1] - 1, _LEAVES).astype(np.int64))
    node_of = np.searchsorted(ends, chosen, side="right")
    first = np.concatenate([[0], ends[:-1]])
    return [int(e) for e in nodes[node_of] + NODE_HEADER + ENTRY * (chosen - first[node_of])]


def _from_leaf(A: Words, entry: int, k: int, size: int) -> Words:
    base, stride, fill = (int(A[entry + field]) for field in (BASE, STRIDE, FILL))
    at = np.unique(np.linspace(0, fill - 1, size).astype(np.int64))
    return np.stack([A[base + c * stride + at] for c in range(k)], axis=1)
