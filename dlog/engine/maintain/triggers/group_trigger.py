"""Owns the short path of a few rows through an aggregation: what is stored of groups, and the head's rows.

For rules alone in their stratum, each group in a row of its own: one kernel call for counts and sums of ints,
sums of floats, min and max, in any combination.  All else goes through `engine.maintain.heads.groups`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dlog.algebra import WORDS_PER_SUM
from dlog.engine.body.table import Table
from dlog.engine.head.aggregate_state import FloatPart, ScanPart, StatePart, SumPart
from dlog.engine.maintain.heads.groups import PartitionedAggregate, Sums
from dlog.engine.maintain.heads.text_heads import follow_later
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.strategy import Followed
from dlog.engine.maintain.triggers.terminal_head import HeadChange
from dlog.engine.state.store import Store
from dlog.heads import group_kernels as k
from dlog.heads.counts import net_rows
from dlog.heads.group_kernels import (
    ADDED,
    BEFORE,
    GAINED_STRIDE,
    GROUP,
    LITERAL,
    LOST_STRIDE,
    MOST_ORDERS,
    ORDERS,
    RELATION,
    RELATIONS,
    RESULT_OF,
    TAKEN,
    change_groups,
)
from dlog.heads.kernels import WIDE
from dlog.heads.part_kernels import FLOATS, KIND, PLACE, SUMS, VALUES, WEIGHTED
from dlog.ir.analysis.projection import stored_as
from dlog.ir.rules import Const, Rule, Var
from dlog.jit import Words
from dlog.planning.versions import facts_name
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Order, Relation
from dlog.values import INT

Place = tuple[int, int]  # of a column of the head: see `group_kernels`
Assignments = tuple[Words, int, int]  # (words, stride, n): column c begins at c * stride
NONE: Assignments = (np.zeros(1, np.int64), 1, 0)
FEW = 16  # assignments for which there is always room


class GroupPart(NamedTuple):
    """A relation that a rule keeps, as the kernel has it."""

    state: str
    shape: tuple[int, ...]  # but for the place in the record: see `part_kernels`
    results: tuple[tuple[str, int], ...]  # of its aggregates: name, place among the part's results
    n_results: int
    width: int  # of a row
    most_rows: int = 1  # that an assignment changes, new ones and those that are gone each


@dataclass(frozen=True)
class GroupTrigger:
    """A rule as the kernel has it: where in a join's output its groups are, what is stored of them, and where
    in its head they go."""

    name: str
    groups: tuple[int, ...]  # columns of a join's output
    head: tuple[Place, ...]
    parts: tuple[GroupPart, ...]

    def weighted(self, column: int) -> GroupTrigger | None:
        """The same where a column says how many assignments each one stands for; None: it only takes them one
        by one."""
        parts = [
            part._replace(shape=(*part.shape[:KIND], WEIGHTED, *part.shape[KIND + 1 :], column))
            for part in self.parts
            if part.shape[KIND] == SUMS
        ]
        return replace(self, parts=tuple(parts)) if len(parts) == len(self.parts) else None

    def follow(
        self, relations: dict[str, Relation], followed: Followed, added: Assignments, taken: Assignments
    ) -> tuple[Relation, HeadChange] | None:
        """Take assignments in: (the head, how it changed), with the parts in their places; `followed` has the
        parts that this transaction has changed so far.  None: not simple, and nothing has been done."""
        n, head = added[2] + taken[2], relations[self.name]
        room = self._rooms[0] if n <= FEW else self._room_for(n)
        if self._has_facts(relations) or not room.bring(head, relations, followed):
            return None
        job, arena = room.job, head.arena
        words, job[GAINED_STRIDE], job[ADDED] = added
        lost, job[LOST_STRIDE], job[TAKEN] = taken
        with arena.lock:
            arena.release_many()
            found = room.kernel(arena.A, room.block, words, lost)
            if found < 0:
                return None
            new = arena.words[RESULT]
        if room.kernel is change_groups:  # from now on its machine code, without the 0.2 us of finding it
            room.kernel = getattr(change_groups, "target", change_groups)
        room.take_parts(relations, followed)
        change = HeadChange(self.name, room.orders[0][0], room.net[: found * room.h].tobytes(), new)
        return (head.of_roots(room.views[0].tolist()) if found else head), change

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
        if len(self._rooms) == 1 or self._rooms[1].n < n:
            self._rooms[1:] = [_Room(2 * n, self)]
        return self._rooms[1]

    def layout(self) -> list[int]:
        """See `group_kernels`."""
        g, starts, shapes = len(self.groups), list[int](), list[int]()
        size = g
        for part in self.parts:
            starts.append(k.STARTS + len(self.parts) + len(shapes))
            shapes += (*part.shape[:PLACE], size, *part.shape[PLACE + 1 :])
            size += part.n_results
        work = max(2 * part.width for part in self.parts)
        pairs = k.STARTS + len(starts) + len(shapes)
        return [g, len(starts), size, work, pairs, *starts, *shapes, *(w for pair in self.head for w in pair)]

    @cached_property
    def _facts(self) -> str:
        return facts_name(self.name)

    @cached_property
    def _rooms(self) -> list[_Room]:
        """For a few assignments, and for many."""
        return [_Room(FEW, self)]


class _Room:
    """What the kernel is given and writes on the way, for so many assignments.  What it does not touch takes
    no memory."""

    def __init__(self, n: int, group: GroupTrigger):
        self.n, self.h = n, len(group.head)
        self.empty: Relation | None = None  # base facts that are known to be none
        self.is_followed = False  # whether the last time another rule had changed parts
        layout = group.layout()
        widths, n_relations = [self.h, *(part.width for part in group.parts)], 1 + len(group.parts)
        rows = [2 * n * max(self.h, 1), *(2 * n * part.most_rows * part.width for part in group.parts)]
        sizes = [
            RELATIONS + n_relations * RELATION,
            len(layout),
            *(MOST_ORDERS for _ in widths),
            *(MOST_ORDERS * width for width in widths),
            *rows,
            max(rows),
            rows[0],
            2 * WORDS_PER_SUM,
        ]
        *starts, end = np.cumsum([0, *sizes]).tolist()
        self.block = block = np.empty(end, np.int64)
        block[k.LAYOUT], block[k.UNREAD : k.DIGITS + 1] = starts[1], starts[-3:]
        block[starts[1] : starts[2]], block[starts[-1] :] = layout, 0
        for r, width in enumerate(widths):
            at = RELATIONS + r * RELATION
            block[at + k.ROOTS], block[at + k.COLUMNS], block[at + k.ROWS] = starts[2 + r :: n_relations][:3]
            block[at + k.WIDTH], block[at + BEFORE] = width, -1
        self.job, self.kernel = block.data, change_groups
        self.net = self.job[starts[-2] : starts[-1]]
        self.views = [self.job] * n_relations  # of the roots of each relation
        self.orders: list[tuple[Order, ...]] = [()] * n_relations
        self.parts = list(enumerate((part.state for part in group.parts), 1))
        self.before: list[tuple[Relation, int]] = []  # the version of each part, and its first root

    def bring(self, head: Relation, relations: Mapping[str, Relation], followed: Followed) -> bool:
        """Have the roots and column orders of all relations in place; False: not possible."""
        views, orders, before = self.views, self.orders, self.before
        if not head.put_roots_of(orders[0], views[0]) and not self._lay_out(0, head):
            return False
        before.clear()
        for number, name in self.parts:
            part = relations.get(name)
            if part is None:
                return False
            if not part.put_roots_of(orders[number], views[number]) and not self._lay_out(number, part):
                return False
            before.append((part, views[number][0]))
            if followed or self.is_followed:
                self._follow(number, followed.get(name))
        self.is_followed = bool(followed)
        return True

    def take_parts(self, relations: dict[str, Relation], followed: Followed) -> None:
        """Have the new versions of parts in place, and noted, unless they were when this began."""
        for (number, name), (part, root) in zip(self.parts, self.before, strict=True):
            roots = self.views[number].tolist()
            if roots[0] != root:  # groups that lose what they gain stay as they are
                relations[name] = part.of_roots(roots)
            if name not in followed:
                followed[name] = part, relations[name]
        self.before.clear()

    def _follow(self, number: int, versions: tuple[Relation | None, Relation] | None) -> None:
        """Say which version of a part was there before, if it has been changed already."""
        old = versions[0] if versions is not None else None
        root = -1 if old is None else old.root_of(tuple(range(old.arity)))
        assert root is not None, "a part has its natural order"
        self.job[RELATIONS + number * RELATION + BEFORE] = root

    def _lay_out(self, number: int, relation: Relation) -> bool:
        """Have a relation's roots and column orders in place; False: there are too many."""
        at, orders = RELATIONS + number * RELATION, tuple(relation.orders)
        if len(orders) > MOST_ORDERS:
            return False
        if orders != self.orders[number]:
            layout, start = relation.layout(), self.job[at + k.COLUMNS]
            self.block[start : start + len(layout)] = layout
            self.job[at + ORDERS], self.orders[number] = len(orders), orders
            self.views[number] = self.job[self.job[at + k.ROOTS] :][: len(orders)]
        relation.put_roots(self.views[number])
        return True


