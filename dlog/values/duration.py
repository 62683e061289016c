"""The type `duration`: a length of time, to the microsecond.  Its code is the number of microseconds.

Texts are those of ISO 8601 with weeks, days, hours, minutes and seconds: `P1DT2H3M4.5S`, `-PT30M`, `PT0S`.
Years and months have no fixed length and are rejected.  A duration prints with days, hours below 24, minutes
and seconds below 60, without parts that are zero.

A duration has at most 106,751,991 days (292,000 years) and every one has its negative.  A result beyond that
is undefined, like a date outside its years; a sum of a group beyond that is an error.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dlog.values.arrows import numbers
from dlog.values.calendar import is_finer, microseconds
from dlog.values.datetime import exact_units
from dlog.values.heavy import np, pa, pc
from dlog.values.misfit import FINER, Misfit, is_finer_text, not_a_time, outside, quoted, shown, wrong_kind
from dlog.values.type import Codes, Converted, Literal, Operation, Type

_DAYS = 106_751_991  # the whole days of 2^63 microseconds
MOST = _DAYS * 86_400_000_000
LEAST = -MOST
_PARTS = {"W": 604_800_000_000, "D": 86_400_000_000, "H": 3_600_000_000, "M": 60_000_000, "S": 1_000_000}
_TEXT = re.compile(
    r"([+-]?)P(?=[0-9T])(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,6})0*)?S)?)?"
)
_SPARK = r"interval (day|hour|minute|second)( to (hour|minute|second))?"
# What Arrow reads in one step: few enough digits that nothing overflows.
_SECONDS = r"[0-9]{1,6}(\.[0-9]{1,6})?S"
_TIME = rf"T([0-9]{{1,6}}H([0-9]{{1,6}}M)?({_SECONDS})?|[0-9]{{1,6}}M({_SECONDS})?|{_SECONDS})"
_PIECES = (
    r"^(?P<sign>-?)P(?:(?P<D>[0-9]+)D)?"
    r"(?:T(?:(?P<H>[0-9]+)H)?(?:(?P<M>[0-9]+)M)?(?:(?P<S>[0-9]+)(?:\.(?P<fraction>[0-9]+))?S)?)?$"
)


def _sum(sign: int, codes: Sequence[Any], result: Type) -> tuple[Any, Any]:
    """a + b or a - b; undefined where it is outside the type of the result."""
    a, b = codes
    total = a + b if sign > 0 else a - b
    wrapped = ((a ^ total) & ((b if sign > 0 else ~b) ^ total)) < 0
    return _where_defined(total, ~wrapped, result)


def _product(codes: Sequence[Any], result: Type) -> tuple[Any, Any]:
    a, b = codes
    product = a * b
    divisor = np.where(a == 0, 1, a)
    exact = (a == 0) | ((product // divisor == b) & (product % divisor == 0))
    return _where_defined(product, exact, result)


def _quotient(codes: Sequence[Any], result: Type) -> tuple[Any, Any]:
    """Towards zero, as for ints; undefined where the divisor is zero."""
    a, b = codes
    divisor = np.where((b == 0) | (b == -(2**63)), 1, b)
    quotient = np.where(b == -(2**63), 0, a // divisor)  # every duration is smaller than the least int
    quotient += (quotient < 0) & (b != -(2**63)) & (quotient * divisor != a)
    return _where_defined(quotient, b != 0, result)


def _negative(codes: Sequence[Any], result: Type) -> tuple[Any, Any]:
    return -codes[0], None


def _absolute(codes: Sequence[Any], result: Type) -> tuple[Any, Any]:
    return np.abs(codes[0]), None


def _where_defined(codes: Any, defined: Any, result: Type) -> tuple[Any, Any]:
    inside = result.defined(codes)
    if inside is not None:
        defined = defined & inside
    return codes, None if defined.all() else defined


def _operations() -> dict[tuple[str, ...], Operation]:
    plus, minus = partial(_sum, 1), partial(_sum, -1)
    found = {
        ("add", "duration", "duration"): Operation("duration", plus),
        ("sub", "duration", "duration"): Operation("duration", minus),
        ("mul", "duration", "int"): Operation("duration", _product),
        ("mul", "int", "duration"): Operation("duration", lambda codes, type: _product(codes[::-1], type)),
        ("div", "duration", "int"): Operation("duration", _quotient),
        ("div", "duration", "duration"): Operation("int", _quotient),
        ("neg", "duration"): Operation("duration", _negative),
        ("abs", "duration"): Operation("duration", _absolute),
    }
    for moment in ("datetime", "timestamp"):
        found["add", moment, "duration"] = Operation(moment, plus)
        found["add", "duration", moment] = Operation(moment, plus)
        found["sub", moment, "duration"] = Operation(moment, minus)
        found["sub", moment, moment] = Operation("duration", minus)
    return found


class DurationType(Type):
    names = ("duration",)
    elsewhere = ("interval", "timedelta")
    reserved = False  # older programs may have predicates of this name
    preference = 9
    form = " (P1DT2H3M4.5S)"
    example = '"PT1H30M"'
    becomes = {"int": 'x / "PT1S" gives the whole seconds of a duration'}
    groups = frozenset({"signed"})
    conversion = "to_duration"
    converts = ("string",)
    readable = r"^[+-]?P[0-9WDTHMS.]+$"
    operations = _operations()
    literals = ("string",)
    quoted_literal = True
    literal_shape = r"[+-]?P"
    some_literal = ("string", "PT0S")
    codes_add_up = True
    mean = "duration"
    zero = ("string", "PT0S")
    room = "a duration (106751991 days)"
    python = (dt.timedelta,)
    own_texts = True

    def arrow(self) -> pa.DataType:
        return pa.duration("us")

    def encode(self, values: pa.Array, dictionary: Any) -> Codes:
        if not pa.types.is_duration(values.type):
            raise self.wrong_column(values)
        return microseconds(values, LEAST, MOST, "the duration has more than 106751991 days")

    def decode(self, codes: Codes, dictionary: Any) -> pa.Array:
        return pa.array(codes).view(self.arrow())

    def inside(self, column: pa.Array | pa.ChunkedArray) -> Any:
        return self.defined(numbers(column, pa.int64()))

    def defined(self, codes: Codes) -> Any:
        return (codes >= LEAST) & (codes <= MOST)

    def kinds(self) -> dict[str, Callable[[pa.DataType], bool]]:
        return {"duration": pa.types.is_duration}

    def conversions(self) -> dict[str, Callable[[pa.ChunkedArray], Converted]]:
        return {"duration": self._of_durations}

    def _of_durations(self, column: pa.ChunkedArray) -> Converted:
        return exact_units(column, self.arrow())

    # Text

    def plain(self) -> str:
        return rf"^-?P([0-9]{{1,8}}D({_TIME})?|{_TIME})$"

    def read_plain(self, cells: pa.Array) -> pa.Array:
        """By its parts, on whole columns."""
        pieces = pc.extract_regex(cells, _PIECES)
        fraction = pc.utf8_rpad(_part(pieces, "fraction"), 6, "0").cast(pa.int64())
        total = fraction
        for part in "DHMS":
            digits = pc.if_else(pc.equal(_part(pieces, part), ""), "0", _part(pieces, part))
            total = pc.add(total, pc.multiply(digits.cast(pa.int64()), _PARTS[part]))
        negative = pc.equal(_part(pieces, "sign"), "-")
        return pc.if_else(negative, pc.negate(total), total).cast(self.arrow())

    def parse(self, text: str) -> dt.timedelta:
        found = duration_of(text)
        if found is None:
            raise not_a_time(text, self, duration_of)
        if not LEAST <= found <= MOST:
            raise outside(text, self)
        return dt.timedelta(microseconds=found)

    def texts(self, column: pa.Array, full_precision: bool = False) -> pa.Array:
        found = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        days, rest = np.divmod(np.abs(found), _PARTS["D"])
        hours, within = np.divmod(rest, _PARTS["H"])
        minutes, within = np.divmod(within, _PARTS["M"])
        seconds, fraction = np.divmod(within, _PARTS["S"])
        sixths = pc.utf8_lpad(pa.array(fraction).cast(pa.string()), 6, "0")
        point = pc.if_else(pa.array(fraction > 0), pc.binary_join_element_wise("", sixths, "."), "")
        pieces = [
            pc.if_else(pa.array(found < 0), "-P", "P"),
            _unless_zero(days, "D"),
            pc.if_else(pa.array((rest > 0) | (found == 0)), "T", ""),
            _unless_zero(hours, "H"),
            _unless_zero(minutes, "M"),
            _where((within > 0) | (found == 0), seconds, pc.utf8_rtrim(point, "0"), "S"),
        ]
        return pc.binary_join_element_wise(*pieces, "")

    def csv_arrow(self) -> pa.DataType:
        return pa.string()

    def json_arrow(self) -> pa.DataType:
        return pa.string()

    def json(self, column: pa.Array) -> list[pa.Array | str]:
        return ['"', self.texts(column), '"']

    # Python values and literals

    def take(self, value: Any) -> dt.timedelta:
        if isinstance(value, str):
            return self.parse(value.strip())
        if not isinstance(value, dt.timedelta):
            raise wrong_kind(value, self)
        if is_finer(value):
            raise Misfit(f"{quoted(str(value))} {FINER}")
        found = value // dt.timedelta.resolution
        if not LEAST <= found <= MOST:
            raise outside(shown(value), self)
        return dt.timedelta(microseconds=found)

    def literal(self, kind: str, value: Literal) -> dt.timedelta:
        found = duration_of(str(value))
        if found is None:
            if is_finer_text(str(value), duration_of):
                raise ValueError(FINER)
            raise ValueError("is not a duration (P1DT2H3M4.5S; years and months have no fixed length)")
        if not LEAST <= found <= MOST:
            raise ValueError("has more than 106751991 days")
        return dt.timedelta(microseconds=found)

    def literal_text(self, value: dt.timedelta) -> str:
        return text_of(value // dt.timedelta.resolution)

    def shown(self, value: dt.timedelta) -> str:
        return self.literal_text(value)

    def spark(self) -> str:
        return "interval day to second"

    def of_spark(self, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Parquet has no durations: the file has numbers of microseconds."""
        if re.fullmatch(_SPARK, name) and column.type == pa.int64():
            return column.cast(pa.int64()).cast(self.arrow())
        return column

    def spark_words(self, values: pa.Array) -> Any:
        return values.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(np.int64)


