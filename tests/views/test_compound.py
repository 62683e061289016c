"""Aggregates that share one payload: against separate maps, DuckDB and fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DataError, UnsupportedError
from dlog.m3.rings.averages import average_ring
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax.parse import parse
from dlog.views.compound import compound
from dlog.views.m3.export import export
from dlog.views.m3.program import Style, m3_text
from dlog.views.orders.orders import find_order
from dlog.views.run.one_payload import OnePayload
from dlog.views.sql.files import parse_sql
from dlog.views.tree.build import view_tree
from tests.examples import relaxed
from tests.test_errors import ROOT

SOURCES = "CREATE STREAM R(a int, x double, n int); CREATE STREAM S(a int, b int, y double);"
JOIN = "FROM R NATURAL JOIN S"
QUERIES = {
    "moments": f"SELECT COUNT(*), SUM(x), SUM(x * x), AVG(x) {JOIN}",
    "moments by group": f"SELECT b, COUNT(*) AS c, SUM(x), SUM(x * x) {JOIN} GROUP BY b",
    "average by group": f"SELECT a, AVG(y), COUNT(*) {JOIN} GROUP BY a",
    "of two relations": f"SELECT SUM(x * y), SUM(x), SUM(2 * y) - COUNT(*), COUNT(*) {JOIN}",
    "of a product": f"SELECT SUM(x * n), AVG(x * n) {JOIN}",
    "of an expression": f"SELECT b, SUM((x + 1) * y), SUM(y) {JOIN} GROUP BY b",
}  # fmt: skip
# Halves and small integers: every sum is exact, in any order.
REALS = st.integers(-8, 8).map(lambda n: n / 2)
R = st.tuples(st.integers(0, 2), REALS, st.integers(-3, 3))
S = st.tuples(st.integers(0, 2), st.integers(0, 1), REALS)
BATCHES = st.lists(
    st.one_of(
        st.tuples(st.just("R"), st.lists(R, min_size=1, max_size=5)),
        st.tuples(st.just("S"), st.lists(S, min_size=1, max_size=5)),
    ),
    min_size=1,
    max_size=5,
)


def duck(text: str, present: dict[str, Counter]) -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    for statement in ("create table r(a int, x double, n int)", "create table s(a int, b int, y double)"):
        connection.execute(statement)
    for name, rows in present.items():
        if rows:
            connection.executemany(f"insert into {name} values (?, ?, ?)", list(rows.elements()))
    found = connection.execute(text).fetchall()
    return sorted(tuple(v or 0 for v in row) for row in found)


@pytest.mark.parametrize("name", QUERIES)
@relaxed(10)
@given(batches=BATCHES, which=st.data())
def test_oracle_duckdb(name: str, batches: list[Any], which: st.DataObject) -> None:
    """Batches of insertions, each with deletions of rows that are there."""
    kept = OnePayload(parse_sql(f"{SOURCES} {QUERIES[name]};"))
    present: dict[str, Counter] = {"R": Counter(), "S": Counter()}
    for relation, rows in batches:
        there = sorted(present[relation].elements())
        gone = which.draw(st.lists(st.sampled_from(range(len(there))), unique=True)) if there else []
        old = [there[i] for i in gone]
        present[relation].update(rows)
        present[relation].subtract(old)
        present[relation] = +present[relation]
        kept.apply(relation, [*rows, *old], [1] * len(rows) + [-1] * len(old))
        found = sorted(tuple(row.values()) for row in kept.result().to_pylist())
        assert found == duck(QUERIES[name], present)
        kept.maintained.runtime.check()


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("name", QUERIES)
def test_each_view_has_one_map(name: str, batch: bool) -> None:
    """In the program that is exported, too, whose element has what the separate aggregates are."""
    query = parse_sql(f"{SOURCES} {QUERIES[name]};")
    found = compound(query)
    tree = view_tree(found.query, find_order(found.query))
    text = m3_text(found.query, tree, Style(batch=batch))
    program = parse(text)
    stored = [m for m in program.maps if m.name.startswith(("AGG_VIEW", "COUNT_VIEW"))]
    assert len(stored) == sum(view.materialised and not view.is_leaf for view in tree.walk())
    runtime, kept = Runtime(program), OnePayload(query)
    for one in (runtime, kept):
        one.apply("R", [(1, 2.5, 3), (1, 2.5, 3), (2, 1.0, 0)])
        one.apply("S", [(1, 0, 0.5), (2, 1, 4.0), (2, 1, 1.5)])
        one.apply("R", [(1, 2.5, 3)], [-1])
    shown = [a for a in query.aggregates if not a.hidden]
    rows = [(*list(row.values())[:-1], row["value"]) for row in runtime["aggregates"].to_pylist()]
    values = [(*keys, *(found.shown(a, element) for a in shown)) for *keys, element in rows]
    assert values == [tuple(row.values()) for row in kept.result().to_pylist()]


def test_a_group_disappears_with_its_rows() -> None:
    """Though sums of plain floats are left with a rounding error."""
    kept = OnePayload(parse_sql(f"{SOURCES} {QUERIES['moments by group']};"))
    kept.apply("S", [(1, 7, 0.0)])
    kept.apply("R", [(1, 0.1, 0), (1, 0.2, 0), (1, 0.3, 0)])
    kept.apply("R", [(1, 0.3, 0), (1, 0.1, 0), (1, 0.2, 0)], [-1] * 3)
    assert kept.result().num_rows == 0


def test_shipped_query_as_one_payload() -> None:
    """That of the thesis, listings 5.4 and 5.5: count and sum of houses."""
    text = export(ROOT / "programs/sql/housing.sql", batch=True, one_payload=True)
    assert "CREATE TYPE RingAvg" in text and "[lift: RingAvg](postcode)" in text
    assert text.count("(RingAvg)[][] :=") == 1


@given(st.lists(st.tuples(st.integers(-(2**31), 2**31), st.floats(-1e6, 1e6)), min_size=2, max_size=6))
def test_oracle_ring_of_averages(values: list[tuple[int, float]]) -> None:
    """Products in fractions; a count beyond 64 bits is refused."""
    ring = average_ring()
    c, s = values[0][0], Fraction(values[0][1])
    product = ring.column(values[:1])
    for d, t in values[1:3]:
        c, s = c * d, s * d + Fraction(t) * c
        if abs(c) >= 2**63:
            with pytest.raises(DataError, match="out of range"):
                ring.multiply(product, ring.column([(d, t)]))
            return
        product = ring.multiply(product, ring.column([(d, t)]))
    count, total = ring.values(product)[0]
    assert count == c and abs(Fraction(total) - s) <= abs(s) * Fraction(2) ** -50 + Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT COUNT(*)", "only counts"),
        ("SELECT SUM(x * y * n), COUNT(*)", "no ring in common"),
        ("SELECT SUM(x), SUM(x * n * n), COUNT(*)", "no ring in common"),
    ],
)
def test_what_has_no_ring(select: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        compound(parse_sql(f"{SOURCES} {select} {JOIN};"))
