"""Owns the short way of a few rows through an aggregation: numbers and sums of groups, and the head's rows.

For rules that count or add up ints, alone in their stratum, each group in a row of its own: one kernel call.
`aggregate_deltas` does all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dlog.engine.head.heads import stored_as
from dlog.engine.maintain.heads.groups import Sums
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.state.store import Store
from dlog.heads.group_kernels import GROUP, LITERAL, RESULT_OF, change_groups
from dlog.heads.kernels import WIDE
from dlog.ir.rules import Aggregate, Const, Rule, Var
from dlog.jit import Words
from dlog.planning.versions import facts_name
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation
from dlog.types import INT

Place = tuple[int, int]  # of a column of the head: see `group_kernels`
Assignments = tuple[Words, int, int]  # (words, stride, n): column c begins at c * stride
NONE: Assignments = (np.zeros(1, np.int64), 1, 0)


@dataclass(frozen=True)
class OneGroup:
    """Where in a join's output a rule's groups and arguments stand, and where in its head they go."""

    kernel = staticmethod(change_groups)

    name: str
    state: str
    groups: tuple[int, ...]
    arguments: tuple[tuple[int, int], ...]  # of each sum: (is a column, its number or the code itself)
    head: tuple[Place, ...]

    @cached_property
    def facts(self) -> str:
        return facts_name(self.name)

    @cached_property
    def layout(self) -> Words:
        pairs = [word for pair in (*self.arguments, *self.head) for word in pair]
        sizes = (len(self.groups), len(self.arguments), len(self.head))
        return np.array([*sizes, *self.groups, *pairs], np.int64)

    def has_facts(self, relations: dict[str, Relation]) -> bool:
        """Whether the head has base facts: then a row may have another derivation."""
        facts = relations[self.facts]
        if facts is self._room.empty:
            return False
        if not len(facts):
            self._room.empty = facts
        return len(facts) > 0

    def follow(
        self, relations: dict[str, Relation], added: Assignments, taken: Assignments
    ) -> tuple[Relation, Change] | None:
        """Take assignments in: (the head, how it changed), and the state in its place.  None: not simple,
        and nothing has been done."""
        state, head = relations.get(self.state), relations[self.name]
        if self.has_facts(relations) or state is None or head.n_orders > MOST_ORDERS:
            return None
        arena, h, n = state.arena, head.arity, added[2] + taken[2]
        room = self._room if n <= KEPT else _Room(n, self._width)
        n_state, n_head = state.put_roots(room.of_state), head.put_roots(room.of_head)
        before = room.of_state[0]
        net = np.empty((2 * n, h), np.int64)
        with arena.lock:
            arena.release_many()
            found = self.kernel(
                arena.A, self.layout, *added, *taken, state.layout(), room.state_roots, n_state,
                head.layout(), room.head_roots, n_head, room.state_rows, room.head_rows, room.unread,
                net.reshape(-1),
            )  # fmt: skip
            if found < 0:
                return None
            new = arena.words[RESULT]
        if room.of_state[0] != before:  # groups that lose what they gain stay as they are
            relations[self.state] = state.of_roots(room.of_state)
        change = Change(net[:new], net[new:found])
        return (head.of_roots(room.of_head), head.in_order(change)) if found else (head, change)

    @cached_property
    def _room(self) -> _Room:
        return _Room(KEPT, self._width)

    @property
    def state_width(self) -> int:
        return len(self.groups) + 1 + WIDE * len(self.arguments)

    @property
    def _width(self) -> int:
        return max(self.state_width, len(self.head))


class _Room:
    """What a kernel writes on the way, for so many assignments."""

    def __init__(self, n: int, width: int):
        self.state_roots, self.head_roots = np.zeros((2, MOST_ORDERS), np.int64)
        self.of_state, self.of_head = self.state_roots.data, self.head_roots.data
        self.empty: Relation | None = None  # base facts that are known to be none
        self.state_rows, self.head_rows, self.unread = np.empty((3, 2 * n * width), np.int64)


MOST_ORDERS = 64  # of a relation that goes this way
KEPT = 16  # assignments for which there is always room


def one_group(store: Store, strategy: RuleStrategy, outputs: tuple[str, ...]) -> OneGroup | None:
    """None: the stratum's aggregation is not of the simple kind."""
    if strategy.plain or len(strategy.aggregates) != 1 or not strategy.counts_are_one(store):
        return None
    aggregate = strategy.aggregates[0]
    if not isinstance(aggregate, Sums):
        return None
    rule = aggregate.rule
    arguments = int_arguments(store, rule, rule.aggregates, outputs)
    groups = [v.name for v in rule.groups]
    places = head_places(store, strategy, rule, exact=True)
    if arguments is None or not places or not set(groups) <= set(outputs):
        return None
    numbers = iter(range(len(rule.aggregates)))
    sums = [-1 if a.argument is None else next(numbers) for a in rule.aggregates]
    head = tuple((kind, sums[number] if kind == RESULT_OF else number) for kind, number in places)
    columns = tuple(outputs.index(name) for name in groups)
    return OneGroup(strategy.name, aggregate.state, columns, arguments, head)


def head_places(store: Store, strategy: RuleStrategy, rule: Rule, exact: bool) -> tuple[Place, ...] | None:
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


def int_arguments(
    store: Store, rule: Rule, items: Sequence[Aggregate], outputs: tuple[str, ...]
) -> tuple[tuple[int, int], ...] | None:
    """Of each sum of ints: (is a column, its number or the code itself); None: not simple."""
    found: list[tuple[int, int]] = []
    for item in items:
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
    return tuple(found)
