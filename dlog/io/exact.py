"""Owns bringing any Arrow column to the exact type of a dlog column.  Knows nothing of files.

Correct output: the same values in the type's own Arrow type, and which rows hold a value the type refuses.
The rules are those of `values`: nothing is rounded, except that an integer becomes the nearest float and a
float the decimal it prints as.  A column that has the type already is not copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from dlog.io.columns import arrow_type, decimals_of, fits
from dlog.io.text_cells import NOT_UTF8, Misfit, convert
from dlog.io.values import column_of_values, exact_value
from dlog.types import BOOL, DATE, DATETIME, FLOAT, INT, STRING, UNSIGNED, Type


class WrongKind(ValueError):
    """The column as a whole is of another kind: no row can be taken."""


@dataclass(frozen=True)
class Exact:
    """A column of the exact type, and the rows (rising) that it cannot hold; what stands there is void."""

    column: pa.ChunkedArray
    bad: np.ndarray
    source: pa.ChunkedArray
    type: Type

    def reason(self, row: int) -> str:
        """Why a bad row is bad."""
        if self.type == STRING and self.source[row].is_valid:
            return NOT_UTF8
        try:
            exact_value(self.source[row].as_py(), self.type)
        except Misfit as misfit:
            return str(misfit)
        except (ValueError, OverflowError):  # Python has no such date
            pass
        return f"does not fit {self.type}"


def exact_column(column: pa.ChunkedArray, type: Type) -> Exact:
    """A few passes over the column, none if it has the type and no nulls.

    >>> exact = exact_column(pa.chunked_array([[1.0, 2.5, None]]), INT)
    >>> [exact.reason(row) for row in exact.bad]
    ['2.5 has a fraction, int expected', 'is null, int expected']
    """
    column = _plain(column)
    if kinds.is_null(column.type):
        column = column.cast(arrow_type(type))
    conversion = _CONVERSIONS.get((_kind(column.type), type.name))
    if conversion is None:
        raise WrongKind(f"holds {_kind(column.type)}, {type} expected")
    values, good = conversion(column, type)
    for inside in (fits(values, type), column.is_valid() if column.null_count else None):
        if inside is not None:
            good = inside if good is None else pc.and_(good, inside)
    bad = np.empty(0, np.int64) if good is None else _places_of_others(good)
    return Exact(values, bad, column, type)


def _places_of_others(good: pa.ChunkedArray | pa.Array) -> np.ndarray:
    return pc.indices_nonzero(pc.invert(pc.fill_null(good, False))).to_numpy().astype(np.int64)


# How a conversion answers: the typed values, and which of them are right (None: all that are not null and
# inside the type).
_Conversion = tuple[pa.ChunkedArray, pa.ChunkedArray | pa.Array | None]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without dictionaries, run ends and views."""
    kind = column.type
    if kinds.is_dictionary(kind):
        return pa.chunked_array([_decoded(chunk) for chunk in column.chunks], _plain_type(kind.value_type))
    if kinds.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(column))
    if kinds.is_string_view(kind):
        return column.cast(pa.large_string())
    if kinds.is_float16(kind):
        return column.cast(pa.float32())
    return column


def _decoded(chunk: pa.DictionaryArray) -> pa.Array:
    return _plain(pa.chunked_array([chunk.dictionary])).combine_chunks().take(chunk.indices)


def _plain_type(arrow: pa.DataType) -> pa.DataType:
    return _plain(pa.chunked_array([], arrow)).type


def _kind(arrow: pa.DataType) -> str:
    for name, test in _KINDS.items():
        if test(arrow):
            return name
    return str(arrow)


_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    "integer": kinds.is_integer,
    "float": kinds.is_floating,
    "decimal": kinds.is_decimal,
    "bool": kinds.is_boolean,
    "string": lambda t: kinds.is_string(t) or kinds.is_large_string(t),
    "binary": lambda t: kinds.is_binary(t) or kinds.is_large_binary(t),
    "date": kinds.is_date,
    "datetime": kinds.is_timestamp,
}


def _same(column: pa.ChunkedArray, type: Type) -> _Conversion:
    return column, None


def _string_to_string(column: pa.ChunkedArray, type: Type) -> _Conversion:
    """Arrow and Parquet files may call bytes a string that are no UTF-8."""
    try:
        column.validate(full=True)
        return column, None
    except pa.ArrowInvalid:
        return _binary_to_string(column.cast(pa.large_binary()), type)


def _cast(column: pa.ChunkedArray, type: Type) -> _Conversion:
    return column.cast(arrow_type(type), safe=False), None


def _cast_or_look(column: pa.ChunkedArray, type: Type) -> _Conversion:
    """One cast that refuses what is not exact; if it does, value by value."""
    try:
        return column.cast(arrow_type(type)), None
    except pa.ArrowInvalid:
        return _look(column, type)


def _look(column: pa.ChunkedArray, type: Type) -> _Conversion:
    values, _ = column_of_values(column.to_pylist(), type)
    return pa.chunked_array([values]), values.is_valid()