@dataclass(frozen=True)
class OtherGroups:
    """An aggregation of any other kind, which `heads.groups` takes further."""

    name: str
    kept: PartitionedAggregate
    outputs: tuple[str, ...]
    groups: tuple[int, ...]
    head: tuple[Place, ...]
    defers_texts: bool  # see `RuleStrategy`

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
        if self.defers_texts:
            return follow_later(self.kept, store, followed, heads[0], given)
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
    if not isinstance(aggregate, Sums | PartitionedAggregate):
        return None
    rule, parts = aggregate.rule, [aggregate.part] if isinstance(aggregate, Sums) else aggregate.parts
    names = [v.name for v in rule.groups]
    needed = aggregate.outputs if isinstance(aggregate, PartitionedAggregate) else names
    places = _head_places(store, strategy, rule, exact=isinstance(aggregate, Sums))
    if not places or not set(needed) <= set(outputs):
        return None
    groups = tuple(map(outputs.index, names))
    made = [_part(store, rule, part, outputs) for part in parts]
    found = tuple(part for part in made if part is not None)
    if len(found) == len(made):
        return GroupTrigger(strategy.name, groups, _head(rule, found, places), found)
    if isinstance(aggregate, Sums):
        return None
    return OtherGroups(strategy.name, aggregate, outputs, groups, places, strategy.defers_texts)


