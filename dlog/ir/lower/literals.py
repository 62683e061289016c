"""Owns which types a literal may have.  What it denotes is up to the type (`dlog.values`)."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import TypeAlias

from dlog.values import TYPES, Type
from dlog.values.float import NOT_FINITE
from dlog.values.record import ANY_RECORD

__all__ = ["CANDIDATES", "NOT_FINITE", "ZERO", "Value", "candidates", "denotes", "literal_value", "meant_by"]

Value: TypeAlias = int | float | str | bool | Decimal | datetime.date | datetime.datetime | datetime.timedelta

RECORDS = ("nil", "record")  # the kinds of literals of records
ZERO = "zero"  # the kind of the sum of nothing, whose spelling depends on its type
KINDS = ("int", "unsigned", "float", "string", "bool")
# Types that a literal may have, by the kind of its spelling; the first is the default.
CANDIDATES: dict[str, tuple[str, ...]] = {
    kind: tuple(type.name for type in TYPES if kind in type.literals) for kind in KINDS
}
_SUMMED = tuple(type.name for type in TYPES if type.adds_up)


def candidates(kind: str, value: int | str | bool) -> tuple[str, ...]:
    """The types that a literal may have.

    >>> candidates("float", "1.5"), candidates("bool", True)
    (('float', 'decimal'), ('bool',))
    """
    if kind == ZERO:
        return _SUMMED
    if kind in RECORDS:
        return (ANY_RECORD,)
    return (*CANDIDATES[kind], "float") if kind == "string" and value in NOT_FINITE else CANDIDATES[kind]


def meant_by(kind: str, value: int | str | bool) -> tuple[str, ...]:
    """The types that a literal may have by its form, if several are possible: times and durations.

    >>> meant_by("string", "PT1H"), meant_by("string", "2026-01-31T10:00:00")
    (('duration',), ('date', 'datetime', 'timestamp'))
    """
    found = candidates(kind, value)
    shaped = [
        t for t in TYPES if t.name in found and t.literal_shape and re.match(t.literal_shape, str(value))
    ]
    return tuple(t.name for t in shaped) or found


def denotes(kind: str, value: int | str | bool, type: Type) -> bool:
    """Whether a literal of this kind may have a type."""
    return type.is_record if kind in RECORDS else type.name in candidates(kind, value)


def literal_value(kind: str, value: int | str | bool, type: Type) -> Value:
    """The value that a spelling denotes in a type.  Raises ValueError with the reason when there is none.

    >>> literal_value("float", "3.50", Type("decimal", 2))
    Decimal('3.50')
    """
    assert denotes(kind, value, type), (kind, type)
    return type.literal(kind, value)
