"""Owns aggregation rules under change: which groups a transaction touches, and their rows before and after.

Correct output: for each touched group its old row with -1 and its new row with 1, exactly as evaluation from
scratch gives them; a row that stays is left out or cancels.

    sums    count, sum and mean of ints and decimals: counts and exact sums per group, kept in a relation
    kept    with min, max, concat or floats: several relations, each for some of the aggregates
    again   what has no codes (decimals that the rule computes): touched groups are evaluated again, twice
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np

from dlog.aggregates import load, states
from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Table, Values, distinct_rows
from dlog.engine.head.grouping import sorted_rows
from dlog.engine.head.heads import aggregate_table, body_outputs, head_rows, takes_weights, weigh
from dlog.engine.maintain.delta.aggregate_state import Assignments, Part, ScanPart, SumPart
from dlog.engine.maintain.delta.rule_deltas import RuleDeltas
from dlog.engine.maintain.strategy import Cycle, Followed
from dlog.engine.state.store import Store
from dlog.heads.sums import Groups, all_groups, apply_groups
from dlog.ir.rules import Atom, Program, Rule
from dlog.jit import Words
from dlog.planning.deltas import ERASE, INSERT, rule_variants
from dlog.storage.relation.relation import Relation
from dlog.types import MAX_PRECISION

Signed = tuple[Words, Words]  # rows of a head, and how many derivations each gains or loses


class AggregateDeltas(Protocol):
    rule: Rule
    deltas: RuleDeltas
    states: tuple[str, ...]  # names of the relations that the rule keeps

    def ready(self, store: Store) -> bool: ...
    def forget(self, store: Store) -> None: ...
    def rebuild(self, cycle: Cycle, heads: list[Atom]) -> list[Words]:
        """The rows of all groups, and the state."""

    def signed(self, cycle: Cycle, heads: list[Atom]) -> Iterator[Signed]:
        """Rows of touched groups with their signs."""

    def follow(
        self, cycle: Cycle, heads: list[Atom], tables: Iterable[tuple[int, Table]]
    ) -> Iterator[Signed]:
        """The same from changes of assignments that are known, as (1 or -1, assignments).

        REQUIRES: tables have the variables that `deltas` gives.
        """

    def check(self, store: Store) -> None: ...
    def explain(self) -> str: ...


def aggregate_deltas(store: Store, program: Program, rule: Rule, state: str) -> AggregateDeltas:
    """`state` is the name of the relation that the rule may keep, and how names of others begin."""
    if _wide(rule):
        return _Again(store, rule)
    if all(SumPart.is_exact(rule, a) for a in rule.aggregates):
        return Sums(store, rule, state)
    if all(load(a.function.state).holds(rule, a) for a in rule.aggregates):
        return Kept(store, program, rule, state)
    return _Again(store, rule)


def _wide(rule: Rule) -> bool:
    """Whether a group key is a decimal that the rule computes: it has no code."""
    return any(rule.types[v.name].precision > MAX_PRECISION for v in rule.groups)


class Sums:
    """Count, sum and mean of ints and decimals alone."""

    def __init__(self, store: Store, rule: Rule, state: str):
        self.rule = rule
        self.state = state
        self.states: tuple[str, ...] = (state,)
        self.part = SumPart(rule, rule.aggregates, state)
        self.groups = self.part.groups
        self.deltas = _deltas(store, rule)

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

    def signed(self, cycle: Cycle, heads: list[Atom]) -> Iterator[Signed]:
        self.deltas.begin(cycle)
        yield from self.follow(cycle, heads, self.deltas.signed(cycle))

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

    def check(self, store: Store) -> None:
        if self.state in store.relations:
            self.part.check(store.relations[self.state])


class Kept:
    """Groups that are kept in several parts; min, max, concat and sums of floats among them."""

    def __init__(self, store: Store, program: Program, rule: Rule, state: str):
        self.rule = rule
        self.groups = tuple(v.name for v in rule.groups)
        self.parts = _parts(program, rule, state)
        self.states: tuple[str, ...] = tuple(part.state for part in self.parts)
        extra = [name for part in self.parts if isinstance(part, ScanPart) for name in part.shape.keys]
        self.outputs = tuple(dict.fromkeys((*body_outputs(rule), *extra)))
        self.deltas = _deltas(store, rule, self.outputs)

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

    def signed(self, cycle: Cycle, heads: list[Atom]) -> Iterator[Signed]:
        self.deltas.begin(cycle)
        yield from self.follow(cycle, heads, self.deltas.signed(cycle))

    def follow(
        self, cycle: Cycle, heads: list[Atom], tables: Iterable[tuple[int, Table]]
    ) -> Iterator[Signed]:
        given = [(sign, table) for sign, table in tables if table.n]
        if given:
            yield from self.follow_tables(cycle.store, cycle.followed, heads, given)

    def follow_tables(
        self, store: Store, followed: Followed, heads: list[Atom], tables: list[tuple[int, Table]]
    ) -> Iterator[Signed]:
        """The same without a cycle: `followed` has what was changed so far for the same changes."""
        changes = self._assignments(tables)
        states = [self._changed(store.relations, followed, part, changes) for part in self.parts]
        for sign, version in ((ERASE, 0), (INSERT, 1)):
            for rows in self._rows(store, heads, [pair[version] for pair in states], changes.keys):
                yield rows, np.full(len(rows), sign)

    def _built(self, cycle: Cycle, part: Part, changes: Assignments, runner: BodyRunner) -> Relation:
        """A part's relation, made anew unless a rule that shares it has done so in this cycle."""
        relations = cycle.store.relations
        if part.state not in cycle.followed:
            later = part.changed(part.empty(cycle.store.arena), changes, runner)
            cycle.followed[part.state] = (relations.get(part.state), later)
        relations[part.state] = cycle.followed[part.state][1]
        return relations[part.state]

    def _changed(
        self, relations: dict[str, Relation], followed: Followed, part: Part, changes: Assignments
    ) -> tuple[Relation, Relation]:
        """A part's relation before and after.  One that rules share changes once in a cycle."""
        runner = self.deltas.runner
        before, after = followed.get(part.state, (None, None))
        if after is None:
            before = relations[part.state]
            after = part.changed(before, changes, runner)
        elif before is None:  # it was made in this cycle, from nothing: what changed is taken back
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

    def check(self, store: Store) -> None:
        for part in self.parts:
            if part.state in store.relations:
                part.check(store.relations[part.state])


def _parts(program: Program, rule: Rule, state: str) -> list[Part]:
    """What a rule keeps; the first part tells which groups there are."""
    parts: list[Part] = []
    for reference in states():
        if items := [a for a in rule.aggregates if a.function.state == reference]:
            parts += load(reference).parts(program, rule, items, state)
    return parts


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
        runner, assignments = self.deltas.all_assignments(cycle, takes_weights(rule))
        with cycle.evaluation.measures.of(rule):
            table = aggregate_table(runner, rule, assignments)
        return [head_rows(cycle.store, h, table, rule) for h in heads]

    def signed(self, cycle: Cycle, heads: list[Atom]) -> Iterator[Signed]:
        self.deltas.begin(cycle)
        yield from self.follow(cycle, heads, self.deltas.signed(cycle))

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

    def check(self, store: Store) -> None:
        pass


def _deltas(store: Store, rule: Rule, outputs: tuple[str, ...] = ()) -> RuleDeltas:
    variants = rule_variants(rule, rule.body.predicates())
    return RuleDeltas(store, rule, variants, bag=True, outputs=outputs)
