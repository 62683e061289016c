"""Owns maps of one M3 program in transactions, which strata share: the first one to ask changes them.

Each head of a rule is a stratum and asks for its rows; the maps have all aggregates of the
rule, and a transaction updates them once.  Knows neither heads nor what the program is made from.

The maps are not in the store (see `dlog.engine.state.side_state`); a transaction that is
rolled back is undone by applying the inverse changes, which is exact for integers.

1 a stratum that finds a stamp it knows applies the changes.  2 others with the stamp it found get the same
groups.  3 each publishes, and has the new stamp.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence

import numpy as np

from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store
from dlog.jit import Words
from dlog.storage.relation.relation import Relation
from dlog.views.run.groups import GroupMaps, Groups

Rows = Sequence[tuple[int, ...]] | Words  # of codes


class SharedMaps(SideState):
    """REQUIRES: `relations` gives the predicate of each relation of the program."""

    is_due = False  # whether the next transaction has to take the general path, where the maps may change

    def __init__(self, relations: Mapping[str, str]):
        self.relations = dict(relations)
        self.maps: GroupMaps | None = None
        self.changes: list[tuple[str, Rows, int]] = []  # of the last transaction
        self._cycle: weakref.ref[Cycle] | None = None  # that of the last transaction
        self._all: Groups | None = None
        self._changed: Groups | None = None

    def made(self, store: Store, jobs: int) -> GroupMaps:
        """New maps, without rows."""
        raise NotImplementedError

    def fits(self, store: Store) -> bool:
        """Whether the maps would be made again as they are.  REQUIRES: there are maps."""
        return True

    def rebuild(self, cycle: Cycle) -> Groups:
        """All groups: all rows of the inputs go through the maps.  Raises DataError for what these cannot
        hold."""
        if self._is_of(cycle) and self._all is not None:
            return self._all
        self.restart()
        self._start(cycle)
        self.maps = self._empty(cycle.store, cycle.evaluation.jobs)
        for relation, name in self.relations.items():
            self.maps.apply(relation, cycle.store.relations[name].rows(), 1)
        self._all = self.maps.changed_groups()
        return self._all

    def apply(self, cycle: Cycle, stamp: str) -> Groups:
        """The groups that changed since a stamp.  REQUIRES: it is known.  Raises like `rebuild`."""
        if self._is_of(cycle) and self._changed is not None:
            assert cycle.store.relations[stamp] is self.before
            return self._changed
        assert self.maps is not None
        self.begin(cycle.store, stamp)
        self._start(cycle)
        for relation, name in self.relations.items():
            change = cycle.changes.get(name)
            for rows, sign in ((change.erased, -1), (change.inserted, 1)) if change else ():
                self._change(relation, np.ascontiguousarray(rows), sign)
        self._changed = self.maps.changed_groups()
        cycle.operations += sum(len(rows) for _, rows, _ in self.changes) + len(self._changed.keys)
        return self._changed

    def drop(self) -> None:
        """A map cannot hold a value: the state is invalid now."""
        self.restart()
        self.maps, self.changes, self._cycle, self._all, self._changed = None, [], None, None, None

    def _is_of(self, cycle: Cycle) -> bool:
        return self._cycle is not None and self._cycle() is cycle

    def _start(self, cycle: Cycle) -> None:
        self.changes, self._cycle, self._all, self._changed = [], weakref.ref(cycle), None, None

    def _empty(self, store: Store, jobs: int) -> GroupMaps:
        if self.maps is None or not self.fits(store):
            return self.made(store, jobs)
        self.maps.reset()
        return self.maps

    def _change(self, relation: str, rows: Words, sign: int) -> None:
        if len(rows):
            assert self.maps is not None
            self.changes.append((relation, rows, sign))
            self.maps.apply(relation, rows, sign)

    def begin_step(self, stamp: Relation, committed: Relation | None) -> bool:
        first = super().begin_step(stamp, committed)
        if first:
            self.changes, self._cycle, self._all, self._changed = [], None, None, None
        return first

    def undo(self) -> None:
        assert self.maps is not None
        for relation, rows, sign in reversed(self.changes):
            self.maps.apply(relation, np.asarray(rows, np.int64), -sign)
        self.maps.changed()

    def memory(self) -> int:
        return self.maps.memory() if self.maps is not None else 0

    def check(self) -> None:
        assert self.maps is not None
        self.maps.check()
