"""Owns what an aggregation rule keeps of its groups, part by part: exact sums, float sums, scans, texts.

Each part keeps one relation in the store and gives, from a version of it, the results of some aggregates for
given groups.  What the parts give together is what `dlog.engine.head.groups` gives from all assignments.

    sums      count; sum and mean of ints and decimals          (keys, count, words of sums)
    floats    sum and mean of floats                             (keys, number, place, word)
    scan      min and max of one value; shared between rules     (keys, value, count)
    texts     concat                                             (keys, order, code, count)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dlog.aggregates import load
from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Table, Values
from dlog.engine.column_functions import Column
from dlog.engine.column_functions.decimals import widen
from dlog.engine.head.groups import SumOverflow, joined_texts, partial_sums
from dlog.engine.head.heads import concat_keys, sum_overflow, with_result
from dlog.engine.head.scan_shapes import ScanShape, scan_shape
from dlog.engine.state.store import Store
from dlog.heads.float_sums import apply_floats, check_sums, float_results, no_sums
from dlog.heads.lookup import look_up
from dlog.heads.scans import (
    TEXT_WORDS,
    apply_values,
    check_values,
    extreme_texts,
    extremes,
    no_values,
    runs,
    text_values,
)
from dlog.heads.sums import Groups, apply_groups, check_groups, groups_of, no_groups
from dlog.ir.rules import Aggregate, Const, Program, Rule, Var
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation
from dlog.types import FLOAT, INT, MAX_PRECISION, STRING, Type

_EXACT = ("int", "unsigned", "decimal")


@dataclass(frozen=True)
class Assignments:
    """Changes of a body's assignments: tables with their signs, and the same in one, sorted by group.

    `keys` are the touched groups (n, g), distinct and sorted; group i has the rows from bounds[i] on of
    `columns` and `signs`.
    """

    tables: Sequence[tuple[int, Table]]
    keys: Words
    bounds: Words
    columns: dict[str, Words]
    signs: Words

    def negative(self) -> Assignments:
        tables = [(-sign, table) for sign, table in self.tables]
        return replace(self, tables=tables, signs=-self.signs)


class Part(Protocol):
    """One part.  Its class is named by the aggregates that it keeps, and also has

    holds(rule, item)                     whether it can keep this aggregate of this rule
    parts(program, rule, items, state)    the parts for all such aggregates of a rule
    """

    state: str  # the name of its relation

    def empty(self, arena: Arena) -> Relation: ...
    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        """The state after changes of assignments."""

    def sizes(self, state: Relation, keys: Words) -> Words:
        """How many assignments each group has; of a part that does not count them at least whether it has
        any.  O(groups log rows)."""

    def results(self, store: Store, state: Relation, keys: Words, counts: Words) -> dict[str, Values]:
        """The results of its aggregates for groups that exist; `counts` are their sizes, as the first part
        tells them."""

    def check(self, state: Relation) -> None: ...
    def explain(self) -> str: ...


class SumPart:
    def __init__(self, rule: Rule, items: Sequence[Aggregate], state: str):
        self.rule, self.items, self.state = rule, items, state
        self.groups = tuple(v.name for v in rule.groups)
        self.summed = [a for a in items if a.function.moments]

    @classmethod
    def parts(cls, program: Program, rule: Rule, items: Sequence[Aggregate], state: str) -> list[Part]:
        """Floats that cancel leave nothing, so groups are counted beside them."""
        parts: list[Part] = [SumPart(rule, [a for a in items if not is_float(rule, a)], state)]
        if floats := [a for a in items if is_float(rule, a)]:
            parts.append(FloatPart(rule, floats, f"{state}/floats"))
        return parts

    @classmethod
    def holds(cls, rule: Rule, item: Aggregate) -> bool:
        return cls.is_exact(rule, item) or (is_float(rule, item) and isinstance(item.argument, Var))

    @staticmethod
    def is_exact(rule: Rule, item: Aggregate) -> bool:
        """Whether exact sums of 256 bits determine the result."""
        if item.function.moments is None:
            return False
        return item.argument is None or argument_type(rule, item.argument).name in _EXACT

    def empty(self, arena: Arena) -> Relation:
        return no_groups(arena, len(self.groups), len(self.summed))

    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        parts = []
        for sign, table in changes.tables:
            part = self.partial(runner, table)
            parts.append(part if sign > 0 else part.negative())
        return apply_groups(state, len(self.groups), parts)[0]

    def partial(self, runner: BodyRunner, table: Table, weights: Words | None = None) -> Groups:
        """Counts and sums of a table's groups.  A row stands for as many assignments as it weighs."""
        columns = [np.ascontiguousarray(table.columns[name], np.int64) for name in self.groups]
        arguments = [runner.column(a.argument, table) for a in self.summed if a.argument is not None]
        if weights is not None:
            arguments = [Column(weights, INT), *(Column(a.values * weights, INT) for a in arguments)]
        found = partial_sums(columns, table.n, arguments, runner.store.dictionary)
        counts, sums = found.counts, found.sums
        if weights is not None:
            counts, sums = np.ascontiguousarray(sums[0][:, 0]), sums[1:]
        keys = np.stack(found.keys, axis=1) if found.keys else np.empty((len(counts), 0), np.int64)
        return Groups(keys, counts, sums)

    def sizes(self, state: Relation, keys: Words) -> Words:
        found, rest = look_up(state, keys)
        return np.where(found > 0, rest[:, 0], 0)

    def results(self, store: Store, state: Relation, keys: Words, counts: Words) -> dict[str, Values]:
        rest = look_up(state, keys)[1]
        return self.read(store, groups_of(np.hstack([keys, rest]), keys.shape[1]))

    def read(self, store: Store, groups: Groups) -> dict[str, Values]:
        """Raises when a sum does not fit."""
        columns: dict[str, Values] = {}
        sums = iter(groups.sums)
        for item in self.items:
            assert item.function.finish is not None and item.function.moments is not None
            words = [next(sums) for _ in item.function.moments]
            try:
                type = argument_type(self.rule, item.argument)
                column = load(item.function.finish)(type, groups.counts, words)
            except SumOverflow as error:
                keys = {name: groups.keys[:, i] for i, name in enumerate(self.groups)}
                table = Table(len(groups.counts), keys)
                raise sum_overflow(store, self.rule, table, error) from None
            columns |= with_result(Table(len(groups.counts), {}), item, column, groups.counts).columns
        return columns

    def check(self, state: Relation) -> None:
        check_groups(state, len(self.groups))

    def explain(self) -> str:
        kept = ["the number of assignments", *(f"the sum for {a}" for a in self.summed)]
        return f"keeps for each group {' and '.join(kept)}"


