"""Owns sensitivity indices: rows (prefix, a, b, others), as versions that share pages as all data does, or
take over those of the version before if nothing else holds them (`RelationGroup.followed_in_place`).

A row means: where the atom's columns before this one are `prefix` and the other key variables of the context
are `others`, the run is sensitive to keys from a to b, both inclusive.

Exact indices of leaps that an oracle can lead to in parts are also stored by context.  There, after a cycle,

    of an interval whose end the oracle covers, the rest stays; one that is covered only inside stays whole.
    If all of it were removed, a change of its other keys would be missed: at x = 0 let I = {1, 10, 15} and
    R = {5, 20}, R sensitive in [10, 20]; erase I(0, 10), the oracle being the point 10, then insert R(15)
    intervals of a context that are in one gap of the atom are one; and a changed key of an atom that is not
    traced contributes the intervals of others that hold it, not only itself: so intervals are not split
    into ever smaller pieces

All other indices always equal what a fresh evaluation notes, so old notes are found by their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlog.jit import Words
from dlog.sensitivity.index_kernels import covered, overlapping, prefixed, work_words
from dlog.sensitivity.packed import packed
from dlog.sensitivity.rows import distinct_rows
from dlog.sensitivity.watches import Watch
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index
from dlog.storage.relation.relation import Relation
from dlog.storage.scan.interval_tree import Matches, build_intervals, stabbing


@dataclass(frozen=True)
class Spec:
    """The form of an index: columns before a, columns after b, and whether it is also stored by context."""

    prefix: int
    others: int
    by_context: bool

    @classmethod
    def of(cls, watch: Watch, exact: bool) -> Spec:
        return cls(len(watch.prefix), len(watch.others), exact)

    @property
    def arity(self) -> int:
        return self.prefix + 2 + self.others

    @property
    def context_order(self) -> tuple[int, ...]:
        """Prefix, others, a, b."""
        p = self.prefix
        return (*range(p), *range(p + 2, self.arity), p, p + 1)


@dataclass(frozen=True)
class Intervals:
    """One version of one index."""

    spec: Spec
    relation: Relation

    @property
    def tree(self) -> Index:
        return self.relation.index(tuple(range(self.spec.arity)))

    def __len__(self) -> int:
        return len(self.relation)

    @property
    def bytes(self) -> int:
        """Of its rows, in all orders that are stored."""
        return 8 * self.spec.arity * len(self.relation) * len(self.relation.orders)

    def rows(self) -> Words:
        return self.tree.rows()

    def stabbing(self, points: Any) -> Matches:
        """Rows that hold a point (prefix, key)."""
        return stabbing(self.tree, self.spec.prefix, points)

    def beginning(self, prefixes: Words) -> Matches:
        """All rows that begin with one of some prefixes."""
        asked = np.ascontiguousarray(prefixes)
        n, d = asked.shape
        room, count = 64, 65
        while count > room:
            room = max(room, count)
            rows, points = np.empty((room, self.spec.arity), np.int64), np.empty(room, np.int64)
            A, root = self.tree.arena.A, self.tree.root
            count = prefixed(
                A, root, d, self.spec.arity, asked.reshape(-1), n, rows.reshape(-1), points, room
            )
        return Matches(rows[:count], points[:count], count)

    def apply(self, change: Change) -> Intervals:
        """A new version."""
        later, _ = self.relation.apply(inserts=change.inserted, erases=change.erased)
        return Intervals(self.spec, later)

    def meeting(self, covers: Words) -> tuple[Words, Words]:
        """(Rows that meet one of the covers, which are rows of this form, and their direct neighbours, some
        maybe several times; for each the number of the cover).

        REQUIRES: stored by context.  O((covers + found) log n)."""
        order = self.spec.context_order
        index = self.relation.index(order)
        asked = np.ascontiguousarray(covers[:, list(order)]).reshape(-1)
        d, room, n = self.spec.arity - 2, 4 * len(covers) + 16, 0
        places = np.empty(2 * len(covers), np.int64)
        while True:
            out, which = np.empty((room, self.spec.arity), np.int64), np.empty(room, np.int64)
            A, root = index.arena.A, index.root
            n = overlapping(A, root, d, asked, len(covers), out.reshape(-1), which, places, room)
            if n <= room:
                return out[:n, np.argsort(order)], which[:n]
            room = n

    def holding(self, points: Words) -> tuple[Words, Words]:
        """For rows of this form with a = b: the ranges of the intervals that hold that key."""
        p = self.spec.prefix
        low, high = points[:, p].copy(), points[:, p].copy()
        rows, which = self.meeting(points)
        keys = points[which, p]
        holds = (rows[:, p] <= keys) & (rows[:, p + 1] >= keys)
        np.minimum.at(low, which[holds], rows[holds, p])
        np.maximum.at(high, which[holds], rows[holds, p + 1])
        return low, high

    def check(self) -> None:
        """Assert all invariants of one index.  O(n log n)."""
        self.relation.check()
        rows, p = self.rows(), self.spec.prefix
        assert (rows[:, p] <= rows[:, p + 1]).all(), "an interval ends before it begins"
        if self.spec.by_context:
            kept = self.relation.index(self.spec.context_order).rows()
            same = (kept[1:, :-2] == kept[:-1, :-2]).all(axis=1)
            assert (kept[1:, -1] >= kept[:-1, -1])[same].all(), "intervals of a context are not in order"


def recorded(arena: Arena, spec: Spec, parts: Sequence[Words]) -> Intervals:
    """An index of the noted rows, in any order, maybe several times."""
    rows = packed(parts)
    if rows is None:
        noted = np.concatenate(parts) if parts else ()
        index = build_intervals(arena, noted, spec.arity, spec.prefix)
    else:
        index = Index.of_sorted(arena, spec.arity, rows.n, rows.put, scan=spec.prefix + 1)
    relation = Relation.of_index(index)
    if spec.by_context:
        relation.add_order(spec.context_order)
        relation = (
            relation.spread()
        )  # a changed row is many intervals: copying leaves took a third of the time
    return Intervals(spec, relation)


def covered_changes(index: Intervals, words: Words, root: int, covers: Words, noted: Words) -> Change:
    """The change of an index by context: covered parts are removed, noted rows are added.

    `root` is that of the new version of what the index watches.  REQUIRES: the covers of one context are
    disjoint.  O((covers + found + noted) log n)."""
    spec = index.spec
    k, order = spec.arity, list(spec.context_order)
    asked, fresh = (distinct_rows(rows[:, order]) for rows in (covers, noted))
    fresh = np.column_stack([fresh, np.zeros(len(fresh), np.int64)])  # where they end is looked up
    by_context = index.relation.index(spec.context_order).root
    n, m, room, found = len(asked), len(fresh), 2 * len(asked) + 16, -1
    sizes = np.empty(2, np.int64)
    while found < 0 or found > room:
        room = max(room, found)
        work, edit = np.empty(work_words(k, room, m), np.int64), np.empty((2 * room + m, k), np.int64)
        found = covered(
            words, by_context, root, spec.prefix, k, asked.reshape(-1), n, fresh.reshape(-1), m, room,
            work, edit.reshape(-1), sizes,
        )  # fmt: skip
    inserted, erased = sizes.tolist()
    return Change(edit[:inserted], edit[inserted : inserted + erased])
