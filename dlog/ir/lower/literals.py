"""Owns the meaning of literals: which value of a type a spelling denotes.  Knows nothing of codes."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from decimal import Context, Decimal, InvalidOperation
from typing import TypeAlias

from dlog.types import Type

Value: TypeAlias = int | float | str | bool | Decimal | datetime.date | datetime.datetime

# Types that a literal may have, by the kind of its spelling; the first is the default.
CANDIDATES: dict[str, tuple[str, ...]] = {
    "int": ("int", "unsigned", "float", "decimal"),
    "unsigned": ("unsigned",),
    "float": ("float", "decimal"),
    "string": ("string", "date", "datetime"),
    "bool": ("bool",),
}
NOT_FINITE = ("inf", "-inf", "nan")  # texts that denote a float where one is expected, as others do a date


def candidates(kind: str, value: int | str | bool) -> tuple[str, ...]:
    """The types that a literal may have.

    >>> candidates("string", "tea"), candidates("string", "nan")
    (('string', 'date', 'datetime'), ('string', 'date', 'datetime', 'float'))
    """
    return (*CANDIDATES[kind], "float") if kind == "string" and value in NOT_FINITE else CANDIDATES[kind]


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([T ][0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)
_EXACT = Context(prec=100)


def literal_value(kind: str, value: int | str | bool, type: Type) -> Value:
    """The value that a spelling denotes in a type.  Raises ValueError with the reason when there is none.

    >>> literal_value("float", "3.50", Type("decimal", 2))
    Decimal('3.50')
    """
    assert type.name in candidates(kind, value), (kind, type)
    return _READERS[type.name](value, type)


def _int(value: int | str | bool, _: Type) -> Value:
    if not -(2**63) <= int(value) < 2**63:
        raise ValueError("does not fit 64 bits")
    return int(value)


def _unsigned(value: int | str | bool, _: Type) -> Value:
    if not 0 <= int(value) < 2**64:
        raise ValueError("is negative" if int(value) < 0 else "does not fit 64 bits")
    return int(value)


def _float(value: int | str | bool, _: Type) -> Value:
    if value in NOT_FINITE:
        return float(value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise ValueError("is too large for a float")
    return number


def _decimal(value: int | str | bool, type: Type) -> Value:
    number = Decimal(value)
    try:
        exact = number.quantize(Decimal(1).scaleb(-type.scale), context=_EXACT)
    except InvalidOperation:  # more digits than any decimal has
        raise ValueError(f"does not fit {type}") from None
    if exact != number:
        raise ValueError(f"has more than {type.scale} digits after the point")
    if abs(exact.scaleb(type.scale, context=_EXACT)) >= Decimal(10) ** type.precision:
        raise ValueError(f"does not fit {type}")
    return exact


def _string(value: int | str | bool, _: Type) -> Value:
    return str(value)


def _bool(value: int | str | bool, _: Type) -> Value:
    return bool(value)


# Python takes more forms than files may have.


def _date(value: int | str | bool, _: Type) -> Value:
    if _DATE.fullmatch(str(value)):
        with contextlib.suppress(ValueError):
            return datetime.date.fromisoformat(str(value))
    raise ValueError("is not a date (YYYY-MM-DD)")


def _datetime(value: int | str | bool, _: Type) -> Value:
    """A zone is converted to UTC."""
    if _DATETIME.fullmatch(str(value)):
        with contextlib.suppress(ValueError, OverflowError):
            moment = datetime.datetime.fromisoformat(str(value))
            return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment
    raise ValueError("is not a date and time (YYYY-MM-DDTHH:MM:SS)")


_READERS = {
    "int": _int,
    "unsigned": _unsigned,
    "float": _float,
    "decimal": _decimal,
    "string": _string,
    "bool": _bool,
    "date": _date,
    "datetime": _datetime,
}