def _head(rule: Rule, parts: Sequence[GroupPart], places: Sequence[Place]) -> tuple[Place, ...]:
    """With results by their place in the record."""
    results, size = dict[str, int](), len(rule.groups)
    for part in parts:
        results |= {name: size + place for name, place in part.results}
        size += part.n_results
    named = [results[item.result.name] for item in rule.aggregates]
    return tuple((kind, named[number] if kind == RESULT_OF else number) for kind, number in places)


def _part(store: Store, rule: Rule, part: StatePart, outputs: tuple[str, ...]) -> GroupPart | None:
    """None: not simple."""
    names = [v.name for v in rule.groups]
    groups = [outputs.index(name) for name in names]
    g = len(groups)
    if isinstance(part, SumPart):
        arguments = _int_arguments(store, part, outputs)
        if arguments is None:
            return None
        s, given = len(arguments), [word for pair in arguments for word in pair]
        sums = [1 + place[0] if place else 0 for place in part.places]
        results = tuple((item.result.name, place) for item, place in zip(part.items, sums, strict=True))
        return GroupPart(part.state, (g, s, SUMS, 0, g, *groups, *given), results, 1 + s, g + 1 + WIDE * s)
    if isinstance(part, FloatPart):
        if not all(item.function.adds_up for item in part.items):
            return None
        s, given = len(part.arguments), [outputs.index(name) for name in part.arguments]
        results = tuple((item.result.name, part.number(item)) for item in part.items)
        shape = (g, s, FLOATS, 0, g, *groups, *given)
        return GroupPart(part.state, shape, results, s, g + 3, s * WORDS_PER_SUM)
    if not isinstance(part, ScanPart) or part.is_text or part.type.is_decimal:
        return None
    keys = part.shape.keys
    columns = [*names, *(key for key in keys if key not in names)]
    given = [outputs.index(name) for name in (*columns, part.value)]
    results = tuple((a.result.name, 1 if a.function.direction > 0 else 2) for a in part.items)
    shape = (len(given), 0, VALUES, 0, g, *given, *map(columns.index, keys))
    return GroupPart(part.state, shape, results, 3, len(keys) + 2)


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


def _int_arguments(store: Store, part: SumPart, outputs: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Of each sum of ints: (is a column, its number or the code itself); None: not simple."""
    found: list[tuple[int, int]] = []
    for item in part.items:
        argument = item.argument
        if argument is None:
            continue
        if not item.function.adds_up:
            return None
        if isinstance(argument, Var):
            if part.rule.types[argument.name] != INT or argument.name not in outputs:
                return None
            found.append((1, outputs.index(argument.name)))
        else:
            code = store.encode(argument, INT) if argument.type == INT else None
            if code is None:
                return None
            found.append((0, code))
    return found
