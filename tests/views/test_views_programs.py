"""The shipped queries over streams with deletions, as SQL and as rules, after every batch; and rules that
view trees cannot keep.  `test_sql_files` runs what is exported.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dlog
from dlog.m3.syntax import ast
from dlog.views.m3.export import export, read_query
from dlog.views.query import Query
from dlog.views.run.maintained import Maintained

PROGRAMS = Path(__file__).parents[2] / "programs"
SQL_TYPES = {"string": "varchar", "long": "bigint"}
Row = tuple[Any, ...]
Event = tuple[str, list[Row], list[int]]  # relation, rows, multiplicities
BATCH = 20


def rows_of_file(source: ast.Source) -> list[tuple[Row, int]]:
    """Rows and multiplicities of a stream's file."""
    convert = {"int": int, "double": float, "date": datetime.date.fromisoformat}
    kinds = [convert.get(c.type.name, str) for c in source.columns]
    assert source.file is not None
    lines = (PROGRAMS / "sql" / source.file).read_text(encoding="utf-8").splitlines()
    cells = [line.split("|") for line in lines]
    return [(tuple(kind(c) for kind, c in zip(kinds, row, strict=False)), int(row[-1])) for row in cells]


def batches(query: Query) -> list[Event]:
    """The streams take turns."""
    events = {source.name: rows_of_file(source) for source in query.sources}
    found = []
    for start in range(0, max(map(len, events.values())), BATCH):
        for name, lines in events.items():
            if batch := lines[start : start + BATCH]:
                found.append((name, [row for row, _ in batch], [n for _, n in batch]))
    return found


def duck(name: str, query: Query, relations: dict[str, Counter[Row]]) -> list[Row]:
    connection = duckdb.connect()
    for source in query.sources:
        columns = ", ".join(f"{c.name} {SQL_TYPES.get(c.type.name, c.type.name)}" for c in source.columns)
        connection.execute(f"create table {source.name}({columns})")
        rows = list(relations[source.name].elements())
        if rows:
            places = ", ".join("?" * len(source.columns))
            connection.executemany(f"insert into {source.name} values ({places})", rows)
    text = (PROGRAMS / "sql" / f"{name}.sql").read_text(encoding="utf-8")
    select = re.search(r"^SELECT.*", text, re.DOTALL | re.MULTILINE)
    assert select is not None
    return sorted(connection.execute(select.group()).fetchall())


def same(found: list[Row], expected: list[Row], keys: int) -> None:
    assert [row[:keys] for row in found] == [row[:keys] for row in expected]
    for one, other in zip(found, expected, strict=True):
        for value, wanted in zip(one[keys:], other[keys:], strict=True):
            assert math.isclose(value, wanted, rel_tol=1e-9)


# The query, the program that asks the same, the predicate of the rule, and what it derives beside it.
SAME = [
    ("order_book", "order_book", "spread", {"BIDS": "bid", "ASKS": "ask"}, ("spread", "pairs")),
    ("open_orders", "open_orders", "revenue", {}, ("revenue",)),
]


@pytest.mark.parametrize(
    ("name", "program", "predicate", "renamed", "outputs"), SAME, ids=[s[0] for s in SAME]
)
def test_streams_with_deletions(
    name: str, program: str, predicate: str, renamed: dict[str, str], outputs: tuple[str, ...]
) -> None:
    """The same batches as SQL, as rules maintained by views, as rules maintained by the engine, and by
    DuckDB.
    """
    path = PROGRAMS / f"{program}.dl"
    sql, rules = read_query(PROGRAMS / "sql" / f"{name}.sql"), read_query(path, predicate)
    kept = [Maintained(sql), Maintained(rules)]
    text = re.sub(r"^\.input.*", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    db = dlog.Database(source=text)
    present: dict[str, Counter[Row]] = {source.name: Counter() for source in sql.sources}
    for relation, rows, times in batches(sql):
        lower = renamed.get(relation, relation.lower())
        kept[0].apply(relation, rows, times)
        kept[1].apply(lower, rows, times)
        with db.transaction() as tx:
            for row, n in zip(rows, times, strict=True):
                floats = [
                    float(v) if c.type.name == "double" else v
                    for v, c in zip(row, rules.source(lower).columns, strict=True)
                ]
                (tx.insert if n > 0 else tx.erase)(lower, [tuple(floats)])
                present[relation][row] += n
        present[relation] = +present[relation]
        expected = duck(name, sql, present)
        for one in kept:
            same([tuple(row.values()) for row in one.result().to_pylist()], expected, len(sql.free))
        for at, output in enumerate(outputs):
            width = len(sql.free)
            same(db[output].rows(), [(*row[:width], row[width + at]) for row in expected], width)
    assert expected


def test_update_r_is_as_the_paper_has_it() -> None:
    sql = PROGRAMS / "sql"
    text = export(sql / "update_r_ring.sql", dtree=sql / "update_r.dtree", batch=True)
    assert "AGG_VIEW_C(Ring)[][v_a]" in text and "ON SYSTEM READY" in text


def test_errors_of_rules() -> None:
    """Constructs that view trees do not support are reported with their position."""

    def error(text: str, predicate: str | None = None) -> str:
        from dlog.ir.check import load_program
        from dlog.language.source import Source
        from dlog.views.m3.export import program_query

        with pytest.raises(dlog.errors.DlogError) as found:
            program_query(load_program(Source("p.dl", text))[1], "p.dl", predicate, None)
        return found.value.render().splitlines()[0]

    base = "e(x, y) -> int(x), int(y). s(x) -> int(x).\n"
    assert error(base) == "error: p.dl has no rule with aggregates"
    rule = "t[x] = n <- agg<<n = count()>> e(x, y), !s(y)."
    assert error(base + rule) == "p.dl:2:41: error: view trees have no negation"
    rule = "t[x] = n <- agg<<n = max(y)>> e(x, y)."
    assert error(base + rule) == "p.dl:2:18: error: view trees maintain sums, counts and means, not max"
    rule = "t[z] = n <- agg<<n = count()>> e(x, y), z = x + y."
    assert error(base + rule).endswith("error: z is computed: view trees group by columns")
    two = "t[x] = n <- agg<<n = count()>> e(x, _). u[x] = n <- agg<<n = count()>> e(_, x)."
    assert error(base + two) == "error: p.dl has several rules with aggregates"
    assert error(base + two, "v") == "error: no rule of p.dl with aggregates derives v"
    derived = "e(x, x) <- s(x). t[x] = n <- agg<<n = count()>> e(x, _)."
    assert "e is derived by rules" in error(base + derived)
