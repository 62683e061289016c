"""Relations listed by their factors: against every combination of rows, and DuckDB; in the order of the
variable order; the work until the first row and between rows.
"""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DlogError, UnsupportedError
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax.parse import parse
from dlog.views.m3.factors import factor_text
from dlog.views.orders.dtree import parse_dtree
from dlog.views.orders.factors import factorisation
from dlog.views.query import Query, variables_of
from dlog.views.run.listing import FEW, Listing
from dlog.views.sql.files import parse_sql
from tests.examples import relaxed
from tests.oracle.views_naive import assignment, value
from tests.test_errors import ROOT, command
from tests.views.random_queries import Case, cases, random_order

Row = tuple[Any, ...]


@st.composite
def listings(draw: Any) -> Case:
    """Random joins, some of them cyclic, with random columns to list; conditions on one relation each."""
    case = draw(cases(cyclic=draw(st.booleans())))
    query: Query = case.query
    free = tuple(draw(st.lists(st.sampled_from(query.variables), unique=True, min_size=1)))
    within = [set(atom.variables) for atom in query.atoms]
    conditions = tuple(c for c in query.conditions if any(set(variables_of(c)) <= v for v in within))
    query = replace(query, aggregates=(), free=free, conditions=conditions)
    order = draw(st.none() | random_order(query))
    return replace(case, query=query, order=order)


def expected(query: Query, relations: dict[str, Counter[Row]]) -> set[Row]:
    found = set()
    for rows in itertools.product(*(relations[atom.relation] for atom in query.atoms)):
        binding = assignment(query, list(rows))
        if binding is not None and all(value(c, binding) for c in query.conditions):
            found.add(tuple(binding[v] for v in query.free))
    return found


def in_order(listing: Listing, rows: Iterable[Row]) -> list[Row]:
    """Sorted by the variables as the variable order has them."""
    places = [listing.columns.index(v) for v in listing.order]
    return sorted(rows, key=lambda row: [row[p] for p in places])


@relaxed(60)
@given(case=listings())
def test_oracle_listings(case: Case) -> None:
    """After every batch, also of deletions: each row once, in order."""
    try:
        listing = Listing(case.query, case.order)
    except DlogError as error:
        assert case.order is not None and "not selected, but above" in error.message
        listing = Listing(case.query)
    present = {s.name: Counter(case.tables.get(s.name, ())) for s in case.query.sources}
    for table, rows in case.tables.items():
        listing.load(table, rows)
    for relation, rows, times in case.batches:
        listing.apply(relation, rows, times)
        for row, n in zip(rows, times, strict=True):
            present[relation][row] += n
        present[relation] = +present[relation]
        assert list(listing.rows()) == in_order(listing, expected(case.query, present))
        listing.check()


@relaxed(10)
@given(case=listings())
def test_differential_exported_factors(case: Case) -> None:
    """The program with its factors as maps, read back from its text, has the same factors."""
    listing = Listing(case.query)
    runtime = Runtime(parse(factor_text(factorisation(case.query))))
    batches = [(t, rows, [1] * len(rows)) for t, rows in case.tables.items()] + case.batches
    for relation, rows, times in batches:
        listing.apply(relation, rows, times)
        runtime.apply(relation, rows, times)
    for variable, factor in listing.factors.items():
        table = runtime[f"FACTOR_{variable}"]
        assert [tuple(row.values())[:-1] for row in table.to_pylist()] == list(
            map(tuple, factor.rows().tolist())
        )
        assert set(table["value"].to_pylist()) <= {1}


STAR = """
    CREATE STREAM R(k int, a int); CREATE STREAM S(k int, b int); CREATE STREAM T(k int, c int);
    SELECT DISTINCT k, a, b, c FROM R NATURAL JOIN S NATURAL JOIN T;
"""


def star(n: int, keys: int = 2) -> Listing:
    listing = Listing(parse_sql(STAR))
    for name in "RST":
        listing.apply(name, [(k, x) for k in range(keys) for x in range(n)])
    return listing


