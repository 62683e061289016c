"""Files of a stream without Spark: operations, formats, rows that are not taken, and what files of it say."""

from __future__ import annotations

import gzip
import io
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.ir.rules import Predicate
from dlog.spark.stream.files import Rows, read_file
from dlog.spark.stream.operations import MEANINGS, last_operations
from dlog.spark.stream.sinks import Sinks, outputs_of

PREDICATES = dlog.Database(
    source="sale(id, shop) -> int(id), string(shop).  price[item] = p -> int(item), float(p)."
).program.predicates
SALE, PRICE = PREDICATES["sale"], PREDICATES["price"]


def parquet(**columns: Any) -> bytes:
    out = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), out)
    return out.getvalue()


def reading(
    predicate: Predicate, name: str, data: bytes, column: str | None = None, **params: str | bool
) -> Rows:
    return read_file(predicate, params, name, pa.py_buffer(data), column)


GOOD = [
    ("a.csv", b'1,"a, b",+\n2,b,-\n', {}),
    ("a.csv.gz", gzip.compress(b'1,"a, b",+\n2,b,delete\n', mtime=0), {}),
    ("a.csv", b'1,"a, b",+\n2,b,-\n', {"IO": "sqlite", "dbname": "first.db"}),
    ("a.facts", b"1\ta, b\tI\n2\tb\tD\n", {}),
    ("a.csv", b"id;shop;what\n1;a, b;1\n2;b;-1\n", {"delimiter": ";", "headers": True}),
    ("a.json", b'{"id": 1, "shop": "a, b", "op": "c"}\n{"op": "d", "shop": "b", "id": 2}\n', {}),
    ("a.jsonl", b'{"id": 1, "shop": "a, b", "sign": 1}\n{"id": 2, "shop": "b", "sign": -1}\n', {}),
    ("a.json", b'[[1, "a, b", "+"], [2, "b", "-"]]', {}),
    ("a.parquet", parquet(id=[1, 2], shop=["a, b", "b"], op=["insert", "delete"]), {}),
    ("a.parquet", parquet(_change_type=["insert", "update_preimage"], id=[1, 2], shop=["a, b", "b"]), {}),
    ("a.parquet", parquet(id=[1, 2], shop=["a, b", "b"], sign=[1, -1]), {}),
]


@pytest.mark.parametrize(("name", "data", "params"), GOOD)
def test_operations_in_every_format(name: str, data: bytes, params: Any) -> None:
    rows = reading(SALE, name, data, **params)
    assert rows.table.to_pylist() == [{"id": 1, "shop": "a, b"}, {"id": 2, "shop": "b"}]
    assert (rows.signs.tolist(), rows.bad) == (["+", "-"], [])


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.csv", b"1,a\n"), ("a.json", b'{"id": 1, "shop": "a"}'), ("a.parquet", parquet(id=[1], shop=["a"]))],
)
def test_rows_without_an_operation_are_inserts(name: str, data: bytes) -> None:
    rows = reading(SALE, name, data)
    assert (rows.table.to_pylist(), rows.signs.tolist(), rows.bad) == ([{"id": 1, "shop": "a"}], ["+"], [])


def test_a_column_of_operations_can_be_named() -> None:
    rows = reading(SALE, "a.parquet", parquet(id=[1], shop=["a"], kind=["D"], op=["+"]), "kind")
    assert (rows.signs.tolist(), rows.notice) == (["-"], "")


def test_columns_that_may_be_meant_as_operations_are_reported() -> None:
    data = parquet(id=[1], shop=["a"], kind=["D"])
    expected = "a.parquet: kind is not a column of the predicate: ignored; rows are inserts (--op kind if"
    assert reading(SALE, "a.parquet", data).notice.startswith(expected)
    line = b'{"id": 1, "shop": "a", "kind": "D", "at": 3}'
    assert "a.json: kind, at are not columns" in reading(SALE, "a.json", line).notice
    assert "has no column what, which --op names" in reading(SALE, "a.parquet", data, "what").notice
    assert not any(reading(SALE, name, data, **params).notice for name, data, params in GOOD)


def test_bad_rows_are_stored_with_line_and_reason() -> None:
    text = b"1,a,+\nx,b,+\n3,c,what\n4\n5,e,u\n6,f,-\n"
    rows = reading(SALE, "a.csv", text)
    assert rows.table.column("id").to_pylist() == [1, 6]
    assert [(b.line, b.reason) for b in rows.bad] == [
        (2, 'id: "x" is not an int'),
        (3, "what is not an operation: write + or -"),
        (4, "expected 3 columns, found 1"),
        (5, "u replaces the value of a function, but sale is a relation"),
    ]
    many = reading(SALE, "a.csv", b"x,a\n" * 1000)
    assert (len(many.bad), many.table.num_rows) == (1000, 0)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv.gz", "a.json"])
def test_a_file_that_cannot_be_read_is_one_bad_row(name: str) -> None:
    data = gzip.compress(b"1,a\n" * 50)[:12] if name.endswith("gz") else b'{"id": nonsense'
    rows = reading(SALE, name, data)
    assert rows.table.num_rows == 0 and len(rows.bad) == 1 and rows.bad[0].file == name
    missing = reading(SALE, "a.parquet", parquet(id=[1], place=["a"], more=[1]))
    assert [(b.line, b.reason) for b in missing.bad] == [
        (0, "the file has no column shop (its columns: id, place, more)")
    ]


def test_updates_of_functions_are_upserts() -> None:
    rows = reading(PRICE, "a.csv", b"1,2.5,u\n")
    assert rows.signs.tolist() == ["^"] and set(MEANINGS.values()) == {"+", "-", "^"}


SAID = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("+-^")), max_size=12)


@given(SAID, st.booleans())
def test_oracle_last_operations(operations: list[tuple[int, int, str]], functional: bool) -> None:
    """The few statements do what all rows do one after the other."""
    operations = operations if functional else [(x, y, "+" if op == "^" else op) for x, y, op in operations]
    start = {(0, 0), (1, 2)}
    expected = set(start)
    for x, y, op in operations:
        expected = _done(expected, op, [(x, y)])
    rows = np.array([(x, y) for x, y, _ in operations], np.int64).reshape(-1, 2)
    found = set(start)
    statements = last_operations(rows, np.array([op for *_, op in operations], "U1"), 1 if functional else 2)
    assert len(statements) <= 3
    for op, some in statements:
        found = _done(found, op, [(int(x), int(y)) for x, y in some])
    assert found == expected


def _done(state: set[tuple[int, int]], op: str, rows: list[tuple[int, int]]) -> set[tuple[int, int]]:
    for x, y in rows:
        if op == "^":
            state = {row for row in state if row[0] != x}
        state = state - {(x, y)} if op == "-" else state | {(x, y)}
    return state


def test_values_of_a_stream_are_tables_of_sqlite_if_output_says_so(tmp_path: Path) -> None:
    program = 'q(x) <- p(x).\np(1).  p(2).\n.output q(IO=sqlite, filename="q.db")\n'
    database = dlog.Database(source=program)
    sinks = Sinks(tmp_path, outputs_of(database.program))
    for batch, rows in ((1, [(1,), (2,)]), (2, [(2,), (7,)])):
        sinks.write_values(database, batch)
        connection = sqlite3.connect(tmp_path / "values" / "q.db")
        assert connection.execute("SELECT * FROM q ORDER BY 1").fetchall() == rows
        connection.close()
        database.execute("+p(7), -p(1).")
