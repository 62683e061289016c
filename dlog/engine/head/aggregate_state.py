"""Owns the state of an aggregation rule's groups, in parts: exact sums, float sums, scans, texts.

Each part has one relation in the store and computes, from a version of it, the results of some aggregates for
given groups.  Together the parts give what `dlog.engine.head.groups` gives from all assignments.

    sums      what moments of ints, decimals ... determine       (keys, count, words of sums)
    floats    what moments of floats determine                   (keys, number, place, word)
    scan      min and max of one value; shared between rules     (keys, value, count)
    texts     concat                                             (keys, order, code, count)

`distinct_state` has another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from dlog.aggregates import load
from dlog.column_functions import Column
from dlog.column_functions.columns import float_codes, float_values
from dlog.column_functions.decimals import widen
from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Table, Values
from dlog.engine.head.groups import join_texts, partial_sums
from dlog.engine.head.heads import sum_overflow, with_result
from dlog.engine.head.power_sums import SUMS_AT_ONCE, SumOverflow, float_terms, sums_of_float
from dlog.engine.head.scan_shapes import ScanShape, scan_shape
from dlog.engine.state.store import Store
from dlog.heads.float_sums import apply_floats, check_sums, no_sums, words_of_sums
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
from dlog.ir.rules import Aggregate, Const, Program, Rule, Var, concat_keys
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation
from dlog.storage.values import encode
from dlog.values import FLOAT, INT, MAX_PRECISION, STRING, Type


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


class StatePart(Protocol):
    """One part.  Its class is named by the aggregates that it maintains, and also has

    holds(rule, item)                     whether it can maintain this aggregate of this rule
    parts(program, rule, items, state)    the parts for all such aggregates of a rule
    """

    state: str  # the name of its relation

    def empty(self, arena: Arena) -> Relation: ...
    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        """The state after changes of assignments."""

    def sizes(self, state: Relation, keys: Words) -> Words:
        """How many assignments each group has; for a part that does not count them, at least whether it has
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
        self.summed: list[tuple[Var | Const, int]] = []  # arguments with the power whose sum is stored
        self.places: list[list[int]] = [self._place(item) for item in items]

    def _place(self, item: Aggregate) -> list[int]:
        """The numbers of an aggregate's sums.  One that adds up has its own sum, in the order of the
        rule's aggregates, where the short path expects it; others share."""
        found = []
        for power in item.function.moments or ():
            assert item.argument is not None
            sum = (item.argument, power)
            if item.function.adds_up or sum not in self.summed:
                self.summed.append(sum)
                found.append(len(self.summed) - 1)
            else:
                found.append(self.summed.index(sum))
        return found

    @classmethod
    def parts(cls, program: Program, rule: Rule, items: Sequence[Aggregate], state: str) -> list[StatePart]:
        """Floats that cancel leave no row, so groups are counted separately."""
        parts: list[StatePart] = [SumPart(rule, [a for a in items if not is_float(rule, a)], state)]
        if floats := [a for a in items if is_float(rule, a)]:
            parts.append(FloatPart(rule, floats, f"{state}/floats"))
        return parts

    @classmethod
    def holds(cls, rule: Rule, item: Aggregate) -> bool:
        return cls.is_exact(rule, item) or (is_float(rule, item) and isinstance(item.argument, Var))

    @staticmethod
    def is_exact(rule: Rule, item: Aggregate) -> bool:
        """Whether exact sums of 256 bits determine the result: squares of uncoded values may not fit."""
        if item.function.moments is None:
            return False
        if item.argument is None:
            return True
        type = argument_type(rule, item.argument)
        has_room = max(item.function.moments) == 1 or type.precision <= MAX_PRECISION
        return type.adds_up_exactly and has_room

    def empty(self, arena: Arena) -> Relation:
        return no_groups(arena, len(self.groups), len(self.summed))

    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        parts = []
        for sign, table in changes.tables:
            part = self.partial(runner, table)
            parts.append(part if sign > 0 else part.negative())
        return apply_groups(state, len(self.groups), parts)[0]

    def partial(self, runner: BodyRunner, table: Table, weights: Words | None = None) -> Groups:
        """Counts and sums of a table's groups.  A row represents as many assignments as its weight."""
        columns = [np.ascontiguousarray(table.columns[name], np.int64) for name in self.groups]
        arguments = [(runner.column(argument, table), power) for argument, power in self.summed]
        if weights is not None:
            weighted = [(Column(column.values * weights, INT), power) for column, power in arguments]
            arguments = [(Column(weights, INT), 1), *weighted]
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
        for item, places in zip(self.items, self.places, strict=True):
            assert item.function.finish is not None
            try:
                type = argument_type(self.rule, item.argument)
                sums = [groups.sums[place] for place in places]
                column = load(item.function.finish)(type, groups.counts, sums)
            except SumOverflow as error:
                keys = {name: groups.keys[:, i] for i, name in enumerate(self.groups)}
                table = Table(len(groups.counts), keys)
                raise sum_overflow(store, self.rule, table, error) from None
            columns |= with_result(Table(len(groups.counts), {}), item, column, groups.counts).columns
        return columns

    def check(self, state: Relation) -> None:
        check_groups(state, len(self.groups))

    def explain(self) -> str:
        sums = [f"{_sums(a)} for {a}" for a in self.items if a.function.moments]
        return f"stores for each group {' and '.join(['the number of assignments', *sums])}"


