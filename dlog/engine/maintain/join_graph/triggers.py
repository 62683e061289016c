"""Owns triggers of strata with join graphs: a few rows of a predicate go into the graphs, and what these give
into the heads.

There is one if all strata that read the predicate have join graphs for all their rules.  1 the predicate
changes.  2 a kernel changes each graph and writes what its view gains or loses.  3 a kernel changes the head
of each, where nothing follows from it; other heads change as after any other trigger.  4 the stamps are those
of the new version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import ClassVar

import numpy as np

from dlog.engine.maintain.body_changes import BodyChanges
from dlog.engine.maintain.join_graph import kernels as k
from dlog.engine.maintain.join_graph.keep import JoinGraphStrategy
from dlog.engine.maintain.join_graph.rule_graphs import GraphDeltas
from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.triggers.group_trigger import group_trigger
from dlog.engine.maintain.triggers.kernels import NOTHING
from dlog.engine.maintain.triggers.terminal_head import (
    MOST_ROWS,
    NO_CHANGES,
    CountedHead,
    HeadChanges,
    JoinedHead,
    ReportedHead,
)
from dlog.engine.maintain.triggers.trigger import JoinRoom, Output, Room, Rows, Trigger, Use
from dlog.engine.maintain.triggers.trigger_search import is_read, of_predicate, plain_head, terminal_head
from dlog.engine.state.store import Store
from dlog.errors import DlogError
from dlog.joingraph.few_rows import FewRows
from dlog.joingraph.layout import DONE, S_APPLIED, S_OUT, S_VISITS
from dlog.lftj.triejoin import NO_WORDS
from dlog.planning.deltas import INSERT
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

Ended = JoinedHead | CountedHead | ReportedHead

NO_RELATIONS: dict[str, Relation] = {}


class GraphRows:
    """Rows of a predicate in the graph of one rule."""

    def __init__(self, body: GraphDeltas, use: Use, few: FewRows, ended: Ended | None):
        self.use, self.few, self.ended = use, few, ended
        self.state, self.stamp = body.state, body.stamp
        self.n = 0  # rows that the last ones gave
        self._found = np.zeros(1, np.int64)
        self.words = self._found.data  # the same as a kernel reads it
        self.operations = 0  # for these

    def apply(
        self, arena: Arena, rows: Rows, relations: Mapping[str, Relation], committed: Relation | None
    ) -> int:
        """How many rows of the view come, or go.  REQUIRES: the stamp is known."""
        state, graph = self.state, self.few.graph
        before = graph.visits
        state.begin_step(relations[self.stamp], committed)
        n = self.few.apply(rows)
        self.words[0] = self.n = n
        self.operations = graph.visits - before + n
        return n

    def change_head(self, relations: dict[str, Relation]) -> Mapping[str, Change] | None:
        """The change of a head from which nothing follows, which is carried out; None: it has to be changed
        by `output`."""
        if self.ended is None:
            return None
        out = self.few.out
        return self.ended.follow(relations, self.n, out.buffer, self._found, out.capacity)

    def output(self) -> Output:
        """A row for each assignment.  O(assignments)."""
        n, out = self.n, self.few.out
        columns, counts = out.rows(n)[:-1], abs(out.rows(n)[-1])
        if (counts > 1).any():
            columns = np.repeat(columns, counts, axis=1)
            return Output(self.use, columns.reshape(-1), columns.shape[1], columns.shape[1])
        return Output(self.use, out.buffer, out.capacity, n)


class OneRow:
    """Calls of `fire_graph`, prepared for one graph that reads the predicate with one atom."""

    def __init__(self, graph: GraphRows, room: JoinRoom, may_fail: bool):
        """`may_fail`: the row may still be refused: then the head does not change in the same call."""
        self.graph, self.few = graph, graph.few
        self.head = graph.ended if isinstance(graph.ended, JoinedHead) and not may_fail else None
        self._call = np.zeros(k.CALL, np.int64)
        self._words, self._row = self._call.data, room.rows
        self._room = room
        self._atom, self._words[k.C_ATOM] = self.few.atoms[0]
        self._words[k.C_MODE] = self.few.mode
        self._state, self._kernel = self.few.graph.state.data, k.fire_graph
        self._prepare()

    def _prepare(self) -> None:
        """The arguments, with the output that the graph has now."""
        graph, self._out, room = self.few.graph, self.few.out.buffer, self._room
        self._words[k.C_CAPACITY] = self.few.out.capacity
        head = (NO_WORDS,) * 4 if self.head is None else (*self.head.given[1:], self.head.rows)
        own = (graph.arena.A, graph.words, graph.state, self._out)
        self._given = (room.shape, room.written, self._call, *own, *head)

    def fire(self, arena: Arena, relations: Mapping[str, Relation], rows: Rows) -> int:
        """See `fire_graph`.  Raises what `FewRows.apply` raises."""
        few, words, state, head, graph = self.few, self._words, self._state, self.head, self.graph
        if few.out.buffer is not self._out:
            self._prepare()
        # If the last row gave nothing, this one may not need the head: then it is changed in another call.
        words[k.C_HEAD] = MOST_ROWS if head is not None and graph.n and head.bring_roots(relations) else 0
        state[S_APPLIED], visits = 0, state[S_VISITS]
        try:
            with arena.lock:
                arena.hand_over()
                found = self._kernel(arena.A, *self._given)
            if found >= 0 and words[k.C_CODE] != DONE:
                few.resume(words[k.C_CODE], self._row)
                found = state[S_OUT]
        finally:
            if state[S_APPLIED]:
                few.note(self._atom, rows)
        if self._kernel is k.fire_graph:  # as in `Trigger.fire`
            self._kernel = getattr(k.fire_graph, "target", k.fire_graph)
        graph.words[0] = graph.n = found
        graph.operations = found + state[S_VISITS] - visits
        return found

    @property
    def changed_rows(self) -> int:
        """Of the head; at most 0: it is as it was."""
        return self._words[k.C_CHANGED]


@dataclass
class GraphTrigger(Trigger):
    graphs: list[GraphRows] = field(kw_only=True)
    keeps_state: ClassVar[bool] = True
    ends: bool = field(init=False)  # nothing follows from the heads
    one_row: OneRow | None = field(init=False)  # for one row in one graph
    changed_rows: int = NOTHING  # of the head, by the last firing
    committed: Mapping[str, Relation] = field(default_factory=dict)  # the relations that readers see
    relations: Mapping[str, Relation] = field(default_factory=dict)  # those that the last firing found
    stamps: dict[str, Relation] = field(default_factory=dict)

    def __post_init__(self, arena: Arena, room: Room | None) -> None:
        super().__post_init__(arena, room)
        self.ends = all(graph.ended is not None for graph in self.graphs)
        self.put_row = Struct(f"{self.arity}q").pack_into
        (first, *others) = self.graphs
        self.one_row = None if others or len(first.few.atoms) > 1 else OneRow(first, self.one, self._may_fail)

    @property
    def _may_fail(self) -> bool:
        """Whether a row is refused that gives a key of the predicate another value."""
        return self.functional_keys >= 0 and self.sign == INSERT

    def fits(self, relation: Relation) -> bool:
        for graph in self.graphs:
            if graph.few.graph is not graph.state.graph:  # it was built again
                return False
        return self.least <= relation.rows_in(self.orders) <= self.most

    def begin(self, committed: Mapping[str, Relation]) -> None:
        self.committed = committed

    def bring_roots(self, relations: Mapping[str, Relation]) -> bool:
        for graph in self.graphs:
            state, stamp = graph.state, relations.get(graph.stamp)
            if stamp is None or (stamp is not state.after and stamp is not state.before):
                return False
        self.relations = relations
        return True

    def fire(self, arena: Arena, relation: Relation, rows: Rows) -> int:
        """How many rows of views come or go, or NOTHING, or TOO_LARGE.  REQUIRES: `bring_roots` has returned
        true."""
        relations, committed = self.relations, self.committed
        self.relations = self.committed = NO_RELATIONS
        if self.one_row is not None and len(rows) == 1:
            self.used = self.one
            relation.put_roots(self.places)
            self.put_row(self.row_words, 0, *rows[0])
            return self._fire_one(self.one_row, relation, rows, relations, committed)
        self.changed_rows = NOTHING
        found = super().fire(arena, relation, rows)
        if found < 0:
            return found
        changed, stamps = rows if len(rows) == 1 else self.changed(), {}
        try:
            for graph in self.graphs:
                found += graph.apply(arena, changed, relations, committed.get(graph.stamp))
                stamps[graph.stamp] = graph.state.new_stamp(arena)
        except DlogError:
            self.version(relation)  # releases the new roots
            raise
        self.stamps = stamps
        return found

    def _fire_one(
        self,
        one_row: OneRow,
        relation: Relation,
        rows: Rows,
        relations: Mapping[str, Relation],
        committed: Mapping[str, Relation],
    ) -> int:
        """The same of one row, in one kernel call."""
        graph, arena = one_row.graph, relation.arena
        state, stamp = graph.state, graph.stamp
        first = state.begin_step(relations[stamp], committed.get(stamp))
        try:
            found = one_row.fire(arena, relations, rows)
        except DlogError:
            self.version(relation)  # releases the new roots
            raise
        if found >= 0:
            self.changed_rows = one_row.changed_rows
            self.stamps = {stamp: state.new_stamp(arena)}
        elif first:
            state.cancel_step()
        return found

    def state(self) -> Mapping[str, Relation]:
        """Returned once, so that a trigger holds no version."""
        stamps, self.stamps = self.stamps, {}
        return stamps

    def changed_heads(self, store: Store, found: int) -> Mapping[str, Change] | None:
        if not self.ends:
            return None
        relations = store.relations
        if len(self.graphs) == 1:
            (graph,) = self.graphs
            if self.changed_rows > 0 and isinstance(graph.ended, JoinedHead):
                return graph.ended.take(relations, self.changed_rows)
            return graph.change_head(relations)
        before, changes = relations.copy(), []
        for graph in self.graphs:
            change = graph.change_head(relations) if graph.n else NO_CHANGES
            if change is None:
                store.relations = before
                return None
            changes.append(change)
        return HeadChanges(changes)

    def outputs(self) -> list[Output]:
        return [graph.output() for graph in self.graphs if graph.n]

    @property
    def operations(self) -> int:
        return sum(graph.operations for graph in self.graphs)

    def costs(self) -> Mapping[str, int] | int:
        if len(self.graphs) == 1:
            return self.graphs[0].operations
        if len(self.ways) == 1:
            return self.operations
        costs = dict.fromkeys(self.ways, 0)
        for graph in self.graphs:
            costs[graph.use.strategy.name] += graph.operations
        return costs


def graph_trigger(maintenance: Maintenance, store: Store, name: str, sign: int) -> GraphTrigger | None:
    """A trigger for rows of a predicate; None: they take the general path."""
    numbers = maintenance.updated(name, store)
    strategies = [maintenance.strategy(number, store) for number in numbers]
    found = [strategy for strategy in strategies if isinstance(strategy, JoinGraphStrategy)]
    if len(found) < len(strategies):
        return None
    graphs = [graph for strategy in found for graph in _graphs(maintenance, store, strategy, name, sign)]
    given = [graph for graph in graphs if graph is not None]
    if len(given) < len(graphs):
        return None
    ways = {strategy.name: strategy.way for strategy in found}
    return GraphTrigger(
        **of_predicate(maintenance, store, name, sign, ways),
        graphs=given,
    )


def _graphs(
    maintenance: Maintenance, store: Store, strategy: JoinGraphStrategy, name: str, sign: int
) -> Iterator[GraphRows | None]:
    """The rules of a stratum that read a predicate; None: one has to take the general path."""
    if strategy.by_existence or (strategy.aggregates and strategy.plain):
        yield None
        return
    for body in strategy.bodies:
        if name not in body.rule.body.predicates():
            continue
        yield _graph(maintenance, store, strategy, body, name, sign)


def _graph(
    maintenance: Maintenance,
    store: Store,
    strategy: JoinGraphStrategy,
    body: BodyChanges,
    name: str,
    sign: int,
) -> GraphRows | None:
    if not isinstance(body, GraphDeltas) or not body.bag or body.body_of_graph.rest:
        return None
    use = _use(maintenance, store, strategy, body, sign)
    if use is None:
        return None
    few = FewRows(body.graph, name, sign == INSERT)
    alone = use.ends and len(strategy.bodies) == 1
    ended = terminal_head(store, [use], few.width, few.width - 1) if alone else None
    return GraphRows(body, use, few, ended)


def _use(
    maintenance: Maintenance, store: Store, strategy: JoinGraphStrategy, body: GraphDeltas, sign: int
) -> Use | None:
    """Where the rows of a graph go; None if it is not simple."""
    outputs = body.graph.plan.body.outputs
    if strategy.aggregates:
        group = group_trigger(store, strategy, outputs)
        return None if group is None else Use(strategy, sign, (), group)
    heads = [plain_head(store, body.rule, head, outputs) for head in strategy.head.atoms(body.rule)]
    known = tuple(head for head in heads if head is not None)
    if len(known) < len(heads):
        return None
    has_keys = strategy.head.is_stored and store.predicates[strategy.name].is_functional
    return Use(strategy, sign, known, ends=not is_read(maintenance, strategy.name) and not has_keys)
