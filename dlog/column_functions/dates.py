"""Owns functions of points in time: their parts, and whole days.  Arrow has the calendar; timestamps are read
in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.column_functions.columns import Column, Dictionary, Result, unless_all
from dlog.storage.values import decode
from dlog.values import INT, Type
from dlog.values.calendar import utc_clock
from dlog.values.heavy import pc

_FAR = 4_000_000  # days: more than between the first and the last date


def date_part(name: str, **options: Any) -> Callable[..., Result]:
    """A part that Arrow finds, by the name of its function."""

    def calculate(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
        values = decode(inputs[0].codes, inputs[0].type, dictionary)
        local = utc_clock(values) if pa.types.is_timestamp(values.type) else values
        parts = getattr(pc, name)(local, **options)
        return Column(parts.to_numpy(zero_copy_only=False).astype(np.int64), INT), None

    return calculate


def add_days(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Undefined outside the years 1 to 9999."""
    days = np.clip(inputs[1].codes, -_FAR, _FAR)
    codes = inputs[0].codes + days * output.day
    defined = output.defined(codes)
    assert defined is not None, f"{output} has no calendar"
    return Column(np.where(defined, codes, 0), output), unless_all(defined)


def days_between(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Whole days from the first to the second, towards zero; negative when the second is earlier."""
    first, second = (c.codes for c in inputs)
    days = np.abs(second - first) // inputs[0].type.day
    return Column(np.where(second < first, -days, days), INT), None


FUNCTIONS: dict[str, Callable[..., Result]] = {
    "year": date_part("year"),
    "month": date_part("month"),
    "day": date_part("day"),
    "weekday": date_part("day_of_week", count_from_zero=False, week_start=1),  # 1 is Monday, as in ISO
    "hour": date_part("hour"),
    "minute": date_part("minute"),
    "second": date_part("second"),
    "add_days": add_days,
    "days_between": days_between,
}
