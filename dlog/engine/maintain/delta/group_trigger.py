"""Owns the short path of a few rows through an aggregation: what is kept of groups, and the head's rows.

For rules alone in their stratum, each group in a row of its own: one kernel call for counts and sums of ints,
for min and max of one value, and for sums of floats.  All else goes through `aggregate_deltas`.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dlog.algebra import WORDS_PER_SUM
from dlog.engine.body.table import Table
from dlog.engine.head.aggregate_state import FloatPart, ScanPart, SumPart
from dlog.engine.head.heads import stored_as
from dlog.engine.head.scan_shapes import is_shared
from dlog.engine.maintain.heads.groups import Kept, Sums
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.strategy import Followed
from dlog.engine.state.store import Store
from dlog.heads import group_kernels as k
from dlog.heads.counts import net_rows
from dlog.heads.group_kernels import (
    ADDED,
    GAINED_STRIDE,
    GROUP,
    HEAD,
    LITERAL,
    LOST_STRIDE,
    MOST_ORDERS,
    ORDERS,
    RESULT_OF,
    TAKEN,
    change_groups,
)
from dlog.heads.kept_kernels import change_floats, change_values
from dlog.heads.kernels import WIDE
from dlog.ir.rules import Const, Rule, Var
from dlog.jit import Words
from dlog.planning.versions import facts_name
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation
from dlog.values import INT

Place = tuple[int, int]  # of a column of the head: see `group_kernels`
Assignments = tuple[Words, int, int]  # (words, stride, n): column c begins at c * stride
NONE: Assignments = (np.zeros(1, np.int64), 1, 0)
ORDERS_OF_HEAD = ORDERS + HEAD
KEPT = 16  # assignments for which there is always room


@dataclass(frozen=True)
class GroupTrigger:
    """A rule as a kernel has it: its layout tells where in a join's output its groups and arguments are, and
    where in its head they go; `widths` are the words for each assignment that its relations need room for."""

    name: str
    states: tuple[str, ...]  # relations that it keeps, one or two
    kernel: Any
    layout_words: tuple[int, ...]
    widths: tuple[int, ...]
    groups: tuple[int, ...]  # columns of a join's output
    head: tuple[Place, ...]

    def follow(
        self, relations: dict[str, Relation], added: Assignments, taken: Assignments
    ) -> tuple[Relation, Change] | None:
        """Take assignments in: (the head, how it changed), and what is kept in its place.  None: not simple,
        and nothing has been done."""
        n, head = added[2] + taken[2], relations[self.name]
        room = self._rooms[0] if n <= KEPT else self._room_for(n)
        if self._has_facts(relations) or head.n_orders > MOST_ORDERS:
            return None
        kept = [relations[name] for name in self.states if name in relations]
        if len(kept) < len(self.states):
            return None
        before = room.bring(kept, head, added, taken)
        arena, roots_of = head.arena, room.roots_of
        with arena.lock:
            arena.release_many()
            found = self.kernel(
                arena.A, self.layout, room.job, added[0], taken[0], room.orders, room.roots, room.words
            )
            if found < 0:
                return None
            new = arena.words[RESULT]
        for number, root in enumerate(before):
            if roots_of[number][0] != root:  # groups that lose what they gain stay as they are
                relations[self.states[number]] = kept[number].of_roots(roots_of[number])
        if not found:
            return head, room.no_change
        net = room.words[room.net : room.net + found * room.h].copy().reshape(-1, room.h)
        return head.of_roots(roots_of[HEAD]), head.in_order(Change(net[:new], net[new:]))

    def _has_facts(self, relations: dict[str, Relation]) -> bool:
        """Whether the head has base facts: then a row may have another derivation."""
        facts, room = relations[self._facts], self._rooms[0]
        if facts is room.empty:
            return False
        if not len(facts):
            room.empty = facts
        return len(facts) > 0

    def _room_for(self, n: int) -> _Room:
        """That of the last time, if it is large enough: fresh memory costs more than all else."""
        if n <= KEPT:
            return self._rooms[0]
        if len(self._rooms) == 1 or self._rooms[1].n < n:
            self._rooms[1:] = [_Room(2 * n, self)]
        return self._rooms[1]

    @cached_property
    def layout(self) -> Words:
        return np.array(self.layout_words, np.int64)

    @cached_property
    def _facts(self) -> str:
        return facts_name(self.name)

    @cached_property
    def _rooms(self) -> list[_Room]:
        """For a few assignments, and for many."""
        return [_Room(KEPT, self)]


class _Room:
    """What a kernel is given and writes on the way, for so many assignments.  What it does not touch takes no
    memory."""

    def __init__(self, n: int, group: GroupTrigger):
        self.n, self.h = n, len(group.head)
        self.empty: Relation | None = None  # base facts that are known to be none
        self.roots, self.job = np.zeros(3 * k.MOST_ORDERS, np.int64), np.zeros(k.JOB, np.int64)
        views = self.roots.data
        self.roots_of = [views[r * k.MOST_ORDERS : (r + 1) * k.MOST_ORDERS] for r in range(3)]
        self.orders: Words = np.zeros(0, np.int64)
        self._layouts: list[Words] = []  # which `orders` is made of
        state, second = (2 * n * width for width in (*group.widths, 0)[:2])
        head = 2 * n * max(self.h, 1)
        parts = [state, second, head, max(state, second), head, 2 * WORDS_PER_SUM]
        *starts, end = np.cumsum([0, *parts]).tolist()
        self.words, self.net = np.empty(end, np.int64), starts[4]
        self.words[starts[5] :] = 0
        self.job[k.ROWS : k.ROWS + 6] = starts
        self.job_words = self.job.data
        self.no_change = Change(*np.empty((2, 0, self.h), np.int64))

    def bring(
        self, kept: Sequence[Relation], head: Relation, added: Assignments, taken: Assignments
    ) -> list[int]:
        """Have the roots of relations, their column orders and how many assignments there are in place;
        returns the first roots of what is kept."""
        job, views, layouts, first = self.job_words, self.roots_of, [head.layout()], []
        _, job[GAINED_STRIDE], job[ADDED] = added
        _, job[LOST_STRIDE], job[TAKEN] = taken
        job[ORDERS_OF_HEAD] = head.put_roots(views[HEAD])
        number = ORDERS
        for relation, view in zip(kept, views, strict=False):
            job[number] = relation.put_roots(view)
            first.append(view[0])
            layouts.append(relation.layout())
            number += 1
        if not self._layouts or not all(map(operator.is_, layouts, self._layouts)):
            self.orders, self._layouts = np.concatenate(layouts), layouts
            starts = np.cumsum([0, *map(len, layouts)]).tolist()
            for number, start in zip((HEAD, k.STATE, k.SECOND), starts[: len(layouts)], strict=False):
                job[k.COLUMNS + number] = start
        return first


@dataclass(frozen=True)
class OtherGroups:
    """An aggregation of any other kind, which `aggregate_deltas` takes further."""

    name: str
    kept: Kept
    outputs: tuple[str, ...]
    groups: tuple[int, ...]
    head: tuple[Place, ...]

    def follow_tables(
        self, store: Store, followed: Followed, tables: Sequence[tuple[int, Sequence[Words]]]
    ) -> tuple[Relation, Change] | None:
        """As `GroupTrigger.follow`, for signs with columns of assignments; `followed` has what this
        transaction has changed so far.  None: the relations must be dropped."""
        if len(store.relations[facts_name(self.name)]):
            return None
        given = [
            (sign, Table(len(columns[0]), dict(zip(self.outputs, columns, strict=True))))
            for sign, columns in tables
        ]
        heads = [head for head in self.kept.rule.heads if head.predicate == self.name]
        parts = list(self.kept.follow_tables(store, followed, heads, given))
        rows, signs = net_rows(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        return store.relations[self.name].apply(inserts=rows[signs > 0], erases=rows[signs < 0])


def group_trigger(
    store: Store, strategy: RuleStrategy, outputs: tuple[str, ...]
) -> GroupTrigger | OtherGroups | None:
    """None: the stratum's aggregation is not of a simple kind."""
    if strategy.plain or len(strategy.aggregates) != 1 or not strategy.counts_are_one(store):
        return None
    aggregate = strategy.aggregates[0]
    if isinstance(aggregate, Sums):
        return _sums(store, strategy, aggregate, outputs)
    if not isinstance(aggregate, Kept) or not set(aggregate.outputs) <= set(outputs):
        return None
    places = _head_places(store, strategy, aggregate.rule, exact=False)
    if places is None:
        return None
    found: GroupTrigger | None = None
    match aggregate.parts:
        case [ScanPart() as part]:
            found = _values(strategy, aggregate, part, places, outputs)
        case [SumPart() as counts, FloatPart() as sums]:
            found = _floats(strategy, aggregate, counts, sums, places, outputs)
    if found is not None:
        return found
    groups = tuple(outputs.index(name) for name in aggregate.groups)
    return OtherGroups(strategy.name, aggregate, outputs, groups, places)


