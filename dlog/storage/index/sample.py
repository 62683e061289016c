"""Owns samples of rows, for statistics.  They are random, but the same for the same rows.

Evenly spaced rows would not do: they never include two rows of a small group.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dlog.jit import Words
from dlog.storage.index.index import Index
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

_SEED = 1


def sample_places(n: int, size: int) -> Words:
    """About `size` different numbers below n, at random, rising; all of them if there are fewer."""
    if n <= size:
        return np.arange(n)
    return np.unique(np.random.default_rng(_SEED).integers(0, n, size))


def sample(index: Index, size: int) -> Words:
    """About `size` rows as an (m, arity) array in index order; all rows if there are fewer.

    O(size log size + nodes).
    """
    n, k = len(index), index.arity
    if n <= size or k == 0:
        return index.rows()
    A, root = index.arena.A, index.root
    flat, stride = int(A[root + FLAT_BASE]), int(A[root + FLAT_STRIDE])
    at = sample_places(n, size)
    if flat >= 0:
        return np.stack([A[flat + c * stride + at] for c in range(k)], axis=1)
    entries, within = _in_leaves(A, root, at / n)
    bases, strides = (A[entries + field] for field in (BASE, STRIDE))
    return np.stack([A[bases + c * strides + within] for c in range(k)], axis=1)


def _in_leaves(A: Words, root: int, parts: NDArray[np.float64]) -> tuple[Words, Words]:
    """The positions of rows after these fractions of all rows, if all leaves had one size: the addresses of
    entries, and places in their leaves, each once.
    """
    nodes = A[root + ROOT_HEADER : root + ROOT_HEADER + int(A[root + N_NODES])]
    ends = np.cumsum(A[nodes + N_ENTRIES])
    leaves, within = np.divmod(parts * int(ends[-1]), 1.0)
    number = leaves.astype(np.int64)
    node_of = np.searchsorted(ends, number, side="right")
    first = np.concatenate([[0], ends[:-1]])
    entries = nodes[node_of] + NODE_HEADER + ENTRY * (number - first[node_of])
    place = (within * A[entries + FILL]).astype(np.int64)
    new = np.ones(len(place), np.bool_)
    new[1:] = (number[1:] != number[:-1]) | (place[1:] != place[:-1])
    return entries[new], place[new]
