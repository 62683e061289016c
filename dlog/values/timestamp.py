"""The type `timestamp`: a moment in UTC, to the microsecond.  Its code is the number of microseconds since
1970-01-01T00:00:00Z.  Texts have `Z` or an offset and print with `Z`.  What has no time zone is refused: it
is a `datetime`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from dlog.values.calendar import CalendarType, in_utc, is_finer, moment_of, moments, utc_clock
from dlog.values.datetime import exact_units
from dlog.values.heavy import np, pa, pc
from dlog.values.misfit import (
    FINER,
    BadValue,
    Misfit,
    is_finer_text,
    not_a_time,
    outside,
    quoted,
    shown,
    wrong_kind,
)
from dlog.values.type import Codes, Converted, Literal, Operation

_ADVICE = "write Z or an offset such as +01:00, or declare the column datetime"
_COLUMN_ADVICE = "declare the column datetime, or give its times a zone"


def _as_utc(codes: Any, result: Any) -> tuple[Any, Any]:
    """The datetime is taken as UTC."""
    return codes[0], None


class TimestampType(CalendarType):
    names = ("timestamp",)
    elsewhere = ("timestamptz",)
    reserved = False  # older programs may have predicates of this name
    preference = 8
    form = " (YYYY-MM-DDTHH:MM:SSZ)"
    example = '"2026-01-31T10:00:00Z"'
    becomes = {
        "datetime": "to_datetime(x) gives the UTC clock of a timestamp",
        "date": "to_date(x) gives the day in UTC of a timestamp",
    }
    groups = frozenset({"calendar", "clock"})
    conversion = "to_timestamp"
    converts = ("string", "datetime")
    readable = r"^[0-9TZ:. +-]*[0-9Z]$"
    operations = {("to_timestamp", "datetime"): Operation("timestamp", _as_utc)}
    some_literal = ("string", "1970-01-01T00:00:00Z")
    python = (dt.datetime,)
    own_texts = True

    def arrow(self) -> pa.DataType:
        return pa.timestamp("us", "UTC")

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if not pa.types.is_timestamp(values.type):
            raise self.wrong_column(values)
        if values.type.tz is None:
            raise BadValue(0, f"{values[0].as_py()} has no time zone, timestamp expected: {_COLUMN_ADVICE}")
        return moments(values)

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return pa.array(codes).view(self.arrow())

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {"timestamp": lambda t: pa.types.is_timestamp(t) and t.tz is not None}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return {"timestamp": self._of_timestamps}

    def _of_timestamps(self, column: pa.ChunkedArray) -> Converted:
        """Other units, and other zones: Arrow stores the moment in UTC whatever the zone."""
        return exact_units(column.cast(pa.timestamp(column.type.unit, "UTC")), self.arrow())

    def refusal(self, kind: str) -> str:
        if kind in ("datetime", "date"):
            return f"holds {kind}s without a time zone, {self} expected: {_COLUMN_ADVICE}"
        return super().refusal(kind)

    def plain(self) -> str:
        zone = "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
        return r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?" + zone + "$"

    def parse(self, text: str) -> dt.datetime:
        moment = moment_of(text)
        if moment is None:
            raise not_a_time(text, self, moment_of)
        if moment.tzinfo is None:
            raise Misfit(f"{quoted(text)} has no time zone, timestamp expected: {_ADVICE}")
        return self._in_utc(moment, text)

    def _in_utc(self, moment: dt.datetime, text: str) -> dt.datetime:
        found = in_utc(moment)
        if found is None:
            raise outside(text, self)
        return found

    def texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        """ISO 8601 with T and Z; six digits of a second's fraction, or none."""
        printed = pc.replace_substring(utc_clock(column).cast(pa.string()), " ", "T")
        return pc.binary_join_element_wise(pc.replace_substring_regex(printed, r"\.000000$", ""), "Z", "")

    def python_values(self, column: pa.Array | pa.ChunkedArray) -> list[dt.datetime]:
        return [value.replace(tzinfo=dt.UTC) for value in utc_clock(column).to_pylist()]

    def direct(self, values: Sequence[Any]) -> bool:
        """Arrow would take a time without a zone as UTC."""
        return super().direct(values) and None not in {v.tzinfo for v in values}

    def take(self, value: Any) -> dt.datetime:
        if isinstance(value, str):
            return self.parse(value.strip())
        if not isinstance(value, dt.datetime):
            raise wrong_kind(value, self)
        if value.utcoffset() is None:
            raise Misfit(f"{value.isoformat()} has no time zone, timestamp expected: {_COLUMN_ADVICE}")
        if is_finer(value):
            raise Misfit(f"{value.isoformat()} {FINER}")
        return self._in_utc(value, shown(value))

    def literal(self, kind: str, value: Literal) -> dt.datetime:
        moment = moment_of(str(value))
        if moment is None:
            finer = is_finer_text(str(value), moment_of)
            raise ValueError(FINER if finer else f"is not a timestamp{self.form}")
        if moment.tzinfo is None:
            raise ValueError("has no time zone: write Z or an offset such as +01:00 after a timestamp")
        found = in_utc(moment)
        if found is None:
            raise ValueError("is outside the years 1 to 9999 in UTC")
        return found

    def literal_text(self, value: dt.datetime) -> str:
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat() + "Z"

    def spark(self) -> str:
        return "timestamp"

    def of_spark(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Older files have moments without a time zone."""
        if name == self.spark() and column.type == pa.timestamp("us"):
            return column.cast(pa.int64()).cast(self.arrow())
        return column

    def spark_words(self, values: pa.Array) -> Any:
        return values.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.int64)


TIMESTAMP = TimestampType("timestamp")
