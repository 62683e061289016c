"""Owns the strategy of choices: chosen rows follow the candidates, at the cost of what changes.

Candidates are what the rules derive, which any strategy maintains, and base facts.  1 chosen rows that are no
candidates any more go.  2 candidates that have come, and those that share a key with a row that went, are
chosen as far as their keys are free.  Its only state are the chosen rows, a predicate of the store.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.head.value_order import in_value_order
from dlog.engine.maintain.strategy import Cycle, Strategy, recompute
from dlog.engine.state.store import Store
from dlog.heads.choice import also_chosen, check_choice, competing
from dlog.heads.lookup import contained
from dlog.ir.rules import Choice, Stratum
from dlog.planning.versions import facts_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import in_order


class ChoiceStrategy(Strategy):
    way = "choices"

    def __init__(self, stratum: Stratum, choice: Choice):
        self.stratum, self.reads, self.choice = stratum, stratum.reads, choice
        (self.name,) = stratum.predicates

    def ready(self, store: Store) -> bool:
        return True

    def loses_state(self, store: Store) -> bool:
        return False

    def rebuild(self, cycle: Cycle) -> None:
        recompute(self.stratum, cycle)

    def apply(self, cycle: Cycle) -> None:
        store, relations = cycle.store, cycle.store.relations
        changes = [cycle.changes.get(self.choice.candidates), cycle.facts.get(self.name)]
        came, went = ([change[side] for change in changes if change is not None] for side in (0, 1))
        chosen, empty = relations[self.name], np.empty((0, relations[self.name].arity), np.int64)
        lost = self._lost(store, np.concatenate([empty, *went]))
        later, _ = chosen.apply(erases=lost)
        candidates = np.concatenate([empty, *came, *self._competing(store, lost)])
        ordered = in_value_order(store, self.name, candidates)
        new = also_chosen(later, ordered, self.choice.domains)
        later, _ = later.apply(inserts=new)
        cycle.operations += len(candidates) + len(lost)
        cycle.publish(self.name, later, Change(in_order(new), in_order(lost)))

    def _lost(self, store: Store, went: np.ndarray) -> np.ndarray:
        """The chosen rows that are no candidates any more."""
        went = went[contained(store.relations[self.name], went)]
        for name in self._candidates():
            went = went[~contained(store.relations[name], went)]
        return went

    def _competing(self, store: Store, lost: np.ndarray) -> list[np.ndarray]:
        relations = store.relations
        return [competing(relations[name], lost, self.choice.domains) for name in self._candidates()]

    def _candidates(self) -> tuple[str, str]:
        return self.choice.candidates, facts_name(self.name)

    def estimate(self, cycle: Cycle) -> float:
        change = cycle.changes.get(self.choice.candidates)
        changed = 0 if change is None else len(change.inserted) + len(change.erased)
        return changed / max(1, cycle.store.rows(self.choice.candidates))

    def explain(self, store: Store) -> list[str]:
        why = "a chosen row stays as long as it is a candidate"
        return [f"{self.way}, because {why}; when it goes, another one gets its keys"]

    def check(self, store: Store) -> None:
        candidates = np.concatenate([store.relations[name].rows() for name in self._candidates()])
        check_choice(store.relations[self.name], candidates, self.choice.domains)
