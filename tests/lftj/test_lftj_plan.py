"""What a plan must say before it can run."""

from __future__ import annotations

import pytest

from dlog.lftj.plan import Compare, Compute, Count, Emit, Exists, Leap, Not, Or, Plan, Seek, Value


def x(slot=0):
    return Leap(slot, ((0, 0),))


BROKEN = {
    "no end": ((2,), (x(),)),
    "an end in the middle": ((2,), (Count(), x(), Count())),
    "an unbound operand": ((2,), (Compare("=", 0, 1), Count())),
    "an unbound output": ((2,), (x(), Emit((1,)))),
    "a level out of turn": ((2,), (Leap(0, ((0, 1),)), Count())),
    "a level that is not there": ((1,), (x(), Leap(1, ((0, 1),)), Count())),
    "a level narrowed twice": ((2,), (x(), Seek(0, 0, 0), Count())),
    "a slot bound twice": ((2,), (x(), Value(0, 1, 0), Count())),
    "an output of an inner block": ((2,), (Exists((x(),)), Emit((0,)))),
    "an output of some branches": ((2, 2), (Or(((x(),), ())), Emit((0,)))),
    "a slot that some branch has bound": ((2, 2), (Or(((x(),), ())), Leap(0, ((1, 0),)), Count())),
    "an atom that branches narrow differently": ((2,), (Or(((x(),), ())), Leap(1, ((0, 0),)), Count())),
    "no participant": ((2,), (Leap(0, ()), Count())),
    "no branch": ((2,), (Or(()), Count())),
    "an unknown comparison": ((2,), (x(), Compare("<>", 0, 0), Count())),
    "an operation that floats lack": ((2,), (x(), Compute("band", "float", 1, 0, 0), Count())),
    "a missing operand": ((2,), (x(), Compute("add", "int", 1, 0), Count())),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_check_finds(fault):
    with pytest.raises(AssertionError):
        Plan(*BROKEN[fault]).check()


def test_check_allows():
    """A Not leaves its atoms and slots to others; branches may end at one level and bind one slot."""
    Plan((2,), (Not((x(),)), x(), Emit((0,)))).check()
    Plan((2,), (Or(((x(),), (x(),))), Leap(1, ((0, 1),)), Emit((0, 1)))).check()
