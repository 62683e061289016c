"""Owns what values are equal, how they are ordered, and how a value fits a column.

Values are Python's: int, float, Decimal, str, bool, date, datetime (of a timestamp in UTC), timedelta.
Floats are made canonical, so that equal ones are equal in Python too: -0.0 becomes 0.0, and every NaN one and
the same object.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from dlog.errors import DataError
from dlog.values import Branch, Type

Value = Any  # int | float | Decimal | str | bool | date | datetime | timedelta
Row = tuple[Value, ...]

NAN = float("nan")
LONGEST = datetime.timedelta(106_751_991)
EXACT = Context(prec=1000, rounding=ROUND_HALF_EVEN)  # more digits than any rule can make


class DoesNotFit(DataError):
    """A result that is outside its type."""


def canonical(value: Value) -> Value:
    """The one representative of all values that dlog takes for equal."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC)
    return value


def order(value: Value) -> Value:
    """A sort key: values as they are, the one NaN after all other floats.  Strings sort by code points."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if value is None or isinstance(value, tuple | Branch):
        return repr(value)
    return value


def least(values: Iterable[Value]) -> Value:
    return min(values, key=order)


def greatest(values: Iterable[Value]) -> Value:
    return max(values, key=order)


def wrap(number: int, type: Type) -> int:
    """A whole number brought into the 64 bits of its type.

    >>> from dlog.values import INT, UNSIGNED
    >>> wrap(2**63, INT), wrap(-1, UNSIGNED)
    (-9223372036854775808, 18446744073709551615)
    """
    bits = number % 2**64
    return bits - 2**64 if type.name == "int" and bits >= 2**63 else bits


def rounded(value: Decimal, scale: int) -> Decimal:
    """To `scale` digits after the point, half to even."""
    return value.quantize(Decimal(1).scaleb(-scale), context=EXACT)


def fit(value: Value, type: Type) -> Value:
    """A value as a column of this type holds it: decimals are rounded.  Raises DoesNotFit."""
    if type.name == "decimal":
        value = rounded(Decimal(value), type.scale)
        if abs(value) >= Decimal(10) ** (type.precision - type.scale):
            raise DoesNotFit(f"{value} does not fit {type}")
    elif type.name == "int" and not -(2**63) <= value < 2**63:
        raise DoesNotFit(f"{value} does not fit 64 bits")
    elif type.name == "unsigned" and not 0 <= value < 2**64:
        raise DoesNotFit(f"{value} does not fit 64 bits without a sign")
    elif type.name == "duration" and isinstance(value, int):  # microseconds
        if abs(value) > LONGEST // datetime.timedelta.resolution:
            raise DoesNotFit(f"{value} microseconds do not fit {type}")
        return datetime.timedelta(microseconds=value)
    return canonical(value)
