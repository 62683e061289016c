"""Owns strata that are evaluated from scratch whenever they are touched.  Has no state."""

from __future__ import annotations

from dlog.engine.maintain.strategies import FROM_SCRATCH
from dlog.engine.maintain.strategy import Cycle, Strategy, recompute
from dlog.engine.state.store import Store
from dlog.ir.rules import Stratum


class FromScratch(Strategy):
    way = FROM_SCRATCH
    named = "maintained"

    def __init__(self, stratum: Stratum, reason: str):
        self.stratum, self.reads, self.reason = stratum, stratum.reads, reason

    def ready(self, store: Store) -> bool:
        return False

    def rebuild(self, cycle: Cycle) -> None:
        same = (s for s in cycle.program.strata if s.predicates == self.stratum.predicates)
        recompute(next(same), cycle)  # of the program as it is now

    def estimate(self, cycle: Cycle) -> float:
        return 1.0

    def explain(self, store: Store) -> list[str]:
        return [f"{self.way} whenever it is touched, because {self.reason}"]
