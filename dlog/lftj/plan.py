"""Owns the syntax of join plans: what a leapfrog triejoin does, step by step.

A plan is a tree of *steps*, run from left to right with backtracking: a step that fails goes back to the
last step with another choice.  Values live in *slots*, one int64 code each; an operand is a slot (constants
are slots loaded before the start).  Each *atom* is one occurrence of a predicate in the rule, read in the
column order of its index: level L of an atom is column L of that index.  The *range* of an atom at level L is
the set of rows whose levels 0..L-1 have the values bound there; Leap, Seek and Value narrow it from L to L+1.

Knows nothing of rules, types or indices, and nothing of how the steps are run: see `assemble` and `machine`.

    # triangle(x, y, z) <- e(x, y), e(y, z), e(x, z).     slots 0, 1, 2; atoms xy, yz, xz
    Plan(arities=(2, 2, 2), steps=(
        Leap(0, ((0, 0), (2, 0))),
        Leap(1, ((0, 1), (1, 0))),
        Leap(2, ((1, 1), (2, 1))),
        Emit((0, 1, 2))))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Slot: TypeAlias = int
Operand: TypeAlias = int  # a slot that is bound
Bound: TypeAlias = tuple[Operand, bool]  # (operand, strict)
Participant: TypeAlias = tuple[int, int]  # (atom, level)

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
BINARY_OPS = (
    *("add", "sub", "mul", "div", "mod", "pow", "min", "max"),
    *("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"),
    "div_half_even",  # the quotient rounded half to even: brings a decimal to a smaller scale
)
UNARY_OPS = ("copy", "neg", "bnot", "lnot", "to_int", "to_unsigned", "to_float")
KINDS = ("int", "unsigned", "float", "string")  # of the operands; string has min, max and copy only
FLOAT_OPS = (*BINARY_OPS[:8], "copy", "neg", "to_int", "to_unsigned")
STRING_OPS = ("min", "max", "copy")


@dataclass(frozen=True)
class Leap:
    """Bind `slot` to each value in the intersection of the participants' levels, ascending, within bounds.

    At run time the participant with the fewest rows leads, whatever the order given here.
    """

    slot: Slot
    participants: tuple[Participant, ...]
    lower: tuple[Bound, ...] = ()
    upper: tuple[Bound, ...] = ()


@dataclass(frozen=True)
class Seek:
    """Narrow `level` of `atom` to the rows that hold the operand there; fail if there are none."""

    atom: int
    level: int
    operand: Operand


@dataclass(frozen=True)
class Value:
    """Bind `slot` to the only key of a level (the value of a function); fail if there is none.

    REQUIRES: the level's range holds at most one key.
    """

    atom: int
    level: int
    slot: Slot


@dataclass(frozen=True)
class Holds:
    """Succeed if the atom's predicate has a row: the step of a proposition, an atom without columns."""

    atom: int


@dataclass(frozen=True)
class Compare:
    """Succeed if `a op b` holds between codes; codes of all types but strings are in the order of values."""

    op: str
    a: Operand
    b: Operand


@dataclass(frozen=True)
class RankCompare:
    """Succeed if `a op b` holds between the ranks of two string codes: the order of their texts."""

    op: str
    a: Operand
    b: Operand


@dataclass(frozen=True)
class Compute:
    """Bind `dst` to `a op b` (unary ones have no `b`); fail and count one undefined if it has no value.

    `kind` is that of the operands.  Integers wrap.  Division truncates towards zero, the remainder has the
    sign of the dividend, and both are undefined for a zero divisor, for floats too.  A negative integer power
    is the truncated quotient, undefined for base 0.  Shifts take their count modulo 64.  Conversions of
    floats truncate and are undefined for NaN and for what does not fit; int and unsigned convert by their
    bits.
    """

    op: str
    kind: str
    dst: Slot
    a: Operand
    b: Operand = -1


@dataclass(frozen=True)
class MakeRecord:
    """Bind `dst` to the record with these fields.  `shape` is its number in the table of records."""

    shape: int
    dst: Slot
    fields: tuple[Operand, ...]


@dataclass(frozen=True)
class ReadField:
    """Bind `dst` to a field of a record; fail if another constructor made it, or if it has none."""

    constructor: int
    index: int
    dst: Slot
    record: Operand


@dataclass(frozen=True)
class RangeStep:
    """Bind `slot` to start, start + step, ... while it is before `end` (after it, if the step is negative).

    Without `step` it is 1 or -1, whichever leads from start to end.  A zero step gives only `start`, unless
    it equals `end`.  Stops where the next value would wrap, or where adding no longer changes a float.
    """

    slot: Slot
    start: Operand
    end: Operand
    step: Operand | None = None
    kind: str = "int"


@dataclass(frozen=True)
class Not:
    """Succeed, binding nothing, if the inner steps have no solution."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Exists:
    """Succeed once, binding nothing, if the inner steps have a solution."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Or:
    """Give the solutions of each branch in turn; what every branch binds is bound afterwards.

    A solution of two branches is given twice.
    """

    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Emit:
    """End of a plan: write the slots as one row."""

    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Count:
    """End of a plan: only count the solutions."""


Test: TypeAlias = Holds | Compare | RankCompare
Block: TypeAlias = Not | Exists | Or
Step: TypeAlias = (
    Leap | Seek | Value | RangeStep | Compute | MakeRecord | ReadField | Test | Block | Emit | Count
)


