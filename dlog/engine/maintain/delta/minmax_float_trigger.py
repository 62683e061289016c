"""Owns the short way of a few rows through min, max and float sums: what is kept and the head's rows, in one
kernel call, as `one_group` has it for sums of ints.

For rules alone in their stratum, with one value or with floats and a count, whose state no other rule shares.
`one_kept` takes what has more parts, a few rows at a time, and `aggregate_deltas` does all else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dlog.algebra import WORDS_PER_SUM
from dlog.engine.head.aggregate_state import FloatPart, ScanPart, SumPart
from dlog.engine.head.scan_shapes import is_shared
from dlog.engine.maintain.delta.sum_trigger import (
    KEPT,
    MOST_ORDERS,
    Assignments,
    OneGroup,
    Place,
    head_places,
)
from dlog.engine.maintain.heads.groups import Kept
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.state.store import Store
from dlog.heads.group_kernels import GROUP, LITERAL, RESULT_OF
from dlog.heads.kept_kernels import change_floats, change_values
from dlog.ir.rules import Var
from dlog.jit import Words
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation


@dataclass(frozen=True)
class FewValues(OneGroup):
    """Min and max of one value; `arguments` has its column."""

    kernel = staticmethod(change_values)

    @cached_property
    def layout(self) -> Words:
        ((_, value),) = self.arguments
        pairs = [word for pair in self.head for word in pair]
        return np.array([len(self.groups) + 1, 0, len(self.head), *self.groups, value, *pairs], np.int64)

    @property
    def state_width(self) -> int:
        return len(self.groups) + 2


@dataclass(frozen=True)
class FewFloats(OneGroup):
    """Sums of floats; `arguments` has their columns, `state` the counts of groups."""

    sums: str  # the name of the relation of the sums

    @cached_property
    def layout(self) -> Words:
        columns = [column for _, column in self.arguments]
        pairs = [word for pair in self.head for word in pair]
        sizes = (len(self.groups), len(self.arguments), len(self.head))
        return np.array([*sizes, *self.groups, *columns, *pairs], np.int64)

    def follow(
        self, relations: dict[str, Relation], added: Assignments, taken: Assignments
    ) -> tuple[Relation, Change] | None:
        counts, sums, head = relations.get(self.state), relations.get(self.sums), relations[self.name]
        if self.has_facts(relations) or counts is None or sums is None or len(head.orders) > MOST_ORDERS:
            return None
        arena, h, n = counts.arena, head.arity, added[2] + taken[2]
        room = self._room_for(n)
        of_counts, of_sums, of_head = room.of_roots
        n_counts, n_sums, n_head = (
            counts.put_roots(of_counts),
            sums.put_roots(of_sums),
            head.put_roots(of_head),
        )
        count_root, sum_root = of_counts[0], of_sums[0]
        net = np.empty((2 * n, h), np.int64)
        with arena.lock:
            arena.release_dropped()
            found = change_floats(
                arena.A, self.layout, *added, *taken,
                counts.layout(), room.count_roots, n_counts, sums.layout(), room.sum_roots, n_sums,
                head.layout(), room.head_roots, n_head, *room.given, net.reshape(-1),
            )  # fmt: skip
            if found < 0:
                return None
            new = arena.words[RESULT]
        if of_counts[0] != count_root:
            relations[self.state] = counts.of_roots(of_counts)
        if of_sums[0] != sum_root:
            relations[self.sums] = sums.of_roots(of_sums)
        change = Change(net[:new], net[new:found])
        return (head.of_roots(of_head), head.in_order(change)) if found else (head, change)

    def _room_for(self, n: int) -> _FloatRoom:
        """That of the last time, if it is large enough: fresh memory costs more than all else."""
        if self._rooms[-1].n < n:
            self._rooms[:] = [_FloatRoom(2 * n, self)]
        return self._rooms[-1]

    @cached_property
    def _rooms(self) -> list[_FloatRoom]:
        return [_FloatRoom(KEPT, self)]


class _FloatRoom:
    """What the kernel writes on the way, for so many assignments.  What it does not touch takes no memory."""

    def __init__(self, n: int, group: FewFloats):
        self.n = n
        g, s, h = group.layout[:3].tolist()
        self.count_roots, self.sum_roots, self.head_roots = np.zeros((3, MOST_ORDERS), np.int64)
        self.of_roots = self.count_roots.data, self.sum_roots.data, self.head_roots.data
        count_rows, head_rows = np.empty(2 * n * (g + 1), np.int64), np.empty(2 * n * h, np.int64)
        sum_rows, unread = np.empty((2, 2 * n * max(s, 1) * WORDS_PER_SUM * (g + 3)), np.int64)
        digits = np.zeros(2 * WORDS_PER_SUM, np.int64)
        self.given = (count_rows, sum_rows, head_rows, digits, unread)


def few_kept(store: Store, strategy: RuleStrategy, outputs: tuple[str, ...]) -> OneGroup | None:
    """None: the stratum's aggregation is not of the simple kind."""
    if strategy.plain or len(strategy.aggregates) != 1 or not strategy.counts_are_one(store):
        return None
    kept = strategy.aggregates[0]
    if not isinstance(kept, Kept) or not set(kept.outputs) <= set(outputs):
        return None
    places = head_places(store, strategy, kept.rule, exact=False)
    if places is None:
        return None
    match kept.parts:
        case [ScanPart() as part]:
            return _few_values(strategy, kept, part, places, outputs)
        case [SumPart() as counts, FloatPart() as sums]:
            return _few_floats(strategy, kept, counts, sums, places, outputs)
    return None


def _few_values(
    strategy: RuleStrategy, kept: Kept, part: ScanPart, places: tuple[Place, ...], outputs: tuple[str, ...]
) -> FewValues | None:
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
    groups = tuple(outputs.index(name) for name in keys)
    value = ((1, outputs.index(part.value)),)
    return FewValues(strategy.name, part.state, groups, value, tuple(head))


def _few_floats(
    strategy: RuleStrategy,
    kept: Kept,
    counts: SumPart,
    sums: FloatPart,
    places: tuple[Place, ...],
    outputs: tuple[str, ...],
) -> FewFloats | None:
    if counts.summed or not all(item.function.adds_up for item in sums.items):
        return None
    g = len(kept.groups)
    results = []
    for item in kept.rule.aggregates:
        number = sums.arguments.index(item.argument.name) if isinstance(item.argument, Var) else -1
        results.append(g if item.argument is None else g + 1 + number)
    head = tuple((kind, results[number] if kind == RESULT_OF else number) for kind, number in places)
    groups = tuple(outputs.index(name) for name in kept.groups)
    columns = tuple((1, outputs.index(name)) for name in sums.arguments)
    return FewFloats(strategy.name, counts.state, groups, columns, head, sums.state)
