"""Owns the join graph strategy: a stratum without recursion, some or all of whose rules have a join graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlog.engine.maintain.join_graph.rule_graphs import GraphDeltas
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.strategy import Cycle, Strategy
from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store

if TYPE_CHECKING:
    from dlog.engine.maintain.join_graph.short_path import GraphPath
    from dlog.engine.maintain.join_graph.triggers import GraphTrigger


class JoinGraphStrategy(RuleStrategy):
    way = "join_graph"
    has_short_path = True
    has_own_trigger = True

    @property
    def graphs(self) -> list[GraphDeltas]:
        return [body for body in self.bodies if isinstance(body, GraphDeltas)]

    def rebuild(self, cycle: Cycle) -> None:
        super().rebuild(cycle)
        cycle.evaluation.watch.doing = f"building the join graph of {self.name}"
        for body in self.graphs:
            body.build(cycle.store)

    def begin_changes(self, cycle: Cycle) -> None:
        for body in self.graphs:
            body.begin_changes(cycle)

    def triggers_with(self, other: Strategy) -> bool:
        return isinstance(other, JoinGraphStrategy)

    def trigger(self, maintenance: Any, store: Store, name: str, sign: int) -> GraphTrigger | None:
        from dlog.engine.maintain.join_graph.triggers import graph_trigger

        return graph_trigger(maintenance, store, name, sign)

    def short_path(self, store: Store, name: str, sign: int) -> GraphPath | None:
        from dlog.engine.maintain.join_graph.short_path import graph_path

        return graph_path(self, store, name, sign)

    def draw(self, path: Path, title: str) -> str | None:
        from dlog.views.picture.join_graphs import write_join_graphs

        return (
            write_join_graphs([body.graph.plan for body in self.graphs], path, title) if self.graphs else None
        )

    def side_states(self) -> Iterator[SideState]:
        for body in self.graphs:
            yield from body.side_states()