@dataclass(frozen=True)
class Plan:
    """`arities[a]` is the number of columns of atom a; `constants` are slots with the codes they start with.

    A constant slot is a parameter too: its code can be changed between runs.
    """

    arities: tuple[int, ...]
    steps: tuple[Step, ...]
    constants: tuple[tuple[Slot, int], ...] = ()

    @property
    def n_slots(self) -> int:
        """O(size of the plan)."""
        return 1 + max((slot for slot in self._slots()), default=-1)

    def _slots(self) -> Iterator[Slot]:
        yield from (slot for slot, _ in self.constants)
        for step in walk(self.steps):
            yield from written(step)
            yield from read(step)

    def check(self) -> None:
        """Assert that each step finds what it needs.  O(size of the plan)."""
        assert self.steps and isinstance(self.steps[-1], Emit | Count), "a plan ends with Emit or Count"
        assert all(-(2**63) <= code < 2**63 for _, code in self.constants), "a constant is an int64 code"
        scope = _Scope({slot for slot, _ in self.constants}, dict.fromkeys(range(len(self.arities)), 0))
        assert len(scope.bound) == len(self.constants), "a constant slot is given twice"
        _check_steps(self.steps[:-1], scope, self.arities)
        assert scope.bound.issuperset(read(self.steps[-1])), "Emit of an unbound slot"


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """All steps, outer ones before those inside them."""
    for step in steps:
        yield step
        for inner in _blocks(step):
            yield from walk(inner)


def written(step: Step) -> tuple[Slot, ...]:
    """The slots a step itself binds."""
    match step:
        case Leap(slot=slot) | Value(slot=slot) | RangeStep(slot=slot) | Compute(dst=slot):
            return (slot,)
        case MakeRecord(dst=slot) | ReadField(dst=slot):
            return (slot,)
    return ()


def read(step: Step) -> tuple[Slot, ...]:
    """The slots a step itself needs bound."""
    match step:
        case Leap():
            return tuple(operand for operand, _ in step.lower + step.upper)
        case Seek():
            return (step.operand,)
        case Compare() | RankCompare():
            return (step.a, step.b)
        case Compute():
            return (step.a,) if step.op in UNARY_OPS else (step.a, step.b)
        case MakeRecord():
            return step.fields
        case ReadField():
            return (step.record,)
        case RangeStep():
            return (step.start, step.end) if step.step is None else (step.start, step.end, step.step)
        case Emit():
            return step.slots
    return ()


def narrowed(step: Step) -> tuple[Participant, ...]:
    """The (atom, level) pairs a step itself narrows."""
    match step:
        case Leap():
            return step.participants
        case Seek() | Value():
            return ((step.atom, step.level),)
    return ()


def _blocks(step: Step) -> tuple[tuple[Step, ...], ...]:
    match step:
        case Not() | Exists():
            return (step.steps,)
        case Or():
            return step.branches
    return ()


@dataclass
class _Scope:
    """What is bound before a step: slots, and for each atom its next level.

    `used` holds the slots that must not be bound again although they cannot be read: those of some branches.
    An atom that branches have narrowed differently has no next level and is absent from `levels`.
    """

    bound: set[Slot]
    levels: dict[int, int]
    used: frozenset[Slot] = frozenset()

    def copy(self) -> _Scope:
        return _Scope(set(self.bound), dict(self.levels), self.used)

    def merge(self, ends: list[_Scope]) -> None:
        """Become the scope after any one of the branches that ended as given."""
        self.used = frozenset().union(*(end.bound | end.used for end in ends))
        self.bound = set.intersection(*(end.bound for end in ends))
        self.levels = {a: n for a, n in ends[0].levels.items() if all(e.levels.get(a) == n for e in ends)}


def _check_steps(steps: tuple[Step, ...], scope: _Scope, arities: tuple[int, ...]) -> None:
    for step in steps:
        assert not isinstance(step, Emit | Count), "Emit and Count occur only at the end of a plan"
        _check_form(step, arities)
        assert scope.bound.issuperset(read(step)), f"unbound operand: {step}"
        for atom, level in narrowed(step):
            assert scope.levels.get(atom) == level < arities[atom], f"level out of turn: {step}"
            scope.levels[atom] = level + 1
        assert not (scope.bound | scope.used).intersection(written(step)), f"slot bound twice: {step}"
        scope.bound.update(written(step))
        ends = []
        for block in _blocks(step):
            ends.append(scope.copy())
            _check_steps(block, ends[-1], arities)
        if isinstance(step, Or):
            scope.merge(ends)


def _check_form(step: Step, arities: tuple[int, ...]) -> None:
    match step:
        case Leap():
            assert step.participants, "a Leap needs a participant"
        case Holds():
            assert 0 <= step.atom < len(arities), f"no such atom: {step}"
        case Compare() | RankCompare():
            assert step.op in COMPARISONS, f"no such comparison: {step}"
        case Compute():
            assert step.kind in KINDS and step.op in BINARY_OPS + UNARY_OPS, f"no such operation: {step}"
            assert step.kind != "float" or step.op in FLOAT_OPS, f"no such operation on floats: {step}"
            assert step.kind != "string" or step.op in STRING_OPS, f"no such operation on strings: {step}"
            assert step.op in UNARY_OPS or step.b >= 0, f"operand missing: {step}"
        case RangeStep():
            assert step.kind in ("int", "unsigned", "float"), f"no such range: {step}"
        case Or():
            assert step.branches, "an Or needs a branch"
    assert all(slot >= 0 for slot in read(step) + written(step)), f"negative slot: {step}"