class FloatPart:
    def __init__(self, rule: Rule, items: Sequence[Aggregate], state: str):
        self.items, self.state, self.n_groups = items, state, len(rule.groups)
        self.arguments = list(dict.fromkeys(a.argument.name for a in items if isinstance(a.argument, Var)))

    def empty(self, arena: Arena) -> Relation:
        return no_sums(arena, self.n_groups)

    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        for number, name in enumerate(self.arguments):
            codes = changes.columns[name]
            state = apply_floats(state, changes.keys, number, changes.bounds, codes, changes.signs)
        return state

    def sizes(self, state: Relation, keys: Words) -> Words:
        raise AssertionError("floats that cancel leave no row: groups are counted beside them")

    def results(self, store: Store, state: Relation, keys: Words, counts: Words) -> dict[str, Values]:
        found: dict[str, Values] = {}
        for item in self.items:
            assert isinstance(item.argument, Var)
            number = self.arguments.index(item.argument.name)
            found[item.result.name] = float_results(
                state, keys, number, counts if item.function.is_quotient else None
            )
        return found

    def check(self, state: Relation) -> None:
        check_sums(state)

    def explain(self) -> str:
        return f"keeps for each group the exact float sum for {' and '.join(map(str, self.items))}"


class ScanPart:
    def __init__(self, rule: Rule, items: Sequence[Aggregate], shape: ScanShape):
        (argument,) = {a.argument for a in items}
        assert isinstance(argument, Var)
        self.items, self.shape, self.state = items, shape, shape.name
        self.value, self.type = argument.name, rule.types[argument.name]
        groups = [v.name for v in rule.groups]
        self.order = [groups.index(name) for name in shape.keys[: shape.depth]]

    @classmethod
    def parts(cls, program: Program, rule: Rule, items: Sequence[Aggregate], state: str) -> list[Part]:
        """One for each value."""
        values: dict[Var, list[Aggregate]] = {}
        for item in items:
            assert isinstance(item.argument, Var)
            values.setdefault(item.argument, []).append(item)
        return [cls(rule, own, scan_shape(program, rule, value)) for value, own in values.items()]

    @classmethod
    def holds(cls, rule: Rule, item: Aggregate) -> bool:
        return has_codes(rule, item.argument)

    @property
    def is_text(self) -> bool:
        return self.type == STRING

    def empty(self, arena: Arena) -> Relation:
        words = TEXT_WORDS + 1 if self.is_text else 1
        return no_values(arena, len(self.shape.keys), words, levels=self.shape.levels)

    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        codes = changes.columns[self.value]
        value = text_values(runner.store.dictionary, codes) if self.is_text else codes
        keys = [changes.columns[name] for name in self.shape.keys]
        return apply_values(state, np.column_stack([*keys, value]), changes.signs)

    def sizes(self, state: Relation, keys: Words) -> Words:
        return look_up(state, keys[:, self.order])[0]

    def results(self, store: Store, state: Relation, keys: Words, counts: Words) -> dict[str, Values]:
        groups = np.ascontiguousarray(keys[:, self.order])
        found: dict[str, Values] = {}
        if self.is_text:
            for item in self.items:
                sign = item.function.direction
                found[item.result.name] = extreme_texts(state, groups, store.dictionary, sign)[1]
            return found
        _, least, greatest = extremes(state, groups, len(self.shape.keys))
        for item in self.items:
            codes = np.ascontiguousarray((least if item.function.direction > 0 else greatest)[:, 0])
            found[item.result.name] = widen(codes, self.type).values
        return found

    def check(self, state: Relation) -> None:
        check_values(state)

    def explain(self) -> str:
        shared = ", shared with rules of other groups" if self.shape.levels else ""
        return f"keeps the values of each group in order for {' and '.join(map(str, self.items))}{shared}"