def _sums(store: Store, strategy: RuleStrategy, sums: Sums, outputs: tuple[str, ...]) -> GroupTrigger | None:
    """Counts, and sums of ints."""
    rule = sums.rule
    arguments = _int_arguments(store, rule, outputs)
    places = _head_places(store, strategy, rule, exact=True)
    groups = [v.name for v in rule.groups]
    if arguments is None or not places or not set(groups) <= set(outputs):
        return None
    numbers = iter(range(len(rule.aggregates)))
    results = [-1 if a.argument is None else next(numbers) for a in rule.aggregates]
    head = tuple((kind, results[number] if kind == RESULT_OF else number) for kind, number in places)
    width = len(groups) + 1 + WIDE * len(arguments)
    columns = [outputs.index(name) for name in groups]
    given = [word for pair in arguments for word in pair]
    return _made(strategy, (sums.state,), change_groups, columns, given, head, (width,), len(arguments))


def _values(
    strategy: RuleStrategy, kept: Kept, part: ScanPart, places: tuple[Place, ...], outputs: tuple[str, ...]
) -> GroupTrigger | None:
    """Min and max of one value."""
    if part.is_text or part.type.is_decimal or part.shape.levels or is_shared(strategy.program, part.state):
        return None
    keys, items = part.shape.keys, {item.result.name: item for item in part.items}
    results = [items[item.result.name] for item in kept.rule.aggregates]
    head = []
    for kind, number in places:
        if kind == GROUP:
            head.append((GROUP, keys.index(kept.groups[number])))
        elif kind == RESULT_OF:
            head.append((RESULT_OF, len(keys) + (1 if results[number].function.direction > 0 else 2)))
        else:
            head.append((LITERAL, number))
    columns = [outputs.index(name) for name in (*keys, part.value)]
    return _made(strategy, (part.state,), change_values, columns, [], tuple(head), (len(keys) + 2,), 0)