DURATION = DurationType("duration")


def duration_of(text: str) -> int | None:
    """The microseconds of a text; None if it has another format.

    >>> duration_of("-P1DT0.5S")
    -86400500000
    """
    match = _TEXT.fullmatch(text)
    if not match or len(text) > 80:
        return None
    sign, *parts, fraction = match.groups()
    total = sum(int(part or 0) * size for part, size in zip(parts, _PARTS.values(), strict=True))
    total += int(f"{fraction or '0':0<6}")
    return -total if sign == "-" else total


def text_of(number: int) -> str:
    """The text of one number of microseconds; `texts` gives the same for columns.

    >>> text_of(-86_400_500_000), text_of(0)
    ('-P1DT0.5S', 'PT0S')
    """
    days, rest = divmod(abs(number), _PARTS["D"])
    pieces, left = "", rest
    for letter in "HM":
        count, left = divmod(left, _PARTS[letter])
        pieces += f"{count}{letter}" if count else ""
    if left or not number:
        seconds, fraction = divmod(left, _PARTS["S"])
        pieces += f"{seconds}.{fraction:06}".rstrip("0").rstrip(".") + "S"
    day = f"{days}D" if days else ""
    return f"{'-' if number < 0 else ''}P{day}{'T' if pieces else ''}{pieces}"


def _part(pieces: pa.Array, name: str) -> pa.Array:
    return pc.struct_field(pieces, name)


def _unless_zero(numbers: Any, letter: str) -> pa.Array:
    return _where(numbers > 0, numbers, letter)


def _where(condition: Any, numbers: Any, *after: Any) -> pa.Array:
    printed = pc.binary_join_element_wise(pa.array(numbers).cast(pa.string()), *after, "")
    return pc.if_else(pa.array(condition), printed, "")