def test_invariant_the_work_for_first_rows_does_not_depend_on_the_result() -> None:
    """2 * 20^3, 2 * 200^3 and 2 * 2000^3 rows: the same steps until the first row."""
    steps = []
    for n in (20, 200, 2000):
        listing = star(n)
        rows = listing.rows()
        assert next(rows) == (0, 0, 0, 0)
        steps.append(listing.steps)
    assert steps[0] == steps[1] == steps[2] <= 2 * FEW


def test_invariant_delay_is_constant() -> None:
    """Even where only one row in a thousand of a relation has partners: the factor of k has only those."""
    listing = Listing(parse_sql(STAR))
    n = 20_000
    listing.apply("R", np.stack([np.arange(n), np.zeros(n, int)], axis=1))
    listing.apply("S", np.stack([np.arange(0, n, 1000), np.zeros(n // 1000, int)], axis=1))
    listing.apply("T", np.stack([np.arange(0, n, 500), np.zeros(n // 500, int)], axis=1))
    done, most = 0, 0
    for words in listing.batches():
        most = max(most, (listing.steps - done) / words.shape[1])
        done = listing.steps
    assert 0 < most <= 8
    assert [row[0] for row in listing.rows()] == list(range(0, n, 1000))
    assert len(listing.factors["k"]) == n // 1000 and len(star(10)) == 2 + 3 * 20


def test_more_rows_than_64_bits_count() -> None:
    """10^24 rows are listed as quickly as one, and disappear with one deletion."""
    columns = [f"x{i}" for i in range(6)]
    relations = "".join(f"CREATE STREAM R{i}(k int, {c} int); " for i, c in enumerate(columns))
    joined = " NATURAL JOIN ".join(f"R{i}" for i in range(6))
    listing = Listing(parse_sql(f"{relations} SELECT DISTINCT * FROM {joined};"))
    for i in range(6):
        listing.apply(f"R{i}", np.stack([np.zeros(10_000, int), np.arange(10_000)], axis=1))
    listing.apply("R5", [(1, 1)])
    assert list(itertools.islice(listing.rows(), 3)) == [
        (0, 0, 0, 0, 0, 0, 0),
        (0, 0, 0, 0, 0, 0, 1),
        (0, 0, 0, 0, 0, 0, 2),
    ]
    assert listing.steps < 200
    everything = np.stack([np.zeros(10_000, int), np.arange(10_000)], axis=1)
    listing.apply("R3", everything, np.full(10_000, -1))
    assert list(listing.rows()) == []


def test_a_listing_shows_the_relation_as_it_was_when_it_began() -> None:
    listing = star(30)
    rows = listing.rows()
    seen = [next(rows)]
    listing.apply("R", [(0, x) for x in range(30)], [-1] * 30)
    seen += rows
    assert len(seen) == len(set(seen)) == 2 * 30**3
    assert sum(1 for _ in listing.rows()) == 30**3


def test_a_row_that_comes_twice_stays_until_both_are_gone() -> None:
    listing = star(2, keys=1)
    listing.apply("R", [(0, 1)])
    listing.apply("R", [(0, 1)], [-1])
    assert len(list(listing.rows())) == 8
    listing.apply("R", [(0, 1)], [-1])
    assert [row[1] for row in listing.rows()] == [0] * 4


SNOWFLAKE = """
    CREATE STREAM SALES(shop string, day date, item int, price double);
    CREATE TABLE SHOP(shop string, town string);
    CREATE TABLE ITEM(item int, kind string);
    SELECT DISTINCT town, day, kind, price FROM SALES NATURAL JOIN SHOP NATURAL JOIN ITEM WHERE price > 1.5;
"""


def test_oracle_duckdb() -> None:
    """Texts, dates and floats, bound join variables, a condition; insertions and deletions in batches."""
    rng = np.random.default_rng(3)
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(int(d)) for d in range(4)]
    tables = {
        "SHOP": [(f"s{i}", f"town{i % 3}") for i in range(8)],
        "ITEM": [(i, f"kind{i % 4}") for i in range(20)],
    }
    listing, connection = Listing(parse_sql(SNOWFLAKE)), duckdb.connect()
    connection.execute("create table sales(shop varchar, day date, item int, price double)")
    for name, columns in (("SHOP", "shop varchar, town varchar"), ("ITEM", "item int, kind varchar")):
        connection.execute(f"create table {name}({columns})")
        connection.executemany(f"insert into {name} values (?, ?)", tables[name])
        listing.load(name, tables[name])
    rows: list[Row] = []
    for _ in range(6):
        new = [
            (f"s{rng.integers(10)}", days[rng.integers(4)], int(rng.integers(22)), float(rng.integers(8)) / 2)
            for _ in range(40)
        ]
        gone = [rows[i] for i in rng.choice(len(rows), len(rows) // 2, replace=False)] if rows else []
        left = Counter(rows + new)
        left.subtract(gone)
        rows = list(left.elements())
        listing.apply("SALES", new + gone, [1] * len(new) + [-1] * len(gone))
        connection.execute("delete from sales")
        connection.executemany("insert into sales values (?, ?, ?, ?)", rows)
        found = list(listing.rows())
        wanted = connection.execute(SNOWFLAKE[SNOWFLAKE.index("SELECT") :]).fetchall()
        assert sorted(found) == sorted(wanted) and wanted
        listing.check()


def test_the_order_of_a_file() -> None:
    """Any order with the selected columns on top; the variables of one relation alone may be in it or not."""
    query = parse_sql(
        "CREATE STREAM R(a int, b int, x int); CREATE STREAM S(b int, c int);"
        "SELECT DISTINCT a, b, c FROM R NATURAL JOIN S;"
    )
    text = "4 2\n0 c int -1 {} 0\n1 b int 0 {0} 0\n2 a int 1 {1} 0\n3 x int 2 {1,2} 0\nR 3 a,b,x\nS 1 b,c\n"
    listing = Listing(query, parse_dtree(text, query))
    assert listing.order == ("c", "b", "a")
    listing.apply("R", [(5, 1, 0), (4, 1, 0), (4, 1, 1), (3, 2, 0)])
    listing.apply("S", [(1, 8), (2, 7), (3, 6)])
    assert list(listing.rows()) == [(3, 2, 7), (4, 1, 8), (5, 1, 8)]
    below = parse_sql(
        "CREATE STREAM R(a int, b int, x int); CREATE STREAM S(b int, c int);"
        "SELECT DISTINCT a, c FROM R NATURAL JOIN S;"
    )
    with pytest.raises(DlogError, match="b is not selected, but above a"):
        Listing(below, parse_dtree(text, below))


def test_what_cannot_be_listed() -> None:
    sources = "CREATE STREAM R(a int, b int); CREATE STREAM S(b int, c int);"
    with pytest.raises(UnsupportedError, match="under a condition on several relations"):
        Listing(parse_sql(f"{sources} SELECT DISTINCT a, c FROM R NATURAL JOIN S WHERE a < c;"))
    with pytest.raises(DlogError, match="without aggregates"):
        Listing(parse_sql(f"{sources} SELECT a, COUNT(*) FROM R NATURAL JOIN S GROUP BY a;"))
    listing = Listing(parse_sql(f"{sources} SELECT DISTINCT a FROM R NATURAL JOIN S;"))
    with pytest.raises(DlogError, match="there is no relation T"):
        listing.apply("T", [(1, 2)])


def test_command_lists_the_shipped_query() -> None:
    """All rows in order, as DuckDB gave them; the first ones in few steps; its program checks."""
    query = "programs/sql/house_rows.sql"
    file = ROOT / "programs/sql/expected/house_rows.csv"
    wanted = [line.replace("|", ",") for line in file.read_text(encoding="utf-8").splitlines()]
    out, err, status = command("list", query)
    assert (err, status) == ("", 0) and out.splitlines() == ["postcode,h2,s2,i2,r2", *wanted]
    out, err, status = command("list", query, "-n", "2", "--stats")
    assert out.splitlines()[1:] == wanted[:2] and "132 rows of factor relations" in err
    assert "DECLARE QUERY FACTOR_postcode" in command("list", query, "--m3")[0]
    out, err, status = command("list", "programs/reach.dl")
    assert status == 1 and "is not an SQL file" in err
