"""Owns triggers of strata with join graphs: a few rows of a predicate go into the graphs, and what these give
into the heads.

There is one if all strata that read the predicate have join graphs for all their rules.  1 the predicate
changes.  2 a kernel changes each graph and writes what its view gains or loses.  3 a kernel changes the head
of each, where nothing follows from it; other heads change as after any other trigger.  4 the stamps are those
of the new version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import ClassVar

import numpy as np

from dlog.engine.maintain.body_changes import BodyChanges
from dlog.engine.maintain.join_graph import kernels as k
from dlog.engine.maintain.join_graph.keep import JoinGraphStrategy
from dlog.engine.maintain.join_graph.rule_graphs import GraphDeltas
from dlog.engine.maintain.maintain import Maintenance
from dlog.engine.maintain.triggers.group_trigger import GroupTrigger, group_trigger
from dlog.engine.maintain.triggers.kernels import NOTHING
from dlog.engine.maintain.triggers.terminal_head import (
    MOST_ROWS,
    NO_CHANGES,
    CountedHead,
    HeadChanges,
    JoinedHead,
    ReportedHead,
)
from dlog.engine.maintain.triggers.trigger import Output, Room, Rows, Trigger, Use
from dlog.engine.maintain.triggers.trigger_search import (
    has_one_value,
    is_read,
    of_predicate,
    plain_head,
    terminal_head,
)
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
        group = use.group.weighted(few.width - 1) if isinstance(use.group, GroupTrigger) else None
        self.is_weighted = group is not None and few.may_repeat
        self.use = replace(use, group=group) if self.is_weighted else use
        self.few, self.ended = few, ended
        self.state, self.stamp = body.state, body.stamp
        self.n = 0  # rows that the last ones gave
        self.found = np.zeros(1, np.int64)
        self.words = self.found.data  # the same as a kernel reads it
        self.operations = 0  # for these

    def apply(self, rows: Rows, relations: Mapping[str, Relation], committed: Relation | None) -> int:
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
        return self.ended.follow(relations, self.n, out.buffer, self.found, out.capacity)

    def output(self) -> Output:
        """A row for each assignment, if its group does not take what a row counts.  O(assignments)."""
        n, out = self.n, self.few.out
        repeats = self.few.may_repeat and not self.is_weighted
        counts = abs(out.rows(n)[-1]) if repeats else NO_WORDS
        if (counts > 1).any():
            columns = np.repeat(out.rows(n)[:-1], counts, axis=1)
            return Output(self.use, columns.reshape(-1), columns.shape[1], columns.shape[1])
        return Output(self.use, out.buffer, out.capacity, n)


@dataclass
class GraphTrigger(Trigger):
    graphs: list[GraphRows] = field(kw_only=True)
    keeps_state: ClassVar[bool] = True
    ends: bool = field(init=False)  # nothing follows from the heads
    committed: Mapping[str, Relation] = field(default_factory=dict)  # the relations that readers see
    relations: Mapping[str, Relation] = field(default_factory=dict)  # those that the last firing found

    def __post_init__(self, arena: Arena, room: Room | None) -> None:
        super().__post_init__(arena, room)
        self.ends = all(graph.ended is not None for graph in self.graphs)

    def fits(self, relation: Relation) -> bool:
        for graph in self.graphs:
            if graph.few.graph is not graph.state.graph:  # it was built again
                return False
        return self.least <= relation.rows_in(self.orders) <= self.most

    def bring_roots(self, relations: Mapping[str, Relation], committed: Mapping[str, Relation]) -> bool:
        for graph in self.graphs:
            state, stamp = graph.state, relations.get(graph.stamp)
            if stamp is None or (stamp is not state.after and stamp is not state.before):
                return False
        self.relations, self.committed = relations, committed
        return True

    def fire(self, arena: Arena, relation: Relation, rows: Rows) -> int:
        """How many rows of views come or go, or NOTHING, or TOO_LARGE.  REQUIRES: `bring_roots` has returned
        true."""
        relations, committed = self.relations, self.committed
        self.relations = self.committed = NO_RELATIONS
        found = super().fire(arena, relation, rows)
        if found < 0:
            return found
        changed = rows if len(rows) == 1 else self.changed()
        try:
            for graph in self.graphs:
                found += graph.apply(changed, relations, committed.get(graph.stamp))
        except DlogError:
            self.version(relation)  # releases the new roots
            raise
        return found

    def put_state(self, relations: dict[str, Relation]) -> None:
        for graph in self.graphs:
            relations[graph.stamp] = graph.state.new_stamp(graph.few.graph.arena)

    def changed_heads(self, store: Store, found: int) -> Mapping[str, Change] | None:
        if not self.ends:
            return None
        relations = store.relations
        if len(self.graphs) == 1:
            return self.graphs[0].change_head(relations)
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
        if len(self.ways) == 1:
            return self.operations
        costs = dict.fromkeys(self.ways, 0)
        for graph in self.graphs:
            costs[graph.use.strategy.name] += graph.operations
        return costs


@dataclass
class OneGraphTrigger(GraphTrigger):
    """Where one graph reads the predicate with one atom, one row takes one kernel call.

    Everything that this needs is prepared: what Python does for a row takes ten times as long as the kernel.
    """

    changed_rows: int = NOTHING  # of the head, by the last firing

    def __post_init__(self, arena: Arena, room: Room | None) -> None:
        super().__post_init__(arena, room)
        (graph,) = self.graphs
        self.graph, self.few, self.side, self.stamp = graph, graph.few, graph.state, graph.stamp
        self.head = graph.ended if isinstance(graph.ended, JoinedHead) else None
        self.alone = graph.use.group if graph.use.ends and isinstance(graph.use.group, GroupTrigger) else None
        self.call = np.zeros(k.CALL, np.int64)
        self.call_words, self.put_row = self.call.data, Struct(f"{self.arity}q").pack_into
        self.atom, self.call_words[k.C_ATOM] = self.few.atoms[0]
        self.call_words[k.C_MODE] = self.few.mode
        self.graph_state, self.applied = self.few.graph.state.data, self.few.graph.applied
        self.fire_one: Callable[..., int] = k.fire_graph
        self._prepare()

    def _prepare(self) -> None:
        """The arguments of the kernel, with the output that the graph has now."""
        graph, self.out = self.few.graph, self.few.out.buffer
        self.call_words[k.C_CAPACITY] = self.few.out.capacity
        head = (NO_WORDS,) * 4 if self.head is None else (*self.head.given[1:], self.head.rows)
        own = (graph.arena.A, graph.words, graph.state, self.out)
        self.given = (self.one.shape, self.one.written, self.call, *own, *head)

    def fits(self, relation: Relation) -> bool:
        return self.few.graph is self.side.graph and self.least <= relation.rows_in(self.orders) <= self.most

    def fire(self, arena: Arena, relation: Relation, rows: Rows) -> int:
        """See `fire_graph`.  Raises what `FewRows.apply` raises."""
        if len(rows) != 1:
            self.changed_rows = NOTHING
            return super().fire(arena, relation, rows)
        relations, side, stamp, graph, few = self.relations, self.side, self.stamp, self.graph, self.few
        words, state, head = self.call_words, self.graph_state, self.head
        first = side.begin_step(relations[stamp], self.committed.get(stamp))
        self.relations = self.committed = NO_RELATIONS
        self.used = self.one
        relation.put_roots(self.places)
        self.put_row(self.row_words, 0, *rows[0])
        if few.out.buffer is not self.out:
            self._prepare()
        # If the last row gave nothing, this one may not need the head: then it is changed in another call.
        words[k.C_HEAD] = MOST_ROWS if head is not None and graph.n and head.bring_roots(relations) else 0
        state[S_APPLIED], visits = 0, state[S_VISITS]
        try:
            with arena.lock:
                arena.hand_over()
                found = self.fire_one(arena.A, *self.given)
            if found >= 0 and words[k.C_CODE] != DONE:
                few.resume(words[k.C_CODE], self.one.rows)
                found = state[S_OUT]
        except DlogError:
            self.version(relation)  # releases the new roots
            raise
        finally:
            if applied := state[S_APPLIED]:  # as `FewRows.note`
                self.applied.append((self.atom, few.mode, rows, applied))
        if found < 0:
            if first:
                side.cancel_step()
            return found
        if self.fire_one is k.fire_graph:  # as in `Trigger.fire`
            self.fire_one = getattr(k.fire_graph, "target", k.fire_graph)
        self.changed_rows = words[k.C_CHANGED]
        graph.words[0] = graph.n = found
        graph.operations = found + state[S_VISITS] - visits
        return found

    def put_state(self, relations: dict[str, Relation]) -> None:
        relations[self.stamp] = self.side.new_stamp(self.few.graph.arena)

    def changed_heads(self, store: Store, found: int) -> Mapping[str, Change] | None:
        if self.head is not None and self.changed_rows > 0:
            return self.head.take(store.relations, self.changed_rows)
        return self.graph.change_head(store.relations)

    def costs(self) -> int:
        return self.graph.operations


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
    is_single = len(given) == 1 and len(given[0].few.atoms) == 1
    kind = OneGraphTrigger if is_single else GraphTrigger
    return kind(**of_predicate(maintenance, store, name, sign, ways), graphs=given)


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
        if group is None:
            return None
        ends = not is_read(maintenance, strategy.name) and has_one_value(store, strategy.name, group)
        return Use(strategy, sign, (), group, ends)
    heads = [plain_head(store, body.rule, head, outputs) for head in strategy.head.atoms(body.rule)]
    known = tuple(head for head in heads if head is not None)
    if len(known) < len(heads):
        return None
    has_keys = strategy.head.is_stored and store.predicates[strategy.name].is_functional
    return Use(strategy, sign, known, ends=not is_read(maintenance, strategy.name) and not has_keys)
