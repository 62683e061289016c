"""SQL with nested aggregates, exported for each system that reads M3: it accepts the program, and what the
program's text gives when it is run is what DuckDB gives, after every batch."""

from __future__ import annotations

import random

import pytest

from dlog import m3
from dlog.m3.runtime.runtime import Runtime
from dlog.views.levels.export import level_text
from dlog.views.levels.program import Options
from dlog.views.m3.export import Target, target
from dlog.views.sql.files import parse_sql
from tests.oracle.m3_consumers import complaints
from tests.oracle.m3_readers import A5, DBT, FIVM
from tests.views.levels.following import batches, declarations, duck, stream
from tests.views.levels.test_nested_sql import CASES

READERS = {"a5": A5, "dbtoaster": DBT, "fivm": FIVM}
TARGETS = {name: target(name) for name in READERS}
IN_FILES = declarations().replace(");\n", ") FROM FILE 'x.csv' LINE DELIMITED CSV (delimiter := '|');\n")
COMPARED = {
    "sums on both sides": (
        """SELECT SUM(a) AS total, COUNT(*) AS n FROM R
        WHERE (SELECT COALESCE(SUM(c), 0) FROM S WHERE S.b = R.b)
            < (SELECT COALESCE(SUM(volume), 0) FROM BIDS WHERE broker = R.a)""",
        0,
    ),
    "groups of sums on both sides": (
        """SELECT b, SUM(a) AS total, COUNT(*) AS n FROM R
        WHERE (SELECT COALESCE(SUM(c), 0) FROM S WHERE S.b < R.b)
            < (SELECT COALESCE(SUM(volume), 0) FROM BIDS WHERE broker > R.a) GROUP BY b""",
        1,
    ),
    "equal counts": (
        """SELECT a, b, COUNT(*) AS n FROM R WHERE (SELECT COUNT(*) FROM S WHERE S.b <= R.b)
            = (SELECT COUNT(*) FROM BIDS WHERE broker > R.a) GROUP BY a, b""",
        2,
    ),
    "exists with an inequality": (
        """SELECT b, SUM(a) AS total, COUNT(*) AS n FROM R
        WHERE EXISTS (SELECT * FROM S WHERE S.b < R.b AND S.c > R.a) GROUP BY b""",
        1,
    ),
    "not exists with an inequality": (
        """SELECT b, SUM(a) AS total, COUNT(*) AS n FROM R
        WHERE NOT EXISTS (SELECT * FROM S WHERE S.b < R.b AND S.c > R.a) GROUP BY b""",
        1,
    ),
    "exists over a sum": (
        """SELECT b, COUNT(*) AS n FROM R WHERE EXISTS (SELECT * FROM S WHERE S.b > R.b
            AND S.c < (SELECT COALESCE(SUM(volume), 0) FROM BIDS WHERE broker = S.c)) GROUP BY b""",
        1,
    ),
    "groups of groups": (
        """SELECT k, COUNT(*) AS n, SUM(v) AS total
        FROM (SELECT b, COUNT(*) AS k, SUM(a) AS v FROM R GROUP BY b) x
        WHERE k < (SELECT COALESCE(SUM(c), 0) FROM S) GROUP BY k""",
        1,
    ),
    "having": (
        """SELECT b, SUM(a) AS total FROM R GROUP BY b
        HAVING SUM(a) < (SELECT COALESCE(SUM(c), 0) FROM S WHERE S.b = R.b)""",
        1,
    ),
}


@pytest.mark.parametrize("to", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("case", COMPARED)
def test_oracle_duckdb_of_exported_programs(case: str, to: Target) -> None:
    sql, keys = COMPARED[case]
    text = exported(sql, to)
    assert complaints(text, READERS[to.consumer.name]) == []
    runtime = Runtime(m3.parse(text, dialect=to.consumer.dialect))
    rng = random.Random(case)
    names = {own.name.removeprefix("REL_"): own.name for own in runtime.program.sources}
    for name in names:
        duck().execute(f"DELETE FROM {name}")
    for batch in batches(stream(rng, list(names), 12), 4):
        for name, row, sign in batch:
            runtime.apply(names[name], [row], [sign])
            change(name, row, sign)
        assert shown(runtime) == expected(sql, keys)


@pytest.mark.parametrize("to", [TARGETS["dbtoaster"], TARGETS["fivm"]], ids=["rows", "batches"])
@pytest.mark.parametrize("case", CASES)
def test_exported_programs_are_accepted(case: str, to: Target) -> None:
    assert complaints(exported(CASES[case], to), READERS[to.consumer.name]) == []


def exported(sql: str, to: Target) -> str:
    return level_text(parse_sql(IN_FILES + sql + ";", levels=True), to, Options())[1]  # type: ignore[arg-type]


def change(name: str, row: tuple[object, ...], sign: int) -> None:
    if sign > 0:
        duck().execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        return
    columns = [column[0] for column in duck().execute(f"DESCRIBE {name}").fetchall()]
    where = " AND ".join(f"{column} = ?" for column in columns)
    duck().execute(f"DELETE FROM {name} WHERE rowid = (SELECT min(rowid) FROM {name} WHERE {where})", row)


def shown(runtime: Runtime) -> list[dict[tuple[object, ...], object]]:
    """The results without zeros, which a map has no entries for."""
    tables = [[tuple(row.values()) for row in table.to_pylist()] for _, table in runtime.results()]
    return [{row[:-1]: row[-1] for row in rows if row[-1]} for rows in tables]


def expected(sql: str, keys: int) -> list[dict[tuple[object, ...], object]]:
    rows = duck().execute(sql).fetchall()
    width = len(duck().description)
    return [{row[:keys]: int(row[at]) for row in rows if row[at]} for at in range(keys, width)]
