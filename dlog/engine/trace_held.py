"""Owns what triggers of traced rules know of versions whose roots stand at their places.

Knows nothing of what a firing does with them: see `dlog.engine.trace_triggers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from dlog.engine.delta_strategy import counts_name
from dlog.planning.versions import facts_name
from dlog.storage.arena import Arena
from dlog.storage.batch import Change
from dlog.storage.relation import Relation, in_order
from dlog.storage.relation_group import RelationGroup


class Held:
    """What stands at the places of a trigger: what the last firing, of either sign, has left.  Where the
    store has the same roots and the same other relations, there is nothing to bring there.

    What every firing changes is told by lists of roots, which hold no version: that rows of one predicate
    come seldom must not keep what those of others have made of the sensitivity indices, nor keep these from
    being changed in place.
    """

    __slots__ = ("before", "others", "roots", "shapes", "version")

    def __init__(self) -> None:
        self.roots: tuple[Sequence[int], ...] = ()  # of the predicate and of its rule's indices; or not known
        self.others: tuple[Relation | None, ...] = ()  # the head first, if a firing changes one
        self.shapes: list[memoryview] = []  # of the triggers that share this and change a head
        self.version: RelationGroup | None = None  # of the sensitivity indices, for a firing that comes next
        self.before: Callable[[], RelationGroup | None] = nothing  # a version that a firing changed in place

    def may_change(self) -> bool:
        """Whether a firing may change all pages where they lie: nobody has read them, and nobody holds the
        version that was changed last, which would be farther and farther away.

        REQUIRES: the lock is held, and a firing comes next, which writes over what makes that version anew.
        """
        before = self.before()
        if before is not None:
            before.keep_undo()
            return False
        return self.version is not None and self.version.is_bare


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
    """The change of a head, put together when somebody asks."""

    __slots__ = ("_gained", "_head", "_words", "name")

    def __init__(self, head: Head, words: bytes, gained: int):
        """Rows that came, so many, and then rows that went, in the order of the first index."""
        self.name, self._head, self._words, self._gained = head.name, head, words, gained

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
