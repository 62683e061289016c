"""Owns strategies that keep maps of an M3 program: changed rows go into the maps, groups that changed become
rows of the head.

A strategy says which program that is (`SharedMaps`), how groups become rows, and how it is explained.  How a
transaction updates the maps: see `shared_maps`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, Self

import numpy as np

from dlog.engine.maintain.body_changes import changed_share
from dlog.engine.maintain.heads.sets import check_new_rows
from dlog.engine.maintain.maps.places import HeadPlaces
from dlog.engine.maintain.maps.shared_maps import SharedMaps
from dlog.engine.maintain.strategy import CannotFollow, Cycle, Strategy, evaluated_anew
from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store
from dlog.errors import DataError
from dlog.ir.rules import Program, Stratum
from dlog.jit import Words
from dlog.planning.versions import facts_name
from dlog.storage.relation.relation import Relation
from dlog.views.run.groups import Groups


class MapStrategy(Strategy):
    """REQUIRES: the stratum has one predicate.  `shared` may be those of another stratum."""

    maps_are: str  # what messages call its maps

    def __init__(self, program: Program, stratum: Stratum, shared: SharedMaps):
        (self.name,) = stratum.predicates
        self.program, self.stratum, self.reads = program, stratum, stratum.reads
        self.stamp = f"{self.way} {self.name}"
        self.shared = shared

    def rows(self, store: Store, groups: Groups, when: int) -> Words:
        """The rows of the head for groups as they were (0) or are (1)."""
        raise NotImplementedError

    def check_maps(self, store: Store) -> None:
        """Assert that every map is what its definition says.  REQUIRES: the maps are current."""

    def side_states(self) -> Iterator[SideState]:
        yield self.shared

    @classmethod
    def alike(cls, stratum: Stratum, others: Iterable[Strategy]) -> Iterable[Self]:
        """Strategies of strata that read the same, which may have the same program."""
        return (other for other in others if isinstance(other, cls) and other.stratum.reads == stratum.reads)

    # The interface of strategies

    def ready(self, store: Store) -> bool:
        return self.shared.is_known(store, self.stamp) and not len(store.relations[facts_name(self.name)])

    def rebuild(self, cycle: Cycle) -> None:
        store = cycle.store
        try:
            groups = self.shared.rebuild(cycle)
        except DataError as error:
            self._give_up(error)
        rows = np.concatenate([self.rows(store, groups, 1), store.relations[facts_name(self.name)].rows()])
        later = Relation.build(
            store.arena, np.unique(rows, axis=0), rows.shape[1], store.relations[self.name].orders
        )
        cycle.evaluation.watch.derived(len(later))
        cycle.publish_difference(self.name, later)
        check_new_rows(cycle, self.name, later.rows())
        self.shared.end(store, self.stamp)

    def apply(self, cycle: Cycle) -> None:
        store = cycle.store
        if self.name in cycle.facts:  # base facts that no longer exist
            self.rebuild(cycle)
            return
        try:
            groups = self.shared.apply(cycle, self.stamp)
        except DataError as error:
            self._give_up(error)
        erased, inserted = self.rows(store, groups, 0), self.rows(store, groups, 1)
        later, change = store.relations[self.name].apply(inserts=inserted, erases=erased)
        cycle.evaluation.watch.derived(len(change.inserted))
        cycle.publish(self.name, later, change)
        check_new_rows(cycle, self.name, change.inserted)
        self.shared.end(store, self.stamp)

    def _give_up(self, error: DataError) -> NoReturn:
        """A map cannot hold an intermediate value, even if the result would fit."""
        self.shared.drop()
        raise CannotFollow(f"{self.maps_are} cannot hold its values ({error.message})") from None

    def triggers_with(self, other: Strategy) -> bool:
        return isinstance(other, MapStrategy) and other.shared is self.shared

    def trigger(self, maintenance: Any, store: Store, name: str, sign: int) -> Any:
        from dlog.engine.maintain.maps.triggers import map_trigger

        return map_trigger(maintenance, store, name, sign)

    def head_places(self, store: Store) -> HeadPlaces | None:
        """Where the columns of the head are in what is drained, for the short path; None: not so simple."""
        return None

    def forget(self, store: Store) -> None:
        self.shared.forget(store, self.stamp)

    def estimate(self, cycle: Cycle) -> float:
        return changed_share(cycle, self.reads)

    def check(self, store: Store) -> None:
        """The maps are sound, and the head is what its rules derive, by a join."""
        if self.ready(store) and self.shared.is_current(store, self.stamp):
            self.shared.check()
            self.check_maps(store)
            expected = evaluated_anew(self.program, self.stratum, store)[self.name]
            same = np.array_equal(store.relations[self.name].rows(), expected.rows())
            assert same, f"{self.name} is not what its rule derives"
