"""Owns what every aggregate means, on the list of its arguments: one for each assignment of a group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from dlog.types import Type

from .values import EXACT, Value, canonical, fit, greatest, least


def aggregate(op: str, arguments: Sequence[Value], type: Type) -> Value:
    """REQUIRES: arguments are not empty, and in the order in which `concat` joins them."""
    if op == "count":
        return len(arguments)
    if op == "min":
        return least(arguments)
    if op == "max":
        return greatest(arguments)
    if op == "concat":
        return "".join(arguments)
    if op == "mean":
        return canonical(_exact_quotient(arguments, len(arguments)))
    assert op == "sum", op
    if type.name == "float":
        return canonical(_exact_quotient(arguments, 1))
    if type.name == "decimal":
        return _decimal_sum(arguments)
    return fit(sum(arguments), type)


def _decimal_sum(arguments: Sequence[Decimal]) -> Decimal:
    total = Decimal(0)
    for argument in arguments:
        total = EXACT.add(total, argument)
    return total


def _exact_quotient(numbers: Sequence[Value], divisor: int) -> float:
    """The float nearest to the exact sum of the numbers over the divisor; half to even.

    Infinities and NaN act as they do in a float sum: NaN, or infinities of both signs, give NaN.
    """
    special = [n for n in numbers if isinstance(n, float) and not math.isfinite(n)]
    if special:
        return sum(special)
    exact = sum(map(Fraction, numbers), Fraction(0)) / divisor
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
