"""Owns the int64 codes of values, one coding for each type.  Knows nothing of files or relations.

Codes keep the order of values (`code(a) < code(b)` exactly when `a < b`) for every type but string, whose
codes are those of the `Dictionary`:

int        itself                          bool      0 and 1
unsigned   the top bit turned              date      days since 1970-01-01
float      the bits; the lower ones        datetime  microseconds since 1970-01-01
           turned when negative            decimal   the number without its point, `scale` digits after it

-0.0 is 0.0, and there is one NaN, which is last.  There is no NULL.  A value that does not fit its type is a
`BadValue`, which says in which row it is and why.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import nan
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.errors import DataError
from dlog.jit import Words
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.index.sort import as_words
from dlog.types import BOOL, DATE, DATETIME, FLOAT, INT, STRING, UNSIGNED, Type

TOP_BIT = np.int64(-(2**63))
LOWER_BITS = np.int64(2**63 - 1)
MICROSECONDS_A_DAY = 86_400_000_000
# Years 1 to 9999, as Python's dates.
FIRST_DAY, LAST_DAY = (int(np.datetime64(d, "D").astype(np.int64)) for d in ("0001-01-01", "9999-12-31"))
DECIMAL_DIGITS = 18  # of every Arrow decimal that is handed out
_WIDE = Context(prec=100)

_ARTICLES = {"int": "an int", "unsigned": "an unsigned number"}


class BadValue(DataError):
    """A value that its type cannot hold.  `row` counts from 0, the message from 1."""

    def __init__(self, row: int, reason: str):
        super().__init__(f"row {row + 1}: {reason}")
        self.row = row
        self.reason = reason


def arrow_type(type: Type) -> pa.DataType:
    """The Arrow type of decoded columns."""
    return pa.decimal128(DECIMAL_DIGITS, type.scale) if type.is_decimal else _ARROW[type]


def encode(values: Any, type: Type, dictionary: Dictionary) -> Words:
    """The codes of an Arrow array, a numpy array or a sequence of Python values.

    No Python call for each value unless a sequence mixes types.  An int64 Arrow array is not copied, so the
    result must not be written to.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    if not isinstance(values, pa.Array):
        values = _as_arrow(values)
        if isinstance(values, list):
            return np.array([_encode_in_row(i, v, type, dictionary) for i, v in enumerate(values)], np.int64)
    if values.null_count:
        raise BadValue(int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))), "there is no value")
    if len(values) == 0:
        return np.empty(0, np.int64)
    return _ENCODERS[type.name](values, type, dictionary)


def decode(codes: Words, type: Type, dictionary: Dictionary) -> pa.Array:
    """The values of codes, as an Arrow array of `arrow_type`.  An int column shares the codes' memory."""
    return _DECODERS[type.name](as_words(codes), type, dictionary)


def encode_value(value: Any, type: Type, dictionary: Dictionary) -> int:
    """The code of one Python value."""
    try:
        return int(encode(_uniform([_plain(value)]), type, dictionary)[0])
    except (pa.ArrowException, OverflowError, TypeError):
        raise BadValue(0, _not_a(value, type)) from None


def decode_value(code: int, type: Type, dictionary: Dictionary) -> Any:
    """The Python value of one code."""
    return decode(np.array([code], np.int64), type, dictionary)[0].as_py()


