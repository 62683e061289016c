"""How queries by levels of maps are followed in tests: streams of rows in and out, beside DuckDB."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from dlog.views.levels.program import DEFAULT, Options
from dlog.views.nested import NestedQuery
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql

Row = tuple[Any, ...]
Event = tuple[str, Row, int]
SCHEMAS: dict[str, tuple[str, dict[str, str]]] = {
    "R": ("STREAM", {"a": "int", "b": "int"}),
    "S": ("STREAM", {"b": "int", "c": "int", "x": "double"}),
    "BIDS": ("STREAM", {"t": "int", "broker": "int", "volume": "int", "price": "int"}),
    "T": ("TABLE", {"c": "int", "d": "int", "s": "string"}),
}
DUCK = {"int": "INTEGER", "double": "DOUBLE", "string": "VARCHAR", "date": "DATE"}
VALUES: dict[str, list[Any]] = {
    "int": [-1, 0, 1, 2, 3],
    "double": [-1.5, 0.0, 0.5, 2.0],
    "string": ["a", "ab", "b"],
}


def declarations() -> str:
    return "".join(
        f"CREATE {kind} {name}({', '.join(f'{c} {t}' for c, t in columns.items())});\n"
        for name, (kind, columns) in SCHEMAS.items()
    )


def row_of(rng: random.Random, name: str) -> Row:
    return tuple(rng.choice(VALUES[t]) for t in SCHEMAS[name][1].values())


def stream(rng: random.Random, names: list[str], rows: int) -> list[Event]:
    """Rows inserted, each deleted again later: it ends with nothing."""
    events: list[tuple[float, Event]] = []
    for _ in range(rows):
        name = rng.choice(names)
        row = row_of(rng, name)
        come, go = sorted((rng.random(), rng.random()))
        events += [(come, (name, row, 1)), (go + 0.3, (name, row, -1))]
    return [event for _, event in sorted(events, key=lambda e: e[0])]


def batches(events: list[Event], size: int) -> Iterator[list[Event]]:
    for start in range(0, len(events), size):
        yield events[start : start + size]


@functools.cache
def duck() -> duckdb.DuckDBPyConnection:
    """One database for all queries: to open one takes 50 ms."""
    connection = duckdb.connect(config={"threads": 1})
    for name, (_, columns) in SCHEMAS.items():
        connection.execute(f"CREATE TABLE {name}({', '.join(f'{c} {DUCK[t]}' for c, t in columns.items())})")
    return connection


class Followed:
    """A query, and what DuckDB says about the same rows."""

    def __init__(self, text: str, options: Options = DEFAULT, tables: Mapping[str, list[Row]] | None = None):
        query = parse_sql(declarations() + text, levels=True)
        assert isinstance(query, NestedQuery)
        self.text, self.query = text, query
        self.kept = Maintained(query, options=options)
        self.streams = [s.name for s in query.sources if s.kind == "stream"]
        for name in SCHEMAS:
            duck().execute(f"DELETE FROM {name}")
        for name, rows in (tables or {}).items():
            if name in {s.name for s in query.sources}:
                self.kept.load(name, rows)
                self._insert(name, rows)

    def apply(self, events: list[Event]) -> None:
        """The rows of each stream as one batch."""
        for name in dict.fromkeys(name for name, _, _ in events):
            mine = [(row, sign) for n, row, sign in events if n == name]
            self.kept.apply(name, [row for row, _ in mine], [sign for _, sign in mine])
            for row, sign in mine:
                if sign > 0:
                    self._insert(name, [row])
                else:
                    self._delete(name, row)

    def check(self) -> None:
        found = [tuple(row.values()) for row in self.kept.result().to_pylist()]
        expected = duck().execute(self.text).fetchall()
        assert same(found, expected), f"{self.text}\n{found}\n{expected}"

    def check_empty(self) -> None:
        no_entries(self.kept)

    def _insert(self, name: str, rows: list[Row]) -> None:
        if rows:
            places = ", ".join("?" * len(rows[0]))
            duck().executemany(f"INSERT INTO {name} VALUES ({places})", rows)

    def _delete(self, name: str, row: Row) -> None:
        where = " AND ".join(f"{column} = ?" for column in SCHEMAS[name][1])
        one = f"SELECT min(rowid) FROM {name} WHERE {where}"
        duck().execute(f"DELETE FROM {name} WHERE rowid = ({one})", row)


def no_entries(kept: Maintained) -> None:
    """No map of a stream has entries.  REQUIRES: no stream has rows."""
    for report in kept.levels.program.maps:
        if type(report.initial).__name__ == "Zero":
            table = kept.runtime[report.name]
            assert not any(table.column(table.num_columns - 1).to_pylist()), report.name
            assert not report.keys or not table.num_rows, report.name


def same(found: list[Row], expected: list[Row]) -> bool:
    """In any order, unless numbers are compared that may be rounded differently."""
    one, other = (sorted(rows, key=lambda r: [_rounded(v) for v in r]) for rows in (found, expected))
    return len(one) == len(other) and all(
        _equal(v, w) for row, wanted in zip(one, other, strict=True) for v, w in zip(row, wanted, strict=True)
    )


def _rounded(value: Any) -> tuple[int, Any]:
    if value is None:
        return 0, 0.0
    return (0, round(float(value), 6)) if isinstance(value, int | float) else (1, str(value))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, int | float):
        return math.isclose(one, float(other or 0), rel_tol=1e-9, abs_tol=1e-9)
    return one == other
