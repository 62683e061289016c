"""The shipped workload in tests: its queries, streams of generated rows, and DuckDB on the same rows."""

from __future__ import annotations

import functools
import importlib.util
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pyarrow as pa

from dlog.views.levels.program import DEFAULT, Options
from dlog.views.nested import NestedQuery
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import read_sql
from tests.test_errors import ROOT
from tests.views.levels.following import Event, Row, no_entries, same

PROGRAMS = ROOT / "programs"
FOLDERS = ("finance", "tpch")
QUERIES = {
    f"{path.parent.name}/{path.stem}": path for f in FOLDERS for path in sorted((PROGRAMS / f).glob("*.sql"))
}
TYPES = {"int": pa.int64(), "double": pa.float64(), "string": pa.string(), "date": pa.date32()}


@functools.cache
def generator(name: str) -> ModuleType:
    """A generator of `programs/generators`, which is no package."""
    spec = importlib.util.spec_from_file_location(f"workload_{name}", PROGRAMS / "generators" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@functools.cache
def tables(folder: str) -> dict[str, list[Row]]:
    """Rows that never change."""
    if folder == "finance":
        return {}
    rows = generator("tpch").shipped()
    return {"REGION": rows["region"], "NATION": rows["nation"]}


@functools.cache
def stream(folder: str, names: tuple[str, ...], rows: int, seed: int) -> list[Event]:
    """Events of these relations, which end with nothing; the largest relation has about `rows` rows."""
    rng = random.Random(f"{folder} {seed}")
    if folder == "finance":
        found = generator("finance").events(2 * rows, seed=seed, size=rows // 4, brokers=3, closes=True)
        return [(name.upper(), row, sign) for name, row, sign in found if name.upper() in names]
    kept = {
        name: (some if name.upper() in names else [])
        for name, some in _related(generator("tpch").shipped(), rows, rng).items()
    }
    return [
        (name.upper(), row, sign) for name, row, sign in generator("tpch").events(kept, live=0.85, seed=seed)
    ]


def _related(every: dict[str, list[Row]], rows: int, rng: random.Random) -> dict[str, list[Row]]:
    """Some orders with all their lines, and all rows of what is small."""
    orders = rng.sample(every["orders"], rows // 5)
    keys = {row[0] for row in orders}
    return {**every, "orders": orders, "lineitem": [row for row in every["lineitem"] if row[0] in keys]}


def batches(
    events: Sequence[Event], sizes: Iterable[int], rng: random.Random | None = None
) -> Iterator[list[Event]]:
    """Events in batches of these sizes, one after the other and again; with `rng`, each batch is shuffled."""
    at, left = 0, list(sizes)
    while at < len(events):
        size = left.pop(0)
        left.append(size)
        batch = list(events[at : at + size])
        if rng is not None:
            rng.shuffle(batch)
        yield batch
        at += size


class Rows:
    """What DuckDB has: the rows of each relation, loaded when it is asked."""

    def __init__(self, query: NestedQuery):
        self.sources = {source.name: source for source in query.sources}
        self.counts: dict[str, Counter[Row]] = {name: Counter() for name in self.sources}
        self.changed = set(self.sources)

    def add(self, name: str, row: Row, sign: int) -> None:
        self.counts[name][row] += sign
        self.changed.add(name)

    def ask(self, text: str) -> list[Row]:
        for name in self.changed:
            rows = list(self.counts[name].elements())
            columns = self.sources[name].columns
            listed = zip(*rows, strict=True) if rows else [()] * len(columns)
            table = pa.table(
                {c.name: pa.array(v, TYPES[c.type.name]) for c, v in zip(columns, listed, strict=True)}
            )
            duck().register("given", table)
            duck().execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
        self.changed = set()
        return duck().execute(text).fetchall()


@functools.cache
def duck() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def select(path: Path) -> str:
    """The query of a file, without its declarations."""
    return path.read_text(encoding="utf-8").split("');\n")[-1]


class Workload:
    """A shipped query by levels of maps, and what DuckDB says about the same rows."""

    def __init__(self, name: str, options: Options = DEFAULT):
        query = read_sql(QUERIES[name], levels=True)
        assert isinstance(query, NestedQuery)
        self.name, self.query, self.select = name, query, select(QUERIES[name])
        self.kept, self.rows = Maintained(query, options=options), Rows(query)
        for source in query.sources:
            for row in tables(name.split("/")[0]).get(source.name, ()):
                self.rows.add(source.name, row, 1)
            if source.kind == "table":
                self.kept.load(source.name, list(self.rows.counts[source.name]))

    def stream(self, rows: int, seed: int) -> list[Event]:
        names = tuple(s.name for s in self.query.sources if s.kind == "stream")
        return stream(self.name.split("/")[0], names, rows, seed)

    def apply(self, events: Sequence[Event]) -> None:
        """The rows of each relation as one batch."""
        for name in dict.fromkeys(name for name, _, _ in events):
            mine = [(row, sign) for n, row, sign in events if n == name]
            self.kept.apply(name, [row for row, _ in mine], [sign for _, sign in mine])
        for name, row, sign in events:
            self.rows.add(name, row, sign)

    def check(self) -> None:
        found = [tuple(row.values()) for row in self.kept.result().to_pylist()]
        expected = self.rows.ask(self.select)
        assert same(found, expected), f"{self.name}\n{found}\n{expected}"

    def check_empty(self) -> None:
        assert not any(
            +counts for n, counts in self.rows.counts.items() if self.rows.sources[n].kind == "stream"
        )
        no_entries(self.kept)


def expected(name: str) -> list[list[Any]]:
    """The lines of the shipped result."""
    text = (QUERIES[name].parent / "expected" / f"{QUERIES[name].stem}.csv").read_text(encoding="utf-8")
    return [line.split("|") for line in text.splitlines()]
