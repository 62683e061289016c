"""Owns interval trees: which intervals hold a point (maintenance paper, 3.2).  Knows nothing of their
meaning.

An interval tree is an index of rows (prefix of d columns, a, b, others), each for the closed
interval from (prefix, a) to (prefix, b); LEAST and GREATEST are the open ends.  It is versioned as every
index is; built here, it stores the greatest b of each leaf and node.  All intervals have a <= b.

Within a leaf the ends of rows are compared one after the other, a block at a time: 1,024 rows took 0.2 us,
less than the search for the point.  Smaller scans inside leaves would make no difference.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from dlog.storage.layout import ROOT_SCAN
from dlog.storage.scan.interval_kernels import (
    GREATEST,
    LEAST,
    POINT,
    STATE_WORDS,
    WORK,
    stab_points,
)

__all__ = ["GREATEST", "LEAST", "Matches", "build_intervals", "stabbing"]

FIRST_ROOM = 256
MOST_ROOM = 1 << 20


class Matches(NamedTuple):
    """Rows that hold a point, by point and then in the index's order; `points` gives the point's number."""

    rows: Words
    points: Words
    work: int  # nodes, entries, blocks of rows and rows examined


def build_intervals(arena: Arena, rows: Any, arity: int, prefix: int) -> Index:
    """An interval tree of rows with `prefix` columns before a and b.  As `Index.build`.

    >>> tree = build_intervals(Arena(1 << 28), [(2, 10), (3, 7), (5, 15), (6, 9)], 2, prefix=0)
    >>> stabbing(tree, 0, [[10]]).rows.tolist()
    [[2, 10], [5, 15]]
    """
    return Index.build(arena, rows, arity, scan=prefix + 1)


def stabbing(index: Index, prefix: int, points: Any) -> Matches:
    """All rows that hold one of the points (prefix columns, x), an (n, prefix + 1) array in any order.

    O((m + 1) (log n + a page)) for a point with m matches.
    """
    assert index.arena.words[index.root + ROOT_SCAN] == prefix + 2, "no scans of the ends of intervals"
    asked = np.ascontiguousarray(points, dtype=np.int64).reshape(-1, prefix + 1)
    state, room, k = np.zeros(STATE_WORDS, np.int64), FIRST_ROOM, index.arity
    found, which = [], []
    while state[POINT] < len(asked):
        out, of = np.empty((room, k), np.int64), np.empty(room, np.int64)
        m = stab_points(
            index.arena.A,
            index.root,
            prefix,
            k,
            asked.reshape(-1),
            len(asked),
            state,
            out.reshape(-1),
            of,
            room,
        )
        found.append(out[:m])
        which.append(of[:m])
        room = min(2 * room, MOST_ROOM)
    if len(found) == 1:  # copies, since the buffer is larger
        return Matches(found[0].copy(), which[0].copy(), int(state[WORK]))
    empty = np.empty((0, k), np.int64)
    return Matches(np.concatenate([empty, *found]), np.concatenate([empty[:, 0], *which]), int(state[WORK]))
