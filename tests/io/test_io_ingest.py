"""Python data as typed tables: rows, frames, arrays; and what is refused, by row, column and reason."""

import datetime as dt
import subprocess
import sys
import zoneinfo
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.errors import DataError
from dlog.io import ingest, to_arrow
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
    decimal,
)

XS = [("x", INT), ("s", STRING)]
EXPECTED = pa.table({"x": [1, 2], "s": ["a", "b"]})


@pytest.mark.parametrize(
    "data",
    [
        [(1, "a"), (2, "b")],
        [[1, "a"], [2, "b"]],
        ((x, s) for x, s in [(1, "a"), (2, "b")]),
        {(1, "a"): None, (2, "b"): None}.keys(),
        EXPECTED,
        EXPECTED.to_batches()[0],
        EXPECTED.select(["s", "x"]),
        EXPECTED.rename_columns(["p", "q"]),
        EXPECTED.append_column("more", pa.array([0, 0])),
        {"s": ["a", "b"], "x": [1, 2]},
        {"x": np.array([1, 2], np.int8), "s": pa.array(["a", "b"])},
        pd.DataFrame({"x": [1, 2], "s": ["a", "b"]}),
        pd.DataFrame({"x": [1.0, 2.0], "s": pd.Series(["a", "b"], dtype=object)}),
        pd.DataFrame({"x": pd.array([1, 2], "Int64"), "s": pd.Categorical(["a", "b"])}),
        pd.DataFrame([[1, "a"], [2, "b"]], columns=["c", "c"]),
        pd.DataFrame({"more": [0, 0], "s": ["a", "b"], "x": np.array([1, 2], np.uint16)}, index=[7, 7]),
        pl.DataFrame({"x": [1, 2], "s": ["a", "b"]}),
        pl.DataFrame({"s": ["a", "b"], "x": [1, 2]}, schema_overrides={"x": pl.Int8, "s": pl.Categorical}),
        {"x": pl.Series([1, 2]), "s": pd.Series(["a", "b"])},
        np.array([(1, "a"), (2, "b")], dtype=[("x", "i4"), ("s", "U3")]),
        np.array([[1, "a"], [2, "b"]], dtype=object),
    ],
    ids=lambda data: type(data).__name__,
)
def test_everything_that_holds_rows(data):
    table = to_arrow(data, XS)
    table.validate(full=True)
    assert table.to_pydict() == EXPECTED.to_pydict()
    assert table.schema.field("x").type == pa.int64()
    assert table.schema.field("s").type in (pa.string(), pa.large_string())


def test_duckdb_relations():
    with duckdb.connect() as connection:
        relation = connection.sql("select * from (values (1, 'a'), (2, 'b')) t(x, s)")
        assert to_arrow(relation, XS).to_pydict() == EXPECTED.to_pydict()


def test_numpy_numbers():
    columns = [("x", INT), ("y", INT)]
    for array in [
        np.array([[1, 2], [3, 4]]),
        np.array([[1, 2], [3, 4]], ">i4"),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.asfortranarray([[1, 2], [3, 4]]),
        np.array([[1, 2, 3], [3, 4, 5]])[:, :2],
    ]:
        assert to_arrow(array, columns).to_pydict() == {"x": [1, 3], "y": [2, 4]}
    assert to_arrow(np.arange(3), [("x", UNSIGNED)]).column(0).to_pylist() == [0, 1, 2]


def test_numpy_columns_are_not_copied():
    values = np.arange(1000)
    column = to_arrow({"x": values}, [("x", INT)]).column(0).chunk(0)
    assert column.buffers()[1].address == values.ctypes.data


def test_arrow_tables_are_not_copied():
    table = pa.table({"x": [1, 2], "s": pa.array(["a", "b"], pa.large_string())})
    result = to_arrow(table, XS)
    for name in ("x", "s"):
        before, after = table.column(name).chunk(0), result.column(name).chunk(0)
        assert before.buffers()[-1].address == after.buffers()[-1].address


