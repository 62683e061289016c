"""Owns what triggers of traced rules know of versions whose roots stand at their places.

Knows nothing of what a firing does with them: see `dlog.engine.maintain.trace.triggers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlog.storage.relation.relation import Relation
from dlog.storage.relation.relation_group import RelationGroup


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


def nothing() -> None:
    """Stands for a reference to what is gone."""
