"""Owns terminal heads: no rule reads them, and no row has two derivations.

A kernel changes them; rows that delta joins return take a call of their own (`JoinedHead`).  The report of a
change is made when it is read.  Knows nothing of where the rows come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
from dlog.jit import Words
from dlog.planning.versions import facts_name
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Order, Relation, in_order

MOST_ROWS = 256  # that are sorted by comparing them


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

    def __init__(self, changes: Sequence[HeadChange]):
        self._changes = {change.name: change for change in changes}

    def __getitem__(self, name: str) -> Change:
        return self._changes[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)


class JoinedHead(Head):
    """A head that all joins of a trigger lead to, as they give its rows: all of these come, or all go."""

    __slots__ = ("_capacity", "_given", "_roots", "_rows", "_shape", "_words")

    def __init__(self, name: str, relation: Relation, joins: int, width: int, inserts: bool):
        self._roots = np.zeros(2 * relation.n_orders, np.int64)
        super().__init__(name, relation, self._roots.data)
        self._shape = np.zeros(H, np.int64)
        self._shape[H_ARITY], self._shape[H_ORDERS] = self.arity, len(self.orders)
        self._shape[H_JOINS], self._shape[H_WIDTH], self._shape[H_INSERTS] = joins, width, inserts
        self._rows = np.zeros(MOST_ROWS * self.arity, np.int64)
        order_words = np.array([c for order in self.orders for c in order], np.int64)
        self._given = (relation.arena.A, self._shape, order_words, self._roots)
        self._words, self._capacity = self._rows.data, self._shape.data[H_CAPACITY:]

    def follow(
        self, relations: dict[str, Relation], found: int, out: Words, counts: Words, capacity: int
    ) -> HeadChange | None:
        """Change the head by what joins gave, `found` rows in all; None: it has to take the general path."""
        if found > MOST_ROWS or not self.bring_roots(relations):
            return None
        arena = relations[self.name].arena
        self._capacity[0] = capacity
        with arena.lock:
            changed = change_head(*self._given, out, counts, self._rows)
        if changed <= 0:
            return None
        relations[self.name] = self.changed(arena)
        gained = changed if self._shape[H_INSERTS] else 0
        return HeadChange(self.name, self.orders[0], self._words[: changed * self.arity].tobytes(), gained)
