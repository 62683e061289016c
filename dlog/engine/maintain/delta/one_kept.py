"""Owns the short way of one row through an aggregation with min, max or float sums: what it keeps, and the
head's row.

As `one_group`, for rules alone in their stratum, each group in a row of its own: what one row changes is a
group or two, handled by Python and kernels that take one group.  What many rows change goes through
`aggregate_deltas`, which also does all that is not simple.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dlog.algebra import LIMBS, WORDS_PER_SUM
from dlog.engine.body.table import Table
from dlog.engine.head.aggregate_state import FloatPart, Part, ScanPart, SumPart
from dlog.engine.maintain.delta.sum_trigger import Place, head_places, int_arguments
from dlog.engine.maintain.heads.groups import Kept
from dlog.engine.maintain.rule_strategy import RuleStrategy
from dlog.engine.maintain.strategy import Followed
from dlog.engine.state.store import Store
from dlog.heads import float_kernels, scan_kernels
from dlog.heads.counts import net_rows
from dlog.heads.group_kernels import GROUP, LITERAL
from dlog.heads.kernels import WIDE
from dlog.heads.lookup import look_up
from dlog.heads.scans import extremes
from dlog.ir.rules import Var
from dlog.jit import Words
from dlog.planning.versions import facts_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

Row = tuple[int, ...]
FEW = 4  # assignments that are taken one by one
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_ABOVE_POSITIVE, _ABOVE_NEGATIVE = (0,) * (WIDE - 1), (-1,) * (WIDE - 1)


class OnePart(Protocol):
    """A part of what is kept, for one row at a time."""

    @property
    def state(self) -> str: ...

    def changed(self, state: Relation, rows: list[list[int]], sign: int) -> Relation: ...
    def read(self, state: Relation, key: Row, results: dict[int, int]) -> bool:
        """The results of its aggregates, by number; whether the group exists, as far as the part can tell."""


@dataclass(frozen=True)
class OneKept:
    """Where in a join's output a rule's groups stand, what it keeps, and where in its head they go."""

    name: str
    kept: Kept
    outputs: tuple[str, ...]
    groups: tuple[int, ...]
    head: tuple[Place, ...]
    parts: tuple[OnePart, ...]

    def follow_many(
        self, store: Store, followed: Followed, columns: Sequence[Words], sign: int
    ) -> tuple[Relation, Change] | None:
        """As `follow`, for any number of assignments, by column."""
        if len(store.relations[facts_name(self.name)]):
            return None
        table = Table(len(columns[0]), dict(zip(self.outputs, columns, strict=True)))
        heads = [head for head in self.kept.rule.heads if head.predicate == self.name]
        parts = list(self.kept.follow_tables(store, followed, heads, [(sign, table)]))
        rows, signs = net_rows(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        return store.relations[self.name].apply(inserts=rows[signs > 0], erases=rows[signs < 0])

    def follow(
        self, relations: dict[str, Relation], followed: Followed, rows: list[list[int]], sign: int
    ) -> tuple[Relation, Change] | None:
        """Take a few assignments in: (the head, how it changed).  `followed` has the parts that this step has
        changed so far.  None: not simple, the relations must be dropped.  O(rows * parts) look-ups.

        REQUIRES: at most FEW rows; for more see `follow_many`.
        """
        assert len(rows) <= FEW
        if len(relations[facts_name(self.name)]):  # a row may have another derivation
            return None
        versions = [self._changed(relations, followed, part, rows, sign) for part in self.parts]
        head = relations[self.name]
        inserted: list[Row] = []
        erased: list[Row] = []
        for key in dict.fromkeys(tuple(values[g] for g in self.groups) for values in rows):
            old, new = (self._row(key, [pair[i] for pair in versions]) for i in (0, 1))
            if not (words_fit(old) and words_fit(new)):
                return None
            if old != new:
                head = replaced(head, old, new)
                erased += [old] if old is not None else []
                inserted += [new] if new is not None else []
        return head, Change(row_array(inserted, head.arity), row_array(erased, head.arity))

    def _changed(
        self,
        relations: dict[str, Relation],
        followed: Followed,
        part: OnePart,
        rows: list[list[int]],
        sign: int,
    ) -> tuple[Relation | None, Relation]:
        """A part's relation before and after; one that rules share changes once in a step."""
        if part.state not in followed:
            before = relations[part.state]
            followed[part.state] = (before, part.changed(before, rows, sign))
        relations[part.state] = followed[part.state][1]
        return followed[part.state]

    def _row(self, key: Row, states: Sequence[Relation | None]) -> Row | None:
        """The head's row of a group in one version; None without assignments."""
        results: dict[int, int] = {}
        for part, state in zip(self.parts, states, strict=True):
            assert state is not None
            if not part.read(state, key, results):
                return None
        row = []
        for kind, number in self.head:
            row.append(key[number] if kind == GROUP else number if kind == LITERAL else results[number])
        return tuple(row)


