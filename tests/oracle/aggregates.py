"""Owns what every aggregate means, on the list of its arguments: one for each assignment of a group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from dlog.values import Type

from . import functors
from .values import EXACT, Value, canonical, fit, greatest, least, order

UNDEFINED = object()  # the value of an aggregate over too few assignments


def aggregate(op: str, arguments: Sequence[Value], type: Type) -> Value:
    """REQUIRES: arguments are not empty, and in the order in which `concat` joins them."""
    if op == "count":
        return len(arguments)
    if op.startswith("@"):
        return canonical(functors.aggregate(op[1:].partition("(")[0], arguments))
    if op == "count_distinct":
        return len({order(argument) for argument in arguments})
    if op in DEVIATIONS:
        return _deviation(arguments, *DEVIATIONS[op])
    if op == "min":
        return least(arguments)
    if op == "max":
        return greatest(arguments)
    if op == "concat":
        return "".join(arguments)
    if type.name == "duration":
        return _of_durations(op, arguments, type)
    if op == "mean":
        return canonical(_exact_quotient(arguments, len(arguments)))
    assert op == "sum", op
    if type.name == "float":
        return canonical(_exact_quotient(arguments, 1))
    if type.name == "decimal":
        return _decimal_sum(arguments)
    return fit(sum(arguments), type)


DEVIATIONS = {  # (what is taken from the number of values, whether the root is taken)
    "variance": (1, False),
    "variance_pop": (0, False),
    "stddev": (1, True),
    "stddev_pop": (0, True),
}


def _deviation(numbers: Sequence[Value], freedom: int, root: bool) -> Value:
    """By definition: the mean square distance from the mean, or its root; nearest float."""
    if len(numbers) <= freedom:
        return UNDEFINED
    if any(isinstance(n, float) and not math.isfinite(n) for n in numbers):
        return canonical(math.nan)
    exact = [Fraction(n) for n in numbers]
    mean = sum(exact, Fraction(0)) / len(exact)
    square = sum(((n - mean) ** 2 for n in exact), Fraction(0)) / (len(exact) - freedom)
    return canonical(_nearest_root(square) if root else _nearest(square))


def _nearest_root(square: Fraction) -> float:
    """The root of a number, cut off far below the last place of any float, with a last digit that says
    whether anything was cut off."""
    places = 1200
    scaled = (square.numerator << 2 * places) // square.denominator
    root = math.isqrt(scaled)
    exact = Fraction(root * root, 1 << 2 * places) == square
    return _nearest(Fraction(2 * root + (not exact), 2 << places))


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _decimal_sum(arguments: Sequence[Decimal]) -> Decimal:
    total = Decimal(0)
    for argument in arguments:
        total = EXACT.add(total, argument)
    return total


def _of_durations(op: str, lengths: Sequence[timedelta], type: Type) -> timedelta:
    """The exact sum or, to the microsecond and half to even, the mean."""
    total = sum(length // timedelta.resolution for length in lengths)
    return fit(total if op == "sum" else round(Fraction(total, len(lengths))), type)


def _exact_quotient(numbers: Sequence[Value], divisor: int) -> float:
    """The float nearest to the exact sum of the numbers over the divisor; half to even.

    Infinities and NaN act as they do in a float sum: NaN, or infinities of both signs, give NaN.
    """
    special = [n for n in numbers if isinstance(n, float) and not math.isfinite(n)]
    if special:
        return sum(special)
    return _nearest(sum(map(Fraction, numbers), Fraction(0)) / divisor)
