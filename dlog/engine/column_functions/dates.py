"""Owns functions of dates and datetimes.  Knows nothing of their codes: Arrow has the calendar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.engine.column_functions.columns import Column, Dictionary, Mask, Result
from dlog.io.columns import arrow_type, fits
from dlog.storage.values import decode, encode
from dlog.types import DATE, DATETIME, INT, Type

MICROSECONDS_A_DAY = 86_400_000_000
_FAR = 4_000_000  # days: more than there are between the first and the last date


def date_part(function: Callable[[pa.Array], pa.Array]) -> Callable[..., Result]:
    def calculate(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
        parts = function(decode(inputs[0].codes, inputs[0].type, dictionary))
        return Column(parts.to_numpy(zero_copy_only=False).astype(np.int64), INT), None

    return calculate


def add_days(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Undefined outside the years 1 to 9999."""
    days = np.clip(inputs[1].codes, -_FAR, _FAR)
    return _dates(_numbers(inputs[0], dictionary) + days * _day(output), output, dictionary)


def days_between(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Whole days from the first to the second, towards zero; negative when the second is earlier."""
    first, second = (_numbers(c, dictionary) for c in inputs)
    days = np.abs(second - first) // _day(inputs[0].type)
    return Column(np.where(second < first, -days, days), INT), None


def to_date(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """The day of a datetime."""
    return _dates(_numbers(inputs[0], dictionary) // MICROSECONDS_A_DAY, DATE, dictionary)


def to_datetime(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Midnight of a date."""
    return _dates(_numbers(inputs[0], dictionary) * MICROSECONDS_A_DAY, DATETIME, dictionary)


def _day(type: Type) -> int:
    return 1 if type == DATE else MICROSECONDS_A_DAY


def _numbers(column: Column, dictionary: Dictionary) -> np.ndarray:
    """Days or microseconds since 1970."""
    stored = pa.int32() if column.type == DATE else pa.int64()
    values = decode(column.codes, column.type, dictionary).cast(stored)
    return values.to_numpy(zero_copy_only=False).astype(np.int64)


def _dates(numbers: np.ndarray, type: Type, dictionary: Dictionary) -> Result:
    stored = pa.int32() if type == DATE else pa.int64()
    column = pa.array(numbers).cast(stored).cast(arrow_type(type))
    inside = fits(column, type)
    if inside is None:
        return Column(encode(column, type, dictionary), type), None
    defined: Mask = inside.to_numpy(zero_copy_only=False)
    codes = np.zeros(len(numbers), np.int64)
    codes[defined] = encode(column.filter(inside), type, dictionary)
    return Column(codes, type), defined


FUNCTIONS: dict[str, Callable[..., Result]] = {
    "year": date_part(pc.year),
    "month": date_part(pc.month),
    "day": date_part(pc.day),
    "weekday": date_part(
        partial(pc.day_of_week, count_from_zero=False, week_start=1)
    ),  # 1 is Monday, as ISO says
    "hour": date_part(pc.hour),
    "minute": date_part(pc.minute),
    "second": date_part(pc.second),
    "add_days": add_days,
    "days_between": days_between,
}
