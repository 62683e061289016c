"""Owns the syntax of traced plans: a plan, what is noted of its run, and where it may be guided.

A *note* is a row of words that is written whenever a certain level of an atom is about to be narrowed.
A *guide* restricts a run to some values of the first variables of a plan: see `dlog.lftj.guide`.  Knows
nothing of the purpose of notes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlog.lftj.plan import Leap, Participant, Plan, Slot

# The content of a note: the value of a slot, or an end of the interval that is noted.
Word: TypeAlias = Slot | Literal["a", "b"]

POINT = "point"  # a and b are the key that is sought
SPAN = "span"  # from the first to the last key that the participants in `span` have in common at most
ALL = "all"  # a and b are the least and the greatest int64
EACH = "each"  # one note for each operation: from the key sought to the key found
COVER = "cover"  # of runs under a guide: the range of an exact leap, item by item


@dataclass(frozen=True)
class Note:
    """What is written when `level` of `atom` is narrowed."""

    atom: int
    level: int
    words: tuple[Word, ...]
    form: str
    span: tuple[Participant, ...] = ()
    missed: Participant | None = None  # a seek that writes the same row, with form ALL, when it fails


@dataclass(frozen=True)
class TracedPlan:
    """`guided` are the slots of the leaps that a guide may restrict to some values, in order.

    REQUIRES: they are leaps at the top of the plan, before any other choice.  In a leap of `exact`
    participants these are in the order of the rule, the first is advanced after a match, and every operation
    is noted separately.  A leap is exact for all of its participants or for none.
    """

    plan: Plan
    notes: tuple[Note, ...]
    guided: tuple[Slot, ...]
    exact: frozenset[Participant] = frozenset()

    def is_exact(self, step: Leap) -> bool:
        return not self.exact.isdisjoint(step.participants)
