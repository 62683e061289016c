"""Owns terminal heads: no rule reads them.

A kernel changes them; rows that delta joins return take a call of their own, as rows of the head
(`JoinedHead`) or as derivations that are counted (`CountedHead`).  The report of a change is made when it is
read.  Knows nothing of where the rows come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dlog.engine.maintain.heads.sets import counts_name
from dlog.engine.maintain.triggers.kernels import (
    H_ARITY,
    H_CAPACITY,
    H_INSERTS,
    H_JOINS,
    H_ORDERS,
    H_WIDTH,
    H,
    change_head,
)
from dlog.heads import count_kernels as c
from dlog.jit import Words
from dlog.planning.versions import facts_name
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.batch import Change
from dlog.storage.index.sort import sorted_columns
from dlog.storage.relation.relation import Order, Relation, in_order

MOST_ROWS = 256  # that are sorted by comparing them
MANY_ROWS = 768  # from so many on, sorting by the bytes that vary is faster: 1,000 rows in 48 us against 88


class Head:
    """A head that a firing changes, too: as long as it has the column orders that it had when the trigger was
    made, and no other way to have rows."""

    __slots__ = ("arity", "later", "name", "orders", "others", "places")

    def __init__(self, name: str, relation: Relation, available: memoryview):
        """`available` begins with the places of the roots, those of the next version behind."""
        self.name, self.arity, self.orders = name, relation.arity, tuple(relation.orders)
        self.places, self.later = available, available[len(self.orders) : 2 * len(self.orders)]
        self.others = (counts_name(name), facts_name(name))  # which must be empty

    def bring_roots(self, relations: Mapping[str, Relation]) -> int:
        """How many orders there are; 0: it must not be changed here."""
        if any(other is None or len(other) for other in map(relations.get, self.others)):
            return 0
        relation = relations[self.name]
        return relation.put_roots(self.places) if relation.rows_in(self.orders) >= 0 else 0

    def changed(self, arena: Arena) -> Relation:
        """The version that a firing has made, whose roots stand at the places from now on."""
        return Relation.of_list(arena, self.arity, self.orders, self.later.tolist())


class HeadChange(Mapping[str, Change]):
    """The change of a head, computed on request."""

    __slots__ = ("_first", "_gained", "_words", "name")

    def __init__(self, name: str, first: Order, words: bytes, gained: int):
        """Rows that came, so many, and then rows that went, in the order of the first index."""
        self.name, self._first, self._words, self._gained = name, first, words, gained

    def __getitem__(self, name: str) -> Change:
        if name != self.name:
            raise KeyError(name)
        rows = np.frombuffer(self._words, np.int64).reshape(-1, len(self._first)).copy()
        change = Change(rows[: self._gained], rows[self._gained :])
        is_natural = self._first == tuple(range(len(self._first)))
        return change if is_natural else Change(*map(in_order, change))

    def __iter__(self) -> Iterator[str]:
        return iter((self.name,))

    def __len__(self) -> int:
        return 1


class HeadChanges(Mapping[str, Change]):
    """The changes of several heads."""

    __slots__ = ("_changes",)

    def __init__(self, changes: Sequence[Mapping[str, Change]]):
        self._changes = {name: change for change in changes for name in change}

    def __getitem__(self, name: str) -> Change:
        return self._changes[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)


class JoinedHead(Head):
    """A head that all joins of a trigger lead to, as they give its rows: all of these come, or all go."""

    __slots__ = ("_capacity", "_inserts", "_roots", "_words", "given", "rows")

    def __init__(self, name: str, relation: Relation, joins: int, width: int, inserts: bool):
        self._roots = np.zeros(2 * relation.n_orders, np.int64)
        super().__init__(name, relation, self._roots.data)
        shape = np.zeros(H, np.int64)
        shape[H_ARITY], shape[H_ORDERS] = self.arity, len(self.orders)
        shape[H_JOINS], shape[H_WIDTH], shape[H_INSERTS] = joins, width, inserts
        self.rows = np.zeros(MOST_ROWS * self.arity, np.int64)
        order_words = np.array([c for order in self.orders for c in order], np.int64)
        self.given = (relation.arena.A, shape, order_words, self._roots)  # to `change_head`
        self._words, self._capacity, self._inserts = self.rows.data, shape.data[H_CAPACITY:], inserts

    def follow(
        self, relations: dict[str, Relation], found: int, out: Words, counts: Words, capacity: int
    ) -> HeadChange | None:
        """Change the head by what joins gave, `found` rows in all; None: it has to take the general path."""
        if found > MOST_ROWS or not self.bring_roots(relations):
            return None
        arena = relations[self.name].arena
        self._capacity[0] = capacity
        with arena.lock:
            changed = change_head(*self.given, out, counts, self.rows)
        return self.take(relations, changed)

    def take(self, relations: dict[str, Relation], changed: int) -> HeadChange | None:
        """The new version and the change that a kernel has made, of so many rows; None: it did nothing."""
        if changed <= 0:
            return None
        relations[self.name] = self.changed(relations[self.name].arena)
        gained = changed if self._inserts else 0
        return HeadChange(self.name, self.orders[0], self._words[: changed * self.arity].tobytes(), gained)


class Target(NamedTuple):
    """Where the rows of a join go: see `count_kernels`."""

    sign: int
    columns: tuple[tuple[bool, int], ...]
    repeats: bool
    weights: int = -1  # the column that says what a row counts, with its sign

    def words(self) -> list[int]:
        columns = (int(word) for pair in self.columns for word in pair)
        return [self.sign, int(self.repeats), self.weights, *columns]


class CountedHead:
    """A head that all joins of a trigger lead to, whose rows have their number of derivations stored: joins
    add some and take others away."""

    __slots__ = (
        *("_capacity", "_changed", "_count_orders", "_counts", "_given", "_orders", "_roots", "_rows"),
        *("_words", "arity", "name"),
    )

    def __init__(
        self, name: str, relation: Relation, counts: Relation, targets: Sequence[Target], width: int
    ):
        """REQUIRES: the first column order of the counts is the natural one."""
        self.name, self._counts, self.arity = name, counts_name(name), relation.arity
        self._orders, self._count_orders = tuple(relation.orders), tuple(counts.orders)
        words = [relation.arity, relation.n_orders, counts.n_orders, len(targets), 0, width, MOST_ROWS, 0]
        words += (column for order in (*self._orders, *self._count_orders) for column in order)
        words += (word for target in targets for word in target.words())
        layout, roots = (
            np.array(words, np.int64),
            np.zeros(2 * (relation.n_orders + counts.n_orders), np.int64),
        )
        self._rows = np.zeros(c.block_words(self.arity, MOST_ROWS), np.int64)
        self._given, self._roots, self._words = (relation.arena.A, layout, roots), roots.data, self._rows.data
        self._capacity, self._changed = layout.data[c.CAPACITY :], layout.data[c.CHANGED :]

    def follow(
        self, relations: dict[str, Relation], found: int, out: Words, counts: Words, capacity: int
    ) -> Mapping[str, Change] | None:
        """See `JoinedHead.follow`."""
        head, support = relations[self.name], relations.get(self._counts)
        if found > MOST_ROWS or support is None or support.rows_in(self._count_orders) < 0:
            return None
        if head.rows_in(self._orders) < 0:
            return None
        n, m, roots, arena = len(self._orders), len(self._count_orders), self._roots, head.arena
        head.put_roots(roots)
        support.put_roots(roots[2 * n :])
        self._capacity[0] = capacity
        with arena.lock:
            arena.release_many()
            changed = c.change_counted_head(*self._given, out, counts, self._rows)
            if changed < 0:
                return None
            gained = arena.words[RESULT]
        if self._changed[0]:
            later = roots[2 * n + m :].tolist()
            relations[self._counts] = Relation.of_list(arena, self.arity + 1, self._count_orders, later)
        if not changed:
            return NO_CHANGES
        relations[self.name] = Relation.of_list(arena, self.arity, self._orders, roots[n : 2 * n].tolist())
        return HeadChange(self.name, self._orders[0], self._words[: changed * self.arity].tobytes(), gained)


NO_CHANGES: Mapping[str, Change] = {}


class ReportedHead:
    """A head that all joins of a trigger lead to, without a stored relation: their rows are its change."""

    __slots__ = ("_columns", "_joins", "_out", "_width", "arity", "inserts", "name")

    def __init__(self, name: str, arity: int, joins: int, width: int, inserts: bool):
        self.name, self.arity, self._joins, self._width, self.inserts = name, arity, joins, width, inserts
        self._out: Words | None = None
        self._columns: list[Words] = []  # of each join, in what was given last

    def follow(
        self, relations: dict[str, Relation], found: int, out: Words, counts: Words, capacity: int
    ) -> JoinedChange:
        """What joins gave, `found` rows in all, copied from where the next firing writes.  O(rows)."""
        if out is not self._out:
            self._out, size = out, capacity * self._width
            self._columns = [
                out[join * size :][: self.arity * capacity].reshape(self.arity, capacity)
                for join in range(self._joins)
            ]
        if self._joins == 1:
            parts = [self._columns[0][:, :found].copy()]
        else:
            parts = [
                columns[:, :n].copy() for columns, n in zip(self._columns, counts.tolist(), strict=False) if n
            ]
        return JoinedChange(self.name, parts, self.inserts)


class JoinedChange(Mapping[str, Change]):
    """The change of such a head, made on request from the columns that joins gave."""

    __slots__ = ("_inserts", "_parts", "name")

    def __init__(self, name: str, parts: Sequence[Words], inserts: bool):
        self.name, self._parts, self._inserts = name, parts, inserts

    def __getitem__(self, name: str) -> Change:
        if name != self.name:
            raise KeyError(name)
        columns = self._parts[0] if len(self._parts) == 1 else np.concatenate(self._parts, axis=1)
        if columns.shape[1] < MANY_ROWS:
            rows = in_order(np.ascontiguousarray(columns.T))
        else:
            rows = np.stack(sorted_columns(list(columns)), axis=1)
        none = np.empty((0, len(columns)), np.int64)
        return Change(rows, none) if self._inserts else Change(none, rows)

    def __iter__(self) -> Iterator[str]:
        return iter((self.name,))

    def __len__(self) -> int:
        return 1
