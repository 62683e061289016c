"""Owns the strategy of numbers: assignments keep theirs, at the cost of what changes.

Its state are the numbers, a predicate of the store, and the counter (`dlog.engine.evaluate.numbering`).
"""

from __future__ import annotations

from dlog.engine.evaluate.numbering import check_numbers, new_numbers, with_numbers_of
from dlog.engine.maintain.strategy import Cycle, Strategy, recompute
from dlog.engine.state.store import Store
from dlog.ir.rules import Numbering, Stratum
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import in_order


class NumberStrategy(Strategy):
    way = "autonumbers"

    def __init__(self, stratum: Stratum, numbering: Numbering):
        self.stratum, self.reads, self.numbering = stratum, stratum.reads, numbering
        (self.name,) = stratum.predicates

    def ready(self, store: Store) -> bool:
        return True

    def loses_state(self, store: Store) -> bool:
        return False

    def rebuild(self, cycle: Cycle) -> None:
        recompute(self.stratum, cycle)

    def apply(self, cycle: Cycle) -> None:
        change = cycle.changes.get(self.numbering.assignments)
        if change is None:
            return
        numbered = cycle.store.relations[self.name]
        gone, _ = with_numbers_of(numbered, change.erased)
        new = new_numbers(cycle.store, self.numbering, change.inserted)
        later, _ = numbered.apply(inserts=new, erases=gone)
        cycle.operations += len(new) + len(gone)
        cycle.publish(self.name, later, Change(in_order(new), in_order(gone)))

    def estimate(self, cycle: Cycle) -> float:
        change = cycle.changes.get(self.numbering.assignments)
        changed = 0 if change is None else len(change.inserted) + len(change.erased)
        return changed / max(1, cycle.store.rows(self.numbering.assignments))

    def explain(self, store: Store) -> list[str]:
        return [f"{self.way}, because an assignment keeps its number; a new one gets one never given before"]

    def check(self, store: Store) -> None:
        check_numbers(store, self.name, self.numbering)
