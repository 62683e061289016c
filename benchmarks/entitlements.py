"""Who may do what: a program over strings alone, against DuckDB on the same SQL.

Users are in teams, teams have roles, roles allow resources; some are revoked.  Joins, negation,
concatenation, `contains`, `match`, the least of strings, and sorted output, over five million strings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

import dlog
from benchmarks.harness import DLOG, Row, at_least, faster, timed, within

PROGRAM = """
.decl member(user: symbol, team: symbol)
.decl grants(team: symbol, role: symbol)
.decl allows(role: symbol, resource: symbol)
.decl revoked(user: symbol, resource: symbol)
.input member(IO="parquet", filename="member.parquet")
.input grants(IO="parquet", filename="grants.parquet")
.input allows(IO="parquet", filename="allows.parquet")
.input revoked(IO="parquet", filename="revoked.parquet")
"""
RULES = {
    "join": "may(u, r) <- member(u, t), grants(t, o), allows(o, r), !revoked(u, r).",
    "contains": 'secret(u, r) <- member(u, t), grants(t, o), allows(o, r), contains("secret", r).',
    "match": 'guest(u, t) <- member(u, t), match("guest[0-9]+[05]@.*", u).',
    "concatenation": 'label(cat(cat(u, ":"), t)) <- member(u, t).',
    "least string": "first[t] = u <- agg<<u = min(v)>> member(v, t).",
    "order": "before(u, t) <- member(u, t), u < t.",
}
NAMES = ("may", "secret", "guest", "label", "first", "before")
JOIN = "member join grants using (team) join allows using (role)"
SQL = {
    "join": f"select distinct user, resource from {JOIN} anti join revoked using (user, resource)",
    "contains": f"select distinct user, resource from {JOIN} where contains(resource, 'secret')",
    "match": "select user, team from member where regexp_full_match(user, 'guest[0-9]+[05]@.*')",
    "concatenation": "select distinct user || ':' || team from member",
    "least string": "select team, min(user) from member group by team",
    "order": "select user, team from member where user < team",
}


def benchmark(scale: float) -> Iterator[Row]:
    tables = generated(at_least(100, 1_000_000 * scale))
    strings = sum(t.num_rows * t.num_columns for t in tables.values())
    size = f"{strings:,} strings"
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables.items():
            pyarrow.parquet.write_table(table, Path(folder) / f"{name}.parquet")
        yield from whole(Path(folder), size)
        yield from rules(Path(folder), size)
        yield from output(Path(folder), size)


def generated(users: int) -> dict[str, pa.Table]:
    """Every user in two teams; one team for ten users, one role for ten teams."""
    random = np.random.default_rng(5)
    kinds = np.array(["user", "guest", "admin"])[random.integers(0, 3, users)]
    names = pc.binary_join_element_wise(
        pa.array(kinds), pc.cast(pa.array(np.arange(users)), pa.string()), pa.scalar("@example.org"), ""
    )
    teams = numbered("team ", users // 10)
    roles = numbered("role ", max(users // 100, 1))
    folders = numbered("/share/public/file ", users // 20)
    secrets = numbered("/share/secret/file ", users // 200 + 1)
    resources = pa.concat_arrays([folders, secrets])

    def pairs(a: pa.Array, b: pa.Array, n: int, names: tuple[str, str]) -> pa.Table:
        chosen = [x.take(pa.array(random.integers(0, len(x), n))) for x in (a, b)]
        return pa.table(dict(zip(names, chosen, strict=True)))

    return {
        "member": pairs(names, teams, 2 * users, ("user", "team")),
        "grants": pairs(teams, roles, users // 10, ("team", "role")),
        "allows": pairs(roles, resources, users // 25, ("role", "resource")),
        "revoked": pairs(names, resources, users // 4, ("user", "resource")),
    }


def numbered(prefix: str, n: int) -> pa.Array:
    numbers = pc.utf8_lpad(pc.cast(pa.array(np.arange(n)), pa.string()), 7, "0")
    return pc.binary_join_element_wise(pa.scalar(prefix), numbers, "")


def whole(folder: Path, size: str) -> Iterator[Row]:
    """Load and evaluate everything; all results are stored as tables on both sides."""
    program = PROGRAM + "\n".join(RULES.values())

    def ours() -> list[int]:
        database = dlog.Database(source=program, facts=folder)
        return [len(database.relation(name)) for name in NAMES]

    def theirs() -> list[int]:
        connection = loaded(folder)
        for name, sql in zip(NAMES, SQL.values(), strict=True):
            connection.execute(f"create table {name} as {sql}")
        return [_count(connection, f"select count(*) from {name}") for name in NAMES]

    measured = timed({DLOG: ours, "DuckDB": theirs}, runs=2)
    assert measured[DLOG].result == measured["DuckDB"].result, measured
    yield Row(
        "load and all rules", size, measured[DLOG].seconds, measured["DuckDB"].seconds, "DuckDB", within(1)
    )


def loaded(folder: Path):  # type: ignore[no-untyped-def]
    from benchmarks.harness import duck

    connection = duck()
    for name in ("member", "grants", "allows", "revoked"):
        connection.execute(
            f"create table {name} as select distinct * from read_parquet('{folder / name}.parquet')"
        )
    return connection


def rules(folder: Path, size: str) -> Iterator[Row]:
    """Each rule by itself, over loaded facts; results as their own tables on both sides."""
    connection = loaded(folder)
    for (name, rule), predicate in zip(RULES.items(), NAMES, strict=True):
        database = dlog.Database(source=PROGRAM + rule, facts=folder, evaluated=False)
        sql = f"create or replace table result as {SQL[name]}"

        def theirs(sql: str = sql) -> int:
            connection.execute(sql)
            return _count(connection, "select count(*) from result")

        measured = timed(
            {DLOG: lambda d=database, p=predicate: len(d.relation(p)), "DuckDB": theirs},  # type: ignore[misc]
            runs=2,
        )
        assert measured[DLOG].result == measured["DuckDB"].result, (name, measured)
        ours, other = measured[DLOG].seconds, measured["DuckDB"].seconds
        yield Row(name, f"{measured[DLOG].result:,} rows", ours, other, "DuckDB", faster(1))


def output(folder: Path, size: str) -> Iterator[Row]:
    """Rows written in the order of their texts."""
    database = dlog.Database(source=PROGRAM, facts=folder)
    connection = loaded(folder)
    sql = "select * from member order by all"
    measured = timed(
        {
            DLOG: lambda: database["member"].to_arrow().num_rows,
            "DuckDB": lambda: connection.sql(sql).to_arrow_table().num_rows,
        },
        runs=2,
    )
    assert measured[DLOG].result == measured["DuckDB"].result
    ours, theirs = measured[DLOG].seconds, measured["DuckDB"].seconds
    yield Row("sorted rows as Arrow", f"{measured[DLOG].result:,} rows", ours, theirs, "DuckDB", faster(1))


def _count(connection, sql: str) -> int:  # type: ignore[no-untyped-def]
    return int(connection.execute(sql).fetchone()[0])