def one_kept(store: Store, strategy: RuleStrategy, outputs: tuple[str, ...]) -> OneKept | None:
    """None: the stratum's aggregation is not of the simple kind."""
    if strategy.plain or len(strategy.aggregates) != 1 or not strategy.counts_are_one(store):
        return None
    kept = strategy.aggregates[0]
    if not isinstance(kept, Kept) or not set(kept.outputs) <= set(outputs):
        return None
    parts = [_one_part(store, kept, part, outputs) for part in kept.parts]
    places = head_places(store, strategy, kept.rule, exact=False)
    if places is None or any(part is None for part in parts):
        return None
    groups = tuple(outputs.index(name) for name in kept.groups)
    found = tuple(part for part in parts if part is not None)
    return OneKept(strategy.name, kept, outputs, groups, places, found)


def _one_part(store: Store, kept: Kept, part: Part, outputs: tuple[str, ...]) -> OnePart | None:
    rule = kept.rule
    numbers = {item.result.name: i for i, item in enumerate(rule.aggregates)}
    groups = tuple(outputs.index(name) for name in kept.groups)
    if isinstance(part, ScanPart):
        if part.is_text or part.type.is_decimal:
            return None
        columns = tuple(outputs.index(name) for name in (*part.shape.keys, part.value))
        items = tuple((numbers[item.result.name], item.function.direction > 0) for item in part.items)
        return OneScan(part.state, columns, tuple(part.order), len(part.shape.keys), items)
    if isinstance(part, FloatPart) and all(item.function.adds_up for item in part.items):
        columns = tuple(outputs.index(name) for name in part.arguments)
        chosen = []
        for item in part.items:
            assert isinstance(item.argument, Var)
            chosen.append((numbers[item.result.name], part.arguments.index(item.argument.name)))
        return OneFloats(part.state, groups, columns, tuple(chosen))
    if isinstance(part, SumPart):
        arguments = int_arguments(store, rule, part.items, outputs)
        if arguments is None:
            return None
        sums = iter(range(1, 1 + len(arguments)))
        places = tuple((numbers[i.result.name], 0 if i.argument is None else next(sums)) for i in part.items)
        return OneSums(part.state, groups, arguments, places)
    return None


@dataclass(frozen=True)
class OneScan:
    state: str
    columns: tuple[int, ...]  # in the output: the scan predicate's keys, then its value
    order: tuple[int, ...]  # of the group's keys in it
    key_columns: int
    items: tuple[tuple[int, bool], ...]  # number of the aggregate, whether it is a min
    buffers: Words = field(default_factory=lambda: np.zeros((3, 2), np.int64))  # whether found, first, last

    def changed(self, state: Relation, rows: list[list[int]], sign: int) -> Relation:
        for values in rows:
            row = tuple(values[c] for c in self.columns)
            found, rest = look_up(state, np.array([row], np.int64))
            count = int(rest[0, 0]) if found[0] else 0
            assert count + sign >= 0, "a group loses a value that it does not have"
            later = count + sign
            state = replaced(state, (*row, count) if count else None, (*row, later) if later else None)
        return state

    def read(self, state: Relation, key: Row, results: dict[int, int]) -> bool:
        ordered = np.array([key[place] for place in self.order], np.int64)
        found, first, last = self.buffers[0], self.buffers[1], self.buffers[2]
        if len(ordered) == self.key_columns:
            index = state.index(tuple(range(state.arity)))
            scan_kernels.edge_rows(
                index.arena.A, index.root, len(ordered), index.arity, ordered, 1, found, first, last
            )
            there, least, greatest = found[0] == 1, int(first[0]), int(last[0])
        else:
            mask, low, high = extremes(state, ordered.reshape(1, -1), self.key_columns)
            there, least, greatest = bool(mask[0]), int(low[0, 0]), int(high[0, 0])
        for number, is_min in self.items:
            results[number] = least if is_min else greatest
        return bool(there)


@dataclass(frozen=True)
class OneSums:
    state: str
    groups: tuple[int, ...]
    arguments: tuple[tuple[int, int], ...]
    places: tuple[tuple[int, int], ...]  # number of the aggregate, place in the group: 0 is the count

    def changed(self, state: Relation, rows: list[list[int]], sign: int) -> Relation:
        for values in rows:
            key = tuple(values[g] for g in self.groups)
            before = group_of(state, key, len(self.arguments))
            words = [values[word] if is_column else word for is_column, word in self.arguments]
            after = [a + sign * b for a, b in zip(before, (1, *words), strict=True)]
            state = replaced(state, state_row(key, before), state_row(key, after))
        return state

    def read(self, state: Relation, key: Row, results: dict[int, int]) -> bool:
        group = group_of(state, key, len(self.arguments))
        for number, place in self.places:
            results[number] = group[place]
        return group[0] > 0