def _floats(
    strategy: RuleStrategy,
    kept: Kept,
    counts: SumPart,
    sums: FloatPart,
    places: tuple[Place, ...],
    outputs: tuple[str, ...],
) -> GroupTrigger | None:
    """Sums of floats, and counts."""
    if counts.summed or not all(item.function.adds_up for item in sums.items):
        return None
    g, s = len(kept.groups), len(sums.arguments)
    results = []
    for item in kept.rule.aggregates:
        number = sums.arguments.index(item.argument.name) if isinstance(item.argument, Var) else -1
        results.append(g if item.argument is None else g + 1 + number)
    head = tuple((kind, results[number] if kind == RESULT_OF else number) for kind, number in places)
    columns, given = ([outputs.index(n) for n in names] for names in (kept.groups, sums.arguments))
    widths = (g + 1, max(s, 1) * WORDS_PER_SUM * (g + 3))
    return _made(strategy, (counts.state, sums.state), change_floats, columns, given, head, widths, s)


def _made(
    strategy: RuleStrategy,
    states: tuple[str, ...],
    kernel: Any,
    columns: Sequence[int],
    arguments: Sequence[int],
    head: tuple[Place, ...],
    widths: tuple[int, ...],
    sums: int,
) -> GroupTrigger:
    pairs = [word for pair in head for word in pair]
    layout = (len(columns), sums, len(head), *columns, *arguments, *pairs)
    groups = tuple(columns[:-1] if kernel is change_values else columns)
    return GroupTrigger(strategy.name, states, kernel, layout, widths, groups, head)


def _head_places(store: Store, strategy: RuleStrategy, rule: Rule, exact: bool) -> tuple[Place, ...] | None:
    """Where a head's columns come from, results by the number of their aggregate; None: not simple.
    `exact`: results are ints, else any codes."""
    (head,) = (h for h in rule.heads if h.predicate == strategy.name)
    groups = [v.name for v in rule.groups]
    results = [a.result.name for a in rule.aggregates]
    places: list[Place] = []
    for operand, type in zip(head.args, store.column_types(strategy.name), strict=True):
        if isinstance(operand, Const):
            code = store.encode(operand, type)
            if code is None:
                return None
            places.append((LITERAL, code))
        elif operand.name in groups and stored_as(rule, operand, type):
            places.append((GROUP, groups.index(operand.name)))
        elif operand.name in results and (type == INT or (not exact and not type.is_decimal)):
            places.append((RESULT_OF, results.index(operand.name)))
        else:
            return None
    return tuple(places)


def _int_arguments(store: Store, rule: Rule, outputs: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Of each sum of ints: (is a column, its number or the code itself); None: not simple."""
    found: list[tuple[int, int]] = []
    for item in rule.aggregates:
        argument = item.argument
        if argument is None:
            continue
        if not item.function.adds_up:
            return None
        if isinstance(argument, Var):
            if rule.types[argument.name] != INT or argument.name not in outputs:
                return None
            found.append((1, outputs.index(argument.name)))
        else:
            code = store.encode(argument, INT) if argument.type == INT else None
            if code is None:
                return None
            found.append((0, code))
    return found
