"""Owns the views of one query in transactions, which strata share: the first one to ask changes them.

Each head of a rule is a stratum and asks for its rows; the views have all aggregates of the
rule, and a transaction updates them once.  Knows no heads.

The maps of the views are not in the store (see `dlog.engine.state.side_state`); a transaction that is
rolled back is undone by applying the inverse changes, which is exact for integers.

1 a stratum that finds a stamp it knows applies the changes.  2 others with the stamp it found get the same
groups.  3 each publishes, and has the new stamp.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import numpy as np

from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store
from dlog.jit import Words
from dlog.views.query import Query
from dlog.views.run.groups import Groups, GroupViews


class RuleViews(SideState):
    """REQUIRES: `relations` gives the predicate of each relation of the query."""

    def __init__(self, query: Query, relations: Mapping[str, str]):
        self.query, self.relations = query, dict(relations)
        self.views: GroupViews | None = None
        self.changes: list[tuple[str, Words, int]] = []  # of the last transaction
        self._cycle: weakref.ref[Cycle] | None = None  # that of the last transaction
        self._all: Groups | None = None
        self._changed: Groups | None = None

    def rebuild(self, cycle: Cycle) -> Groups:
        """All groups: all rows of the inputs go through the views.  Raises DataError for what these cannot
        hold."""
        if self._is_of(cycle) and self._all is not None:
            return self._all
        self.restart()
        self._start(cycle)
        self.views = self._empty(cycle.store, cycle.evaluation.jobs)
        for relation, name in self.relations.items():
            self.views.apply(relation, cycle.store.relations[name].rows(), 1)
        self._all = self.views.changed_groups()
        return self._all

    def apply(self, cycle: Cycle, stamp: str) -> Groups:
        """The groups that changed since a stamp.  REQUIRES: it is known.  Raises like `rebuild`."""
        if self._is_of(cycle) and self._changed is not None:
            assert cycle.store.relations[stamp] is self.before
            return self._changed
        assert self.views is not None
        self.begin(cycle.store, stamp)
        self._start(cycle)
        for relation, name in self.relations.items():
            change = cycle.changes.get(name)
            for rows, sign in ((change.erased, -1), (change.inserted, 1)) if change else ():
                self._change(relation, np.ascontiguousarray(rows), sign)
        self._changed = self.views.changed_groups()
        cycle.operations += sum(len(rows) for _, rows, _ in self.changes) + len(self._changed.keys)
        return self._changed

    def drop(self) -> None:
        """A view cannot hold a value: the state is invalid now."""
        self.restart()
        self.views, self.changes, self._cycle, self._all, self._changed = None, [], None, None, None

    def sizes(self, store: Store) -> dict[str, int]:
        return {a.name: store.rows(self.relations[a.relation]) for a in self.query.atoms}

    def _is_of(self, cycle: Cycle) -> bool:
        return self._cycle is not None and self._cycle() is cycle

    def _start(self, cycle: Cycle) -> None:
        self.changes, self._cycle, self._all, self._changed = [], weakref.ref(cycle), None, None

    def _empty(self, store: Store, jobs: int) -> GroupViews:
        """New views, or the existing ones if the relations have about the same sizes as before."""
        sizes = self.sizes(store)
        if self.views is not None and all(_alike(n, self.views.sizes[name]) for name, n in sizes.items()):
            self.views.reset()
            return self.views
        return GroupViews(self.query, store.dictionary, sizes, jobs)

    def _change(self, relation: str, rows: Words, sign: int) -> None:
        if len(rows):
            assert self.views is not None
            self.changes.append((relation, rows, sign))
            self.views.apply(relation, rows, sign)

    def undo(self) -> None:
        assert self.views is not None
        for relation, rows, sign in reversed(self.changes):
            self.views.apply(relation, rows, -sign)
        self.views.changed()

    def memory(self) -> int:
        return self.views.memory() if self.views is not None else 0

    def check(self) -> None:
        assert self.views is not None
        self.views.check()


def _alike(n: int, before: int) -> bool:
    return n <= 8 * max(before, 8) and before <= 8 * max(n, 8)
