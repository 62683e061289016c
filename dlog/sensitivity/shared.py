"""Owns leaps that do not depend on all of their context: they are traced once for all that share them.

    # near(y, x, z) <- a(x, y), s(x), b(y, z), c(z), in the key order [y, x, z]

The leap of z depends on y alone, but it runs for each x: an inserted b(y, z) would be looked up in all of
these contexts, be z in c or not.  So this leap has a plan of its own,

    leap y in `reached` and b,  leap z in b and c,  emit (y, z)

where `reached` is the sensitivity index of the leap's *leader*, b: its rows are (y, a, b, x).  A cycle is

    1 the own plan's cycle for the changes of b and c, among what was reached: the changed (y, z)
    2 the cycle of the rule's plan, in which these are the changed rows of the leader
    3 the own plan's cycle for what is reached now
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dlog.jit import Words
from dlog.lftj.plan import Emit, Leap, Participant, Plan, Seek, Slot, Step

__all__ = ["OwnPlan", "leader_of", "own_plan"]


@dataclass(frozen=True)
class OwnPlan:
    """The plan of one leap; its last atom is what is reached.  `prefix` are the slots of the leader's columns
    before the leap, with the codes of those that are constants."""

    plan: Plan
    prefix: tuple[tuple[Slot, int | None], ...]

    def points(self, rows: Words) -> Words:
        """Rows that the plan emits as rows (prefix, key) of the leader."""
        slots = self.plan.steps[-1].slots if isinstance(self.plan.steps[-1], Emit) else ()
        columns = [
            np.full(len(rows), code) if code is not None else rows[:, slots.index(slot)]
            for slot, code in self.prefix
        ]
        return np.column_stack([*columns, rows[:, -1]])


def leader_of(
    leap: Leap, columns: dict[Participant, tuple[Slot, ...]], fixed: set[Slot]
) -> Participant | None:
    """The participant whose prefix has all variables that the leap depends on; None if there is none.

    `columns` are the prefixes of the participants, `fixed` the slots of constants."""
    if len(leap.participants) < 2:
        return None
    needed = {slot for p in leap.participants for slot in columns[p]}
    needed |= {slot for slot, _ in (*leap.lower, *leap.upper)}
    for participant in leap.participants:
        if needed - fixed <= set(columns[participant]):
            return participant
    return None


def own_plan(
    plan: Plan, leap: Leap, leader: Participant, columns: dict[Participant, tuple[Slot, ...]], arity: int
) -> OwnPlan:
    """The plan of a leap.  `arity` is that of the leader's index."""
    constants, reached = dict(plan.constants), len(plan.arities)
    steps: list[Step] = []
    bound: list[Slot] = []
    for level, slot in enumerate(columns[leader]):
        if slot in constants or slot in bound:
            steps += [Seek(reached, level, slot), Seek(leader[0], level, slot)]
        else:
            steps.append(Leap(slot, ((reached, level), (leader[0], level))))
            bound.append(slot)
    steps += _narrowed(leap, leader, columns)
    steps += [leap, Emit((*bound, leap.slot))]
    prefix = tuple((slot, constants.get(slot)) for slot in columns[leader])
    return OwnPlan(Plan((*plan.arities, arity), tuple(steps), plan.constants), prefix)


def _narrowed(
    leap: Leap, leader: Participant, columns: dict[Participant, tuple[Slot, ...]]
) -> Iterator[Step]:
    """The other participants at the columns before the leap."""
    for participant in leap.participants:
        if participant != leader:
            for level, slot in enumerate(columns[participant]):
                yield Seek(participant[0], level, slot)
