"""Owns aggregation rules under change: which groups a transaction touches, and their rows before and after.

Correct output: for each touched group its old row with -1 and its new row with 1, exactly as evaluation from
scratch gives them; a row that stays is omitted or cancels out.

    sums    count, sum, mean, variances of ints and decimals: counts and exact sums per group, in a relation
    parts   with min, max, concat, count_distinct, floats: several relations, each for some of the aggregates
    again   values without codes (decimals that the rule computes): touched groups are evaluated again, twice
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np

from dlog.aggregates import load, states
from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Table, Values, distinct_rows
from dlog.engine.head.aggregate_state import Assignments, ScanPart, StatePart, SumPart
from dlog.engine.head.grouping import sorted_rows
from dlog.engine.head.heads import aggregate_table, body_outputs, head_rows, takes_weights, weigh
from dlog.engine.maintain.body_changes import BodyChanges
from dlog.engine.maintain.heads.sets import Signed
from dlog.engine.maintain.strategy import Cycle, Followed
from dlog.engine.state.store import Store
from dlog.heads.sums import Groups, all_groups, apply_groups
from dlog.ir.rules import Atom, Program, Rule
from dlog.jit import Words
from dlog.planning.deltas import ERASE, INSERT
from dlog.storage.relation.relation import Relation
from dlog.values import MAX_PRECISION


class GroupHead(Protocol):
    """The groups of one rule."""

    rule: Rule
    deltas: BodyChanges
    states: tuple[str, ...]  # names of the relations with the rule's state

    def ready(self, store: Store) -> bool: ...
    def forget(self, store: Store) -> None: ...
    def rebuild(self, cycle: Cycle, heads: list[Atom]) -> list[Words]:
        """The rows of all groups, and the state."""

    def follow(
        self, cycle: Cycle, heads: list[Atom], tables: Iterable[tuple[int, Table]]
    ) -> Iterator[Signed]:
        """Rows of touched groups with their signs, from changes of assignments as (1 or -1, assignments).

        REQUIRES: tables have the variables that `deltas` gives.
        """

    def check(self, store: Store, fresh: Store) -> None:
        """Assert that the state is sound and equal to a freshly built one."""

    def explain(self) -> str: ...


def group_head(
    store: Store,
    program: Program,
    rule: Rule,
    state: str,
    method: Callable[[Store, Rule, str, tuple[str, ...], bool], BodyChanges],
) -> GroupHead:
    """`state` is the suffix of the names of the rule's state; `method` finds the change of its body."""
    own = f"%{state}"

    def deltas(outputs: tuple[str, ...] = ()) -> BodyChanges:
        return method(store, rule, state, outputs, True)

    if not _wide(rule) and all(SumPart.is_exact(rule, a) for a in rule.aggregates):
        return Sums(rule, own, deltas())
    if not _wide(rule) and all(load(a.function.state).holds(rule, a) for a in rule.aggregates):
        parts = _parts(program, rule, own)
        outputs = _outputs(rule, parts)
        return PartitionedAggregate(rule, parts, outputs, deltas(outputs))
    return _Again(rule, deltas())


def _wide(rule: Rule) -> bool:
    """Whether a group key is a decimal that the rule computes: it has no code."""
    return any(rule.types[v.name].precision > MAX_PRECISION for v in rule.groups)


