"""Owns the meaning of join plans as formulas: nested loops over the active domain, with Python's own numbers.

Shares no code with the machine; of dlog it imports only the classes of the steps.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from fractions import Fraction

from dlog.lftj.plan import (
    Compare,
    Compute,
    Emit,
    Exists,
    Holds,
    Leap,
    Not,
    Or,
    Plan,
    RangeStep,
    RankCompare,
    Seek,
    Step,
    Value,
)

MIN, MAX, MODULUS = -(2**63), 2**63 - 1, 2**64
NAN_CODE = 0x7FF8 << 48
Relation = set[tuple[int, ...]]
Environment = dict[int, int]
Prefixes = tuple[tuple[int, ...], ...]  # what is bound of each atom, level by level

TESTS = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class Meaning:
    """A plan with relations for its atoms; `rows()` evaluates it and counts what was undefined."""

    def __init__(self, plan: Plan, relations: Sequence[Relation], ranks: Sequence[int] = ()):
        self.plan = plan
        self.relations = relations
        self.ranks = ranks
        self.domain = sorted({value for relation in relations for row in relation for value in row})
        self.undefined = 0

    def rows(self) -> list[tuple[int, ...]]:
        """The output in order; an empty tuple for each solution of a plan that counts."""
        *steps, end = self.plan.steps
        slots = end.slots if isinstance(end, Emit) else ()
        start = (dict(self.plan.constants), tuple(() for _ in self.relations))
        return [tuple(found[s] for s in slots) for found, _ in self.solve(steps, *start)]

    def solve(
        self, steps: Sequence[Step], found: Environment, bound: Prefixes
    ) -> Iterator[tuple[Environment, Prefixes]]:
        if not steps:
            yield found, bound
            return
        for after in self.one(steps[0], found, bound):
            yield from self.solve(steps[1:], *after)

    def one(self, step: Step, found: Environment, bound: Prefixes) -> Iterator[tuple[Environment, Prefixes]]:
        match step:
            case Leap():
                for value in self.domain:
                    narrowed = self.narrow(step.participants, value, bound)
                    if narrowed is not None and within(step, value, found):
                        yield {**found, step.slot: value}, narrowed
            case Seek():
                narrowed = self.narrow([(step.atom, step.level)], found[step.operand], bound)
                if narrowed is not None:
                    yield found, narrowed
            case Value():
                values = {row[step.level] for row in self.matching(step.atom, bound)}
                assert len(values) <= 1
                for value in values:
                    narrowed = self.narrow([(step.atom, step.level)], value, bound)
                    assert narrowed is not None
                    yield {**found, step.slot: value}, narrowed
            case RangeStep():
                for value in range_values(step, found):
                    yield {**found, step.slot: value}, bound
            case Compute():
                try:
                    yield {**found, step.dst: self.compute(step, found)}, bound
                except ZeroDivisionError:
                    self.undefined += 1
            case Or():
                for branch in step.branches:
                    yield from self.solve(branch, found, bound)
            case _:
                if self.holds(step, found, bound):
                    yield found, bound

    def holds(self, step: Step, found: Environment, bound: Prefixes) -> bool:
        match step:
            case Compare():
                return TESTS[step.op](found[step.a], found[step.b])
            case RankCompare():
                return TESTS[step.op](self.ranks[found[step.a]], self.ranks[found[step.b]])
            case Holds():
                return len(self.relations[step.atom]) > 0
            case Not():
                return next(self.solve(step.steps, found, bound), None) is None
            case Exists():
                return next(self.solve(step.steps, found, bound), None) is not None
        raise AssertionError(step)

    def matching(self, atom: int, bound: Prefixes) -> list[tuple[int, ...]]:
        return [row for row in self.relations[atom] if row[: len(bound[atom])] == bound[atom]]

    def narrow(self, participants: Sequence[tuple[int, int]], value: int, bound: Prefixes) -> Prefixes | None:
        after = list(bound)
        for atom, level in participants:
            assert level == len(bound[atom])
            if not any(row[level] == value for row in self.matching(atom, bound)):
                return None
            after[atom] = (*bound[atom], value)
        return tuple(after)

    def compute(self, step: Compute, found: Environment) -> int:
        """The code of the result.  Raises ZeroDivisionError where it is undefined."""
        a, b = found[step.a], found.get(step.b, 0)
        if step.op == "copy":
            return a
        if step.kind == "string":
            first, second = sorted([a, b], key=lambda code: self.ranks[code])
            return first if step.op == "min" else second
        x, y = decode(a, step.kind), decode(b, step.kind)
        if step.op in ("to_int", "to_unsigned", "to_float"):
            return convert(x, step.kind, step.op[3:])
        return encode(arithmetic(step.op, step.kind, x, y), step.kind)


def within(step: Leap, value: int, found: Environment) -> bool:
    lower = all(value > found[s] if strict else value >= found[s] for s, strict in step.lower)
    return lower and all(value < found[s] if strict else value <= found[s] for s, strict in step.upper)


# ---- codes


def decode(code: int, kind: str) -> float:
    if kind == "unsigned":
        return code + 2**63
    if kind == "float":
        return struct.unpack("<d", struct.pack("<q", code if code >= 0 else code ^ MAX))[0]
    return code


def encode(value: float, kind: str) -> int:
    """Ints and unsigneds wrap."""
    if kind == "unsigned":
        return value % MODULUS - 2**63
    if kind == "int":
        return (value - MIN) % MODULUS + MIN
    if math.isnan(value):
        return NAN_CODE
    bits = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ MAX


def convert(x: float, kind: str, to: str) -> int:
    if to == "float":
        return encode(float(x), "float")
    if kind == "float":
        if math.isnan(x) or math.isinf(x):
            raise ZeroDivisionError
        x = int(x)
        low = 0 if to == "unsigned" else MIN
        if not low <= x < low + MODULUS:
            raise ZeroDivisionError
    return encode(x, to)


# ---- arithmetic


def arithmetic(op: str, kind: str, x: float, y: float) -> float:
    if op in ("min", "max"):
        # NaN is ordered last
        first, second = sorted([x, y], key=lambda v: (isinstance(v, float) and math.isnan(v), v))
        return first if op == "min" else second
    return floats(op, x, y) if kind == "float" else integers(op, kind, x, y)


def floats(op: str, x: float, y: float) -> float:
    if (y == 0.0 and op in ("div", "mod")) or (op == "pow" and x == 0.0 and y < 0.0):
        raise ZeroDivisionError
    try:
        match op:
            case "add":
                return x + y
            case "sub":
                return x - y
            case "mul":
                return x * y
            case "neg":
                return -x
            case "div":
                return x / y
            case "mod":
                return math.fmod(x, y)
            case "pow":
                return math.pow(x, y)  # raises ValueError for roots of negative numbers
    except OverflowError:
        odd = y == math.floor(y) and math.fmod(y, 2.0) != 0
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:
        return math.nan
    raise AssertionError(op)


def integers(op: str, kind: str, x: int, y: int) -> int:
    match op:
        case "add":
            return x + y
        case "sub":
            return x - y
        case "mul":
            return x * y
        case "neg":
            return -x
        case "div":
            return int(Fraction(x, y))
        case "mod":
            return x - y * int(Fraction(x, y))
        case "div_half_even":
            return round(Fraction(x, y))
        case "pow":
            return pow(x, y, MODULUS) if y >= 0 else int(Fraction(1, 1) / Fraction(x) ** min(-y, 2 - y % 2))
        case "land":
            return int(x != 0 and y != 0)
        case "lor":
            return int(x != 0 or y != 0)
        case "lxor":
            return int((x != 0) != (y != 0))
        case "lnot":
            return int(x == 0)
    return bits(op, kind, x, y)


def bits(op: str, kind: str, x: int, y: int) -> int:
    match op:
        case "band":
            return x & y
        case "bor":
            return x | y
        case "bxor":
            return x ^ y
        case "bnot":
            return ~x
        case "bshl":
            return x << (y % 64)
        case "bshr":
            return x >> (y % 64)
        case "bshru":
            return (x % MODULUS) >> (y % 64)
    raise AssertionError(op)


def range_values(step: RangeStep, found: Environment) -> Iterator[int]:
    """The codes of a range."""
    start, end = decode(found[step.start], step.kind), decode(found[step.end], step.kind)
    by = (1 if start < end else -1) if step.step is None else decode(found[step.step], step.kind)
    value = start
    if any(math.isnan(v) for v in (start, end, by)):
        return
    if by == 0 and start != end:
        yield found[step.start]
    while by and (value < end if by > 0 else value > end):
        yield encode(value, step.kind)
        if value + by == value:
            return
        value += by
