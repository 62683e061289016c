"""Owns the trace strategy: a stratum without recursion, some or all of whose rules are kept by their traces.

Heads, counts and sums are those of the delta strategy, and do not care what feeds them; rules that cannot be
traced, or that deltas serve better, stay with deltas.
"""

from __future__ import annotations

from dlog.engine.head.heads import head_rows
from dlog.engine.maintain.delta.keep import DeltaStrategy
from dlog.engine.maintain.delta.rule_deltas import RuleDeltas
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.maintain.trace.offer import GRANULARITY, Choice
from dlog.engine.maintain.trace.rule_traces import TraceDeltas
from dlog.engine.state.store import Store
from dlog.ir.rules import Program, Stratum
from dlog.jit import Words


class TraceStrategy(DeltaStrategy):
    """REQUIRES: the stratum is not recursive, hence has one predicate."""

    way = "trace"

    def __init__(self, program: Program, stratum: Stratum, store: Store, choices: list[Choice]):
        super().__init__(program, stratum, store, [c.reason for c in choices])
        self.traced: list[TraceDeltas] = []
        plain = iter(range(len(self.plain)))
        aggregates = iter(self.aggregates)
        for number, (rule, choice) in enumerate(zip(stratum.rules, choices, strict=True)):
            place = None if rule.aggregates else next(plain)
            aggregate = next(aggregates) if rule.aggregates else None
            if choice.way not in GRANULARITY:
                continue
            made = TraceDeltas(store, rule, f"~{self.name}/{number}", GRANULARITY[choice.way])
            self.traced.append(made)
            self.ways[number] = choice.way
            if place is not None:
                self.plain[place] = made
            elif aggregate is not None:
                aggregate.deltas = made

    def ready(self, store: Store) -> bool:
        return all(traced.ready(store) for traced in self.traced) and super().ready(store)

    def does_as(self, other: object) -> bool:
        if not super().does_as(other) or not isinstance(other, TraceStrategy):
            return False
        return all(own.traces_as(known) for own, known in zip(self.traced, other.traced, strict=True))

    def size(self, store: Store) -> tuple[str, int, int]:
        """Granularity, intervals and bytes of all sensitivity indices.  REQUIRES: a rule is traced."""
        sizes = [traced.size(store) for traced in self.traced]
        return self.traced[0].granularity, sum(n for n, _ in sizes), sum(n for _, n in sizes)

    def forget(self, store: Store) -> None:
        super().forget(store)
        for traced in self.traced:
            traced.forget(store)

    def rebuild(self, cycle: Cycle) -> None:
        for traced in self.traced:
            traced.forget(cycle.store)
        super().rebuild(cycle)

    def _all_rows(self, deltas: RuleDeltas, cycle: Cycle) -> list[tuple[Words, Words | None]]:
        if not isinstance(deltas, TraceDeltas):
            return super()._all_rows(deltas, cycle)
        cycle.evaluation.watch.doing = f"evaluating {self.name}"
        _, table = deltas.all_assignments(cycle)
        return [(head_rows(cycle.store, head, table, deltas.rule), None) for head in self._heads(deltas.rule)]

    def check_state(self, store: Store, fresh: Store) -> None:
        super().check_state(store, fresh)
        for traced in self.traced:
            traced.check(store, fresh)
