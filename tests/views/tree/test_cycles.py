"""Cyclic joins: which views get indicator projections, how large views are with them and without, and answers
under insertions and deletions as DuckDB and the delta strategy say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import duckdb
import pytest

import dlog
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.views.m3.program import NATIVE, Style, m3_text
from dlog.views.orders.orders import arrange, find_order
from dlog.views.picture.notation import explain
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql
from dlog.views.tree import build
from dlog.views.tree.build import view_tree

Row = tuple[int, ...]

JOINS = {
    "triangle": {"R": "ab", "S": "bc", "T": "ca"},
    "weighted triangle": {"R": "abu", "S": "bcv", "T": "caw"},
    "square": {"R": "ab", "S": "bc", "T": "cd", "U": "da"},
    "clique": {"R": "ab", "S": "ac", "T": "ad", "U": "bc", "V": "bd", "W": "cd"},
    "two of one relation": {"R": "abx", "S": "bc", "T": "ca", "U": "px", "V": "pa"},
}
CHAINS = {"square": "abcd", "two of one relation": "abxpc"}  # where found orders need no indicator, or fewer
STYLES = {"batch": NATIVE, "single": Style(batch=False)}


def sql(join: dict[str, str], select: str, tables: str = "") -> str:
    lines = [
        f"CREATE {'TABLE' if name in tables else 'STREAM'} {name}({', '.join(f'{c} int' for c in columns)});"
        for name, columns in join.items()
    ]
    return "\n".join([*lines, select.format(" NATURAL JOIN ".join(join))])


def chain(query, names: str, beside: Mapping[str, str] | None = None):
    """The order in which each variable is below the one before it, and some below others."""
    return arrange(query, dict(zip(names, [None, *names[:-1]], strict=True)) | (beside or {}))


def indicators(query, order=None) -> dict[str, list[tuple[str | None, tuple[str, ...]]]]:
    tree = view_tree(query, order or find_order(query))
    return {
        view.name: found
        for view in tree.walk()
        if (found := [(leaf.atom, leaf.keys) for leaf in view.children if leaf.is_indicator])
    }


@pytest.mark.parametrize(
    ("name", "order", "expected"),
    [
        ("triangle", "abc", {"c": [("R", ("a", "b"))]}),
        ("weighted triangle", "abcw", {"c": [("R", ("a", "b"))]}),  # u and v beside
        ("square", "abcd", {"c": [("R", ("a", "b"))]}),  # none has a and c, the keys of the view at d
        ("two of one relation", "abxpc", {"p": [("R", ("a", "b", "x"))], "c": [("R", ("a", "b"))]}),
        ("clique", "abcd", {"d": [("R", ("a", "b")), ("S", ("a", "c")), ("U", ("b", "c"))]}),
    ],
)
def test_indicators_of_cycles(name: str, order: str, expected: dict) -> None:
    query = parse_sql(sql(JOINS[name], "SELECT COUNT(*) FROM {};"))
    beside = {"u": "b", "v": "c"} if name == "weighted triangle" else {}
    assert indicators(query, chain(query, order, beside)) == expected


def test_no_indicators_where_none_help() -> None:
    path = parse_sql(sql({"R": "ab", "S": "bc", "T": "cd"}, "SELECT COUNT(*) FROM {};"))
    assert not indicators(path)
    kept_nowhere = parse_sql(sql(JOINS["triangle"], "SELECT COUNT(*) FROM {};", tables="ST"))
    assert list(indicators(kept_nowhere, chain(kept_nowhere, "abc"))) == ["c"]  # read by changes of R
    one_stream = parse_sql(sql(JOINS["triangle"], "SELECT COUNT(*) FROM {};", tables="RT"))
    assert not indicators(one_stream, chain(one_stream, "abc"))  # the view over S and T is never stored


def test_explain_shows_the_indicator() -> None:
    query = parse_sql(sql(JOINS["triangle"], "SELECT COUNT(*) FROM {};"))
    text = explain(view_tree(query, chain(query, "abc")), query)
    assert "∃R[a, b]  indicator of R" in text
    assert "V@c_{S,T}[a, b] = ⊕_c (S[b, c] ⊗ T[c, a] ⊗ ∃R[a, b])" in text
    assert "δ_{∃R} V@c_{S,T}[a, b] = ⊕_c (S[b, c] ⊗ T[c, a] ⊗ δ_{∃R} ∃R[a, b])" in text


def test_indicators_of_one_relation_are_distinguished() -> None:
    """Each change of a view is defined once, though two indicators of R change the root."""
    query = parse_sql(sql(JOINS["two of one relation"], "SELECT COUNT(*) FROM {};"))
    text = explain(view_tree(query, chain(query, CHAINS["two of one relation"])), query)
    defined = [line.split(" = ")[0] for line in text.splitlines() if " = " in line]
    assert len(defined) == len(set(defined))
    assert "∃R'[a, b, x]  indicator of R" in text and "δ_{∃R'} ∃R'[a, b, x]" in text


# Sizes


def hub(n: int) -> list[Row]:
    """Everything is connected with 0, and nothing with anything else."""
    return [(0, i) for i in range(n)] + [(i, 0) for i in range(1, n)]


def largest_view(name: str, n: int) -> int:
    """The most entries of a map that ever was, over a hub in all relations, then without half of it."""
    query = parse_sql(sql(JOINS[name], "SELECT COUNT(*) FROM {};"))
    kept, most = Maintained(query), 0
    for rows, times in ((hub(n), 1), (hub(n)[::2], -1)):
        for relation in JOINS[name]:
            kept.apply(relation, rows, [times] * len(rows))
            names = [m.name for m in kept.runtime.compiled.program.maps]
            most = max(most, *(kept.runtime[m].num_rows for m in names))
            kept.runtime.check()
    return most


@pytest.mark.parametrize("name", ["triangle", "clique"])
def test_views_are_no_larger_than_relations(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 40
    most = 2 * len(hub(n)) if name == "clique" else len(hub(n))  # a hub has 3 n triangles: a view has them
    assert largest_view(name, n) <= most
    monkeypatch.setattr(build, "with_indicators", lambda root, query: root)
    assert largest_view(name, n) >= n * n


# Answers


def changes(join: dict[str, str], seed: int, steps: int):
    """Batches of rows that come and go, with what is there after each."""
    random, now = Random(seed), {name: Counter[Row]() for name in join}
    for name in (*join, *random.choices(list(join), k=steps)):
        new = [tuple(random.randrange(2) for _ in join[name]) for _ in range(random.randrange(2, 5))]
        there = sorted(now[name].elements())
        gone = random.sample(there, min(len(there), random.randrange(4)))
        now[name].update(new)
        now[name].subtract(gone)
        yield name, new + gone, [1] * len(new) + [-1] * len(gone), now


def asked(join: dict[str, str], select: str, now: dict[str, Counter[Row]]) -> list[Row]:
    with duckdb.connect() as connection:
        for name, columns in join.items():
            connection.execute(f"CREATE TABLE {name}({', '.join(f'{c} int' for c in columns)})")
            rows = list(now[name].elements())
            if rows:
                holes = ", ".join("?" for _ in columns)
                connection.executemany(f"INSERT INTO {name} VALUES ({holes})", rows)
        found = connection.execute(select.format(" NATURAL JOIN ".join(join))).fetchall()
    return sorted(tuple(value or 0 for value in row) for row in found)


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
@pytest.mark.parametrize("name", JOINS)
def test_oracle_duckdb_cycles(name: str, style: Style) -> None:
    select = "SELECT b, COUNT(*), SUM(a * c) FROM {} GROUP BY b"
    query = parse_sql(sql(JOINS[name], select + ";"))
    kept = Maintained(query, chain(query, CHAINS[name]) if name in CHAINS else None, style)
    said = 0
    for step, (relation, rows, times, now) in enumerate(changes(JOINS[name], 5, 25)):
        kept.apply(relation, rows, times)
        if step % 3:
            continue
        found = [tuple(row.values()) for row in kept.result().to_pylist()]
        assert found == asked(JOINS[name], select, now)
        said += bool(found)
    assert said > 4


@pytest.mark.parametrize("name", ["weighted triangle", "two of one relation"])
def test_oracle_duckdb_products_of_cycles(name: str) -> None:
    """Changes of R that are products: what it has in its indicators comes and goes with them."""
    join, random = JOINS[name], Random(8)
    select = "SELECT b, COUNT(*), SUM(a * c) FROM {} GROUP BY b"
    query = parse_sql(sql(join, select + ";"))
    parts = [list(join["R"][:1]), list(join["R"][1:])]
    kept = Maintained(query, chain(query, CHAINS[name]) if name in CHAINS else None, products={"R": parts})
    taken_back, said = 0, 0
    for relation, rows, times, now in changes(join, 7, 12):
        kept.apply(relation, rows, times)
        given = [
            [tuple(random.choices(range(2), k=len(p))) for _ in "ab"[: random.randint(1, 2)]] for p in parts
        ]
        product = Counter(first + rest for first in given[0] for rest in given[1])
        back = product <= now["R"]
        times = [[-1 if back else 1] * len(given[0]), [1] * len(given[1])]
        kept.apply_product("R", *given, multiplicities=times)
        (now["R"].subtract if back else now["R"].update)(product)
        found = [tuple(row.values()) for row in kept.result().to_pylist()]
        assert found == asked(join, select, now)
        kept.runtime.check()
        taken_back, said = taken_back + back, said + bool(found)
    assert taken_back > 2 and said > 4


@pytest.mark.parametrize("name", JOINS)
def test_oracle_duckdb_texts(name: str) -> None:
    """What is exported, in each dialect, counts the same."""
    query = parse_sql(sql(JOINS[name], "SELECT COUNT(*) FROM {};"))
    order = chain(query, CHAINS[name]) if name in CHAINS else find_order(query)
    tree = view_tree(query, order)
    styles = (Style(), Style(batch=False), Style(dialect=ast.A5, batch=False))
    texts = [m3_text(query, tree, style) for style in styles]
    assert all("EXISTS(" in text for text in texts)
    runtimes = [
        Runtime(parse(text, dialect=style.dialect)) for text, style in zip(texts, styles, strict=True)
    ]
    for relation, rows, times, _ in changes(JOINS[name], 6, 30):
        for runtime in runtimes:
            runtime.apply(relation, rows, times)
    *_, (_, _, _, now) = changes(JOINS[name], 6, 30)
    expected = asked(JOINS[name], "SELECT COUNT(*) FROM {}", now)
    assert expected[0][0] > 0
    assert [[(row["value"],) for row in r["count"].to_pylist()] for r in runtimes] == [expected] * 3


PROGRAM = """
    e(a, b) -> int(a), int(b).
    three[a] = n, sum_of_three[a] = x <- agg<<n = count(), x = sum(b * c)>> e(a, b), e(b, c), e(c, a).
    four[] = n <- agg<<n = count()>> e(a, b), e(b, c), e(c, d), e(d, a).
    all_four[] = n <- agg<<n = count()>> e(a, b), e(a, c), e(a, d), e(b, c), e(b, d), e(c, d).
"""


def test_differential_deltas_of_cycles() -> None:
    """Rules over one relation that is joined with itself, and transactions that are undone."""
    random = Random(3)
    ways = [dlog.Database(source=PROGRAM, strategy=way) for way in ("views", "delta")]
    predicates = ("three", "sum_of_three", "four", "all_four")
    for step in range(25):
        new = [(random.randrange(6), random.randrange(6)) for _ in range(4)]
        old = [(random.randrange(6), random.randrange(6)) for _ in range(5 if step % 3 == 0 else 1)]
        for db in ways:
            with db.transaction() as tx:
                tx.erase("e", old)
                tx.insert("e", new)
                if step % 5 == 4:
                    tx.rollback()
            db.check()
        assert [[db[p].rows() for p in predicates] for db in ways[:1]] == [
            [db[p].rows() for p in predicates] for db in ways[1:]
        ]
    assert all(ways[0][p].rows() for p in predicates)
