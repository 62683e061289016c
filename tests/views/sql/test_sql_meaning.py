"""What a query in SQL means: random queries of the fragment, read by dlog and evaluated by definition, give
what DuckDB gives for the same text.
"""

from __future__ import annotations

import datetime
import functools
import math
from random import Random
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.views.query import Query
from dlog.views.sql.files import parse_sql
from tests.examples import relaxed
from tests.views.queries import Answer, Row, answer

# Names collide on purpose: natural joins find them, other joins have to say which is meant.
SCHEMAS = {
    "R": {"a": "int", "b": "int", "x": "double"},
    "S": {"b": "int", "c": "long", "t": "string"},
    "T": {"c": "int", "a": "int", "d": "date"},
}
DUCK_TYPES = {"int": "INTEGER", "long": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "date": "DATE"}
DAYS = [datetime.date(1995, 2, 27) + datetime.timedelta(days=30 * n) for n in range(4)]
VALUES: dict[str, list[Any]] = {
    "int": [-1, 0, 1, 2],
    "long": [-1, 0, 1, 2, 3],
    "double": [-1.5, 0.0, 1.0, 2.5],
    "string": ["a", "ab", "b%", "ba", "", "a\n", "b\na"],
    "date": DAYS,
}
Tables = dict[str, list[Row]]


def rows_of(seed: int) -> Tables:
    """Tables that join well: few values, several rows, some twice; or an empty one now and then."""
    random = Random(seed)
    return {
        name: [
            tuple(random.choice(VALUES[t]) for t in columns.values())
            for _ in range(random.choice((0, 5, 6, 7, 8, 9, 10, 11, 12)))
        ]
        for name, columns in SCHEMAS.items()
    }


def tables() -> st.SearchStrategy[Tables]:
    return st.integers(0, 10**6).map(rows_of)


class Joined:
    """A FROM in the making: the tables by their names, and the conditions that joins put into WHERE."""

    def __init__(self, draw: st.DrawFn):
        self.draw = draw
        self.relations: dict[str, str] = {}
        self.where: list[str] = []
        self.text = ""
        for number in range(draw(st.integers(1, 3))):
            relation = draw(st.sampled_from(sorted(SCHEMAS)))
            self._join(relation, f"{relation.lower()}{number}")

    def _join(self, relation: str, name: str) -> None:
        before = self.columns("int")
        self.relations[name] = relation
        here = [f"{name}.{column}" for column, t in SCHEMAS[relation].items() if t in ("int", "long")]
        table = f"{relation} {'AS ' if self.draw(st.booleans()) else ''}{name}"
        if not self.text:
            self.text = table
            return
        left, right = self.draw(st.sampled_from(before)), self.draw(st.sampled_from(here))
        kind = self.draw(st.sampled_from(["on", "inner", "comma", "cross", "natural", "using"]))
        if kind in ("natural", "using"):
            shared = self._shared(relation, name)
            if shared is None:
                kind = "on"
            else:
                self.text += (
                    f" NATURAL JOIN {table}" if kind == "natural" else f" JOIN {table} USING ({shared})"
                )
                return
        if kind in ("on", "inner"):
            self.text += f" {'INNER ' if kind == 'inner' else ''}JOIN {table} ON {left} = {right}"
            return
        self.text += f", {table}" if kind == "comma" else f" CROSS JOIN {table}"
        self.where.append(f"{left} = {right}")

    def _shared(self, relation: str, name: str) -> str | None:
        """A column of the new table that exactly one table before has, while no other is ambiguous."""
        if "," in self.text:
            return None
        counts = {
            column: sum(column in SCHEMAS[r] for n, r in self.relations.items() if n != name)
            for column in SCHEMAS[relation]
        }
        shared = [column for column, count in counts.items() if count == 1]
        return shared[0] if shared and all(count <= 1 for count in counts.values()) else None

    def columns(self, *types: str) -> list[str]:
        return [
            f"{name}.{column}"
            for name, relation in self.relations.items()
            for column, t in SCHEMAS[relation].items()
            if t in types
        ]


def _number(draw: st.DrawFn, joined: Joined, depth: int = 2) -> str:
    columns = joined.columns("int", "long", "double")
    kind = draw(
        st.sampled_from(["column", "column", "constant", "+", "-", "*", "*", "neg", "abs", "case", "/"])
    )
    if depth == 0 or kind == "column":
        return draw(st.sampled_from(columns))
    if kind == "constant":
        return draw(st.sampled_from(["2", "0.5", "3", "1"]))
    inner = _number(draw, joined, depth - 1)
    if kind == "neg":
        return f"(-{inner})"
    if kind == "abs":
        return f"{draw(st.sampled_from(['ABS', 'abs']))}({inner})"
    if kind == "/":
        return f"({inner}) / {draw(st.sampled_from(['2', '4.0']))}"
    other = _number(draw, joined, depth - 1)
    if kind == "case":
        return f"CASE WHEN {_condition(draw, joined, 1)} THEN {inner} ELSE {other} END"
    return f"({inner} {kind} {other})"


