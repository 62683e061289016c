"""Owns the trace strategy: a stratum without recursion, some or all of whose rules are maintained by their
traces."""

from __future__ import annotations

from typing import Any

from dlog.engine.maintain.rule_strategy import Method, RuleStrategy
from dlog.engine.maintain.trace.rule_traces import TraceDeltas
from dlog.engine.state.store import Store
from dlog.ir.rules import Rule


class TraceStrategy(RuleStrategy):
    way = "trace"

    @property
    def traced(self) -> list[TraceDeltas]:
        return [body for body in self.bodies if isinstance(body, TraceDeltas)]

    def trigger(self, maintenance: Any, store: Store, name: str, sign: int) -> Any:
        from dlog.engine.maintain.trace.triggers import trace_trigger

        return trace_trigger(maintenance, store, name, sign)

    def index_size(self, store: Store) -> tuple[str, int, int]:
        sizes = [traced.size(store) for traced in self.traced]
        return self.traced[0].shown_granularity, sum(n for n, _ in sizes), sum(n for _, n in sizes)


def rule_traces(granularity: str) -> Method:
    """The method of traces."""

    def method(store: Store, rule: Rule, state: str, outputs: tuple[str, ...], bag: bool) -> TraceDeltas:
        return TraceDeltas(store, rule, f"~{state}", granularity)

    return method