def test_values_of_every_type():
    columns = [
        ("i", INT),
        ("u", UNSIGNED),
        ("f", FLOAT),
        ("s", STRING),
        ("b", BOOL),
        ("d", DATE),
        ("t", DATETIME),
        ("m", DECIMAL),
    ]
    day, moment = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 4)
    usual = (-1, 2**64 - 1, 1.5, "a", True, day, moment, Decimal("1.5"))
    forms = [
        usual,
        (
            -1.0,
            np.uint64(2**64 - 1),
            Decimal("1.5"),
            np.str_("a"),
            np.bool_(True),
            "2024-02-29",
            str(moment),
            1.5,
        ),
        (np.int8(-1), 2**64 - 1, 1.5, "a", True, dt.datetime(2024, 2, 29), np.datetime64(moment), "1.5"),
        (
            Decimal(-1),
            2**64 - 1,
            np.float32(1.5),
            "a",
            True,
            pd.Timestamp(day),
            pd.Timestamp(moment),
            np.float64(1.5),
        ),
    ]
    table = to_arrow(forms, columns)
    assert [tuple(row.values()) for row in table.to_pylist()] == [usual] * len(forms)
    assert to_arrow([(3, dt.date(2024, 1, 1))], [("f", FLOAT), ("t", DATETIME)]).to_pylist() == [
        {"f": 3.0, "t": dt.datetime(2024, 1, 1)}
    ]


MOMENT = dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)
IN_VIENNA = MOMENT.astimezone(zoneinfo.ZoneInfo("Europe/Vienna"))
FAR_EAST = dt.timezone(dt.timedelta(hours=9))
LENGTH = dt.timedelta(days=-1, seconds=2, microseconds=3)


@pytest.mark.parametrize(
    "value", [MOMENT, IN_VIENNA, pd.Timestamp(IN_VIENNA), "2026-03-29T01:30Z", "2026-03-29 03:30:00+02:00"]
)
def test_timestamps_are_the_same_moment_whatever_their_zone(value):
    (row,) = to_arrow([(value,)], [("t", TIMESTAMP)]).to_pylist()
    assert row["t"] == MOMENT and row["t"].utcoffset() == dt.timedelta(0)


@pytest.mark.parametrize(
    "value", [LENGTH, pd.Timedelta(LENGTH), np.timedelta64(LENGTH), "-PT23H59M57.999997S"]
)
def test_durations(value):
    assert to_arrow([(value,)], [("d", DURATION)]).to_pylist() == [{"d": LENGTH}]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Vienna", "America/New_York"])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_with_and_without_a_time_zone_do_not_mix(library, zone):
    aware = [MOMENT.astimezone(zoneinfo.ZoneInfo(zone))]
    frame = library({"t": aware})
    assert to_arrow(frame, [("t", TIMESTAMP)]).to_pylist() == [{"t": MOMENT}]
    for type in (DATETIME, DATE):
        message = f"r: column t holds times with a time zone, {type} expected: declare the column timestamp"
        with pytest.raises(DataError) as caught:
            to_arrow(frame, [("t", type)], relation="r")
        assert caught.value.message == message
    with pytest.raises(DataError) as caught:
        to_arrow(library({"t": [MOMENT.replace(tzinfo=None)]}), [("t", TIMESTAMP)])
    assert caught.value.message.startswith(
        "column t holds datetimes without a time zone, timestamp expected: "
    )


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("W", 604_800_000_000), ("D", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000)]
    + [("s", 1_000_000), ("7s", 7_000_000), ("ms", 1000), ("us", 1)],
)
def test_numpy_lengths_of_time_in_every_unit(unit, factor):
    expected = [{"d": dt.timedelta(microseconds=n * factor)} for n in (3, -5)]
    array = np.array([3, -5], f"timedelta64[{unit}]")
    assert to_arrow({"d": array}, [("d", DURATION)]).to_pylist() == expected
    assert to_arrow([(n,) for n in array], [("d", DURATION)]).to_pylist() == expected
    assert to_arrow(pd.DataFrame({"d": array}), [("d", DURATION)]).to_pylist() == expected


@pytest.mark.parametrize(
    ("array", "type", "reason"),
    [
        (np.array([5], "timedelta64[M]"), DURATION, "5 months have no fixed length"),
        (np.array([5]).astype("timedelta64"), DURATION, "5 generic time units have no fixed length"),
        (np.array([5], "timedelta64[ps]"), DURATION, "5 picoseconds is finer than a microsecond"),
        (
            np.array([5], "datetime64[ps]"),
            DATETIME,
            "1970-01-01T00:00:00.000000000005 is finer than a microsecond",
        ),
    ],
)
def test_numpy_times_that_no_type_holds(array, type, reason):
    for data in ({"v": array}, [(array[0],)]):
        with pytest.raises(DataError) as caught:
            to_arrow(data, [("v", type)])
        assert caught.value.message == f"row 0, column v: {reason}"


def test_nan_is_a_value_for_floats():
    for data in [
        [(float("nan"),)],
        np.array([np.nan]),
        pd.DataFrame({"f": [np.nan]}),
        pl.DataFrame({"f": [float("nan")]}),
    ]:
        assert repr(to_arrow(data, [("f", FLOAT)]).column(0).to_pylist()) == "[nan]"