class TextPart:
    """`concat`: the texts of a group with what they are ordered by.  A change costs O(log n) and, as the
    result does, the group's texts."""

    def __init__(self, rule: Rule, item: Aggregate, state: str):
        assert isinstance(item.argument, Var)
        self.item, self.state, self.value = item, state, item.argument.name
        self.groups = tuple(v.name for v in rule.groups)
        self.by = concat_keys(rule)
        self.types = [rule.types[name] for name in self.by]

    @classmethod
    def parts(cls, program: Program, rule: Rule, items: Sequence[Aggregate], state: str) -> list[Part]:
        numbers = {item: number for number, item in enumerate(rule.aggregates)}
        return [cls(rule, item, f"{state}/texts/{numbers[item]}") for item in items]

    @classmethod
    def holds(cls, rule: Rule, item: Aggregate) -> bool:
        ordered = all(rule.types[name].precision <= MAX_PRECISION for name in concat_keys(rule))
        return ordered and has_codes(rule, item.argument)

    def empty(self, arena: Arena) -> Relation:
        return no_values(arena, len(self.groups) + len(self.by), 1, levels=False)

    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        columns = [changes.columns[name] for name in (*self.groups, *self.by, self.value)]
        return apply_values(state, np.column_stack(columns), changes.signs)

    def sizes(self, state: Relation, keys: Words) -> Words:
        return look_up(state, keys)[0]

    def results(self, store: Store, state: Relation, keys: Words, counts: Words) -> dict[str, Values]:
        rows, bounds = runs(state, keys)
        group = np.repeat(np.arange(len(keys)), np.diff(bounds))
        by = [
            self._places(store, rows[:, i]) if type == STRING else rows[:, i]
            for i, type in enumerate(self.types)
        ]
        codes = rows[:, -2]
        order = np.lexsort([self._places(store, codes), *by[::-1], group])
        times = rows[order, -1]
        ends = np.concatenate([[0], np.cumsum(times)])[bounds]
        return {self.item.result.name: joined_texts(np.repeat(codes[order], times), ends, store.dictionary)}

    def _places(self, store: Store, codes: Words) -> Words:
        """Numbers that sort as the texts do.  O(texts of these groups): the rank of all is not needed."""
        distinct, which = np.unique(codes, return_inverse=True)
        ordered = store.dictionary.in_order(distinct)
        place = np.empty(len(distinct), np.int64)
        place[np.searchsorted(distinct, ordered)] = np.arange(len(distinct))
        return place[which]

    def check(self, state: Relation) -> None:
        check_values(state)

    def explain(self) -> str:
        return f"keeps the texts of each group for {self.item}, which are joined again when it changes"


def argument_type(rule: Rule, argument: Var | Const | None) -> Type:
    if isinstance(argument, Var):
        return rule.types[argument.name]
    return INT if argument is None or argument.type is None else argument.type


def has_codes(rule: Rule, argument: Var | Const | None) -> bool:
    """Whether an argument is a variable whose values have codes: no decimal that the rule computes."""
    return isinstance(argument, Var) and rule.types[argument.name].precision <= MAX_PRECISION


def is_float(rule: Rule, item: Aggregate) -> bool:
    return item.argument is not None and argument_type(rule, item.argument) == FLOAT


__all__ = ["Assignments", "FloatPart", "Part", "ScanPart", "SumPart", "TextPart"]