def _condition(draw: st.DrawFn, joined: Joined, depth: int = 2) -> str:
    kinds = ["compare", "compare", "between", "in", "and", "or", "not", "text", "date"]
    kind = draw(st.sampled_from(kinds if depth else kinds[:4]))
    left = draw(st.sampled_from(joined.columns("int", "long", "double")))
    right = draw(st.sampled_from(["0", "1", "2.5", *joined.columns("int", "long", "double")]))
    negated = draw(st.sampled_from(["", "NOT "]))
    if kind == "between":
        return f"{left} {negated}BETWEEN -1 AND {right}"
    if kind == "in":
        return f"{left} {negated}IN (0, 1, 3)"
    if kind in ("and", "or"):
        parts = _condition(draw, joined, depth - 1), _condition(draw, joined, depth - 1)
        return f"({parts[0]} {kind.upper()} {parts[1]})"
    if kind == "not":
        return f"NOT ({_condition(draw, joined, depth - 1)})"
    if kind == "text" and joined.columns("string"):
        text = draw(st.sampled_from(joined.columns("string")))
        tests = [
            f"{text} {negated}LIKE 'a%'",
            f"{text} LIKE '_'",
            f"{text} < 'b'",
            f"SUBSTRING({text}, 2, 1) = 'b'",
        ]
        return draw(st.sampled_from(tests))
    if kind == "date" and joined.columns("date"):
        date = draw(st.sampled_from(joined.columns("date")))
        tests = [f"{date} >= '1995-03-29'", f"{date} = DATE '1995-02-27'", f"EXTRACT(MONTH FROM {date}) = 4"]
        return draw(st.sampled_from(tests))
    return f"{left} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=', '!=']))} {right}"


def _aggregate(draw: st.DrawFn, joined: Joined) -> str:
    first = f"SUM({_number(draw, joined)})"
    column = draw(st.sampled_from(joined.columns("int", "string", "date")))
    return draw(
        st.sampled_from(
            [
                first, first, "COUNT(*)", f"COUNT({column})", f"AVG({_number(draw, joined)})",
                f"{first} - 2 * COUNT(*)", f"{first} / COUNT(*)", f"-{first} / 2",
                f"({first} + SUM({_number(draw, joined)})) * 3",
            ]
        )
    )  # fmt: skip


@st.composite
def queries(draw: st.DrawFn) -> tuple[str, int]:
    """A SELECT whose grouped columns come first, and how many these are."""
    joined = Joined(draw)
    grouped = draw(st.lists(st.sampled_from(joined.columns(*DUCK_TYPES)), max_size=2, unique=True))
    aggregates = [_aggregate(draw, joined) for _ in range(draw(st.integers(1, 3)))]
    where = joined.where + [_condition(draw, joined) for _ in range(draw(st.integers(0, 2)))]
    text = f"SELECT {', '.join([*grouped, *aggregates])}\nFROM {joined.text}"
    if where:
        text += f"\nWHERE {' AND '.join(where)}"
    if grouped:
        text += f"\nGROUP BY {', '.join(grouped)}"
    return text, len(grouped)


def declarations(types: dict[str, str] | None = None) -> str:
    kind = "TABLE" if types else "STREAM"
    return "".join(
        f"CREATE {kind} {name}({', '.join(f'{c} {(types or {}).get(t, t)}' for c, t in columns.items())});\n"
        for name, columns in SCHEMAS.items()
    )


@functools.cache
def duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute(declarations(DUCK_TYPES))
    return connection


def asked_of_duckdb(text: str, rows: Tables) -> list[Row]:
    connection = duck()
    for name, content in rows.items():
        connection.execute(f"DELETE FROM {name}")
        if content:
            line = f"({', '.join('?' for _ in SCHEMAS[name])})"
            values = [value for row in content for value in row]
            connection.execute(f"INSERT INTO {name} VALUES {', '.join(line for _ in content)}", values)
    return connection.execute(text).fetchall()


def same(text: str, grouped: int, rows: Tables) -> None:
    query = parse_sql(declarations() + text)
    found: Answer = answer(query, rows)
    expected: Answer = {}
    for row in asked_of_duckdb(text, rows):
        # Columns that are equal are one variable: such a query has fewer keys than the text names.
        names = [variable_of(text, query, index) for index in range(grouped)]
        key = dict(zip(names, row[:grouped], strict=True))
        expected[tuple(key[v] for v in query.free)] = tuple(value or 0 for value in row[grouped:])
    assert set(found) == set(expected)
    for key, values in found.items():
        for value, other in zip(values, expected[key], strict=True):
            assert math.isclose(float(value), float(other), rel_tol=1e-9, abs_tol=1e-9), (key, value, other)


def variable_of(text: str, query: Query, index: int) -> str:
    """The variable of a grouped column, from its name in the text."""
    table, column = text.removeprefix("SELECT ").split(",")[index].strip().split(".")
    atom = query.atom(table)
    return atom.variables[list(SCHEMAS[atom.relation]).index(column)]


