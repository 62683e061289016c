"""Joins that a plain triejoin is bad at, and programs of many rules or many strings: dlog against DuckDB.

A path whose ends are selective needs semijoins, a 4-cycle two 2-paths that meet, a count of paths does not
need the paths.  Relations are loaded on both sides before the clock runs; ours then goes from rules to
derived relations in their indices, plans included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

import dlog
from benchmarks.harness import Aim, Row, at_least, compare, duck, within
from benchmarks.triangles import power_law
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.jit import Words
from dlog.planning.options import NEVER

GRAPH = "e(x, y) -> int(x), int(y).  s(x) -> int(x).  t(x) -> int(x).\n"
PATH = "s(a), e(a, b), e(b, c), e(c, d), t(d)"
PATH_SQL = (
    "from s join e ab on s.x = ab.x join e bc on ab.y = bc.x join e cd on bc.y = cd.x join t on cd.y = t.x"
)
CYCLE = "e(a, b), e(b, c), e(c, d), e(d, a)"
CYCLE_SQL = (
    "from e ab join e bc on ab.y = bc.x join e cd on bc.y = cd.x join e da on cd.y = da.x and da.y = ab.x"
)
TWO_PATH_SQL = "from e ab join e bc on ab.y = bc.x"
ENTITLEMENTS = """
member(u, g) -> string(u), string(g).  grants(g, r) -> string(g), string(r).
permits(r, x) -> string(r), string(x).  secret(x) -> string(x).
exposed(u, x) <- member(u, g), grants(g, r), permits(r, x), secret(x).
power[u] = n <- agg<<n = count()>> member(u, g), grants(g, r), permits(r, x).
crowd[x] = n <- agg<<n = count()>> exposed(u, x).
"""
ENTITLEMENTS_SQL = (
    """create or replace temp table exposed as select distinct u, permits.x from member
    join grants using (g) join permits using (r) join secret on secret.x = permits.x""",
    """create or replace temp table power as select u, count(*) n from member
    join grants using (g) join permits using (r) group by u""",
    "create or replace temp table crowd as select x, count(*) n from exposed group by x",
)
RULES = 300
SHARING = 16


def benchmark(scale: float) -> Iterator[Row]:
    yield from paths(at_least(3000, 1_000_000 * scale))
    yield from cycles(at_least(1000, 100_000 * scale))
    yield from updated(at_least(3000, 1_000_000 * scale), at_least(100, 10_000 * scale))
    yield from many_rules(at_least(100, 2_000 * scale))
    yield from shared_rules(at_least(100, 300_000 * scale))
    yield from entitlements(at_least(2000, 2_500_000 * scale))


def paths(edges: int) -> Iterator[Row]:
    """Ends are a hundredth of the vertices each."""
    graph = directed(edges)
    size = f"{edges:,} edges"
    yield from against_duck(
        "3-path, 1% ends, count", size, counting(PATH), "n", graph, f"select count(*) {PATH_SQL}"
    )
    yield from against_duck(
        "3-path, 1% ends, pairs",
        size,
        f"p(a, d) <- {PATH}.",
        "p",
        graph,
        f"create or replace temp table p as select distinct s.x a, t.x d {PATH_SQL}",
    )
    yield from against_duck(
        "2-paths from each vertex, count",
        size,
        "p[a] = n <- agg<<n = count()>> e(a, b), e(b, c).",
        "p",
        graph,
        f"create or replace temp table p as select ab.x, count(*) n {TWO_PATH_SQL} group by ab.x",
    )


def cycles(edges: int) -> Iterator[Row]:
    graph = directed(edges)
    size = f"{edges:,} edges"
    yield from against_duck(
        "4-cycle, count", size, counting(CYCLE), "n", graph, f"select count(*) {CYCLE_SQL}"
    )
    yield from against_duck(
        "4-cycle, list",
        size,
        f"p(a, b, c, d) <- {CYCLE}.",
        "p",
        graph,
        f"create or replace temp table p as select ab.x a, bc.x b, cd.x c, da.x d {CYCLE_SQL}",
    )


def updated(edges: int, changes: int) -> Iterator[Row]:
    """Triangles and 3-paths of a relation after single-row updates; the peer is the same, freshly loaded."""
    graph = directed(edges)
    random = np.random.default_rng(11)
    for name, rule in (("triangles", counting("e(a, b), e(b, c), e(a, c)")), ("3-paths", counting(PATH))):
        changed, fresh = loaded(GRAPH + rule, graph), loaded(GRAPH + rule, graph)
        relation = changed.store.relations["e"]
        for row in random.integers(0, edges // 10, (changes // 2, 2)).tolist():
            relation = relation.insert_row(row) or relation
        for number in random.integers(0, edges, changes // 2).tolist():
            relation = relation.erase_row([int(column[number]) for column in graph["e"]]) or relation
        changed.store.relations["e"] = relation
        fresh.store.relations["e"].apply_in_place(erases=fresh.store.relations["e"].rows())
        fresh.store.relations["e"].apply_in_place(inserts=relation.rows())
        yield from compare(
            f"{name} after updates",
            f"{changes:,} rows of {edges:,}",
            lambda database=changed: run(database, "n"),  # type: ignore[misc]
            {"freshly loaded": lambda database=fresh: run(database, "n")},  # type: ignore[misc]
            {"freshly loaded": within(1.5)},
        )


def shared_rules(items: int) -> Iterator[Row]:
    """Rules over the same costly sub-body, each with its own filter: none alone would compute it
    separately.
    """
    random = np.random.default_rng(3)
    tables = {
        "sold": pairs(random, items, 365, 5 * items),
        "priced": pairs(random, items, 100, 5 * items),
        **{f"t{k}": [np.sort(random.choice(100, 70, replace=False))] for k in range(SHARING)},
    }
    lines = ["sold(i, d) -> int(i), int(d).  priced(i, c) -> int(i), int(c)."]
    for k in range(SHARING):
        lines.append(f"t{k}(c) -> int(c).")
        lines.append(f"p{k}[d] = n <- agg<<n = count()>> sold(i, d), priced(i, c), t{k}(c).")
    shared, alone = (loaded("\n".join(lines), tables) for _ in range(2))
    alone.store.options = replace(alone.store.options, sharing=NEVER)
    last = f"p{SHARING - 1}"
    yield from compare(
        f"{SHARING} rules over one sub-body",
        f"{5 * items:,} rows",
        lambda: run(shared, last),
        {"each rule alone": lambda: run(alone, last)},
    )


def pairs(random: np.random.Generator, a: int, b: int, n: int) -> list[Words]:
    rows = np.stack([random.integers(0, a, n), random.integers(0, b, n)], axis=1)
    return list(np.unique(rows, axis=0).T)


def many_rules(rows: int) -> Iterator[Row]:
    """A chain of rules over small relations: the cost of planning.  Every tenth joins four atoms."""
    random = np.random.default_rng(5)
    tables = {f"e{i}": list(np.unique(random.integers(0, rows, (rows, 2)), axis=0).T) for i in range(10)}
    lines = [f"{name}(x, y) -> int(x), int(y)." for name in tables] + ["r0(x, y) <- e0(x, y)."]
    statements = ["create or replace temp table r0 as select x, y from e0"]
    for i in range(1, RULES):
        e, f = f"e{i % 10}", f"e{(i + 3) % 10}"
        more, more_sql = (
            f", {f}(z, w), {f}(w, z)",
            f" join {f} f on f.x = e.y join {f} g on g.x = f.y and g.y = f.x",
        )
        extra, extra_sql = (more, more_sql) if i % 10 == 0 else ("", "")
        lines.append(f"r{i}(x, z) <- r{i - 1 if i % 7 else 0}(x, y), {e}(y, z){extra}.")
        statements.append(
            f"create or replace temp table r{i} as select distinct r.x, e.y "
            f"from r{i - 1 if i % 7 else 0} r join {e} e on r.y = e.x{extra_sql}"
        )
    last = f"r{RULES - 1}"
    yield from against_duck(
        f"{RULES} rules", f"{rows:,} rows each", "\n".join(lines), last, tables, *statements, declared=""
    )


def entitlements(memberships: int) -> Iterator[Row]:
    """Users, groups, roles and resources, all identified by strings; two of them in each membership."""
    random = np.random.default_rng(9)
    users, groups, roles, resources = (
        memberships // 5,
        memberships // 250 + 3,
        memberships // 1000 + 3,
        memberships // 100 + 9,
    )

    def pairs(n: int, left: tuple[str, int], right: tuple[str, int]) -> list[pa.Array]:
        rows = np.unique(np.stack([random.integers(0, k, n) for _, k in (left, right)], axis=1), axis=0)
        texts = [pa.array([f"{name} number {i}" for i in range(k)]) for name, k in (left, right)]
        return [text.take(pa.array(column)) for text, column in zip(texts, rows.T, strict=True)]

    user, group = ("user", users), ("group", groups)
    role, resource = ("role", roles), ("resource", resources)
    tables: dict[str, Any] = {
        "member": pairs(memberships, user, group),
        "grants": pairs(2 * groups, group, role),
        "permits": pairs(20 * roles, role, resource),
        "secret": [pa.array([f"resource number {i}" for i in range(0, resources, 100)])],
    }
    names = {"member": "ug", "grants": "gr", "permits": "rx", "secret": "x"}
    size = f"{2 * memberships:,} strings"
    yield from against_duck(
        "entitlements", size, ENTITLEMENTS, "exposed", tables, *ENTITLEMENTS_SQL, declared="", names=names
    )


# Both sides


def against_duck(
    name: str,
    size: str,
    rules: str,
    derived: str,
    tables: dict[str, Any],
    *statements: str,
    declared: str = GRAPH,
    names: dict[str, str] | None = None,
    aim: Aim | None = None,
) -> Iterator[Row]:
    """The rules on tables by column, and the same in SQL: its last statement counts, or makes `derived`."""
    database = loaded(declared + rules, tables)
    columns = {t: (names or {}).get(t, "xy") for t in tables}
    connection = duck(
        **{t: pa.table(dict(zip(columns[t], arrays, strict=False))) for t, arrays in tables.items()}
    )
    counts = statements[-1].startswith("select")

    def theirs() -> int:
        for statement in statements:
            cursor = connection.execute(statement)
        if not counts:
            cursor = connection.execute(f"select count(*) from {derived}")
        row = cursor.fetchone()
        assert row is not None
        return int(row[0])

    yield from compare(
        name, size, lambda: run(database, derived), {"DuckDB": theirs}, {"DuckDB": aim or within(1.5)}
    )


def counting(body: str) -> str:
    return f"n[] = k <- agg<<k = count()>> {body}.\n"


def loaded(source: str, tables: dict[str, Any]) -> dlog.Database:
    """A database with its base facts loaded and no rule run."""
    database = dlog.Database(source=source, evaluated=False)
    for name, arrays in tables.items():
        if isinstance(arrays[0], pa.Array):
            arrays = [database.store.dictionary.encode(array) for array in arrays]
        database.store.relations[name].apply_in_place(
            inserts=[np.ascontiguousarray(a, np.int64) for a in arrays]
        )
    return database


def run(database: dlog.Database, derived: str) -> int:
    """Evaluates all rules; the rows of a predicate, or its value if it is one number."""
    program, store = database.program, database.store
    for stratum in program.strata:
        for name in stratum.predicates:
            store.clear(name)
    evaluate(program, store, Evaluation())
    if program.predicates[derived].arity == 1 and program.predicates[derived].is_functional:
        rows = store.relations[derived].rows()
        return int(rows[0, 0]) if len(rows) else 0
    return len(store.relations[derived])


def directed(edges: int) -> dict[str, Any]:
    """A power-law graph with each edge in a random direction, and two samples of its vertices."""
    source, target = power_law(edges, edges // 10)
    random = np.random.default_rng(3)
    turned = random.random(len(source)) < 0.5
    ends: list[Words] = [random.choice(edges // 10, max(3, edges // 1000), replace=False) for _ in range(2)]
    e = [np.where(turned, source, target), np.where(turned, target, source)]
    return {"e": e, "s": [np.sort(ends[0])], "t": [np.sort(ends[1])]}