class Sums:
    """Counts, sums, means and variances of ints and decimals alone."""

    def __init__(self, rule: Rule, state: str, deltas: BodyChanges):
        self.rule, self.deltas = rule, deltas
        self.state = state
        self.states: tuple[str, ...] = (state,)
        self.part = SumPart(rule, rule.aggregates, state)
        self.groups = self.part.groups

    def ready(self, store: Store) -> bool:
        return self.state in store.relations

    def forget(self, store: Store) -> None:
        store.relations.pop(self.state, None)

    def rebuild(self, cycle: Cycle, heads: list[Atom]) -> list[Words]:
        rule, store = self.rule, cycle.store
        runner, table = self.deltas.all_assignments(cycle, takes_weights(rule))
        groups = self.part.partial(runner, *weigh(rule, table))
        store.relations[self.state] = all_groups(store.arena, groups)
        return [head_rows(store, h, self._results(store, groups), rule) for h in heads]

    def follow(
        self, cycle: Cycle, heads: list[Atom], tables: Iterable[tuple[int, Table]]
    ) -> Iterator[Signed]:
        store = cycle.store
        changes = []
        for sign, table in tables:
            change = self.part.partial(self.deltas.runner, table)
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

    def _results(self, store: Store, groups: Groups) -> Table:
        columns = {name: groups.keys[:, i].copy() for i, name in enumerate(self.groups)}
        return Table(len(groups.counts), columns | self.part.read(store, groups))

    def explain(self) -> str:
        return self.part.explain()

    def check(self, store: Store, fresh: Store) -> None:
        _check(self.part, store, fresh)


