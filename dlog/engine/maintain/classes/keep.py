"""Owns the strategy of classes: they follow the pairs of an equivalence relation.

Its only state are the classes themselves, which are a predicate of the store.  A pair that is inserted joins
two classes: members of the smaller one get another representative.  Where a pair is erased, its class is made
again from the pairs that are left.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.maintain.strategy import Cycle, Strategy, recompute
from dlog.engine.state.store import Store
from dlog.heads.classes import canonical, class_change
from dlog.ir.rules import Stratum
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation


class ClassStrategy(Strategy):
    way = "classes"

    def __init__(self, stratum: Stratum, relation: str):
        self.stratum, self.reads, self.relation = stratum, stratum.reads, relation
        (self.name,) = stratum.predicates

    def ready(self, store: Store) -> bool:
        return True

    def loses_state(self, store: Store) -> bool:
        return False

    def rebuild(self, cycle: Cycle) -> None:
        recompute(self.stratum, cycle)

    def apply(self, cycle: Cycle) -> None:
        change = cycle.changes.get(self.relation)
        if change is None:
            return
        relations = cycle.store.relations
        classes = relations[self.name]
        moved, _ = class_change(classes, relations[self.relation], change.inserted, change.erased)
        later, _ = classes.apply(inserts=moved.inserted, erases=moved.erased)
        cycle.operations += len(moved.inserted) + len(moved.erased)
        cycle.publish(self.name, later, moved)

    def estimate(self, cycle: Cycle) -> float:
        change = cycle.changes.get(self.relation, Change(_NONE, _NONE))
        return (len(change.inserted) + len(change.erased)) / max(1, cycle.store.rows(self.relation))

    def explain(self, store: Store) -> list[str]:
        return [f"{self.way}, because {self.relation} is an equivalence relation: one row for each member"]

    def check(self, store: Store) -> None:
        pairs, empty = store.relations[self.relation], Relation(store.arena, 2)
        change, _ = class_change(empty, pairs, pairs.rows(), _NONE)
        anew = Relation.build(store.arena, change.inserted, 2)
        assert np.array_equal(canonical(anew), canonical(store.relations[self.name]))


_NONE = np.empty((0, 2), np.int64)