class FloatPart:
    """Sums of the first power come first, in the order of `arguments`, then those of squares."""

    def __init__(self, rule: Rule, items: Sequence[Aggregate], state: str):
        self.items, self.state, self.n_groups = items, state, len(rule.groups)
        self.arguments = list(dict.fromkeys(a.argument.name for a in items if isinstance(a.argument, Var)))
        needed = {(self._name(item), power) for item in items for power in item.function.moments or ()}
        self.numbers: dict[tuple[str, int], int] = {(name, 1): i for i, name in enumerate(self.arguments)}
        number = len(self.arguments)
        for name in self.arguments:
            if (name, 2) in needed:
                self.numbers[name, 2] = number
                number += sums_of_float(2)

    def number(self, item: Aggregate) -> int:
        """Of the sum of an aggregate that adds up."""
        return self.numbers[self._name(item), 1]

    @staticmethod
    def _name(item: Aggregate) -> str:
        assert isinstance(item.argument, Var)
        return item.argument.name

    def empty(self, arena: Arena) -> Relation:
        return no_sums(arena, self.n_groups)

    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        for (name, power), first in self.numbers.items():
            codes = changes.columns[name]
            if power == 1:
                state = apply_floats(state, changes.keys, first, changes.bounds, codes, changes.signs)
                continue
            for number, terms in enumerate(float_terms(float_values(codes), power), first):
                bounds, signs = changes.bounds * power, np.repeat(changes.signs, power)
                if terms.any():
                    state = apply_floats(state, changes.keys, number, bounds, float_codes(terms), signs)
        return state

    def sizes(self, state: Relation, keys: Words) -> Words:
        raise AssertionError("floats that cancel leave no row: groups are counted separately")

    def results(self, store: Store, state: Relation, keys: Words, counts: Words) -> dict[str, Values]:
        """Some groups at a time: the words of a sum take much more space than a float."""
        out = np.empty((len(self.items), len(keys)), np.int64)
        for start in range(0, len(keys), SUMS_AT_ONCE):
            part = slice(start, start + SUMS_AT_ONCE)
            sums = {sum: self._words(state, keys[part], *sum) for sum in self.numbers}
            for number, item in enumerate(self.items):
                assert item.function.finish is not None and item.function.moments is not None
                own = [sums[self._name(item), power] for power in item.function.moments]
                out[number, part] = load(item.function.finish)(FLOAT, counts[part], own).codes
        table = Table(len(keys), {})
        for item, codes in zip(self.items, out, strict=True):
            table = with_result(table, item, Column(codes, FLOAT), counts)
        return dict(table.columns)

    def _words(self, state: Relation, keys: Words, name: str, power: int) -> Words:
        """The words of the sums of one argument's powers."""
        first = self.numbers[name, power]
        found = [words_of_sums(state, keys, first + k) for k in range(sums_of_float(power))]
        return found[0] if power == 1 else np.stack(found, axis=1)

    def check(self, state: Relation) -> None:
        check_sums(state)

    def explain(self) -> str:
        sums = [f"{_sums(a, 'exact float ')} for {a}" for a in self.items]
        return f"stores for each group {' and '.join(sums)}"


