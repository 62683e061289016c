"""SQL kept up to date: random queries over streams with deletions, as DuckDB says after every batch."""

from __future__ import annotations

import math
from random import Random

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.views.query import Query
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql
from tests.examples import relaxed
from tests.views.queries import Answer
from tests.views.sql.test_sql_meaning import (
    CASES,
    SCHEMAS,
    Tables,
    asked_of_duckdb,
    declarations,
    queries,
    rows_of,
    variable_of,
)


def kept_answer(kept: Maintained) -> Answer:
    query = kept.query
    shown = [aggregate.name for aggregate in query.aggregates if not aggregate.hidden]
    rows = kept.result().to_pylist()
    return {tuple(row[v] for v in query.free): tuple(row[name] or 0 for name in shown) for row in rows}


def expected_answer(query: Query, text: str, grouped: int, rows: Tables) -> Answer:
    names = [variable_of(text, query, index) for index in range(grouped)]
    found: Answer = {}
    for row in asked_of_duckdb(text, rows):
        key = dict(zip(names, row[:grouped], strict=True))
        found[tuple(key[v] for v in query.free)] = tuple(value or 0 for value in row[grouped:])
    return found


def follow(text: str, grouped: int, seed: int) -> None:
    """Insert and delete in batches; now and then, look."""
    random = Random(seed)
    query = parse_sql(declarations() + text)
    kept = Maintained(query)
    now: Tables = {name: [] for name in SCHEMAS}
    used = [source.name for source in query.sources]
    for step in range(6):
        name = random.choice(used)
        fresh = random.sample(rows_of(seed + step)[name], k=min(4, len(rows_of(seed + step)[name])))
        gone = random.sample(now[name], k=min(len(now[name]), random.randrange(3)))
        kept.apply(name, fresh + gone, [1] * len(fresh) + [-1] * len(gone))
        for row in gone:
            now[name].remove(row)
        now[name] += fresh
        same_answers(kept_answer(kept), expected_answer(query, text, grouped, now))


def same_answers(found: Answer, expected: Answer) -> None:
    assert set(found) == set(expected)
    for key, values in found.items():
        for value, other in zip(values, expected[key], strict=True):
            assert math.isclose(float(value), float(other), rel_tol=1e-9, abs_tol=1e-9), (key, value, other)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_oracle_duckdb_cases(case: tuple[str, int]) -> None:
    follow(*case, seed=7)


@pytest.mark.parametrize("group", ["b, R.a", "k, a", "1, 2"])
def test_oracle_duckdb_names_of_columns(group: str) -> None:
    """A column may have another's name; the other steps aside."""
    select = f"SELECT R.b AS k, a AS b, SUM(x * c) AS total FROM R JOIN S ON R.b = S.b GROUP BY {group}"
    columns = "R(a int, b int, x int)", "S(b int, c int)"
    kept = Maintained(parse_sql("".join(f"CREATE STREAM {c};" for c in columns) + select))
    rows = {"R": [(1, 2, 3), (4, 2, 5), (1, 7, 1), (1, 2, 4)], "S": [(2, 10), (7, 3), (2, 1)]}
    with duckdb.connect() as connection:
        for name, created in zip(rows, columns, strict=True):
            connection.execute(f"CREATE TABLE {created}")
            connection.executemany(
                f"INSERT INTO {name} VALUES {'(?, ?, ?)' if name == 'R' else '(?, ?)'}", rows[name]
            )
            kept.apply(name, rows[name])
        grouped = select.replace("GROUP BY b, R.a", "GROUP BY R.b, R.a")  # DuckDB takes b for the new name
        expected = connection.sql(f"{grouped} ORDER BY 1, 2").to_arrow_table().to_pylist()
    assert kept.result().to_pylist() == expected


@given(queries(), st.integers(0, 10**6))
@relaxed(40)
def test_oracle_duckdb_streams(query: tuple[str, int], seed: int) -> None:
    follow(*query, seed)


@pytest.mark.fuzz
@given(queries(), st.integers(0, 10**6))
@relaxed(5000, random=True)
def test_oracle_duckdb_streams_long(query: tuple[str, int], seed: int) -> None:
    follow(*query, seed)
