"""Owns heads whose relation is not stored: the change of derivations is the change of rows.

REQUIRES: no row can have two derivations (`dlog.ir.goals.materialize` refuses other heads).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dlog.engine.maintain.heads.sets import Derivable, SetHead, Signed
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.store import Store
from dlog.heads.counts import count_rows, net_rows
from dlog.ir.rules import Stratum
from dlog.jit import Words
from dlog.storage.index.batch import Change


class ChangesHead(SetHead):
    """A head of which only changes are computed."""

    is_stored = False

    def __init__(self, store: Store, stratum: Stratum):
        super().__init__(store, stratum)
        self.by_existence = False

    def counts_are_one(self, store: Store) -> bool:
        return True

    def ready(self, store: Store) -> bool:
        return True

    def forget(self, store: Store) -> None:
        """There is no state."""

    def rebuild(self, cycle: Cycle, rows: Words, weights: Words | None) -> None:
        raise AssertionError("a relation that is not stored is not rebuilt")

    def apply(self, cycle: Cycle, signed: Iterable[Signed], derivable: Derivable) -> None:
        change = self.net(list(signed))
        cycle.evaluation.watch.derived(len(change.inserted))
        cycle.publish_change(self.name, change)

    def net(self, parts: list[Signed]) -> Change:
        """The change of rows that derivations cause.  O(derivations log derivations)."""
        rows, signs = map(np.concatenate, zip(self._none(), *parts, strict=True))
        rows, signs = net_rows(rows, signs)
        assert (abs(signs) <= 1).all(), "a row has two derivations"
        return Change(rows[signs > 0], rows[signs < 0])

    def _none(self) -> Signed:
        return np.empty((0, self._arity), np.int64), np.empty(0, np.int64)

    def explain(self, store: Store) -> str:
        return "its rows are not stored (mode changes): subscribers get what rows are derived and lost"

    def check(self, store: Store, derivations: Words, weights: Words | None) -> None:
        """Compare the rows that a reader would get with all derivations, each of which is a row."""
        rows, counts = count_rows(store.arena, derivations, self._arity, weights)
        assert not len(counts), f"a row of {self.name} has two derivations"
        found = store.relations[self.name].rows()
        assert np.array_equal(found, rows), f"{self.name} is not what its rules derive"
