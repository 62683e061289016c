"""The programs of programs/views as M3, in every way of writing it, against DuckDB; and streamed, as SQL and
as rules, after every batch.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import duckdb
import pytest

import dlog
from dlog.m3.parse import parse
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.runtime.streams import Reader, run_files
from dlog.views.export import export, read_query
from dlog.views.maintained import Maintained
from tests.oracle.views_naive import naive

FOLDER = Path(__file__).parents[2] / "programs" / "views"
RUNNABLE = ["housing", "order_book", "retailer", "running_sum", "tpch3"]
WAYS = [
    {"batch": True},
    {"batch": False},
    {"batch": True, "optimise": False},
    {"dialect": "a5"},
]
SQL_TYPES = {"string": "varchar", "long": "bigint"}


def rows_of_file(source) -> list[tuple[tuple, int]]:
    """Rows and multiplicities of a file."""
    convert = {"int": int, "long": int, "double": float}
    kinds = [convert.get(c.type.name, str) for c in source.columns]
    with open(FOLDER / source.file, newline="") as file:
        found = [
            (tuple(kind(cell) for kind, cell in zip(kinds, row, strict=False)), int(row[-1]))
            for row in csv.reader(file, delimiter="|")
        ]
    assert found
    return found


def duck(name: str, query, relations: dict[str, Counter]) -> list[tuple]:
    connection = duckdb.connect()
    for source in query.sources:
        columns = ", ".join(f"{c.name} {SQL_TYPES.get(c.type.name, c.type.name)}" for c in source.columns)
        connection.execute(f"create table {source.name}({columns})")
        rows = list(relations[source.name].elements())
        if rows:
            places = ", ".join("?" * len(source.columns))
            connection.executemany(f"insert into {source.name} values ({places})", rows)
    text = (FOLDER / f"{name}.sql").read_text()
    select = re.sub(r"DATE\(('[^']*')\)", r"DATE \1", text[text.index("SELECT") :])
    return sorted(connection.execute(select).fetchall())


def final(query) -> dict[str, Counter]:
    relations = {}
    for source in query.sources:
        relations[source.name] = Counter()
        for row, n in rows_of_file(source):
            relations[source.name][row] += n
    return relations


@pytest.mark.parametrize("name", RUNNABLE)
def test_oracle_duckdb(name: str) -> None:
    query = read_query(FOLDER / f"{name}.sql")
    expected = duck(name, query, final(query))
    n = len(query.free)
    shown = [a for a in query.aggregates if not a.hidden]
    for way in WAYS:
        runtime = Runtime(parse(export(FOLDER / f"{name}.sql", **way), dialect=way.get("dialect")))
        run_files(runtime, Reader(FOLDER), 7)
        names = [q.name for q in runtime.program.queries]
        for at, aggregate in enumerate(shown):
            assert aggregate.name in names
            column = runtime[aggregate.name]
            found = sorted(tuple(row.values()) for row in column.to_pylist())
            assert [row[:n] for row in found] == [row[:n] for row in expected]
            assert [row[n] for row in found] == pytest.approx([row[n + at] for row in expected])


def test_update_r_is_as_the_paper_has_it() -> None:
    text = export(FOLDER / "update_r.sql", dtree=FOLDER / "update_r.dtree", batch=True)
    assert "AGG_VIEW_C(Ring)[][a]" in text and "ON SYSTEM READY" in text


def test_order_book_streams_with_deletions() -> None:
    """The same batches as SQL, as rules kept by views, as rules kept by the engine, and by definition."""
    sql, rules = read_query(FOLDER / "order_book.sql"), read_query(FOLDER / "order_book.dl", "margin")
    kept = [Maintained(sql), Maintained(rules)]
    db = dlog.Database(str(FOLDER / "order_book.dl"))
    events = {s.name: rows_of_file(s) for s in sql.sources}
    present = {name: Counter() for name in events}
    for start in range(0, 40, 6):
        for name, lines in events.items():
            batch = lines[start : start + 6]
            if not batch:
                continue
            rows, times = [row for row, _ in batch], [n for _, n in batch]
            kept[0].apply(name, rows, times)
            kept[1].apply(name.lower(), rows, times)
            with db.transaction() as tx:
                for row, n in batch:
                    (tx.insert if n > 0 else tx.erase)(name.lower(), [row])
            for row, n in batch:
                present[name][row] += n
            present[name] = +present[name]
            expected = naive(sql, present)
            for one in kept:
                table = one.result().to_pydict()
                assert dict(
                    zip(table["broker"], zip(*list(table.values())[1:], strict=True), strict=True)
                ) == {key[0]: values for key, values in expected.items()}
            assert dict(db["margin"].rows()) == {key[0]: values[0] for key, values in expected.items()}
            assert duck("order_book", sql, present) == sorted((*k, *v) for k, v in expected.items())


def test_three_way_join_as_rules() -> None:
    """Three streams, as rules: the views against the engine, after every batch."""
    query = read_query(FOLDER / "tpch3.dl")
    kept, db = Maintained(query), dlog.Database(str(FOLDER / "tpch3.dl"))
    sql = read_query(FOLDER / "tpch3.sql")

    def numbered(row: tuple) -> tuple:
        return tuple(int(v.replace("-", "")) if isinstance(v, str) and v[:2] == "19" else v for v in row)

    events = {s.name: [(numbered(r), n) for r, n in rows_of_file(s)] for s in sql.sources}
    live = Counter()
    for row, n in events["CUSTOMER"]:
        live[row] += n
    customers = list(live.elements())
    kept.apply("customer", customers)
    with db.transaction() as tx:
        tx.insert("customer", customers)
    for start in range(0, 80, 10):
        for name in ("ORDERS", "LINEITEM"):
            batch = events[name][start : start + 10]
            if not batch:
                continue
            kept.apply(name.lower(), [r for r, _ in batch], [n for _, n in batch])
            with db.transaction() as tx:
                for row, n in batch:
                    (tx.insert if n > 0 else tx.erase)(name.lower(), [row])
            found = sorted(tuple(row.values()) for row in kept.result().to_pylist())
            assert found == db["revenue"].rows()
    assert db["revenue"].rows()


def test_errors_of_rules() -> None:
    """What view trees cannot keep is told with its place."""

    def error(text: str, predicate: str | None = None) -> str:
        from dlog.ir.check import load_program
        from dlog.language.source import Source
        from dlog.views.export import program_query

        with pytest.raises(dlog.errors.DlogError) as found:
            program_query(load_program(Source("p.dl", text))[1], "p.dl", predicate, None)
        return found.value.render().splitlines()[0]

    base = "e(x, y) -> int(x), int(y). s(x) -> int(x).\n"
    assert error(base) == "error: p.dl has no rule with aggregates"
    rule = "t[x] = n <- agg<<n = count()>> e(x, y), !s(y)."
    assert error(base + rule) == "p.dl:2:41: error: view trees have no negation"
    rule = "t[x] = n <- agg<<n = max(y)>> e(x, y)."
    assert error(base + rule) == "p.dl:2:18: error: view trees keep sums, counts and means, not max"
    rule = "t[z] = n <- agg<<n = count()>> e(x, y), z = x + y."
    assert error(base + rule).endswith("error: z is computed: view trees group by columns")
    two = "t[x] = n <- agg<<n = count()>> e(x, _). u[x] = n <- agg<<n = count()>> e(_, x)."
    assert error(base + two) == "error: p.dl has several rules with aggregates"
    assert error(base + two, "v") == "error: no rule of p.dl with aggregates derives v"
    derived = "e(x, x) <- s(x). t[x] = n <- agg<<n = count()>> e(x, _)."
    assert "e is derived by rules" in error(base + derived)