CASES = {
    "equation_within_a_relation": ("SELECT COUNT(*), SUM(R.a) FROM R WHERE R.a = R.b", 0),
    "equations_meet_in_a_relation": ("SELECT COUNT(*) FROM R, S WHERE R.a = S.b AND R.b = S.b", 0),
    "comma_before_natural_join": ("SELECT COUNT(*) FROM R, S NATURAL JOIN T", 0),
    "natural_join_before_comma": ("SELECT COUNT(*) FROM R NATURAL JOIN S, T", 0),
    "natural_join_of_two_columns": ("SELECT COUNT(*) FROM R NATURAL JOIN S NATURAL JOIN T", 0),
    "self_join": ("SELECT r1.a, SUM(r1.x * r2.x) FROM R r1 JOIN R r2 ON r1.b = r2.a GROUP BY r1.a", 1),
    "disjunction": ("SELECT COUNT(*) FROM R WHERE R.a = 1 OR R.b < 1 OR R.x > 1", 0),
    "membership": ("SELECT COUNT(*) FROM R WHERE (R.a = 1 OR R.a = 2) AND (R.b = 0 OR R.b = 0)", 0),
    "disjunction_of_conjunctions": (
        "SELECT COUNT(*) FROM R WHERE (R.a = 1 AND R.b < 2) OR (R.a = 2 AND R.x > 0) OR R.b = 1 OR R.x = 0",
        0,
    ),
    "negated_disjunction": ("SELECT COUNT(*) FROM R WHERE NOT (R.a < 1 OR NOT R.b <= 1)", 0),
    "negated_conjunction": ("SELECT COUNT(*) FROM R WHERE NOT (R.a <= 1 AND R.b >= 1)", 0),
    "substring": ("SELECT COUNT(*) FROM S WHERE SUBSTRING(t, 2) = 'b'", 0),
    "lines": (r"SELECT COUNT(*) FROM S WHERE S.t LIKE 'b%' OR S.t LIKE 'a' OR S.t LIKE '_'", 0),
    "like": (r"SELECT COUNT(*) FROM S WHERE S.t LIKE 'b_' AND S.t NOT LIKE '%a'", 0),
    "sum_of_products": ("SELECT S.t, SUM(R.a * S.c - S.c * R.x + 1) FROM R NATURAL JOIN S GROUP BY S.t", 1),
    "product_of_sums": ("SELECT SUM((R.a + S.c) * (R.x - S.c)) FROM R NATURAL JOIN S", 0),
    "promotion": ("SELECT SUM(R.a * 0.5), SUM(S.c + R.a), AVG(R.b) FROM R NATURAL JOIN S", 0),
    "arithmetic_on_sums": ("SELECT (SUM(R.a) - SUM(R.b)) / COUNT(*), 2 * AVG(R.x) / 4 FROM R", 0),
    "case": ("SELECT SUM(CASE R.a WHEN 1 THEN R.b WHEN 2 THEN R.x ELSE 0 END) FROM R", 0),
    "dates": ("SELECT SUM(EXTRACT(YEAR FROM T.d) + MONTH(T.d) * DAY(T.d)) FROM T", 0),
    "functions": ("SELECT SUM(GREATEST(R.a, R.b, 1) * SQRT(ABS(R.x)) + POW(R.a, 2)) FROM R", 0),
    "always": ("SELECT COUNT(*) FROM R WHERE TRUE AND 1 < 2 AND (R.a = 1 OR 2 = 2)", 0),
    "using": ("SELECT COUNT(*) FROM R JOIN T USING (a) JOIN S USING (b, c)", 0),
    "group_by_place": ("SELECT R.b, COUNT(*) FROM R GROUP BY 1", 1),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_oracle_cases(case: tuple[str, int]) -> None:
    for seed in range(6):
        same(*case, rows_of(seed))


@given(queries(), tables())
@relaxed(150)
def test_oracle_duckdb(query: tuple[str, int], rows: Tables) -> None:
    same(*query, rows)


@pytest.mark.fuzz
@given(queries(), tables())
@relaxed(20_000, random=True)
def test_oracle_duckdb_long(query: tuple[str, int], rows: Tables) -> None:
    same(*query, rows)


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        ("AVG(x), COUNT(*)", [("avg", "count"), ("count", None)]),
        ("AVG(x), COUNT(*) AS n", [("avg", "n"), ("n", None)]),
        ("SUM(x) / SUM(a), SUM(a) AS total", [("ratio", "total"), ("total", None)]),
        ("AVG(x), SUM(x) AS count", [("count_2", None), ("avg", "count_2"), ("count", None)]),
    ],
)
def test_what_a_mean_is_divided_by_is_a_column_if_one_is_the_same(
    select: str, columns: list[tuple[str, str | None]]
) -> None:
    """And it takes no name from a column."""
    query = parse_sql(f"CREATE STREAM R(a int, x double); SELECT {select} FROM R;")
    assert [(aggregate.name, aggregate.divisor) for aggregate in query.aggregates] == columns
    assert query.aggregates[0].hidden == (columns[0][0] == "count_2")
