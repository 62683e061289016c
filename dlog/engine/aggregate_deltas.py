"""Owns aggregation rules under change: which groups a transaction touches, and their rows before and after.

Correct output: for each touched group its old row with -1 and its new row with 1, exactly as evaluation from
scratch gives them; a row that stays is left out or cancels.

    sums    count, sum and mean of ints and decimals: counts and exact sums per group, kept in a relation
    again   everything else (min, max, concat, floats): touched groups are evaluated again, old and new
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from dlog.engine.bodies import BodyRunner
from dlog.engine.groups import SumOverflow, partial_sums, result_of_sums
from dlog.engine.heads import aggregate_table, body_outputs, head_rows, sum_overflow
from dlog.engine.measure import RuleMeasure
from dlog.engine.rule_deltas import RuleDeltas
from dlog.engine.store import Store
from dlog.engine.strategy import Cycle
from dlog.engine.table import Table, distinct_rows
from dlog.heads.sums import Groups, apply_groups, check_groups, no_groups
from dlog.ir.rules import Atom, Const, Rule, Var
from dlog.jit import Words
from dlog.planning.deltas import ERASE, INSERT, rule_variants
from dlog.planning.pipeline import plan_pipeline
from dlog.types import MAX_PRECISION, Type

_SUMMED = ("count", "sum", "total", "mean")


class AggregateDeltas(Protocol):
    rule: Rule
    deltas: RuleDeltas
    states: tuple[str, ...]  # names of the relations that the rule keeps

    def ready(self, store: Store) -> bool: ...
    def forget(self, store: Store) -> None: ...
    def rebuild(self, cycle: Cycle, heads: list[Atom]) -> list[Words]:
        """The rows of all groups, and the state."""

    def signed(self, cycle: Cycle, heads: list[Atom]) -> Iterator[tuple[Words, Words]]:
        """Rows of touched groups with their signs."""

    def check(self, store: Store) -> None: ...
    def explain(self) -> str: ...


def aggregate_deltas(store: Store, rule: Rule, state: str) -> AggregateDeltas:
    """`state` is the name of the relation that the rule may keep."""
    return Sums(store, rule, state) if _is_summed(rule) else _Again(store, rule)


def _is_summed(rule: Rule) -> bool:
    return all(a.op in _SUMMED and _is_exact(rule, a.argument) for a in rule.aggregates) and not _wide(rule)


def _is_exact(rule: Rule, argument: Var | Const | None) -> bool:
    if argument is None:
        return True
    type = rule.types[argument.name] if isinstance(argument, Var) else argument.type
    return type is not None and type.name in ("int", "unsigned", "decimal")


def _wide(rule: Rule) -> bool:
    """Whether a group key is a decimal that the rule computes: it has no code."""
    return any(rule.types[v.name].precision > MAX_PRECISION for v in rule.groups)


class Sums:
    def __init__(self, store: Store, rule: Rule, state: str):
        self.rule = rule
        self.state = state
        self.states: tuple[str, ...] = (state,)
        self.groups = tuple(v.name for v in rule.groups)
        self.deltas = _deltas(store, rule)
        self.summed = [a for a in rule.aggregates if a.op != "count"]

    def ready(self, store: Store) -> bool:
        return self.state in store.relations

    def forget(self, store: Store) -> None:
        store.relations.pop(self.state, None)

    def rebuild(self, cycle: Cycle, heads: list[Atom]) -> list[Words]:
        rule, store = self.rule, cycle.store
        pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, True)
        runner = _runner(cycle, rule)
        with cycle.evaluation.measures.of(rule):
            table = runner.run(pipeline)
        empty = no_groups(store.arena, len(self.groups), len(self.summed))
        change = self._partial(runner, table)
        store.relations[self.state], _, groups = apply_groups(empty, len(self.groups), [change])
        return [head_rows(store, h, self._results(store, groups), rule) for h in heads]

    def signed(self, cycle: Cycle, heads: list[Atom]) -> Iterator[tuple[Words, Words]]:
        store = cycle.store
        self.deltas.begin(cycle)
        changes = []
        for sign, table in self.deltas.signed(cycle):
            change = self._partial(self.deltas.runner, table)
            changes.append(change if sign > 0 else change.negative())
        if not any(len(change.counts) for change in changes):
            return
        later, before, after = apply_groups(store.relations[self.state], len(self.groups), changes)
        store.relations[self.state] = later
        for sign, groups in ((ERASE, before), (INSERT, after)):
            table = self._results(store, groups)
            for head in heads:
                rows = head_rows(store, head, table, self.rule)
                yield rows, np.full(len(rows), sign)

    def _partial(self, runner: BodyRunner, table: Table) -> Groups:
        columns = [np.ascontiguousarray(table.columns[name], np.int64) for name in self.groups]
        arguments = [runner.column(a.argument, table) for a in self.summed if a.argument is not None]
        found = partial_sums(columns, table.n, arguments, runner.store.dictionary)
        n = len(found.counts)
        keys = np.stack(found.keys, axis=1) if found.keys else np.empty((n, 0), np.int64)
        return Groups(keys, found.counts, found.sums)

    def _results(self, store: Store, groups: Groups) -> Table:
        columns = {name: groups.keys[:, i].copy() for i, name in enumerate(self.groups)}
        sums = iter(groups.sums)
        for item in self.rule.aggregates:
            words = groups.keys if item.op == "count" else next(sums)
            try:
                column = result_of_sums(item.op, self._type(item.argument), groups.counts, words)
            except SumOverflow as error:
                raise sum_overflow(store, self.rule, Table(len(groups.counts), columns), error.row) from None
            columns[item.result.name] = column.values
        return Table(len(groups.counts), columns)

    def _type(self, argument: Var | Const | None) -> Type:
        if isinstance(argument, Var):
            return self.rule.types[argument.name]
        return Type("int") if argument is None or argument.type is None else argument.type

    def explain(self) -> str:
        kept = ["the number of assignments", *(f"the sum for {a}" for a in self.summed)]
        return f"keeps for each group {' and '.join(kept)}"

    def check(self, store: Store) -> None:
        if self.state in store.relations:
            check_groups(store.relations[self.state], len(self.groups))


class _Again:
    def __init__(self, store: Store, rule: Rule):
        self.rule = rule
        self.states: tuple[str, ...] = ()
        self.deltas = _deltas(store, rule)
        self.whole = _wide(rule)
        self.groups = tuple(v.name for v in rule.groups)

    def ready(self, store: Store) -> bool:
        return True

    def forget(self, store: Store) -> None:
        pass

    def rebuild(self, cycle: Cycle, heads: list[Atom]) -> list[Words]:
        rule = self.rule
        pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, True)
        runner = _runner(cycle, rule)
        with cycle.evaluation.measures.of(rule):
            table = aggregate_table(runner, rule, runner.run(pipeline))
        return [head_rows(cycle.store, h, table, rule) for h in heads]

    def signed(self, cycle: Cycle, heads: list[Atom]) -> Iterator[tuple[Words, Words]]:
        self.deltas.begin(cycle)
        tables = [table for _, table in self.deltas.signed(cycle) if table.n]
        if not tables:
            return
        touched = None if self.whole or not self.groups else self._touched(tables)
        bound = self.groups if touched is not None else ()
        for sign, old in ((ERASE, True), (INSERT, False)):
            body = self.deltas.body(bound, touched, old, True)
            table = aggregate_table(self.deltas.runner, self.rule, body)
            for head in heads:
                rows = head_rows(cycle.store, head, table, self.rule)
                yield rows, np.full(len(rows), sign)

    def _touched(self, tables: list[Table]) -> Table:
        columns = {v: np.concatenate([t.columns[v] for t in tables]) for v in self.groups}
        total = Table(sum(t.n for t in tables), columns)
        return total.take(distinct_rows(list(columns.values()), total.n))

    def explain(self) -> str:
        return f"evaluates touched groups again: {', '.join(map(str, self.rule.aggregates))}"

    def check(self, store: Store) -> None:
        pass


def _deltas(store: Store, rule: Rule) -> RuleDeltas:
    reads = {atom.predicate for atom, _ in rule.body.atoms()}
    return RuleDeltas(store, rule, rule_variants(rule, reads), bag=True)


def _runner(cycle: Cycle, rule: Rule) -> BodyRunner:
    evaluation = cycle.evaluation
    measure = evaluation.measures.rules.setdefault(rule.id, RuleMeasure(rule))
    return BodyRunner(cycle.store, rule, evaluation.watch, evaluation.measures, measure, evaluation.jobs)