class OneFloats:
    """Has room for kernels to work in, which they leave as they found it: one thread commits at a time."""

    def __init__(
        self,
        state: str,
        groups: tuple[int, ...],
        columns: tuple[int, ...],
        items: tuple[tuple[int, int], ...],
    ):
        self.state, self.groups, self.columns = state, groups, columns
        self.items = items  # number of the aggregate, number of the sum
        self.width = len(groups) + 3
        self.order = tuple(range(self.width))
        self.erased, self.inserted = np.empty((2, WORDS_PER_SUM, self.width), np.int64)
        self.work, self.quotient = np.zeros(2 * WORDS_PER_SUM, np.int64), np.zeros(LIMBS, np.int64)
        self.bounds, self.no_counts = np.array([0, 1]), np.zeros(1, np.int64)
        self.out = np.zeros(2, np.int64)

    def changed(self, state: Relation, rows: list[list[int]], sign: int) -> Relation:
        signs, out = np.array([sign]), self.out
        for values in rows:
            for number, column in enumerate(self.columns):
                named = np.array([*(values[g] for g in self.groups), number], np.int64)
                code, index = np.array([values[column]]), state.index(self.order)
                float_kernels.change_sums(
                    index.arena.A, index.root, self.width - 2, named, 1, self.bounds, code, signs, self.work,
                    self.erased.reshape(-1), self.inserted.reshape(-1), out,
                )  # fmt: skip
                state, _ = state.apply(inserts=self.inserted[: out[1]], erases=self.erased[: out[0]])
        return state

    def read(self, state: Relation, key: Row, results: dict[int, int]) -> bool:
        index = state.index(self.order)
        for number, place in self.items:
            named = np.array([*key, place], np.int64)
            float_kernels.read_sums(
                index.arena.A, index.root, len(named), named, 1, self.no_counts, self.work, self.quotient,
                self.out,
            )  # fmt: skip
            results[number] = int(self.out[0])
        return True


def group_of(state: Relation, key: Row, sums: int) -> list[int]:
    """Number and sums of a group; zeros when there is none.  One look-up, O(log groups)."""
    found, rest = look_up(state, np.array([key], np.int64).reshape(1, -1))
    if not found[0]:
        return [0] * (1 + sums)
    count, *words = rest[0].tolist()
    return [count, *[_sum(words[at : at + WIDE]) for at in range(0, WIDE * sums, WIDE)]]


def state_row(key: Row, group: Sequence[int]) -> Row | None:
    """A group as the state keeps it; None without assignments.  O(sums)."""
    count, *sums = group
    return (*key, count, *[word for s in sums for word in _words(s)]) if count else None


def _words(number: int) -> Row:
    """A sum as WIDE words, the lowest first; those above a small one repeat its sign."""
    if _LEAST <= number <= _GREATEST:
        return (number, *(_ABOVE_NEGATIVE if number < 0 else _ABOVE_POSITIVE))
    return struct.unpack(f"<{WIDE}q", number.to_bytes(8 * WIDE, "little", signed=True))


def _sum(words: list[int]) -> int:
    """The inverse of `_words`."""
    if tuple(words[1:]) == (_ABOVE_NEGATIVE if words[0] < 0 else _ABOVE_POSITIVE):
        return words[0]
    return int.from_bytes(struct.pack(f"<{WIDE}q", *words), "little", signed=True)


def words_fit(row: Row | None) -> bool:
    """Whether all values of a row are words; no row is."""
    return not row or (min(row) >= _LEAST and max(row) <= _GREATEST)


def replaced(relation: Relation, old: Row | None, new: Row | None) -> Relation:
    """The version with `new` in place of `old`, where there are such.  O(orders * (log rows + a leaf)).

    Asserts that `old` is there and `new` is not: what is kept of a group and its row always agree.
    """
    if old is not None and new is not None:
        changed = relation.replace_row(old, new)
        assert changed is not None, "a group that is not there changes"
        return changed
    if old is not None:
        changed = relation.erase_row(old)
        assert changed is not None, "a group that is not there changes"
        relation = changed
    if new is not None:
        changed = relation.insert_row(new)
        assert changed is not None, "a group is there already"
        relation = changed
    return relation


def row_array(rows: list[Row], arity: int) -> np.ndarray:
    """Rows as an array, sorted, as changes have them.  O(rows log rows)."""
    array = np.array(sorted(rows), np.int64)
    return array.reshape(-1, arity)