def _as_arrow(values: Any) -> pa.Array | list[Any]:
    """An Arrow array of the type that the values have; the values when they are of several."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return pa.array(np.ascontiguousarray(values))
    values = list(values)
    try:
        # Beside others of another kind Arrow would take True for 1, and cut the time off datetimes.
        return _uniform(values) if len({v.__class__ for v in values}) == 1 else values
    except (pa.ArrowException, OverflowError, TypeError):
        return values


def _uniform(values: list[Any]) -> pa.Array:
    """An Arrow array of values of one Python type; integers beyond int64 are unsigned."""
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())


def _encode_in_row(row: int, value: Any, type: Type, dictionary: Dictionary) -> int:
    try:
        return encode_value(value, type, dictionary)
    except BadValue as bad:
        raise BadValue(row, bad.reason) from None


def _plain(value: Any) -> Any:
    """numpy scalars as Python values."""
    return value.item() if isinstance(value, np.generic) else value


def _not_a(value: Any, type: Type) -> str:
    shown = repr(value) if isinstance(value, str) else str(value)
    return f"{shown} is not {_ARTICLES.get(type.name, f'a {type}')}"


def _require(good: Any, values: pa.Array, type: Type, reason: str | None = None) -> None:
    """REQUIRES: one truth value for each row."""
    if not np.all(good):
        row = int(np.argmin(good))
        shown = values[row].as_py()
        raise BadValue(row, f"{shown} {reason}" if reason else _not_a(shown, type))


def _wrong_kind(values: pa.Array, type: Type) -> BadValue:
    return BadValue(0, _not_a(values[0].as_py(), type))


# Encoders: a non-empty Arrow array without nulls to codes


def _encode_int(values: pa.Array, type: Type, dictionary: Dictionary) -> Words:
    if pa.types.is_uint64(values.type):
        numbers = values.to_numpy()
        _require(numbers <= np.uint64(2**63 - 1), values, type, "does not fit 64 bits with a sign")
        return numbers.view(np.int64)
    if pa.types.is_integer(values.type):
        return as_words(values.to_numpy(zero_copy_only=False))
    if pa.types.is_floating(values.type):
        return _whole_numbers(values, type, -(2.0**63), 2.0**63).astype(np.int64)
    raise _wrong_kind(values, type)


def _encode_unsigned(values: pa.Array, type: Type, dictionary: Dictionary) -> Words:
    if pa.types.is_floating(values.type):
        numbers = _whole_numbers(values, type, 0.0, 2.0**64).astype(np.uint64)
    elif pa.types.is_integer(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        _require(numbers >= 0, values, type)
        numbers = numbers.astype(np.uint64)
    else:
        raise _wrong_kind(values, type)
    return numbers.view(np.int64) ^ TOP_BIT


def _whole_numbers(values: pa.Array, type: Type, low: float, end: float) -> Any:
    """Floats that are whole and in [low, end): a frame with a gap once in it holds its integers so."""
    numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    _require((numbers == np.floor(numbers)) & (numbers >= low) & (numbers < end), values, type)
    return numbers


def _encode_float(values: pa.Array, type: Type, dictionary: Dictionary) -> Words:
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise _wrong_kind(values, type)
    return float_codes(values.to_numpy(zero_copy_only=False).astype(np.float64))


def float_codes(numbers: Any) -> Words:
    """Order-preserving codes of a float64 array."""
    numbers = numbers + 0.0  # -0.0 + 0.0 is 0.0
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.int64)
    return bits ^ ((bits >> 63) & LOWER_BITS)


def float_code(number: float) -> int:
    """The same of one number."""
    (bits,) = _BITS.unpack(_FLOAT.pack(number + 0.0 if number == number else nan))
    return int(bits if bits >= 0 else bits ^ (2**63 - 1))


_FLOAT, _BITS = Struct("<d"), Struct("<q")


def float_values(codes: Words) -> Any:
    """The float64 array of such codes."""
    return (codes ^ ((codes >> 63) & LOWER_BITS)).view(np.float64)


def _encode_bool(values: pa.Array, type: Type, dictionary: Dictionary) -> Words:
    if not pa.types.is_boolean(values.type):
        raise _wrong_kind(values, type)
    return values.to_numpy(zero_copy_only=False).astype(np.int64)


def _encode_date(values: pa.Array, type: Type, dictionary: Dictionary) -> Words:
    if pa.types.is_timestamp(values.type):
        moments = _encode_datetime(values, DATETIME, dictionary)
        _require(moments % MICROSECONDS_A_DAY == 0, values, type)
        days = moments // MICROSECONDS_A_DAY
    elif pa.types.is_date(values.type):
        days = values.cast(pa.date32()).view(pa.int32()).to_numpy().astype(np.int64)
    else:
        raise _wrong_kind(values, type)
    _require_years((days >= FIRST_DAY) & (days <= LAST_DAY))
    return days


def _encode_datetime(values: pa.Array, type: Type, dictionary: Dictionary) -> Words:
    if pa.types.is_date(values.type):
        return _encode_date(values, DATE, dictionary) * MICROSECONDS_A_DAY
    if not pa.types.is_timestamp(values.type):
        raise _wrong_kind(values, type)
    moments = values.view(pa.int64()).to_numpy()
    unit = values.type.unit
    if unit == "ns":
        if np.any(moments % 1000):
            row = int(np.argmax(moments % 1000 != 0))
            raise BadValue(row, f"{moments[row]} nanoseconds are not whole microseconds")
        moments = moments // 1000
    elif unit != "us":
        factor = 1_000_000 if unit == "s" else 1000
        low, high = FIRST_DAY * MICROSECONDS_A_DAY, (LAST_DAY + 1) * MICROSECONDS_A_DAY
        _require_years((moments >= low // factor) & (moments < high // factor))
        moments = moments * factor
    days = moments // MICROSECONDS_A_DAY
    _require_years((days >= FIRST_DAY) & (days <= LAST_DAY))
    return as_words(moments)


def _require_years(good: Any) -> None:
    if not np.all(good):
        raise BadValue(int(np.argmin(good)), "the year is not one of 1 to 9999")


def _encode_decimal(values: pa.Array, type: Type, dictionary: Dictionary) -> Words:
    if pa.types.is_floating(values.type):
        return _rounded_floats(values, type)
    if pa.types.is_integer(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        most = 10 ** (type.precision - type.scale) - 1
        _require(_between(numbers, -most, most), values, type)
        return numbers.astype(np.int64) * np.int64(10**type.scale)
    if not pa.types.is_decimal(values.type):
        raise _wrong_kind(values, type)
    try:
        low, high = _halves(values.cast(pa.decimal128(38, type.scale)))
    except pa.ArrowInvalid:
        return np.array([_scaled(i, v.as_py(), type) for i, v in enumerate(values)], np.int64)
    most = 10**type.precision - 1
    _require((high == low >> 63) & _between(low, -most, most), values, type)
    return as_words(low)


def _between(numbers: Any, low: int, high: int) -> Any:
    """low <= numbers <= high, also for types that cannot hold the bounds."""
    limits = np.iinfo(numbers.dtype)
    return (numbers >= max(low, limits.min)) & (numbers <= min(high, limits.max))


def _scaled(row: int, value: Decimal, type: Type) -> int:
    """One decimal, exactly, or the reason why not."""
    number = value.scaleb(type.scale, _WIDE)
    if number != number.to_integral_value():
        raise BadValue(row, f"{value} has more than {type.scale} digits after the point")
    if abs(number) >= 10**type.precision:
        raise BadValue(row, _not_a(value, type))
    return int(number)


def _rounded_floats(values: pa.Array, type: Type) -> Words:
    """Floats to the nearest decimal, half to even: they were not exact before."""
    numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    scaled = numbers * 10.0**type.scale
    _require(np.abs(scaled) < 10.0**type.precision, values, type)  # false for NaN too
    codes = np.rint(scaled).astype(np.int64)
    # Beyond 2**52 the product is no longer the nearest number: go by the float's shortest text.
    for i in np.flatnonzero(np.abs(scaled) >= 2.0**52):
        text = Decimal(repr(float(numbers[i]))).scaleb(type.scale, _WIDE)
        codes[i] = int(text.to_integral_value(ROUND_HALF_EVEN))
    _require(np.abs(codes) < 10**type.precision, values, type)
    return codes


def _halves(values: pa.Array) -> tuple[Words, Words]:
    """Lower and upper words of 128-bit decimals."""
    data = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)
    data = data[values.offset : values.offset + len(values)]
    return data[:, 0], data[:, 1]


def _encode_string(values: pa.Array, type: Type, dictionary: Dictionary) -> Words:
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise _wrong_kind(values, type)
    return dictionary.encode(values)


# Decoders: codes to an Arrow array


def _decode_decimal(codes: Words, type: Type, dictionary: Dictionary) -> pa.Array:
    halves = np.stack([codes, codes >> 63], axis=1)
    return pa.Array.from_buffers(arrow_type(type), len(codes), [None, pa.py_buffer(halves)])


def _decode_date(codes: Words, type: Type, dictionary: Dictionary) -> pa.Array:
    return pa.array(codes.astype(np.int32)).view(pa.date32())


_ARROW = {
    INT: pa.int64(),
    UNSIGNED: pa.uint64(),
    FLOAT: pa.float64(),
    STRING: pa.string(),
    BOOL: pa.bool_(),
    DATE: pa.date32(),
    DATETIME: pa.timestamp("us"),
}

Encoder = Callable[[pa.Array, Type, Dictionary], Words]
Decoder = Callable[[Words, Type, Dictionary], pa.Array]

_ENCODERS: dict[str, Encoder] = {
    "int": _encode_int,
    "unsigned": _encode_unsigned,
    "float": _encode_float,
    "bool": _encode_bool,
    "date": _encode_date,
    "datetime": _encode_datetime,
    "decimal": _encode_decimal,
    "string": _encode_string,
}
_DECODERS: dict[str, Decoder] = {
    "int": lambda codes, _, __: pa.array(codes),
    "unsigned": lambda codes, _, __: pa.array((codes ^ TOP_BIT).view(np.uint64)),
    "float": lambda codes, _, __: pa.array(float_values(codes)),
    "bool": lambda codes, _, __: pa.array(codes != 0),
    "date": _decode_date,
    "datetime": lambda codes, _, __: pa.array(codes).view(pa.timestamp("us")),
    "decimal": _decode_decimal,
    "string": lambda codes, _, dictionary: dictionary.decode(codes),
}
