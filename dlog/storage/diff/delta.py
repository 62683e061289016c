"""Owns the difference of two versions of an index (maintenance paper, 3.3).  Knows nothing of how they arose.

Correct output: the rows of `new` that `old` lacks, and the rows of `old` that `new` lacks, each once, sorted.
"""

from __future__ import annotations

import numpy as np

from dlog.storage.diff.delta_kernels import (
    N_ERASED,
    N_INSERTED,
    STATE_WORDS,
    WORK,
)
from dlog.storage.diff.kernels import walk_difference
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index

FIRST_ROOM = 256
MOST_ROOM = 1 << 20


def difference(old: Index, new: Index) -> Change:
    """The net change from `old` to `new`.

    O(nodes + changed nodes * FANOUT + rows of changed leaves) when one was made from the other by changes;
    O(rows) when one of them was rebuilt.

    >>> from dlog.storage.arena.arena import Arena
    >>> index = Index.build(Arena(1 << 28), [(1, 2), (3, 4)], 2)
    >>> difference(index, index.insert_row((2, 2))).inserted.tolist()
    [[2, 2]]
    """
    return counted_difference(old, new)[0]


def counted_difference(old: Index, new: Index) -> tuple[Change, int]:
    """The same, and how many nodes, entries and rows were examined."""
    assert old.arena is new.arena and old.arity == new.arity
    k, A = old.arity, old.arena.A
    if k == 0:
        return _proposition(old, new), 1
    if old.root == new.root:
        return Change(np.empty((0, k), np.int64), np.empty((0, k), np.int64)), 0
    state = np.zeros(STATE_WORDS, np.int64)
    inserted, erased, room, done = [], [], FIRST_ROOM, 0
    while not done:
        out = np.empty((2, room, k), np.int64)
        done = walk_difference(A, old.root, new.root, k, state, room, out.reshape(-1))
        inserted.append(out[0, : state[N_INSERTED]])
        erased.append(out[1, : state[N_ERASED]])
        room = min(2 * room, MOST_ROOM)
    if len(inserted) == 1:  # copies, since a change may live long and the buffer is larger
        return Change(inserted[0].copy(), erased[0].copy()), int(state[WORK])
    return Change(np.concatenate(inserted), np.concatenate(erased)), int(state[WORK])


def _proposition(old: Index, new: Index) -> Change:
    inserted, erased = max(len(new) - len(old), 0), max(len(old) - len(new), 0)
    return Change(np.empty((inserted, 0), np.int64), np.empty((erased, 0), np.int64))
