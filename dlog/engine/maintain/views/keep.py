"""Owns the view strategy: an aggregation rule over a join, kept up to date by its view tree.

For rules that count, or sum whole numbers or decimals, over a conjunction of atoms: the join is never made, a
changed row costs look-ups in the views beside its path (`dlog.views`).  Decimals are whole numbers of their
last digit.  Sums of floats are left to others: a product of sums rounds elsewhere than a sum of products, and
answers do not depend on the strategy.  Knows not how views follow a transaction (`rule_views`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeGuard

import numpy as np

from dlog.engine import column_functions
from dlog.engine.body.table import Table, Values
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.head.heads import head_rows
from dlog.engine.maintain.delta.keep import DeltaStrategy, assignments
from dlog.engine.maintain.strategy import Cycle
from dlog.engine.maintain.views.shared_views import RuleViews
from dlog.engine.state.store import Store
from dlog.errors import DataError, DlogError, UnsupportedError
from dlog.ir.rules import Atom, Const, Operand, Program, Rule, Stratum
from dlog.jit import Words
from dlog.m3.syntax import ast
from dlog.planning.versions import facts_name
from dlog.storage.relation.relation import Relation
from dlog.types import INT, STRING, Type
from dlog.views.orders.orders import find_order
from dlog.views.picture.notation import tree_lines
from dlog.views.query import Query
from dlog.views.rules import query_of, source_name
from dlog.views.run.groups import Groups, is_integral, with_count
from dlog.views.tree.build import view_tree

_NO_RING = "of rows that go, {op} cannot be taken back, as a sum can: a ring has no {op}"
_ROUNDED = "sums of floats are rounded, and a product of sums rounds elsewhere than a sum of products"


def view_query(program: Program, stratum: Stratum) -> Query:
    """The query of a stratum that views can keep with the answers of any other strategy.  It has all
    aggregates of the stratum's rule, if views can keep all of them.

    Raises UnsupportedError, which says why there is none.
    """
    if len(stratum.rules) != 1 or len(stratum.predicates) != 1:
        raise UnsupportedError("several rules derive it")
    rule = stratum.rules[0]
    whole = next(
        (
            r
            for r in program.rules_of(stratum.predicates[0])
            if r.id == rule.id and len(r.heads) > len(rule.heads)
        ),
        rule,
    )
    try:
        return _query(program, whole)
    except UnsupportedError:
        return _query(program, rule)


def _query(program: Program, rule: Rule) -> Query:
    _check_aggregates(rule)
    if not _tell_apart(rule):
        raise UnsupportedError("two of its heads may derive the same row")
    try:
        query = with_count(query_of(rule, program.predicates))
        query.check()
        if len({s.name for s in query.sources}) < len({a.predicate for a, _ in rule.body.atoms()}):
            raise UnsupportedError("two predicates have one name in M3")
        if not all(_compares(query, c) for c in query.conditions):
            raise UnsupportedError("it compares what are no whole numbers")
        if not is_integral(query):
            raise UnsupportedError(_ROUNDED)
    except DlogError as error:
        raise UnsupportedError(error.message) from None
    return query


def _check_aggregates(rule: Rule) -> None:
    if not rule.aggregates:
        raise UnsupportedError("it has no aggregate")
    for aggregate in rule.aggregates:
        if not aggregate.function.in_ring:
            raise UnsupportedError(_NO_RING.format(op=aggregate.op))
        type = rule.types[aggregate.result.name]
        if type.name == "float":
            raise UnsupportedError(_ROUNDED)
        if type != INT and not type.is_decimal:
            raise UnsupportedError(f"views do not sum values of type {type}")


def choose_views(
    program: Program, stratum: Stratum, store: Store, wanted: str | None, known: Iterable[object] = ()
) -> ViewStrategy:
    """The view strategy of a stratum.  `known` are strategies of other strata, whose views it may share.

    REQUIRES: nothing else is asked for; without a wish, a row is part of many assignments.
    Raises UnsupportedError, which says why there is none.
    """
    query = view_query(program, stratum)
    if wanted == ViewStrategy.way:
        return ViewStrategy(program, stratum, store, query, "it was asked for", known)
    if len(query.atoms) < 2:
        raise UnsupportedError("it reads one relation")
    if not query.is_acyclic:
        raise UnsupportedError("the join is cyclic, where deltas need no views and join in the best order")
    each = assignments(store, stratum.rules[0]) / max(sum(map(store.rows, stratum.reads)), 1)
    reason = f"a row is part of about {each:,.0f} assignments of the body, which views never make"
    return ViewStrategy(program, stratum, store, query, reason, known)


def _tell_apart(rule: Rule) -> bool:
    """Whether no row has two derivations: constants keep the rows of each head from those of another."""
    by_predicate: dict[str, list[Atom]] = {}
    for head in rule.heads:
        by_predicate.setdefault(head.predicate, []).append(head)
    return all(map(_told_apart, by_predicate.values()))


def _told_apart(heads: Sequence[Atom]) -> bool:
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
    """REQUIRES: `query` is the stratum's `view_query`.

    `way` and `reads_changes` become those of deltas once views could not hold a value.
    """

    way = "views"
    reads_changes = False

    def __init__(
        self,
        program: Program,
        stratum: Stratum,
        store: Store,
        query: Query,
        reason: str,
        known: Iterable[object] = (),
    ):
        (self.name,) = stratum.predicates
        self.program, self.stratum, self.query, self.reason = program, stratum, query, reason
        self.rule: Rule = stratum.rules[0]
        self.heads = [h for h in self.rule.heads if h.predicate == self.name]
        self.reads = stratum.reads
        self.stamp = f"views {self.name}"
        self.kept = self._shared(known) or RuleViews(query, {source_name(name): name for name in self.reads})
        self.exact = DeltaStrategy(program, stratum, store)

    def _shared(self, known: Iterable[object]) -> RuleViews | None:
        """The views of another stratum with the same query."""
        others = (one for one in known if isinstance(one, ViewStrategy) and one.reads == self.reads)
        return next((one.kept for one in others if one.query == self.query), None)

    # The interface of strategies

    def ready(self, store: Store) -> bool:
        if self.way != ViewStrategy.way:
            return self.exact.ready(store)
        known = self.kept.knows(store.relations.get(self.stamp))
        return known and not len(store.relations[facts_name(self.name)])

    def does_as(self, other: object) -> bool:
        return isinstance(other, ViewStrategy)

    def rebuild(self, cycle: Cycle) -> None:
        if self.way != ViewStrategy.way:
            self.exact.rebuild(cycle)
            return
        store = cycle.store
        try:
            groups = self.kept.rebuild(cycle)
        except DataError as error:
            self._without_views(cycle, error)
            return
        rows = np.concatenate([self._rows(store, groups, 1), store.relations[facts_name(self.name)].rows()])
        later = Relation.build(
            store.arena, np.unique(rows, axis=0), rows.shape[1], store.relations[self.name].orders
        )
        cycle.evaluation.watch.derived(len(later))
        cycle.publish_difference(self.name, later)
        self.exact.check_new_rows(cycle, later.rows())
        self._stamp(store)

    def apply(self, cycle: Cycle) -> None:
        if self.way != ViewStrategy.way:
            self.exact.apply(cycle)
            return
        store = cycle.store
        if self.name in cycle.facts:  # base facts that were and are no more
            self.rebuild(cycle)
            return
        try:
            groups = self.kept.apply(cycle, store.relations[self.stamp])
        except DataError as error:
            self._without_views(cycle, error)
            return
        erased, inserted = self._rows(store, groups, 0), self._rows(store, groups, 1)
        later, change = store.relations[self.name].apply(inserts=inserted, erases=erased)
        cycle.evaluation.watch.derived(len(change.inserted))
        cycle.publish(self.name, later, change)
        self.exact.check_new_rows(cycle, change.inserted)
        self._stamp(store)

    def _stamp(self, store: Store) -> None:
        assert self.kept.after is not None
        store.relations[self.stamp] = self.kept.after

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
        if self.way != ViewStrategy.way:
            first, *others = self.exact.explain(store)
            return [f"{first}; views could not hold its values ({self.reason})", *others]
        tree = view_tree(self.query, find_order(self.query, self.kept.sizes(store)))
        return [f"views: a view tree, because {self.reason}", *tree_lines(tree, self.query)]

    def check(self, store: Store) -> None:
        """The maps are sound, and the head is what its rule derives, by a join."""
        if self.way != ViewStrategy.way:
            self.exact.check(store)
            return
        if not self.ready(store) or store.relations[self.stamp] is not self.kept.after:
            return
        assert self.kept.views is not None
        self.kept.views.runtime.check()
        again = store.under(store.predicates)
        again.relations = dict(store.relations)
        rows, _ = self.exact.derivations(Cycle(self.program, again, Evaluation()))
        expected = np.unique(rows, axis=0)
        assert np.array_equal(store.relations[self.name].rows(), expected), (
            f"{self.name} is not what it should"
        )

    # Rows

    def _without_views(self, cycle: Cycle, error: DataError) -> None:
        """A view cannot hold a value that the result may never have: from now on, deltas."""
        self.kept.drop()
        cycle.store.relations.pop(self.stamp, None)
        self.way, self.reads_changes, self.reason = DeltaStrategy.way, True, error.message
        self.exact.rebuild(cycle)

    def _rows(self, store: Store, groups: Groups, when: int) -> Words:
        """The rows of the heads for groups as they were (0) or are (1)."""
        there = groups.counts[when] > 0
        columns = {name: groups.keys[there, j] for j, name in enumerate(self.query.free)}
        for aggregate in self.rule.aggregates:
            name = aggregate.result.name
            columns[name] = _values(groups.sums[when][name][there], self.rule.types[name])
        table = Table(int(there.sum()), columns)
        rows = [head_rows(store, head, table, self.rule) for head in self.heads]
        return np.ascontiguousarray(rows[0] if len(rows) == 1 else np.concatenate(rows))


def _values(words: Words, type: Type) -> Values:
    """Sums as the engine has them; decimals are sums of their last digit."""
    return column_functions.widen(words, type).values if type.is_decimal else np.ascontiguousarray(words)
