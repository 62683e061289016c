"""Owns the change of one rule's body found by its join graph.

The graph is not in the store (see `dlog.engine.state.side_state`); a transaction that is rolled back is
undone by changes in the opposite direction.  From scratch a rule is joined like any other, and the graph is
built from the rows of its relations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dlog.engine.body.table import Table
from dlog.engine.maintain.body_changes import BodyChanges
from dlog.engine.maintain.join_graph.rule_body import RuleBody, rule_body
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.state.side_state import SideState
from dlog.engine.state.store import Store
from dlog.heads.counts import net_rows
from dlog.ir.rules import Rule
from dlog.jit import Words
from dlog.joingraph.graph import JoinGraph, ViewRows
from dlog.joingraph.plan import Plan
from dlog.planning.deltas import ERASE, INSERT
from dlog.planning.pipeline import plan_pipeline
from dlog.planning.versions import old_name
from dlog.storage.index.batch import Change
from dlog.storage.index.pairs import paired
from dlog.storage.relation.relation import Relation


class GraphState(SideState):
    """A join graph beside the store."""

    def __init__(self, plan: Plan):
        self.graph = JoinGraph(plan)

    def build(self, relations: Mapping[str, Relation]) -> None:
        """The graph of all rows.  O(rows)."""
        self.restart()
        self.graph = JoinGraph(self.graph.plan)
        self.graph.build({name: relations[name].rows() for name in self.graph.plan.body.relations})

    def settle(self) -> None:
        self.graph.applied.clear()  # as `JoinGraph.settle`, one call less

    def undo(self) -> None:
        self.graph.undo()

    def memory(self) -> int:
        return sum(self.graph.memory().values())

    def check(self) -> None:
        self.graph.check()


class GraphDeltas(BodyChanges):
    """REQUIRES: `rule_body` finds no reason against it."""

    def __init__(self, store: Store, rule: Rule, state: str, outputs: tuple[str, ...], bag: bool):
        """`bag`: every assignment counts; otherwise a row is found once if the number of its assignments
        changed."""
        super().__init__(store, rule, outputs)
        self.bag = bag
        self.body_of_graph: RuleBody = rule_body(store, rule, self.outputs)
        self.stamp = f"join graph {state}"
        self.state = GraphState(self.body_of_graph.plan)
        shown = self.body_of_graph.plan.body.outputs
        self._rest = plan_pipeline(self.body_of_graph.rest, self.outputs, rule.types, bag, shown)

    @property
    def graph(self) -> JoinGraph:
        return self.state.graph

    # State

    def ready(self, store: Store) -> bool:
        return self.state.is_known(store, self.stamp)

    def forget(self, store: Store) -> None:
        self.state.forget(store, self.stamp)

    def build(self, store: Store) -> None:
        """The graph of the relations in a store.  O(their rows)."""
        self.state.build(store.relations)
        self.state.end(store, self.stamp)

    def begin_changes(self, cycle: Cycle) -> None:
        """The graph of the relations before a transaction.  O(their rows)."""
        relations = cycle.store.relations
        names = self.graph.plan.body.relations
        before = {name: old_name(name) if name in cycle.changes else name for name in names}
        self.state.build({name: relations[version] for name, version in before.items()})
        self.state.end(cycle.store, self.stamp)

    def side_states(self) -> Iterator[SideState]:
        yield self.state

    # From changes

    def signed(self, cycle: Cycle) -> Iterator[tuple[int, Table]]:
        found = self.difference(cycle.store, cycle.changes)
        for sign in (ERASE, INSERT):
            table = self.table(found, sign)
            if table.n:
                yield sign, table

    def difference(self, store: Store, changes: Mapping[str, Change]) -> ViewRows:
        """What the changes of some predicates do to the rows that the graph gives, net."""
        graph, visits = self.graph, self.graph.visits
        self.state.begin(store, self.stamp)
        parts = [
            self._apply(store, name, change)
            for name in graph.plan.body.relations
            if (change := changes.get(name)) is not None
        ]
        self.state.end(store, self.stamp)
        found = _net(parts, graph)
        self.runner.measure.seeks += graph.visits - visits
        self.runner.measure.rows += len(found.counts)
        return found

    def _apply(self, store: Store, name: str, change: Change) -> ViewRows:
        """Change the rows of a predicate.  Of a functional one, a row that replaces another one with its key
        is searched together with it."""
        declared = store.predicates[name]
        if not declared.is_functional or not (len(change.erased) and len(change.inserted)):
            return self.graph.apply(name, change.erased, change.inserted)
        before, after, erased, inserted = paired(change, declared.n_keys)
        return self.graph.apply(name, erased, inserted, updated=(before, after))

    def table(self, found: ViewRows, sign: int) -> Table:
        """The assignments that come, or those that go."""
        chosen = np.flatnonzero(found.counts * sign > 0)
        names = self.graph.plan.body.outputs
        table = Table(len(chosen), {n: c[chosen] for n, c in zip(names, found.columns, strict=True)})
        counts = abs(found.counts[chosen])
        if self.body_of_graph.rest:
            return self.runner.run(self._rest, table.take(self._repeated(counts)))
        return table.only(self.outputs).take(self._repeated(counts))

    def _repeated(self, counts: Words) -> Words:
        """The numbers of rows, each as often as it counts."""
        rows = np.arange(len(counts))
        return np.repeat(rows, counts) if self.bag else rows

    # Inspection

    def check(self, store: Store, fresh: Store) -> None:
        """The graph is sound, and gives the assignments that a join finds."""
        if not self.state.is_current(store, self.stamp):
            return
        self.state.check()
        whole = _net([self.graph.whole()], self.graph)
        again = JoinGraph(self.graph.plan)
        again.build({name: store.relations[name].rows() for name in self.graph.plan.body.relations})
        expected = _net([again.whole()], again)
        assert np.array_equal(whole.counts, expected.counts), f"counts of {self.stamp}"
        for own, other in zip(whole.columns, expected.columns, strict=True):
            assert np.array_equal(own, other), f"rows of {self.stamp}"

    def explain(self) -> Iterator[str]:
        from dlog.joingraph.estimates import graph_bytes
        from dlog.joingraph.explain import describe

        rule, plan, store = self.rule, self.graph.plan, self.runner.store
        where = f"line {rule.span.line}: " if rule.span else ""
        size = graph_bytes(plan, store) if self.state.after is None else self.state.memory()
        yield f"{where}join graph of {len(plan.atoms)} atoms, about {size / 1e6:,.1f} MB"
        yield from (f"  {line}" for line in describe(plan, store))


def _net(parts: list[ViewRows], graph: JoinGraph) -> ViewRows:
    """Each row once, sorted, without those whose counts add up to 0.  O(n log n)."""
    parts = [part for part in parts if len(part.counts)]
    width = len(graph.plan.body.outputs)
    if not parts:
        none = np.empty(0, np.int64)
        return ViewRows([none] * width, none)
    rows = np.concatenate([np.stack(part.columns, axis=1) if width else _rowless(part) for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    if not width:
        total = counts.sum(keepdims=True)
        return ViewRows([], total[total != 0])
    rows, counts = net_rows(rows, counts)
    return ViewRows(list(rows.T), counts)


def _rowless(part: ViewRows) -> Words:
    return np.empty((len(part.counts), 0), np.int64)
