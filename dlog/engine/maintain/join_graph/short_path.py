"""Owns the short path of a rule with a join graph: a few rows of one predicate, of one sign.

There is one where the head has the columns of the graph's rows, each derived once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dlog.engine.maintain.heads.changes import ChangesHead
from dlog.engine.maintain.join_graph.rule_graphs import GraphDeltas
from dlog.engine.maintain.triggers.trigger_search import plain_head
from dlog.engine.state.store import Store
from dlog.heads.counts import net_rows
from dlog.ir.rules import Rule
from dlog.jit import Words
from dlog.joingraph.graph import ViewRows
from dlog.planning.deltas import INSERT
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

if TYPE_CHECKING:
    from dlog.engine.maintain.join_graph.keep import JoinGraphStrategy

MOST_ROWS = 1024  # of a transaction
Places = tuple[tuple[bool, int], ...]  # of each column of the head: a column of the graph's rows, or a code


def graph_path(strategy: JoinGraphStrategy, store: Store, name: str, sign: int) -> GraphPath | None:
    """Of inserted (1) or erased (-1) rows of a predicate.  REQUIRES: ready."""
    if len(strategy.stratum.rules) != 1 or strategy.aggregates or len(strategy.graphs) != 1:
        return None
    (body,), (rule,) = strategy.graphs, strategy.stratum.rules
    if body.body_of_graph.rest or not strategy.counts_are_one(store) or strategy.by_existence:
        return None
    if strategy.head.is_stored and store.predicates[strategy.name].is_functional:
        return None
    places = _places(strategy, store, rule, body)
    return None if places is None else GraphPath(strategy, body, name, sign, places)


def _places(strategy: JoinGraphStrategy, store: Store, rule: Rule, body: GraphDeltas) -> Places | None:
    heads = strategy.head.atoms(rule)
    return plain_head(store, rule, heads[0], body.graph.plan.body.outputs) if len(heads) == 1 else None


class GraphPath:
    """Of one stratum, for rows of one predicate that are inserted, or erased."""

    outgrown = False

    def __init__(self, strategy: JoinGraphStrategy, body: GraphDeltas, name: str, sign: int, places: Places):
        self.strategy, self.body, self.name, self.sign, self.places = strategy, body, name, sign, places
        self.is_single = len(body.graph.plan.atoms_of(name)) == 1
        self.operations = 0

    def follow(
        self, store: Store, before: Relation, rows: Sequence[Sequence[int]] | Words
    ) -> dict[str, tuple[Relation, Change]] | None:
        """(New version, net change) of the head, if it changes; None: there are too many rows."""
        if len(rows) > MOST_ROWS:
            return None
        body, graph = self.body, self.body.graph
        visits = graph.visits
        changed = np.asarray(rows, np.int64).reshape(len(rows), before.arity)
        body.state.begin(store, body.stamp)
        if self.sign == INSERT:
            found = graph.apply(self.name, inserted=changed)
        else:
            found = graph.apply(self.name, erased=changed)
        body.state.end(store, body.stamp)
        self.operations = graph.visits - visits
        return self._change_head(store.relations, found) if len(found.counts) else {}

    def _change_head(
        self, relations: dict[str, Relation], found: ViewRows
    ) -> dict[str, tuple[Relation, Change]]:
        name = self.strategy.name
        head, columns, n = relations[name], found.columns, len(found.counts)
        parts = [columns[place] if is_column else np.full(n, place) for is_column, place in self.places]
        rows = np.stack(parts, axis=1) if parts else np.empty((n, 0), np.int64)
        if isinstance(self.strategy.head, ChangesHead):
            return {name: (head, self.strategy.head.net([(rows, found.counts)]))}
        if self.is_single:
            change = head.apply(inserts=rows) if self.sign == INSERT else head.apply(erases=rows)
        else:  # of several atoms: what one finds may be gone again with the next
            rows, counts = net_rows(rows, found.counts)
            change = head.apply(inserts=rows[counts > 0], erases=rows[counts < 0])
        return {name: change}
