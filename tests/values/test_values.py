"""Codes of values: round trips, order, and what does not fit."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.errors import DataError
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import BadValue, arrow_type, decode, decode_value, encode, encode_value
from dlog.values import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    UNSIGNED,
    Type,
    decimal,
)

NAMES = Dictionary()
CENTS = decimal(10, 2)

ints = st.integers(-(2**63), 2**63 - 1)
unsigneds = st.integers(0, 2**64 - 1)
floats = st.floats()
dates = st.dates()
datetimes = st.datetimes()
offsets = st.integers(-23 * 60, 23 * 60).map(lambda n: dt.timezone(dt.timedelta(minutes=n)))
timestamps = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=offsets)
LONGEST = dt.timedelta(106_751_991)
durations = st.timedeltas(-LONGEST, LONGEST)
cents = st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: Decimal(n).scaleb(-2))
texts = st.text(st.characters(codec="utf-8"), max_size=20)
BY_TYPE: dict[Type, st.SearchStrategy[Any]] = {
    INT: ints,
    UNSIGNED: unsigneds,
    FLOAT: floats,
    BOOL: st.booleans(),
    DATE: dates,
    DATETIME: datetimes,
    TIMESTAMP: timestamps,
    DURATION: durations,
    CENTS: cents,
    STRING: texts,
}
typed_lists = st.sampled_from(list(BY_TYPE)).flatmap(
    lambda t: st.tuples(st.just(t), st.lists(BY_TYPE[t], max_size=20))
)


def same(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def sort_key(value: Any) -> Any:
    """NaN last; 0.0 and -0.0 are one."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


@settings(deadline=None)
@given(typed_lists)
def test_round_trip(case: tuple[Type, list[Any]]) -> None:
    type, values = case
    codes = encode(pa.array(values, arrow_type(type)), type, NAMES)
    assert codes.dtype == np.int64
    decoded = decode(codes, type, NAMES)
    assert decoded.type == arrow_type(type)
    assert all(map(same, decoded.to_pylist(), values)) and len(decoded) == len(values)


@settings(deadline=None)
@given(typed_lists)
def test_python_lists_are_coded_like_arrow_arrays(case: tuple[Type, list[Any]]) -> None:
    type, values = case
    codes = encode(values, type, NAMES).tolist()
    assert codes == encode(pa.array(values, arrow_type(type)), type, NAMES).tolist()
    assert codes == [encode_value(v, type, NAMES) for v in values]
    assert all(same(decode_value(c, type, NAMES), v) for c, v in zip(codes, values, strict=True))


@settings(deadline=None)
@given(typed_lists.filter(lambda case: case[0] != STRING))
def test_codes_keep_order_and_equality(case: tuple[Type, list[Any]]) -> None:
    type, values = case
    keyed = list(zip(map(sort_key, values), encode(values, type, NAMES).tolist(), strict=True))
    for value, code in keyed:
        for other, other_code in keyed:
            assert (value < other) == (code < other_code)
            assert (value == other) == (code == other_code)


@settings(deadline=None)
@given(typed_lists, st.integers(0, 5))
def test_slices_and_chunks_have_the_same_codes(case: tuple[Type, list[Any]], cut: int) -> None:
    type, values = case
    array = pa.array(values, arrow_type(type))
    whole = encode(array, type, NAMES).tolist()
    assert encode(array.slice(cut), type, NAMES).tolist() == whole[cut:]
    chunks = pa.chunked_array([array.slice(0, cut), array.slice(cut)], arrow_type(type))
    assert encode(chunks, type, NAMES).tolist() == whole


def test_ints_are_not_copied() -> None:
    array = pa.array([3, 1, 2])
    codes = encode(array, INT, NAMES)
    assert codes.ctypes.data == array.buffers()[1].address
    assert decode(codes, INT, NAMES).buffers()[1].address == array.buffers()[1].address


def test_one_zero_and_one_nan() -> None:
    negative_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    codes = encode([0.0, -0.0, math.nan, negative_nan, math.inf], FLOAT, NAMES).tolist()
    assert codes[0] == codes[1] and codes[2] == codes[3] > codes[4]


