"""The type `datetime`: a date and a time of day, without a time zone.  Its code is the number of microseconds
since 1970-01-01.  Texts and values with a time zone are rejected: use `timestamp` for them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from dlog.values.arrows import fits
from dlog.values.calendar import MICROSECONDS_A_DAY, CalendarType, is_finer, moment_of, moments, plain_moment
from dlog.values.date import DATE
from dlog.values.heavy import np, pa, pc
from dlog.values.misfit import FINER, BadValue, Misfit, is_finer_text, not_a_time, quoted, wrong_kind
from dlog.values.type import Codes, Converted, Literal, Operation

_ADVICE = "declare the column timestamp"


def _midnight(codes: Any, result: Any) -> tuple[Any, Any]:
    return codes[0] * MICROSECONDS_A_DAY, None


def _same_clock(codes: Any, result: Any) -> tuple[Any, Any]:
    """The clock of UTC."""
    return codes[0], None


class DatetimeType(CalendarType):
    names = ("datetime",)
    preference = 7
    form = " (YYYY-MM-DDTHH:MM:SS)"
    example = '"2026-01-31T10:00:00"'
    becomes = {
        "timestamp": "to_timestamp(x) reads a datetime as UTC",
        "date": "to_date(x) gives the day of a datetime",
    }
    groups = frozenset({"calendar", "clock"})
    conversion = "to_datetime"
    converts = ("string", "date", "timestamp")
    readable = r"^[0-9TZ:. +-]*[0-9Z]$"
    operations = {
        ("to_datetime", "date"): Operation("datetime", _midnight),
        ("to_datetime", "timestamp"): Operation("datetime", _same_clock),
    }
    some_literal = ("string", "1970-01-01T00:00:00")
    python = (dt.datetime,)
    own_texts = True

    def arrow(self) -> pa.DataType:
        return pa.timestamp("us")

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if pa.types.is_date(values.type):
            return DATE.encode(values, dictionary) * MICROSECONDS_A_DAY
        if not pa.types.is_timestamp(values.type):
            raise self.wrong_column(values)
        if values.type.tz is not None:
            raise BadValue(0, f"{values[0].as_py()} has a time zone, datetime expected: {_ADVICE}")
        return moments(values)

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return pa.array(codes).view(self.arrow())

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {"datetime": lambda t: pa.types.is_timestamp(t) and t.tz is None}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return {"date": self._of_dates, "datetime": self._of_datetimes}

    def _of_dates(self, column: pa.ChunkedArray) -> Converted:
        days, good = DATE.of_dates(column)
        inside = fits(days, DATE)  # for days far out of range, the microseconds would wrap around
        for other in (good, inside):
            if other is not None:
                days = pc.if_else(other, days, pa.scalar(None, days.type))
        return days.cast(self.arrow()), days.is_valid()

    def _of_datetimes(self, column: pa.ChunkedArray) -> Converted:
        """Other units."""
        return exact_units(column, self.arrow())

    def refusal(self, kind: str) -> str:
        if kind == "timestamp":
            return f"holds times with a time zone, {self} expected: {_ADVICE}"
        return super().refusal(kind)

    def plain(self) -> str:
        return r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"

    def parse(self, text: str) -> dt.datetime:
        moment = moment_of(text)
        if moment is None:
            raise not_a_time(text, self, moment_of)
        if moment.tzinfo is not None:
            raise Misfit(f"{quoted(text)} has a time zone, datetime expected: {_ADVICE}")
        return moment

    def texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        """ISO 8601 with a T; six digits of a second's fraction, or none."""
        printed = pc.replace_substring(column.cast(pa.string()), " ", "T")
        return pc.replace_substring_regex(printed, r"\.000000$", "")

    def direct(self, values: Sequence[Any]) -> bool:
        """Arrow would silently drop the zone."""
        return super().direct(values) and {v.tzinfo for v in values} <= {None}

    def take(self, value: Any) -> dt.datetime:
        if isinstance(value, str):
            return self.parse(value.strip())
        if isinstance(value, dt.datetime):
            if value.tzinfo is not None:
                raise Misfit(f"{value.isoformat()} has a time zone, datetime expected: {_ADVICE}")
            if is_finer(value):
                raise Misfit(f"{value.isoformat()} {FINER}")
            return plain_moment(value)
        if not isinstance(value, dt.date):
            raise wrong_kind(value, self)
        return dt.datetime(value.year, value.month, value.day)

    def literal(self, kind: str, value: Literal) -> dt.datetime:
        moment = moment_of(str(value))
        if moment is None:
            finer = is_finer_text(str(value), moment_of)
            raise ValueError(FINER if finer else f"is not a date and time{self.form}")
        if moment.tzinfo is not None:
            raise ValueError("has a time zone, but a datetime has none: use the type timestamp")
        return moment

    def literal_text(self, value: dt.datetime) -> str:
        return value.isoformat()

    def spark(self) -> str:
        return "timestamp_ntz"

    def spark_words(self, values: pa.Array) -> Any:
        return values.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.int64)


DATETIME = DatetimeType("datetime")


def exact_units(column: pa.ChunkedArray, arrow: pa.DataType) -> Converted:
    """A column of times in the unit of `arrow`, and where nothing was cut off.  REQUIRES: the same zone."""
    try:
        return column.cast(arrow), None
    except pa.ArrowInvalid:
        rough = column.cast(arrow, safe=False)
        return rough, pc.equal(rough.cast(column.type, safe=False), column)
