"""Owns the small domains from which random programs take their values, and how values are written.

Small domains make joins meet.  Floats include ones whose sums round; decimals have two digits after the point
and stay small, so that products of products still fit.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

from dlog.values import Branch

from .records import RECORDS, literal_text
from .values import Value

VALUES: dict[str, tuple[Value, ...]] = {
    "int": (0, 1, 2, 3, 4, -1),
    "unsigned": (0, 1, 2, 3, 2**63),
    "float": (0.5, 1.0, 0.0, 1.5, -0.5, 0.1),
    "decimal": tuple(map(Decimal, ("0.50", "1.00", "1.25", "-0.75", "0.05"))),
    "string": ("a", "b", "c", "ab", ""),
    "bool": (False, True),
    "date": (datetime.date(2026, 1, 31), datetime.date(2026, 2, 1), datetime.date(2024, 2, 29)),
    "datetime": (datetime.datetime(2026, 1, 31, 23, 59, 59), datetime.datetime(2026, 2, 1)),
    "timestamp": (
        datetime.datetime(2026, 1, 31, 23, 59, 59, 500_000, datetime.UTC),
        datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC),
        datetime.datetime(1969, 12, 31, 12, tzinfo=datetime.UTC),
    ),
    "duration": (
        datetime.timedelta(0),
        datetime.timedelta(hours=1),
        datetime.timedelta(days=-1, microseconds=-1),
        datetime.timedelta(days=106_751_991),
        datetime.timedelta(seconds=1.5),
    ),
}


def values_of(type: str) -> tuple[Value, ...]:
    """The domain of a type, records included."""
    return RECORDS.get(type) or VALUES[type]


DECLARED = {"decimal": "decimal[10, 2]"}  # where the declaration is not the type's name


def literal(value: Value) -> str:
    """A value as a program writes it.

    >>> literal(-1), literal(0.5), literal(Decimal("1.25")), literal("a"), literal(True)
    ('-1', '0.5', '1.25', '"a"', 'true')
    """
    if value is None or isinstance(value, tuple | Branch):
        return literal_text(value, literal)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}u" if value >= 2**63 else str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.date):
        return f'"{value.isoformat()}"'  # of a timestamp, with +00:00
    if isinstance(value, datetime.timedelta):
        length = abs(value)
        return f'"{"-" * (value != length)}P{length.days}DT{length.seconds}.{length.microseconds:06}S"'
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def fact(name: str, row: tuple[Value, ...], functional: bool) -> str:
    """
    >>> fact("e", (1, 2), False), fact("f", (1, "a"), True)
    ('e(1, 2)', 'f[1] = "a"')
    """
    texts = [literal(value) for value in row]
    if functional:
        return f"{name}[{', '.join(texts[:-1])}] = {texts[-1]}"
    return f"{name}({', '.join(texts)})"
