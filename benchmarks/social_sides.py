"""Owns what is compared in `social`: databases of one query under a strategy and a mode, and how they are
measured.  Knows no query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

import dlog
from benchmarks.harness import Aim, Row, duck, timed
from benchmarks.levels import generator

SCHEMA = """
user(u) -> int(u).
follower(u, f) -> int(u), int(f).
tweet[u, t] = d -> int(u), int(t), int(d).
retweet[u, r, t] = d -> int(u), int(r), int(t), int(d).
"""
GRAPH, DELTA = "join_graph", "delta"
RUNS = 5

Change = Callable[[], Any]


@dataclass
class Side:
    """A database of one query, and the transactions that each run makes."""

    strategy: str
    mode: str = "always"
    subscribed: bool = False
    reads: bool = False  # the subscriber reads how many rows there are, which puts them in order

    def open(self, query: str, facts: Mapping[str, Any], schema: str = SCHEMA) -> dlog.Database:
        name = name_of(query)
        modes = {} if self.mode == "always" else {name: self.mode}
        db = dlog.Database(source=schema + query, strategy=self.strategy, materialize=modes)
        db.apply(insert={relation: rows for relation, rows in facts.items() if len(rows)})
        if self.subscribed:
            db.subscribe(name, self.take)
        return db

    def take(self, change: Any) -> None:
        if self.reads:
            assert len(change.inserted) + len(change.erased)


def name_of(query: str) -> str:
    return query.replace("[", "(").split("(")[0]


def inserting(db: dlog.Database, relation: str, rows: Sequence[Any], n: int) -> Change:
    """Transactions of one row, others in each run."""
    waiting = iter(rows)

    def run() -> None:
        for _ in range(n):
            db.apply(insert={relation: [next(waiting)]})

    return run


def in_batches(db: dlog.Database, relation: str, rows: Sequence[Any], batch: int, n: int) -> Change:
    """n transactions of so many rows, others in each run."""
    waiting = iter([rows[start : start + batch] for start in range(0, len(rows), batch)])

    def run() -> None:
        for _ in range(n):
            db.apply(insert={relation: next(waiting)})

    return run


def seconds(changes: Mapping[str, Change], n: int) -> dict[str, float]:
    """Of one transaction, by side.  The first of several runs makes the state."""
    return {name: found.seconds / n for name, found in timed(changes, RUNS).items()}


def all_equal(databases: Mapping[str, dlog.Database], query: str) -> None:
    found = {name: sorted(db[name_of(query)].rows()) for name, db in databases.items()}
    first, *others = found.values()
    assert first and all(rows == first for rows in others), {name: len(rows) for name, rows in found.items()}


def against(
    name: str, size: str, ours: float, peers: Mapping[str, tuple[float, Aim | None]]
) -> Iterator[Row]:
    for peer, (theirs, aim) in peers.items():
        yield Row(name, size, ours, theirs, peer, aim)


# Data


@lru_cache(maxsize=1)
def network(users: int) -> dict[str, list[tuple[int, ...]]]:
    return generator("social").network(users, 11 * users, 6 * users, 7 * users).relations


def again(sql: str, data: Mapping[str, Sequence[Any]]) -> float:
    """DuckDB's time for a query from scratch."""
    columns = {"user": "u", "follower": "uf", "tweet": "utd", "retweet": "vrte"}
    tables = {
        name: pa.table({c: [row[i] for row in rows] for i, c in enumerate(columns[name])})
        for name, rows in data.items()
    }
    connection = duck(**{f'"{name}"' if name == "user" else name: t for name, t in tables.items()})
    sql = sql.replace(" user ", ' "user" ')
    return timed({"": lambda: connection.execute(sql).fetchone()})[""].seconds