class PartitionedAggregate:
    """Groups with state in several parts; min, max, concat, count_distinct and sums of floats among them."""

    def __init__(self, rule: Rule, parts: list[StatePart], outputs: tuple[str, ...], deltas: BodyChanges):
        self.rule, self.parts, self.outputs, self.deltas = rule, parts, outputs, deltas
        self.groups = tuple(v.name for v in rule.groups)
        self.states: tuple[str, ...] = tuple(part.state for part in parts)
        self.reader: Store | None = None  # see `text_heads`

    def ready(self, store: Store) -> bool:
        return all(state in store.relations for state in self.states)

    def forget(self, store: Store) -> None:
        for state in self.states:
            store.relations.pop(state, None)

    def rebuild(self, cycle: Cycle, heads: list[Atom]) -> list[Words]:
        runner, table = self.deltas.all_assignments(cycle)
        changes = self._assignments([(INSERT, table)])
        states = [self._built(cycle, part, changes, runner) for part in self.parts]
        return self._rows(cycle.store, heads, states, changes.keys)

    def follow(
        self, cycle: Cycle, heads: list[Atom], tables: Iterable[tuple[int, Table]]
    ) -> Iterator[Signed]:
        given = [(sign, table) for sign, table in tables if table.n]
        if given:
            yield from self.follow_tables(cycle.store, cycle.followed, heads, given)

    def follow_tables(
        self, store: Store, followed: Followed, heads: list[Atom], tables: list[tuple[int, Table]]
    ) -> Iterator[Signed]:
        """The same without a cycle: `followed` has the relations changed so far for the same changes."""
        changes, states = self.changed(store, followed, tables)
        for sign, version in ((ERASE, 0), (INSERT, 1)):
            for rows in self._rows(store, heads, [pair[version] for pair in states], changes.keys):
                yield rows, np.full(len(rows), sign)

    def changed(
        self, store: Store, followed: Followed, tables: list[tuple[int, Table]]
    ) -> tuple[Assignments, list[tuple[Relation, Relation]]]:
        """(The changes, each part's relation before and after); the state changes."""
        changes = self._assignments(tables)
        return changes, [self._changed(store.relations, followed, part, changes) for part in self.parts]

    def _built(self, cycle: Cycle, part: StatePart, changes: Assignments, runner: BodyRunner) -> Relation:
        """A part's relation, rebuilt unless a rule that shares it has rebuilt it in this cycle."""
        relations = cycle.store.relations
        if part.state not in cycle.followed:
            later = part.changed(part.empty(cycle.store.arena), changes, runner)
            cycle.followed[part.state] = (relations.get(part.state), later)
        relations[part.state] = cycle.followed[part.state][1]
        return relations[part.state]

    def _changed(
        self, relations: dict[str, Relation], followed: Followed, part: StatePart, changes: Assignments
    ) -> tuple[Relation, Relation]:
        """A part's relation before and after.  A relation shared by rules changes once in a cycle."""
        runner = self.deltas.runner
        before, after = followed.get(part.state, (None, None))
        if after is None:
            before = relations[part.state]
            after = part.changed(before, changes, runner)
        elif before is None:  # it was built from nothing in this cycle: undo the change
            before = part.changed(after, changes.negative(), runner)
        followed[part.state] = (before, after)
        relations[part.state] = after
        return before, after

    def _assignments(self, tables: list[tuple[int, Table]]) -> Assignments:
        """All tables in one, sorted by group.  O(rows)."""
        names = [n for n in self.outputs if all(isinstance(t.columns[n], np.ndarray) for _, t in tables)]
        columns = {n: np.concatenate([t.columns[n] for _, t in tables]).astype(np.int64) for n in names}
        signs = np.concatenate([np.full(table.n, sign, np.int64) for sign, table in tables])
        order = sorted_rows([columns[name] for name in self.groups], len(signs)) if self.groups else None
        if order is not None:
            columns, signs = {n: values[order] for n, values in columns.items()}, signs[order]
        keys = (
            np.stack([columns[name] for name in self.groups], axis=1)
            if self.groups
            else np.empty((len(signs), 0), np.int64)
        )
        fresh = np.ones(len(signs), bool)
        fresh[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        starts = np.flatnonzero(fresh)
        return Assignments(tables, keys[starts], np.append(starts, len(signs)), columns, signs)

    def _rows(self, store: Store, heads: list[Atom], states: list[Relation], keys: Words) -> list[Words]:
        """The heads' rows of those groups that exist."""
        sizes = self.parts[0].sizes(states[0], keys)
        keys, counts = keys[sizes > 0], sizes[sizes > 0]
        if not len(keys):
            return []
        columns: dict[str, Values] = {name: keys[:, i].copy() for i, name in enumerate(self.groups)}
        for part, state in zip(self.parts, states, strict=True):
            columns |= part.results(store, state, keys, counts)
        table = Table(len(keys), columns)
        return [head_rows(store, head, table, self.rule) for head in heads]

    def explain(self) -> str:
        return "; ".join(part.explain() for part in self.parts)

    def check(self, store: Store, fresh: Store) -> None:
        for part in self.parts:
            _check(part, store, fresh)


def _check(part: StatePart, store: Store, fresh: Store) -> None:
    stored, again = store.relations[part.state], fresh.relations[part.state]
    part.check(stored)
    assert np.array_equal(stored.rows(), again.rows()), f"the state {part.state}"


def _parts(program: Program, rule: Rule, state: str) -> list[StatePart]:
    """The parts of a rule's state; the first one has a row for every group."""
    parts: list[StatePart] = []
    for reference in states():
        if items := [a for a in rule.aggregates if a.function.state == reference]:
            parts += load(reference).parts(program, rule, items, state)
    return parts


def _outputs(rule: Rule, parts: list[StatePart]) -> tuple[str, ...]:
    """The variables a body must return: a scan predicate shared by rules may have more keys."""
    extra = [name for part in parts if isinstance(part, ScanPart) for name in part.shape.keys]
    return tuple(dict.fromkeys((*body_outputs(rule), *extra)))


class _Again:
    def __init__(self, rule: Rule, deltas: BodyChanges):
        self.rule, self.deltas = rule, deltas
        self.states: tuple[str, ...] = ()
        self.whole = _wide(rule)
        self.groups = tuple(v.name for v in rule.groups)

    def ready(self, store: Store) -> bool:
        return True

    def forget(self, store: Store) -> None:
        pass

    def rebuild(self, cycle: Cycle, heads: list[Atom]) -> list[Words]:
        rule = self.rule
        runner, assignments = self.deltas.all_assignments(cycle, takes_weights(rule))
        with cycle.evaluation.measures.of(rule):
            table = aggregate_table(runner, rule, assignments)
        return [head_rows(cycle.store, h, table, rule) for h in heads]

    def follow(
        self, cycle: Cycle, heads: list[Atom], tables: Iterable[tuple[int, Table]]
    ) -> Iterator[Signed]:
        given = [table for _, table in tables if table.n]
        if not given:
            return
        touched = None if self.whole or not self.groups else self._touched(given)
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

    def check(self, store: Store, fresh: Store) -> None:
        pass
