"""Owns point queries on relations, many at a time: does this row exist, what is this key's value."""

from __future__ import annotations

import numpy as np

from dlog.heads import kernels
from dlog.jit import Words
from dlog.storage.index.index import Index
from dlog.storage.relation.relation import Relation


def look_up(relation: Relation, keys: Words) -> tuple[Words, Words]:
    """(0, 1 or 2 for no row, one row or several that begin with a key; what follows the key in the first).

    `keys` is (n, d) in the predicate's own columns, d at most the arity.  O(n d log rows).

    >>> from dlog.storage.arena.arena import Arena
    >>> relation = Relation.build(Arena(1 << 28), [(1, 5), (2, 6), (2, 7)], 2)
    >>> found, values = look_up(relation, np.array([[1], [2], [3]]))
    >>> found.tolist(), values[:2].tolist()
    ([1, 2, 0], [[5], [6]])
    """
    return look_up_index(relation.index(tuple(range(relation.arity))), keys)


def look_up_index(index: Index, keys: Words) -> tuple[Words, Words]:
    """The same in one index; the keys are its first columns."""
    n, d = keys.shape
    found = np.empty(n, np.int64)
    rest = np.zeros((n, index.arity - d), np.int64)
    flat = np.ascontiguousarray(keys, np.int64).reshape(-1)
    if index.arity == 0:
        found[:] = len(index)
    else:
        kernels.look_up(index.arena.A, index.root, d, index.arity, flat, n, found, rest.reshape(-1))
    return found, rest


def contained(relation: Relation, rows: Words) -> np.ndarray:
    """Which rows a relation has."""
    return look_up(relation, rows)[0] > 0
