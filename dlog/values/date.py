"""The type `date`: a day.  Its code is the number of days since 1970-01-01."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from dlog.values.arrows import numbers
from dlog.values.calendar import (
    FIRST_DAY,
    LAST_DAY,
    MICROSECONDS_A_DAY,
    CalendarType,
    date_of,
    is_finer,
    moments,
    require_years,
)
from dlog.values.heavy import np, pa, pc
from dlog.values.misfit import Misfit, not_a, wrong_kind
from dlog.values.type import Codes, Converted, Literal, Operation


def _day_of(codes: Any, result: Any) -> tuple[Any, Any]:
    return codes[0] // MICROSECONDS_A_DAY, None


class DateType(CalendarType):
    names = ("date",)
    m3 = "date"
    preference = 6
    form = " (YYYY-MM-DD)"
    example = '"2026-01-31"'
    becomes = {
        "datetime": "to_datetime(x) gives the midnight with which a date begins",
        "timestamp": "to_timestamp(to_datetime(x)) gives the midnight in UTC with which a date begins",
        "int": "days_between(x, y) counts the days from one date to another, add_days(x, n) moves a date",
    }
    groups = frozenset({"calendar"})
    conversion = "to_date"
    converts = ("string", "datetime", "timestamp")
    readable = r"^[0-9-]*$"
    operations = {
        ("to_date", "datetime"): Operation("date", _day_of),
        ("to_date", "timestamp"): Operation("date", _day_of),
    }
    some_literal = ("string", "1970-01-01")
    python = (dt.date,)
    spark_bytes = 4
    limits = (FIRST_DAY, LAST_DAY)
    day = 1

    def arrow(self) -> pa.DataType:
        return pa.date32()

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if pa.types.is_timestamp(values.type) and values.type.tz is None:
            found = moments(values)
            self.require(found % MICROSECONDS_A_DAY == 0, values)
            return found // MICROSECONDS_A_DAY
        if not pa.types.is_date(values.type):
            raise self.wrong_column(values)
        days = values.cast(pa.date32()).view(pa.int32()).to_numpy().astype(np.int64)
        require_years(self.defined(days))
        return days

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return pa.array(codes.astype(np.int32)).view(pa.date32())

    def inside(self, column: pa.Array | pa.ChunkedArray) -> Any:
        return self.defined(numbers(column, pa.int32()))

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {"date": pa.types.is_date}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return {"date": self.of_dates, "datetime": self._of_datetimes}

    def of_dates(self, column: pa.ChunkedArray) -> Converted:
        if pa.types.is_date64(column.type):
            return self._of_datetimes(column.cast(pa.timestamp("ms")))
        return column, None

    def _of_datetimes(self, column: pa.ChunkedArray) -> Converted:
        days = column.cast(pa.date32(), safe=False)
        return days, pc.equal(days.cast(column.type, safe=False), column)

    def refusal(self, kind: str) -> str:
        if kind == "timestamp":
            return f"holds times with a time zone, {self} expected: declare the column timestamp"
        return super().refusal(kind)

    def plain(self) -> str:
        return r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"

    def parse(self, text: str) -> dt.date:
        day = date_of(text)
        if day is None:
            raise not_a(text, self)
        return day

    def take(self, value: Any) -> dt.date:
        if isinstance(value, str):
            return self.parse(value.strip())
        if isinstance(value, dt.datetime):
            if value.tzinfo is not None:
                raise Misfit(f"{value.isoformat()} has a time zone, date expected")
            if value.time() != dt.time() or is_finer(value):
                raise Misfit(f"{value.isoformat()} has a time of day, date expected")
            return value.date()
        if not isinstance(value, dt.date):
            raise wrong_kind(value, self)
        return value

    def literal(self, kind: str, value: Literal) -> dt.date:
        day = date_of(str(value))
        if day is None:
            raise ValueError("is not a date (YYYY-MM-DD)")
        return day

    def literal_text(self, value: dt.date) -> str:
        return value.isoformat()

    def spark(self) -> str:
        return "date"

    def spark_words(self, values: pa.Array) -> Any:
        return values.cast(pa.int32()).to_numpy(zero_copy_only=False)


DATE = DateType("date")