@pytest.mark.parametrize(
    "values, type, codes",
    [
        (np.array([1, 2], np.uint8), INT, [1, 2]),
        (np.array([1.0, -2.0]), INT, [1, -2]),
        ([1, 2.0], INT, [1, 2]),
        ([np.int32(7), 7], INT, [7, 7]),
        ([0, 2**63, 2**64 - 1], UNSIGNED, [-(2**63), 0, 2**63 - 1]),
        ([Decimal("1.5"), 2], CENTS, [150, 200]),
        ([0.125, 0.375, -1.005], CENTS, [12, 38, -100]),
        (pa.array([Decimal("2.50")], pa.decimal256(50, 20)), CENTS, [250]),
        ([dt.date(1970, 1, 2)], DATETIME, [86_400_000_000]),
        ([dt.datetime(1970, 1, 3)], DATE, [2]),
        (pa.array([5], pa.timestamp("s")), DATETIME, [5_000_000]),
        (pa.array([0, 3_600_000_000], pa.timestamp("us", "Europe/Vienna")), TIMESTAMP, [0, 3_600_000_000]),
        (pa.array([5], pa.timestamp("s", "UTC")), TIMESTAMP, [5_000_000]),
        (pa.array([5, -1], pa.duration("ms")), DURATION, [5_000, -1_000]),
        (np.array([3000], "timedelta64[ns]"), DURATION, [3]),
        ([123456789012.12346], DECIMAL, [123456789012123460]),
    ],
)
def test_other_forms_of_values(values: Any, type: Type, codes: list[int]) -> None:
    assert encode(values, type, NAMES).tolist() == codes


@pytest.mark.parametrize(
    "values, type, row, reason",
    [
        ([1, None], INT, 1, "there is no value"),
        (pa.array([1, None, 3]), INT, 1, "there is no value"),
        ([1, 2**63], INT, 1, "9223372036854775808"),
        (pa.array([1, 2**63], pa.uint64()), INT, 1, "9223372036854775808 does not fit 64 bits with a sign"),
        ([1, 2, 2.5], INT, 2, "2.5 is not an int"),
        ([1.0, math.nan], INT, 1, "nan is not an int"),
        ([True], INT, 0, "True is not an int"),
        ([1, True], INT, 1, "True is not an int"),
        ([1, "2"], INT, 1, "'2' is not an int"),
        ([0, -1], UNSIGNED, 1, "-1 is not an unsigned number"),
        ([2**64], UNSIGNED, 0, "18446744073709551616 is not an unsigned number"),
        ([1], BOOL, 0, "1 is not a bool"),
        (["x"], FLOAT, 0, "'x' is not a float"),
        ([1], STRING, 0, "1 is not a string"),
        (["a", b"b"], STRING, 1, "b'b' is not a string"),
        ([dt.datetime(2020, 1, 1, 12)], DATE, 0, "2020-01-01 12:00:00 is not a date"),
        ([3], DATE, 0, "3 is not a date"),
        (pa.array([2**31 - 1], pa.date32()), DATE, 0, "the year is not one of 1 to 9999"),
        (pa.array([2**62], pa.timestamp("s")), DATETIME, 0, "the year is not one of 1 to 9999"),
        (pa.array([1001], pa.timestamp("ns")), DATETIME, 0, "1001 nanoseconds are not whole microseconds"),
        (pa.array([0], pa.timestamp("us", "UTC")), DATETIME, 0, "has a time zone, datetime expected"),
        ([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], DATETIME, 0, "declare the column timestamp"),
        ([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], DATE, 0, "is not a date"),
        ([dt.datetime(2020, 1, 1)], TIMESTAMP, 0, "has no time zone, timestamp expected"),
        ([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1)], TIMESTAMP, 1, "no time zone"),
        ([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], DATETIME, 1, "has a time zone"),
        ([dt.date(2020, 1, 1)], TIMESTAMP, 0, "2020-01-01 is not a timestamp"),
        (pa.array([2**62], pa.duration("s")), DURATION, 0, "more than 106751991 days"),
        (pa.array([2**63 - 1], pa.duration("us")), DURATION, 0, "more than 106751991 days"),
        (pa.array([1001], pa.duration("ns")), DURATION, 0, "1001 nanoseconds are not whole microseconds"),
        ([3], DURATION, 0, "3 is not a duration"),
        ([Decimal("1.00"), Decimal("1.005")], CENTS, 1, "1.005 has more than 2 digits after the point"),
        ([Decimal("123456789.00")], CENTS, 0, "123456789.00 is not a decimal(10, 2)"),
        ([100_000_000], CENTS, 0, "100000000 is not a decimal(10, 2)"),
        ([-(2**63)], CENTS, 0, "-9223372036854775808 is not a decimal(10, 2)"),
        ([1e9], CENTS, 0, "1000000000.0 is not a decimal(10, 2)"),
        ([math.nan], CENTS, 0, "nan is not a decimal(10, 2)"),
        ([Decimal("1e30")], CENTS, 0, "1000000000000000000000000000000 is not a decimal(10, 2)"),
    ],
)
def test_what_does_not_fit_is_named_with_its_row(values: Any, type: Type, row: int, reason: str) -> None:
    with pytest.raises(BadValue) as caught:
        encode(values, type, NAMES)
    assert isinstance(caught.value, DataError)
    assert caught.value.row == row
    assert reason in caught.value.reason
    assert str(caught.value) == f"row {row + 1}: {caught.value.reason}"
