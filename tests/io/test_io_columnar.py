"""Parquet and Arrow files written by others."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import feather, ipc, parquet

from dlog.errors import DataError
from dlog.io import InputOptions, OutputOptions, nullary_table, read, write
from dlog.io.exact import WrongKind, exact_column
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

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def parquet_file(tmp_path, table, **options):
    parquet.write_table(table, tmp_path / "r.parquet", **options)
    return tmp_path / "r.parquet"


def arrow_file(tmp_path, table):
    with ipc.new_file(tmp_path / "r.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return tmp_path / "r.arrow"


def arrow_stream(tmp_path, table):
    with ipc.new_stream(tmp_path / "r.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return tmp_path / "r.arrow"


def feather_file(tmp_path, table):
    feather.write_feather(table, tmp_path / "r.feather")
    return tmp_path / "r.feather"


WRITERS = [parquet_file, arrow_file, arrow_stream, feather_file]


@pytest.mark.parametrize("writer", WRITERS)
def test_columns_are_found_by_name_and_made_exact(tmp_path, writer):
    table = pa.table(
        {
            "more": [0, 0, 0],
            "s": pa.array(["a", "b", "a"]).dictionary_encode(),
            "x": pa.array([1, 2, 3], pa.int16()),
        }
    )
    loaded = read(writer(tmp_path, table), [("x", INT), ("s", STRING)])
    loaded.check()
    assert loaded.table.schema.types == [pa.int64(), pa.string()]
    assert loaded.table.to_pydict() == {"x": [1, 2, 3], "s": ["a", "b", "a"]}


@pytest.mark.parametrize("writer", WRITERS)
def test_bad_rows_are_refused_with_row_and_reason(tmp_path, writer):
    table = pa.table({"x": [1.0, None, 2.5, 4.0, 5.0], "s": ["a", "b", "c", None, "e"]})
    loaded = read(writer(tmp_path, table), [("x", INT), ("s", STRING)])
    assert loaded.table.to_pydict() == {"x": [1, 5], "s": ["a", "e"]}
    assert [(r.line, r.reason) for r in loaded.rejected] == [
        (2, "x: is null, int expected"),
        (3, "x: 2.5 has a fraction, int expected"),
        (4, "s: is null, string expected"),
    ]
    assert loaded.rejected[1].text == "2.5\tc"


def test_columns_by_place(tmp_path):
    path = parquet_file(tmp_path, pa.table({"a": [1], "b": ["x"]}))
    assert read(path, [("x", INT), ("s", STRING)]).table.to_pydict() == {"x": [1], "s": ["x"]}
    options = InputOptions.for_path(path, columns="1:0")
    assert read(options, [("s", STRING), ("x", INT)]).table.to_pydict() == {"s": ["x"], "x": [1]}


def test_missing_columns_and_wrong_kinds(tmp_path):
    path = parquet_file(tmp_path, pa.table({"a": [1], "b": ["x"]}))
    with pytest.raises(DataError, match=r"has no column x \(its columns: a, b\)"):
        read(path, [("x", INT)])
    with pytest.raises(DataError, match=r"column b of .* holds string, int expected"):
        read(path, [("b", INT)])
    with pytest.raises(DataError, match="has 2 columns, columns= asks for number 2"):
        read(InputOptions.for_path(path, columns="2"), [("x", INT)])


@pytest.mark.parametrize("name", ["r.parquet", "r.arrow"])
def test_files_of_something_else(tmp_path, name):
    (tmp_path / name).write_bytes(b"1\t2\n" * 20)
    with pytest.raises(DataError, match="cannot read"):
        read(tmp_path / name, [("x", INT)])
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match="cannot read"):
        read(tmp_path / name, [("x", INT)])


SPARK = b"org.apache.spark.sql.parquet.row.metadata"


def spark_fields(**types):
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in types.items()]
    return json.dumps({"type": "struct", "fields": fields}).encode()


@pytest.mark.parametrize("int96", [False, True])
def test_spark_says_what_its_columns_are(tmp_path, int96):
    """Durations are numbers there, and moments of the oldest format have no zone: only its notes tell."""
    moments = [dt.datetime(1, 1, 1), dt.datetime(2026, 3, 29, 1, 0, 0, 1), dt.datetime(9999, 12, 31)]
    table = pa.table({"t": pa.array(moments, pa.timestamp("us")), "d": [-1, 0, 10**12], "n": [1, 2, 3]})
    meant = {"t": "timestamp", "d": "interval day to second", "n": "long"}
    columns = [("t", TIMESTAMP), ("d", DURATION), ("n", INT)]

    def loaded(metadata):
        path = parquet_file(
            tmp_path, table.replace_schema_metadata(metadata), use_deprecated_int96_timestamps=int96
        )
        return read(InputOptions.from_params("r", {"IO": "parquet", "filename": path}, tmp_path), columns)

    found = loaded({SPARK: spark_fields(**meant)}).table.to_pydict()
    assert found["t"] == [m.replace(tzinfo=dt.UTC) for m in moments]
    assert found["d"] == [dt.timedelta(microseconds=n) for n in (-1, 0, 10**12)] and found["n"] == [1, 2, 3]
    for metadata in (None, {SPARK: b"{"}, {SPARK: b"[]"}, {SPARK: spark_fields(t="timestamp_ntz", d="long")}):
        with pytest.raises(DataError, match=r"column t .* holds datetimes without a time zone"):
            loaded(metadata)


def test_progress_counts_rows_of_row_groups(tmp_path):
    path = parquet_file(tmp_path, pa.table({"x": list(range(10))}), row_group_size=4)
    seen = []
    loaded = read(path, [("x", INT)], progress=lambda *now: seen.append(now))
    assert seen == [(4, 10), (8, 10), (10, 10)]
    assert loaded.table.num_rows == 10


def test_nullary(tmp_path):
    path = parquet_file(tmp_path, pa.table({"x": [1]}))
    assert read(path, []).table.num_rows == 1
    with pytest.raises(DataError, match="no columns"):
        write(nullary_table(1), OutputOptions.from_params("r", {"IO": "parquet"}, tmp_path), [])
    assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"]


D = Decimal
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("array", "type", "good", "bad"),
    [
        (pa.array([1, -1, 2**63 - 1]), UNSIGNED, [1, 2**63 - 1], [1]),
        (pa.array([1, 2**63], pa.uint64()), INT, [1], [1]),
        (pa.array([-1, None], pa.int8()), INT, [-1], [1]),
        (pa.array([1.0, 2.5, NAN, INF, 2.0**63, -(2.0**63)]), INT, [1, -(2**63)], [1, 2, 3, 4]),
        (pa.array([1.0, 2.0**64, -1.0, 2.0**63]), UNSIGNED, [1, 2**63], [1, 2]),
        (pa.array([1.0, 2.5], pa.float16()), INT, [1], [1]),
        (pa.array([D("1.0"), D("2.5"), None]), INT, [1], [1, 2]),
        (
            pa.array([D(2**63 - 1), D(2**63), D(-(2**63)), D(-(2**63) - 1)]),
            INT,
            [2**63 - 1, -(2**63)],
            [1, 3],
        ),
        (pa.array([1, 2**60]), FLOAT, [1.0, 2.0**60], []),
        (pa.array([1.5, None], pa.float32()), FLOAT, [1.5], [1]),
        (pa.array([D("1.5")]), FLOAT, [1.5], []),
        (pa.array([1, 10**12, 10**12 - 1, -(10**12)]), DECIMAL, [D(1), D(10**12 - 1)], [1, 3]),
        (pa.array([1, 2**64 - 1], pa.uint64()), DECIMAL, [D(1)], [1]),
        (pa.array([D("1.5"), D("1.1234567"), D("1234567890123.5")]), DECIMAL, [D("1.5")], [1, 2]),
        (pa.array([D("1.50"), D(10) ** 30], pa.decimal256(50, 2)), DECIMAL, [D("1.5")], [1]),
        (pa.array([0.1, 123456.654321]), DECIMAL, [D("0.1"), D("123456.654321")], []),
        (pa.array([0.1, 1 / 3, 1e12, NAN, None]), DECIMAL, [D("0.1")], [1, 2, 3, 4]),
        (pa.array([999.99, 1000.0]), decimal(5, 2), [D("999.99")], [1]),
        (pa.array([D("999.99"), D("1000.00")]), decimal(5, 2), [D("999.99")], [1]),
        (pa.array([b"a", b"\xff", None]), STRING, ["a"], [1, 2]),
        (pa.array([b"a", b"\xff", None]).view(pa.string()), STRING, ["a"], [1, 2]),
        (pa.array(["a"], pa.string_view()), STRING, ["a"], []),
        (pa.array([None, "a", "b", "a"]).dictionary_encode(), STRING, ["a", "b", "a"], [0]),
        (pc.run_end_encode(pa.array([1, 1, 2], pa.int8())), INT, [1, 1, 2], []),
        (pa.array([True, None]), BOOL, [True], [1]),
        (pa.nulls(2), INT, [], [0, 1]),
        (
            pa.array([0, 86400 * 10**9, 5], pa.timestamp("ns")),
            DATE,
            [dt.date(1970, 1, 1), dt.date(1970, 1, 2)],
            [2],
        ),
        (pa.array([0, 86400000], pa.date64()), DATE, [dt.date(1970, 1, 1), dt.date(1970, 1, 2)], []),
        (pa.array([0, 10**7], pa.date32()), DATE, [dt.date(1970, 1, 1)], [1]),
        (pa.array([0, 10**7, 213503983], pa.date32()), DATETIME, [dt.datetime(1970, 1, 1)], [1, 2]),
        (pa.array([0, 2**55, 2**40], pa.timestamp("s")), DATETIME, [dt.datetime(1970, 1, 1)], [1, 2]),
        (
            pa.array([1000, 1, None], pa.timestamp("ns")),
            DATETIME,
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1)],
            [1, 2],
        ),
        (
            pa.array([0], pa.timestamp("ms", "Europe/Paris")),
            TIMESTAMP,
            [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)],
            [],
        ),
        (
            pa.array([1000, 1, None], pa.timestamp("ns", "UTC")),
            TIMESTAMP,
            [dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)],
            [1, 2],
        ),
        (pa.array([0, 2**55, 2**40], pa.timestamp("s", "UTC")), TIMESTAMP, [EPOCH], [1, 2]),
        (pa.array([5, 2**55, None], pa.duration("s")), DURATION, [dt.timedelta(seconds=5)], [1, 2]),
        (pa.array([5000, 1], pa.duration("ns")), DURATION, [dt.timedelta(microseconds=5)], [1]),
        (pa.array([-(2**63), 0], pa.duration("us")), DURATION, [dt.timedelta(0)], [0]),
    ],
)
def test_exact_columns(array, type, good, bad):
    for chunked in (pa.chunked_array([array]), pa.chunked_array([array.slice(0, 1), array.slice(1)])):
        exact = exact_column(chunked, type)
        assert exact.bad.tolist() == bad
        assert exact.column.take(pa.array(np.setdiff1d(np.arange(len(array)), bad))).to_pylist() == good
        assert all(exact.reason(row) for row in bad)


@pytest.mark.parametrize(
    ("array", "type"),
    [
        (pa.array(["1"]), INT),
        (pa.array([True]), INT),
        (pa.array([1]), STRING),
        (pa.array([1]), BOOL),
        (pa.array([1]), DATE),
        (pa.array([[1]]), INT),
        (pa.array(["2024-01-01"]), DATE),
    ],
)
def test_other_kinds_are_refused_as_a_whole(array, type):
    with pytest.raises(WrongKind, match="expected"):
        exact_column(pa.chunked_array([array]), type)


def test_exact_columns_are_not_copied():
    for array, type in [
        (pa.array([1, 2]), INT),
        (pa.array([1.5]), FLOAT),
        (pa.array(["a"]), STRING),
        (pa.array(["a"], pa.large_string()), STRING),
        (pa.array([0], pa.date32()), DATE),
        (pa.array([0], pa.timestamp("us")), DATETIME),
        (pa.array([D(1)], pa.decimal128(18, 6)), DECIMAL),
    ]:
        exact = exact_column(pa.chunked_array([array]), type).column.chunk(0)
        assert exact.type == array.type
        assert exact.buffers()[-1].address == array.buffers()[-1].address