def _sums(item: Aggregate, kind: str = "") -> str:
    return f"the {kind}sums of values and of squares" if item.function.moments == (1, 2) else f"the {kind}sum"


class ScanPart:
    def __init__(self, rule: Rule, items: Sequence[Aggregate], shape: ScanShape):
        (argument,) = {a.argument for a in items}
        assert isinstance(argument, Var)
        self.items, self.shape, self.state = items, shape, shape.name
        self.value, self.type = argument.name, rule.types[argument.name]
        groups = [v.name for v in rule.groups]
        self.order = [groups.index(name) for name in shape.keys[: shape.depth]]

    @classmethod
    def parts(cls, program: Program, rule: Rule, items: Sequence[Aggregate], state: str) -> list[StatePart]:
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
        return f"stores the values of each group in order for {' and '.join(map(str, self.items))}{shared}"


class TextPart:
    """`concat`: the texts of a group with what they are ordered by.

    The rows of a group in a version of the state are a rope (maintenance paper, 2.3.3): a change costs
    O(log n), versions share what did not change, and a text is joined when it is read."""

    def __init__(self, rule: Rule, item: Aggregate, state: str):
        assert isinstance(item.argument, Var)
        self.item, self.state, self.value = item, state, item.argument.name
        self.groups = tuple(v.name for v in rule.groups)
        self.by = concat_keys(rule)
        self.types = [rule.types[name] for name in self.by]

    @classmethod
    def parts(cls, program: Program, rule: Rule, items: Sequence[Aggregate], state: str) -> list[StatePart]:
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
        return {self.item.result.name: encode(self.texts(store, state, keys), STRING, store.dictionary)}

    def texts(self, store: Store, state: Relation, keys: Words) -> pa.Array:
        """The joined texts of groups.  O(bytes, and m log m for m pieces)."""
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
        return join_texts(np.repeat(codes[order], times), ends, store.dictionary)

    def _places(self, store: Store, codes: Words) -> Words:
        """Numbers that sort like the texts.  O(texts of these groups): ranks of all texts are not needed."""
        distinct, which = np.unique(codes, return_inverse=True)
        ordered = store.dictionary.in_order(distinct)
        place = np.empty(len(distinct), np.int64)
        place[np.searchsorted(distinct, ordered)] = np.arange(len(distinct))
        return place[which]

    def check(self, state: Relation) -> None:
        check_values(state)

    def explain(self) -> str:
        return f"stores the texts of each group for {self.item}, joined when the result is read"


def argument_type(rule: Rule, argument: Var | Const | None) -> Type:
    if isinstance(argument, Var):
        return rule.types[argument.name]
    return INT if argument is None or argument.type is None else argument.type


def has_codes(rule: Rule, argument: Var | Const | None) -> bool:
    """Whether an argument is a variable whose values have codes: not a decimal that the rule computes."""
    return isinstance(argument, Var) and rule.types[argument.name].precision <= MAX_PRECISION


def is_float(rule: Rule, item: Aggregate) -> bool:
    return item.argument is not None and argument_type(rule, item.argument) == FLOAT


__all__ = ["Assignments", "FloatPart", "ScanPart", "StatePart", "SumPart", "TextPart"]
