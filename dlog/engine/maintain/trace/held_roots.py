"""Owns what triggers of traced rules know of the versions whose roots are in their places.

Knows nothing of what a firing does with them: see `dlog.engine.maintain.trace.triggers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlog.storage.relation.relation import Relation
from dlog.storage.relation.relation_group import RelationGroup


class Held:
    """What is in the places of a trigger: what the last firing, of either sign, left there.  If the
    store has the same roots and the same other relations, nothing needs to be copied.

    What every firing changes is identified by lists of roots, which hold no version: a predicate whose
    rows change rarely must not hold versions of the sensitivity indices made by others, nor prevent these
    from being changed in place.
    """

    __slots__ = ("before", "others", "roots", "shapes", "version")

    def __init__(self) -> None:
        self.roots: tuple[Sequence[int], ...] = ()  # of the predicate and of its rule's indices; or unknown
        self.others: tuple[Relation | None, ...] = ()  # the head first, if a firing changes one
        self.shapes: list[memoryview] = []  # of the triggers that share this and change a head
        self.version: RelationGroup | None = None  # of the sensitivity indices, for the next firing
        self.before: Callable[[], RelationGroup | None] = nothing  # a version that a firing changed in place

    def may_change(self) -> bool:
        """Whether a firing may change all pages in place: they have not been read, and nothing holds the
        version that was changed last, which would fall further and further behind.

        REQUIRES: the lock is held, and a firing comes next, which overwrites what could restore that version.
        """
        before = self.before()
        if before is not None:
            before.keep_undo()
            return False
        return self.version is not None and self.version.is_bare


def nothing() -> None:
    """Represents a dead reference."""