@pytest.mark.parametrize(
    ("value", "type", "reason"),
    [
        (None, INT, "is null, int expected"),
        (True, INT, "True is a bool, int expected"),
        (np.bool_(True), INT, "True is a bool, int expected"),
        (1.5, INT, "1.5 has a fraction, int expected"),
        (Decimal("1.5"), INT, "1.5 has a fraction, int expected"),
        (float("nan"), INT, "nan is outside the range of int (64 bits)"),
        (2**63, INT, "9223372036854775808 is outside the range of int (64 bits)"),
        pytest.param(10**5000, INT, "the number is outside the range of int (64 bits)", id="10^5000"),
        ("1", INT, '"1" is a string, int expected'),
        (-1, UNSIGNED, "-1 is outside the range of unsigned (64 bits)"),
        (2**64, UNSIGNED, "18446744073709551616 is outside the range of unsigned (64 bits)"),
        (True, FLOAT, "True is a bool, float expected"),
        (10**400, FLOAT, "1" + "0" * 56 + "... is outside the range of float"),
        ("1.5", FLOAT, '"1.5" is a string, float expected'),
        (1, STRING, "1 is an int, string expected"),
        (b"a", STRING, "b'a' is a bytes, string expected"),
        ("\ud800", STRING, '"?" contains half a surrogate pair, which has no UTF-8 form'),
        (1, BOOL, "1 is an int, bool expected"),
        (dt.datetime(2024, 1, 1, 5), DATE, "2024-01-01T05:00:00 has a time of day, date expected"),
        ("2024-13-01", DATE, '"2024-13-01" is not a date (YYYY-MM-DD)'),
        (5, DATE, "5 is an int, date expected"),
        (np.datetime64("NaT"), DATE, "is null, date expected"),
        (pd.NaT, DATETIME, "is null, datetime expected"),
        (pd.NA, INT, "is null, int expected"),
        (np.datetime64(1, "ns"), DATETIME, "1970-01-01T00:00:00.000000001 is finer than a microsecond"),
        (pd.Timestamp(1), DATETIME, "1970-01-01T00:00:00.000000001 is finer than a microsecond"),
        (Decimal("1.1234567"), DECIMAL, "1.1234567 has more than 6 digits after the point"),
        (1 / 3, DECIMAL, "0.3333333333333333 has more than 6 digits after the point"),
        (Decimal(10**12), DECIMAL, "1000000000000 is outside the range of decimal"),
        (Decimal("NaN"), DECIMAL, "NaN is outside the range of decimal"),
        (Decimal("1000"), decimal(5, 2), "1000 is outside the range of decimal(5, 2)"),
        (True, DECIMAL, "True is a bool, decimal expected"),
        (
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
            DATE,
            "2024-01-01T00:00:00+00:00 has a time zone, date expected",
        ),
        (
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
            DATETIME,
            "2024-01-01T00:00:00+00:00 has a time zone, datetime expected: declare the column timestamp",
        ),
        (
            dt.datetime(2024, 1, 1),
            TIMESTAMP,
            "2024-01-01T00:00:00 has no time zone, timestamp expected: declare the column datetime, or"
            " give its times a zone",
        ),
        (
            "2024-01-01",
            TIMESTAMP,
            '"2024-01-01" has no time zone, timestamp expected: write Z or an offset such as +01:00, or'
            " declare the column datetime",
        ),
        (
            dt.datetime(1, 1, 1, tzinfo=FAR_EAST),
            TIMESTAMP,
            "0001-01-01 00:00:00+09:00 is outside the range of timestamp",
        ),
        (5, TIMESTAMP, "5 is an int, timestamp expected"),
        (5, DURATION, "5 is an int, duration expected"),
        ("P1Y", DURATION, '"P1Y" is not a duration (P1DT2H3M4.5S)'),
        (pd.Timedelta(1), DURATION, '"0 days 00:00:00.000000001" is finer than a microsecond'),
        (dt.timedelta.max, DURATION, "999999999 days, 23:59:59.999999 is outside the range of duration"),
        (np.timedelta64("NaT"), DURATION, "is null, duration expected"),
    ],
)
def test_misfits_name_row_column_and_reason(value, type, reason):
    good = {"float": 1.0, "string": "a", "bool": True, "date": dt.date(2024, 1, 1)}
    good |= {"datetime": dt.datetime(2024, 1, 1), "timestamp": MOMENT, "duration": LENGTH}
    fine = good.get(type.name, 1)
    with pytest.raises(DataError) as caught:
        to_arrow([("k", fine), ("l", value), ("m", value)], [("k", STRING), ("v", type)], relation="edge")
    assert caught.value.message == f"edge: row 1, column v: {reason}"


