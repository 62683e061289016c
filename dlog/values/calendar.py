"""Owns what calendar types share: the range of years, ISO texts, and units of Arrow's times.

A day is a whole number of microseconds: there are no leap seconds.  Years are 1 to 9999, what four digits
and Python's dates can show, so that every value has a text.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from dlog.values.arrows import numbers
from dlog.values.heavy import np, pa
from dlog.values.misfit import BadValue
from dlog.values.type import Codes, Type

MICROSECONDS_A_DAY = 86_400_000_000
_EPOCH = dt.date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = dt.date.min.toordinal() - _EPOCH, dt.date.max.toordinal() - _EPOCH
_FIRST_MOMENT = FIRST_DAY * MICROSECONDS_A_DAY
_LAST_MOMENT = (LAST_DAY + 1) * MICROSECONDS_A_DAY - 1
UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6})0*)?)?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


class CalendarType(Type):
    """What date, datetime and timestamp share.  Codes are days or microseconds since 1970-01-01."""

    literals = ("string",)
    quoted_literal = True
    literal_shape = r"[0-9]{4}-"
    limits = (_FIRST_MOMENT, _LAST_MOMENT)
    day = MICROSECONDS_A_DAY

    def inside(self, column: pa.Array | pa.ChunkedArray) -> Any:
        return self.defined(numbers(column, pa.int64()))

    def defined(self, codes: Codes) -> Any:
        return (codes >= self.limits[0]) & (codes <= self.limits[1])

    def json_arrow(self) -> pa.DataType:
        """pyarrow's JSON reader accepts only numbers for dates, and ignores time zones."""
        return pa.string()

    def json(self, column: pa.Array) -> list[pa.Array | str]:
        return ['"', self.texts(column), '"']

    def shown(self, value: dt.date) -> str:
        return self.literal_text(value)


def date_of(text: str) -> dt.date | None:
    """Python accepts more formats than files may have."""
    try:
        return dt.date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def moment_of(text: str) -> dt.datetime | None:
    """A date and time, with a time zone if the text has one."""
    match = _MOMENT.fullmatch(text)
    if not match:
        return None
    day, hours, minutes, seconds, fraction, zone = match.groups()
    clock = f"{hours or '00'}:{minutes or '00'}:{seconds or '00'}.{(fraction or '0'):0<6}"
    try:
        return dt.datetime.fromisoformat(f"{day}T{clock}{zone or ''}")
    except ValueError:
        return None


def in_utc(moment: dt.datetime) -> dt.datetime | None:
    """An aware moment in UTC, as a plain datetime of Python; None outside the years."""
    try:
        return plain_moment(moment.astimezone(dt.UTC)).replace(tzinfo=dt.UTC)
    except OverflowError:
        return None


def plain_moment(moment: dt.datetime) -> dt.datetime:
    """Without a subclass (pandas has one) and without a zone."""
    return dt.datetime(*moment.timetuple()[:6], moment.microsecond)


def utc_clock(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Times in microseconds without their time zone, which is UTC or none.  For texts, parts and Python
    values of times with a zone, even UTC, Arrow needs a database of time zones, which not every system has.
    """
    return column.cast(pa.int64()).cast(pa.timestamp("us"))


def is_finer(value: Any) -> bool:
    """Whether pandas' own datetime or timedelta has nanoseconds."""
    return bool(getattr(value, "nanosecond", None) or getattr(value, "nanoseconds", None))


def microseconds(values: pa.Array, low: int, high: int, outside: str) -> Any:
    """The microseconds of Arrow times of any unit, in [low, high].  Raises BadValue.

    REQUIRES: no nulls, and that the bounds are whole in every unit, or the ends of int64.
    """
    found, unit = values.view(pa.int64()).to_numpy(), values.type.unit
    if unit == "ns":
        if np.any(found % 1000):
            row = int(np.argmax(found % 1000 != 0))
            raise BadValue(row, f"{found[row]} nanoseconds are not whole microseconds")
        found = found // 1000
    elif unit != "us":
        factor = UNITS[unit]
        _require((found >= -(-low // factor)) & (found <= high // factor), outside)
        found = found * factor
    _require((found >= low) & (found <= high), outside)
    return found


def require_years(good: Any) -> None:
    _require(good, "the year is not one of 1 to 9999")


def moments(values: pa.Array) -> Any:
    """The microseconds of Arrow timestamps."""
    return microseconds(values, _FIRST_MOMENT, _LAST_MOMENT, "the year is not one of 1 to 9999")


def _require(good: Any, reason: str) -> None:
    if not np.all(good):
        raise BadValue(int(np.argmin(good)), reason)
