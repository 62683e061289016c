"""Owns the view strategy: an aggregation rule over a join, kept up to date by its view tree.

For rules that count or sum whole numbers over a conjunction of atoms: the join is never made, a changed row
costs look-ups in the views beside its path (`dlog.views`).  Sums of floats are left to others: a product of
sums rounds elsewhere than a sum of products, and answers do not depend on the strategy.

The maps of the views are not in the store.  As for the stages of a recursion, a relation without columns
stands for them there: the handle that is found tells whether the last transaction was committed or taken
back; what it changed is then changed back, which whole numbers allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from dlog.engine.delta_strategy import DeltaStrategy, assignments
from dlog.engine.evaluate import Evaluation
from dlog.engine.heads import head_rows
from dlog.engine.store import Store
from dlog.engine.strategy import Cycle
from dlog.engine.table import Table
from dlog.errors import DataError, DlogError
from dlog.ir.rules import Atom, Const, Operand, Program, Rule, Stratum
from dlog.jit import Words
from dlog.m3 import ast
from dlog.planning.versions import facts_name
from dlog.storage.relation import Relation
from dlog.types import INT, STRING
from dlog.views.build import view_tree
from dlog.views.groups import Groups, GroupViews, is_integral, with_count
from dlog.views.orders import find_order
from dlog.views.query import Query
from dlog.views.rules import query_of, source_name


def view_query(program: Program, stratum: Stratum) -> Query | None:
    """The query of a stratum that views can keep with the answers of any other strategy; else None."""
    if len(stratum.rules) != 1 or not stratum.rules[0].aggregates or len(stratum.predicates) != 1:
        return None
    rule = stratum.rules[0]
    if not _tell_apart(rule.heads):
        return None
    if any(a.op not in ("sum", "count") for a in rule.aggregates):
        return None
    try:
        query = with_count(query_of(rule, program.predicates))
        if len({s.name for s in query.sources}) < len({a.predicate for a, _ in rule.body.atoms()}):
            return None
        query.check()
        fine = all(_compares(query, c) for c in query.conditions) and is_integral(query)
    except DlogError:
        return None
    return query if fine and all(rule.types[a.result.name] == INT for a in rule.aggregates) else None


def choose_views(program: Program, stratum: Stratum, store: Store, wanted: str | None) -> ViewStrategy | None:
    """The view strategy of a stratum, when it is possible: asked for, or over an acyclic join.

    REQUIRES: nothing else is asked for; without a wish, a row is part of many assignments.
    """
    query = view_query(program, stratum)
    if query is not None and wanted == ViewStrategy.way:
        return ViewStrategy(program, stratum, store, query, "it was asked for")
    if query is None or not query.is_acyclic or len(query.atoms) < 2:
        return None
    each = assignments(store, stratum.rules[0]) / max(sum(map(store.rows, stratum.reads)), 1)
    reason = f"a row is part of about {each:,.0f} assignments of the body"
    return ViewStrategy(program, stratum, store, query, reason)


def _tell_apart(heads: Sequence[Atom]) -> bool:
    """Whether constants keep the rows of each head from being those of another: a row has one derivation."""
    named = [{i: a.value for i, a in enumerate(h.args) if _is_plain(a)} for h in heads]
    places = [i for i in named[0] if all(i in one for one in named)]
    return len({tuple(one[i] for i in places) for one in named}) == len(heads)


def _is_plain(argument: Operand) -> TypeGuard[Const]:
    """Whether it is a constant of one spelling: other types have several for a value."""
    return isinstance(argument, Const) and argument.type in (INT, STRING)


def _compares(query: Query, condition: ast.Node) -> bool:
    """Whether a condition is on whole numbers: others are compared as the engine does it."""
    types = {query.type_of(n.name).name for n in condition.walk() if isinstance(n, ast.Variable)}
    constants = {n.type for n in condition.walk() if isinstance(n, ast.Constant)}
    return types <= {"long"} and constants <= {"int", "long"}


class ViewStrategy:
    """REQUIRES: `query` is the stratum's `view_query`."""

    way = "views"
    reads_changes = False

    def __init__(self, program: Program, stratum: Stratum, store: Store, query: Query, reason: str):
        (self.name,) = stratum.predicates
        self.program, self.stratum, self.query, self.reason = program, stratum, query, reason
        self.rule: Rule = stratum.rules[0]
        self.heads = [h for h in self.rule.heads if h.predicate == self.name]
        self.reads = stratum.reads
        self.relations = {source_name(name): name for name in self.reads}
        self.stamp = f"views {self.name}"
        self.views: GroupViews | None = None
        self.before: Relation | None = None
        self.after: Relation | None = None
        self.changes: list[tuple[str, Words, int]] = []  # of the last transaction
        self.exact = DeltaStrategy(program, stratum, store)

    # The interface of strategies

    def ready(self, store: Store) -> bool:
        stamp = store.relations.get(self.stamp)
        known = stamp is not None and (stamp is self.after or stamp is self.before)
        return known and self.views is not None and not len(store.relations[facts_name(self.name)])

    def rebuild(self, cycle: Cycle) -> None:
        """All rows of what is read go through the views."""
        store = cycle.store
        self.before, self.after, self.changes = None, None, []
        try:
            self.views = self._empty_views(store)
            for relation, name in self.relations.items():
                self.views.apply(relation, store.relations[name].rows(), 1)
            groups = self.views.changed()
        except DataError:
            self._without_views(cycle)
            return
        rows = np.concatenate([self._rows(store, groups, 1), store.relations[facts_name(self.name)].rows()])
        later = Relation.build(
            store.arena, np.unique(rows, axis=0), rows.shape[1], store.relations[self.name].orders
        )
        cycle.evaluation.watch.derived(len(later))
        cycle.publish_difference(self.name, later)
        self.exact.check_new_rows(cycle, later.rows())
        self.after = store.relations[self.stamp] = Relation(store.arena, 0)

    def _empty_views(self, store: Store) -> GroupViews:
        """New ones, or those that are there, when the relations are about as large as they were."""
        sizes = self._sizes(store)
        if self.views is not None and all(_alike(n, self.views.sizes[name]) for name, n in sizes.items()):
            self.views.reset()
            return self.views
        return GroupViews(self.query, store.dictionary, sizes)

    def _sizes(self, store: Store) -> dict[str, int]:
        return {a.name: store.rows(self.relations[a.relation]) for a in self.query.atoms}

    def apply(self, cycle: Cycle) -> None:
        store = cycle.store
        assert self.views is not None
        if self.name in cycle.facts:  # base facts that were and are no more
            self.rebuild(cycle)
            return
        if store.relations[self.stamp] is not self.after:
            self._undo()
        self.before, self.after, self.changes = store.relations[self.stamp], None, []
        try:
            for relation, name in self.relations.items():
                change = cycle.changes.get(name)
                for rows, sign in ((change.erased, -1), (change.inserted, 1)) if change else ():
                    self._change(relation, np.ascontiguousarray(rows), sign)
            groups = self.views.changed()
        except DataError:
            self._without_views(cycle)
            return
        erased, inserted = self._rows(store, groups, 0), self._rows(store, groups, 1)
        later, change = store.relations[self.name].apply(inserts=inserted, erases=erased)
        cycle.evaluation.watch.derived(len(change.inserted))
        cycle.operations += sum(len(rows) for _, rows, _ in self.changes) + len(groups.keys)
        cycle.publish(self.name, later, change)
        self.exact.check_new_rows(cycle, change.inserted)
        self.after = store.relations[self.stamp] = Relation(store.arena, 0)

    def forget(self, store: Store) -> None:
        store.relations.pop(self.stamp, None)
        self.exact.forget(store)

    def estimate(self, cycle: Cycle) -> float:
        """Rows that change as a share of rows."""
        return sum(
            (len(change.inserted) + len(change.erased)) / max(1, cycle.store.rows(name))
            for name in self.reads
            if (change := cycle.changes.get(name)) is not None
        )

    def explain(self, store: Store) -> list[str]:
        tree = view_tree(self.query, find_order(self.query, self._sizes(store)))
        lines = [f"a view tree, because {self.reason}"]
        for view in tree.walk():
            if not view.is_leaf:
                kept = "kept" if view.materialised else "not kept"
                below = ", ".join(child.name for child in view.children)
                lines.append(
                    f"view at {', '.join(view.variables)} by [{', '.join(view.keys)}] over {below}: {kept}"
                )
        return lines

    def check(self, store: Store) -> None:
        """The maps are sound, and the head is what its rule derives, by a join."""
        if not self.ready(store) or store.relations[self.stamp] is not self.after:
            return
        assert self.views is not None
        self.views.runtime.check()
        again = store.under(store.predicates)
        again.relations = dict(store.relations)
        rows, _ = self.exact.derivations(Cycle(self.program, again, Evaluation()))
        expected = np.unique(rows, axis=0)
        assert np.array_equal(store.relations[self.name].rows(), expected), (
            f"{self.name} is not what it should"
        )

    # Changes

    def _change(self, relation: str, rows: Words, sign: int) -> None:
        if len(rows):
            assert self.views is not None
            self.changes.append((relation, rows, sign))
            self.views.apply(relation, rows, sign)

    def _undo(self) -> None:
        """The last transaction was taken back."""
        assert self.views is not None
        for relation, rows, sign in reversed(self.changes):
            self.views.apply(relation, rows, -sign)
        self.views.changed()

    def _without_views(self, cycle: Cycle) -> None:
        """A view cannot hold a value that the result may never have: evaluate."""
        self.views = self.before = self.after = None
        self.exact.rebuild(cycle)
        self.forget(cycle.store)

    def _rows(self, store: Store, groups: Groups, when: int) -> Words:
        """The rows of the head for groups as they were (0) or are (1)."""
        there = groups.counts[when] > 0
        columns = {v.name: groups.keys[there, j] for j, v in enumerate(self.rule.groups)}
        columns |= {name: values[there] for name, values in groups.sums[when].items()}
        table = Table(int(there.sum()), {n: np.ascontiguousarray(c) for n, c in columns.items()})
        rows = [head_rows(store, head, table, self.rule) for head in self.heads]
        return np.ascontiguousarray(rows[0] if len(rows) == 1 else np.concatenate(rows))


def _alike(n: int, before: int) -> bool:
    return n <= 8 * max(before, 8) and before <= 8 * max(n, 8)
