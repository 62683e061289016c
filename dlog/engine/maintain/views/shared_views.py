"""Owns the views of one query in transactions, which strata share: whoever comes first changes them.

The heads of a rule are strata of their own, and each asks for its rows; the views have all aggregates of the
rule, and a transaction goes through them once.  Knows no heads.

The maps of the views are not in the store.  As for the stages of a recursion, a relation without columns, the
*stamp*, stands for them there, one for each stratum: the handle that is found tells whether the last
transaction was committed or taken back; what it changed is then changed back, which whole numbers allow.

1 a stratum that finds the stamp of the last version (or of the one before: then the change is undone) applies
the changes.  2 others with the stamp it found get the same groups.  3 each publishes, and has the new stamp.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping

import numpy as np

from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.store import Store
from dlog.jit import Words
from dlog.storage.relation.relation import Relation
from dlog.views.query import Query
from dlog.views.run.groups import Groups, GroupViews


class RuleViews:
    """REQUIRES: `relations` gives the predicate of each relation of the query."""

    def __init__(self, query: Query, relations: Mapping[str, str]):
        self.query, self.relations = query, dict(relations)
        self.views: GroupViews | None = None
        self.before: Relation | None = None  # stamps
        self.after: Relation | None = None
        self.changes: list[tuple[str, Words, int]] = []  # of the last transaction
        self._cycle: weakref.ref[Cycle] | None = None  # that of the last transaction
        self._all: Groups | None = None
        self._changed: Groups | None = None

    def knows(self, stamp: Relation | None) -> bool:
        """Whether changes can be applied to what a stamp stands for."""
        known = stamp is not None and (stamp is self.after or stamp is self.before)
        return known and self.views is not None

    def rebuild(self, cycle: Cycle) -> Groups:
        """All groups: all rows of what is read go through the views.  Raises DataError for what these cannot
        hold."""
        if self._is_of(cycle) and self._all is not None:
            return self._all
        self._begin(cycle, None)
        self.views = self._empty(cycle.store)
        for relation, name in self.relations.items():
            self.views.apply(relation, cycle.store.relations[name].rows(), 1)
        self._all = self.views.changed()
        self.after = Relation(cycle.store.arena, 0)
        return self._all

    def apply(self, cycle: Cycle, stamp: Relation) -> Groups:
        """The groups that changed since a stamp.  REQUIRES: it is known.  Raises as `rebuild` does."""
        if self._is_of(cycle) and self._changed is not None:
            assert stamp is self.before
            return self._changed
        assert self.views is not None
        if stamp is not self.after:
            self._undo()
        self._begin(cycle, stamp)
        for relation, name in self.relations.items():
            change = cycle.changes.get(name)
            for rows, sign in ((change.erased, -1), (change.inserted, 1)) if change else ():
                self._change(relation, np.ascontiguousarray(rows), sign)
        self._changed = self.views.changed()
        cycle.operations += sum(len(rows) for _, rows, _ in self.changes) + len(self._changed.keys)
        self.after = Relation(cycle.store.arena, 0)
        return self._changed

    def drop(self) -> None:
        """A view cannot hold a value: nothing is known any more."""
        self.views = self.before = self.after = None
        self.changes, self._cycle, self._all, self._changed = [], None, None, None

    def sizes(self, store: Store) -> dict[str, int]:
        return {a.name: store.rows(self.relations[a.relation]) for a in self.query.atoms}

    def _is_of(self, cycle: Cycle) -> bool:
        return self._cycle is not None and self._cycle() is cycle

    def _begin(self, cycle: Cycle, stamp: Relation | None) -> None:
        self.before, self.after, self.changes = stamp, None, []
        self._cycle, self._all, self._changed = weakref.ref(cycle), None, None

    def _empty(self, store: Store) -> GroupViews:
        """New views, or those that are there, when the relations are about as large as they were."""
        sizes = self.sizes(store)
        if self.views is not None and all(_alike(n, self.views.sizes[name]) for name, n in sizes.items()):
            self.views.reset()
            return self.views
        return GroupViews(self.query, store.dictionary, sizes)

    def _change(self, relation: str, rows: Words, sign: int) -> None:
        if len(rows):
            assert self.views is not None
            self.changes.append((relation, rows, sign))
            self.views.apply(relation, rows, sign)

    def _undo(self) -> None:
        """The last transaction was taken back."""
        assert self.views is not None
        for relation, rows, sign in reversed(self.changes):
            self.views.apply(relation, rows, -sign)
        self.views.changed()


def _alike(n: int, before: int) -> bool:
    return n <= 8 * max(before, 8) and before <= 8 * max(n, 8)
