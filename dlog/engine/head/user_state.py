"""Owns aggregates in Python: their values from scratch, and their state under change.

    fold_user    the value of each group, from all its arguments
    UserPart     a part of `aggregate_state`

Correct output: for each group what the class gives that got exactly the group's arguments, one for each
assignment.  The relation of the part has rows (keys, argument, number of assignments): it alone is the state,
versioned as others are.  Objects of the class are a cache for one version of it, the last one that was made.
After an abort, or for another version, they are made again from the relation when a group changes; so no
version ever sees a half-changed object.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlog.aggregates.user import UserAggregate
from dlog.column_functions import Column
from dlog.column_functions.columns import Dictionary, taken
from dlog.column_functions.decimals import widen
from dlog.column_functions.functions import numpy_values, python_values, shown
from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Values
from dlog.engine.head.aggregate_state import Assignments, StatePart, has_codes
from dlog.engine.state.store import Store
from dlog.errors import FunctionError
from dlog.heads.counts import net_rows
from dlog.heads.lookup import look_up
from dlog.heads.scans import apply_values, check_values, no_values, runs
from dlog.implementations import AggregateClass
from dlog.ir.rules import Aggregate, Program, Rule, Var
from dlog.jit import Words
from dlog.language.source import Span
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation
from dlog.storage.values import BadValue, encode


def fold_user(function: UserAggregate, rows: Any, column: Column | None) -> Column:
    """The value of each group.  O(n), and the calls."""
    assert column is not None
    grouping = rows.grouping
    place = np.empty(grouping.slots, np.int64)
    place[grouping.present] = np.arange(len(grouping.present))
    order = np.argsort(place[grouping.in_rows()], kind="stable")
    calls = Calls(function, rows.dictionary)
    values = calls.values(taken(column, order))
    bounds = rows.bounds
    found = []
    for start, stop in itertools.pairwise(bounds):
        state = calls.new()
        calls.insert(state, values[start:stop])
        found.append(calls.result(state))
    codes = calls.codes(found)
    return widen(codes, function.type) if function.type.is_decimal else Column(codes, function.type)


class Calls:
    """Calls of one class, whose failures become errors that name it and the argument."""

    def __init__(self, function: UserAggregate, dictionary: Dictionary, span: Span | None = None):
        found = dictionary.functions.find(function.called)
        assert isinstance(found, AggregateClass), f"{function} has no implementation"
        self.function, self.dictionary, self.span, self.code = function, dictionary, span, found

    def values(self, column: Column) -> Any:
        """Arguments as the class takes them."""
        read = numpy_values if self.code.vectorized else python_values
        return read(column, self.dictionary)

    def new(self) -> Any:
        try:
            return self.code.code()
        except Exception as error:
            raise self._raised("()", error) from error

    def insert(self, state: Any, values: Any) -> None:
        self._each(state, "insert", values)

    def erase(self, state: Any, values: Any) -> None:
        self._each(state, "erase", values)

    def _each(self, state: Any, method: str, values: Any) -> None:
        if not len(values):
            return
        call = getattr(state, method)
        for value in [values] if self.code.vectorized else values:
            try:
                call(value)
            except Exception as error:
                some = "an array" if self.code.vectorized else shown(value)
                raise self._raised(f".{method}({some})", error) from error

    def result(self, state: Any) -> Any:
        try:
            return state.result()
        except Exception as error:
            raise self._raised(".result()", error) from error

    def codes(self, results: list[Any]) -> Words:
        try:
            return encode(results, self.function.type, self.dictionary)
        except BadValue as bad:
            message = f"{self.function}.result() returned a wrong value: {bad.reason}"
            raise FunctionError(message, span=self.span) from None

    def _raised(self, call: str, error: Exception) -> FunctionError:
        return FunctionError(f"{self.function}{call} raised {type(error).__name__}: {error}", span=self.span)


class UserPart:
    """One aggregate of one variable."""

    def __init__(self, rule: Rule, item: Aggregate, state: str):
        assert isinstance(item.argument, Var) and isinstance(item.function, UserAggregate)
        self.rule, self.item, self.state, self.function = rule, item, state, item.function
        self.value, self.type = item.argument.name, rule.types[item.argument.name]
        self.groups = tuple(v.name for v in rule.groups)
        self.version: Relation | None = None  # the one that the objects belong to
        self.objects: dict[bytes, Any] = {}
        self.known: dict[bytes, int] = {}  # codes of results of that version
        self.before: tuple[Relation | None, dict[bytes, int]] = (None, {})  # of the version before it

    @classmethod
    def parts(cls, program: Program, rule: Rule, items: Sequence[Aggregate], state: str) -> list[StatePart]:
        numbers = {item: number for number, item in enumerate(rule.aggregates)}
        return [cls(rule, item, f"{state}/user/{numbers[item]}") for item in items]

    @classmethod
    def holds(cls, rule: Rule, item: Aggregate) -> bool:
        return has_codes(rule, item.argument)

    def empty(self, arena: Arena) -> Relation:
        return no_values(arena, len(self.groups), 1, levels=False)

    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        columns = [changes.columns[name] for name in (*self.groups, self.value)]
        rows = np.column_stack(columns)
        later = apply_values(state, rows, changes.signs)
        if later is state:
            return state
        if self.version is not state:
            self.objects, self.known = {}, {}
        self.version = None  # until all objects have changed
        self.before = (state, {})
        self._change_objects(*net_rows(rows, changes.signs), runner.store.dictionary)
        sizes = self.sizes(later, changes.keys)
        for key in changes.keys[sizes == 0]:
            self.objects.pop(key.tobytes(), None)
        self.version = later
        return later

    def _change_objects(self, rows: Words, change: Words, dictionary: Dictionary) -> None:
        """Brings the objects of changed groups from one version to the next.  `rows` are sorted."""
        calls = Calls(self.function, dictionary, self.item.span)
        for key, start, stop in _by_group(rows[:, :-1]):
            if key in self.known:
                self.before[1][key] = self.known.pop(key)
            state = self.objects.pop(key, None)
            signs = change[start:stop]
            if state is None or ((signs < 0).any() and not calls.code.erases):
                continue
            codes = rows[start:stop, -1]
            for method, sign in ((calls.insert, 1), (calls.erase, -1)):
                some = signs * sign > 0
                repeated = np.repeat(codes[some], np.abs(signs[some]))
                method(state, calls.values(Column(repeated, self.type)))
            self.objects[key] = state

    def sizes(self, state: Relation, keys: Words) -> Words:
        return look_up(state, keys)[0]

    def results(self, store: Store, state: Relation, keys: Words, counts: Words) -> dict[str, Values]:
        codes = self._codes(store.dictionary, state, keys)
        type = self.function.type
        return {self.item.result.name: widen(codes, type).values if type.is_decimal else codes}

    def _codes(self, dictionary: Dictionary, state: Relation, keys: Words) -> Words:
        names = [key.tobytes() for key in np.ascontiguousarray(keys)]
        known = self.known if state is self.version else dict[bytes, int]()
        if state is self.before[0]:
            known = self.before[1]
        missing = [i for i, name in enumerate(names) if name not in known]
        if missing:
            found = self._computed(dictionary, state, keys, missing, names)
            known.update({names[i]: int(code) for i, code in zip(missing, found, strict=True)})
        return np.array([known[name] for name in names], np.int64)

    def _computed(
        self, dictionary: Dictionary, state: Relation, keys: Words, missing: list[int], names: list[bytes]
    ) -> Words:
        """The results of groups, of objects that exist or are made from the arguments of the group."""
        calls = Calls(self.function, dictionary, self.item.span)
        is_last = state is self.version
        objects = {i: self.objects[names[i]] for i in missing if is_last and names[i] in self.objects}
        others = [i for i in missing if i not in objects]
        rows, bounds = runs(state, keys[others])
        values = calls.values(Column(np.repeat(rows[:, 0], rows[:, 1]), self.type))
        ends = np.concatenate([[0], np.cumsum(rows[:, 1])])[bounds]
        for place, i in enumerate(others):
            objects[i] = calls.new()
            calls.insert(objects[i], values[ends[place] : ends[place + 1]])
            if is_last:
                self.objects[names[i]] = objects[i]
        return calls.codes([calls.result(objects[i]) for i in missing])

    def check(self, state: Relation) -> None:
        check_values(state)

    def explain(self) -> str:
        return f"stores the values of each group, and an object of its class, for {self.item}"


def _by_group(keys: Words) -> list[tuple[bytes, int, int]]:
    """(Key, first row, end) of each group.  REQUIRES: sorted rows."""
    if not len(keys):
        return []
    fresh = np.ones(len(keys), np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    starts = np.flatnonzero(fresh)
    ends = np.append(starts[1:], len(keys))
    names = [key.tobytes() for key in np.ascontiguousarray(keys[starts])]
    return [(name, int(a), int(b)) for name, a, b in zip(names, starts, ends, strict=True)]