def test_misfits_in_frames():
    frames = [pa.table({"x": [1.0, 2.5]}), pd.DataFrame({"x": [1.0, 2.5]}), pl.DataFrame({"x": [1.0, 2.5]})]
    for frame in [*frames, np.array([[1.0], [2.5]]), {"x": [1.0, 2.5]}]:
        with pytest.raises(DataError, match=r"^row 1, column x: 2\.5 has a fraction, int expected$"):
            to_arrow(frame, [("x", INT)])
    with pytest.raises(DataError, match="row 1, column x: is null, int expected"):
        to_arrow(pl.DataFrame({"x": [1, None]}), [("x", INT)])
    with pytest.raises(DataError, match="row 0, column s: is null, string expected"):
        to_arrow(pd.DataFrame({"s": [None, "a"]}), [("s", STRING)])
    with pytest.raises(DataError, match="column x holds string, int expected"):
        to_arrow(pa.table({"x": ["1"]}), [("x", INT)])
    with pytest.raises(DataError, match="column x holds bool, int expected"):
        to_arrow(np.array([[True]]), [("x", INT)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([(1, "a"), (2,)], "row 1: expected 2 columns, found 1"),
        ([(1, "a", 3)], "row 0: expected 2 columns, found 3"),
        ([(1, "a"), 5], "row 1: a tuple or list expected, not int"),
        (["ab"], "row 0: a tuple or list expected, not str"),
        ("ab", "rows expected, not str"),
        (5, "rows expected, not int"),
        (np.zeros((2, 3)), "expected 2 columns, found 3"),
        (np.zeros(3), "an array of 2 dimensions expected, not 1"),
        (pa.table({"x": [1]}), "expected 2 columns, found 1"),
        ({"x": [1], "s": ["a", "b"]}, "columns of different lengths"),
    ],
)
def test_wrong_shapes(data, message):
    with pytest.raises(DataError) as caught:
        to_arrow(data, XS)
    assert caught.value.message == message


def test_nullary_and_empty():
    assert to_arrow([()], []).num_rows == 1
    assert to_arrow([], []).num_rows == 0
    assert to_arrow([], XS).schema.types == [pa.int64(), pa.string()]
    assert to_arrow(iter([]), XS).num_rows == 0
    with pytest.raises(DataError, match="expected 0 columns, found 1"):
        to_arrow([(1,)], [])


def test_rows_are_counted_across_chunks(monkeypatch):
    monkeypatch.setattr(ingest, "CHUNK_ROWS", 10)
    assert to_arrow(((i,) for i in range(35)), [("x", INT)]).column(0).to_pylist() == list(range(35))
    with pytest.raises(DataError, match=r"row 25, column x: 0\.5 has a fraction"):
        to_arrow(((i if i != 25 else 0.5,) for i in range(35)), [("x", INT)])
    with pytest.raises(DataError, match="row 25: expected 1 column, found 2"):
        to_arrow(((i,) if i != 25 else (1, 2) for i in range(35)), [("x", INT)])


@given(st.lists(st.one_of(st.integers(-(2**65), 2**65), st.floats(), st.booleans(), st.none())))
@settings(max_examples=200, deadline=None)
def test_oracle_integers(values):
    """Whole numbers in range that are no bools are taken; the first other value is named."""

    def taken(value):
        return (
            type(value) in (int, float)
            and value == value
            and abs(value) != float("inf")
            and (int(value) == value and -(2**63) <= value < 2**63)
        )

    bad = [row for row, value in enumerate(values) if not taken(value)]
    if bad:
        with pytest.raises(DataError, match=rf"^row {bad[0]}, column x: "):
            to_arrow([(value,) for value in values], [("x", INT)])
    else:
        assert to_arrow([(value,) for value in values], [("x", INT)]).column(0).to_pylist() == list(
            map(int, values)
        )


def test_no_frame_library_is_imported_unasked():
    """Where pandas is installed, pyarrow itself imports it as soon as an array is made: not at import."""
    code = (
        "import sys\n"
        "from dlog.io import to_arrow\n"
        "from dlog.values import INT\n"
        "print(sorted({'pandas', 'polars', 'numba'} & set(sys.modules)))\n"
        "to_arrow([(1,)], [('x', INT)])\n"
        "print(sorted({'polars', 'numba'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