def _integer_to_integer(column: pa.ChunkedArray, type: Type) -> _Conversion:
    try:
        return column.cast(arrow_type(type)), None
    except pa.ArrowInvalid:
        # Only negative numbers and those beyond 2^63 fail, and both have the highest bit set.
        good = pc.greater_equal(column.cast(pa.int64(), safe=False), 0)
        return column.cast(arrow_type(type), safe=False), good


def _float_to_integer(column: pa.ChunkedArray, type: Type) -> _Conversion:
    low, beyond = (-(2.0**63), 2.0**63) if type == INT else (0.0, 2.0**64)
    column = column.cast(pa.float64())
    inside = pc.and_(pc.greater_equal(column, low), pc.less(column, beyond))
    good = pc.and_(inside, pc.equal(pc.floor(column), column))
    whole = pc.if_else(pc.fill_null(good, False), column, 0.0)
    return whole.cast(arrow_type(type), safe=False), good


def _integer_to_decimal(column: pa.ChunkedArray, type: Type) -> _Conversion:
    limit = 10 ** (type.precision - type.scale) - 1
    wide = column.cast(pa.uint64() if kinds.is_unsigned_integer(column.type) else pa.int64())
    good = pc.less_equal(wide, pa.scalar(limit, wide.type))
    if kinds.is_signed_integer(wide.type):
        good = pc.and_(good, pc.greater_equal(wide, -limit))
    numbers = pc.if_else(pc.fill_null(good, False), wide, pa.scalar(0, wide.type)).to_numpy()
    return decimals_of(numbers.astype(np.int64) * 10**type.scale, type.scale), good


def _float_to_decimal(column: pa.ChunkedArray, type: Type) -> _Conversion:
    """A float is the decimal it prints as.

    Up to 15 digits that is the one that divides to the float again, as both steps round correctly.
    """
    floats = column.cast(pa.float64()).to_numpy()
    unit = 10.0**type.scale
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = np.rint(floats * unit)
        if (np.abs(numbers) < 1e15).all() and (numbers / unit == floats).all():
            return decimals_of(numbers.astype(np.int64), type.scale), None
    return _look(column.cast(pa.float64()), type)


def _binary_to_string(column: pa.ChunkedArray, type: Type) -> _Conversion:
    converted, misfits = convert(pc.fill_null(column, b"").combine_chunks(), type)
    good = np.ones(len(column), bool)
    good[misfits.places] = False
    return pa.chunked_array([converted]), pa.array(good)


def _date_to_date(column: pa.ChunkedArray, type: Type) -> _Conversion:
    if kinds.is_date64(column.type):
        return _datetime_to_date(column.cast(pa.timestamp("ms")), type)
    return column, None


def _date_to_datetime(column: pa.ChunkedArray, type: Type) -> _Conversion:
    days, good = _date_to_date(column, DATE)
    inside = fits(days, DATE)  # of days far outside, the microseconds would wrap around
    for other in (good, inside):
        if other is not None:
            days = pc.if_else(other, days, pa.scalar(None, days.type))
    return days.cast(arrow_type(type)), days.is_valid()


def _datetime_to_date(column: pa.ChunkedArray, type: Type) -> _Conversion:
    naive = column.cast(pa.timestamp(column.type.unit))
    days = naive.cast(pa.date32(), safe=False)
    return days, pc.equal(days.cast(naive.type, safe=False), naive)


def _datetime_to_datetime(column: pa.ChunkedArray, type: Type) -> _Conversion:
    """Other units, and zones: the moment in UTC."""
    naive = column.cast(pa.timestamp(column.type.unit))
    try:
        return naive.cast(arrow_type(type)), None
    except pa.ArrowInvalid:
        rough = naive.cast(arrow_type(type), safe=False)
        return rough, pc.equal(rough.cast(naive.type, safe=False), naive)


_CONVERSIONS: dict[tuple[str, str], Callable[[pa.ChunkedArray, Type], _Conversion]] = {
    ("integer", INT.name): _integer_to_integer,
    ("integer", UNSIGNED.name): _integer_to_integer,
    ("float", INT.name): _float_to_integer,
    ("float", UNSIGNED.name): _float_to_integer,
    ("decimal", INT.name): _cast_or_look,
    ("decimal", UNSIGNED.name): _cast_or_look,
    ("integer", FLOAT.name): _cast,
    ("float", FLOAT.name): _cast,
    ("decimal", FLOAT.name): _cast,
    ("integer", "decimal"): _integer_to_decimal,
    ("float", "decimal"): _float_to_decimal,
    ("decimal", "decimal"): _cast_or_look,
    ("string", STRING.name): _string_to_string,
    ("binary", STRING.name): _binary_to_string,
    ("bool", BOOL.name): _same,
    ("date", DATE.name): _date_to_date,
    ("datetime", DATE.name): _datetime_to_date,
    ("date", DATETIME.name): _date_to_datetime,
    ("datetime", DATETIME.name): _datetime_to_datetime,
}
