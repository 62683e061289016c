"""Owns the rows of an equivalence relation for readers: counted and listed from its classes, never stored."""

from __future__ import annotations

from dlog.heads.classes import canonical, closure_rows, closure_size
from dlog.storage.relation.deferred import NO_TEXTS, DeferredRelation, Shown
from dlog.storage.relation.relation import Relation


def closure(classes: Relation) -> Relation:
    """All pairs of members of one class, made when they are read.  O(members) for their number."""
    classes = classes.snapshot()

    def made() -> Relation:
        return Relation.build(classes.arena, closure_rows(classes), 2)

    def shown() -> Shown:
        return Shown(closure_rows(classes), NO_TEXTS)

    return DeferredRelation(classes.arena, 2, closure_size(classes), made, shown, None)


def canonical_classes(classes: Relation) -> Relation:
    """The same classes, each represented by its least member.  O(members)."""
    return Relation.build(classes.arena, canonical(classes), 2)
