"""Owns what triggers of traced rules know of versions whose roots stand at their places.

Knows nothing of what a firing does with them: see `dlog.engine.trace_triggers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from dlog.engine.delta_strategy import counts_name
from dlog.planning.versions import facts_name
from dlog.storage.batch import Change
from dlog.storage.relation import Relation, in_order
from dlog.storage.relation_group import RelationGroup


class Held:
    """The sensitivity indices whose roots stand at the places of a trigger: what the last firing, of either
    sign, has left."""

    __slots__ = ("before", "version")

    def __init__(self) -> None:
        self.version: RelationGroup | None = None
        self.before: Callable[[], RelationGroup | None] = nothing  # a version that a firing changed in place

    def may_change(self) -> bool:
        """Whether a firing may change all pages where they lie: nobody has read them, and nobody holds the
        version that was changed last, which would be farther and farther away."""
        return self.before() is None and self.version is not None and self.version.is_bare


class Head:
    """A head that a firing changes, too: as long as it has the column orders that it had when the trigger was
    made, and no other way to have rows."""

    __slots__ = ("_empty", "_others", "arity", "later", "name", "orders", "places", "version")

    def __init__(self, name: str, relation: Relation, available: memoryview):
        """`available` begins with the places of the roots, those of the next version behind."""
        self.name, self.arity, self.orders = name, relation.arity, tuple(relation.orders)
        self.places, self.later = available, available[len(self.orders) : 2 * len(self.orders)]
        self._others = (counts_name(name), facts_name(name))
        self._empty: list[Relation | None] = [None, None]  # those of the others that are known to be empty
        self.version: Relation | None = None  # that of the roots, until a firing has used them

    def bring_roots(self, relations: Mapping[str, Relation]) -> int:
        """How many orders there are; 0: it must not be changed here."""
        for i, name in enumerate(self._others):
            other = relations.get(name)
            if other is None or (other is not self._empty[i] and len(other)):
                return 0
            self._empty[i] = other
        self.version = relation = relations[self.name]
        return relation.put_roots(self.places) if relation.rows_in(self.orders) >= 0 else 0


class HeadChange(Mapping[str, Change]):
    """The change of a head, put together when somebody asks."""

    __slots__ = ("_gained", "_head", "_words")

    def __init__(self, head: Head, words: bytes, gained: int):
        """Rows that came, so many, and then rows that went, in the order of the first index."""
        self._head, self._words, self._gained = head, words, gained

    def __getitem__(self, name: str) -> Change:
        if name != self._head.name:
            raise KeyError(name)
        rows = np.frombuffer(self._words, np.int64).reshape(-1, self._head.arity).copy()
        change = Change(rows[: self._gained], rows[self._gained :])
        is_natural = self._head.orders[0] == tuple(range(self._head.arity))
        return change if is_natural else Change(*map(in_order, change))

    def __iter__(self) -> Iterator[str]:
        return iter((self._head.name,))

    def __len__(self) -> int:
        return 1


def nothing() -> None:
    """Stands for a reference to what is gone."""
