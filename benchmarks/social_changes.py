"""Kinds of changes of `social`: batches of retweets (GIVM 9.4), and rows that are inserted, updated and
deleted (9.7).  Knows no other query of the thesis than the one it is given."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import dlog
from benchmarks.harness import Row, at_least, faster, within
from benchmarks.social_sides import (
    DELTA,
    GRAPH,
    RUNS,
    SCHEMA,
    Side,
    again,
    all_equal,
    in_batches,
    network,
    seconds,
)

AUTHORS = 50
BATCHES = 1, 10, 100, 1000, 10_000


def batches(scale: float, query: str, relation: str, joined: str) -> Iterator[Row]:
    """Q3: time for a retweet, if so many come in one transaction; DuckDB joins all again after the most."""
    data = network(at_least(60, 10_000 * scale))
    rows = data[relation]
    most = len(rows) // (2 * RUNS)
    for batch in dict.fromkeys(min(batch, most) for batch in BATCHES):
        taken = at_least(1, min(100, 2000 / batch, most / batch))
        last = RUNS * taken * batch
        read = {"user": data["user"], "tweet": data["tweet"], relation: rows[:-last]}
        databases = {way: Side(way).open(query, read) for way in (GRAPH, DELTA)}
        changes = {way: in_batches(db, relation, rows[-last:], batch, taken) for way, db in databases.items()}
        measured = seconds(changes, taken * batch)
        all_equal(databases, query)
        size, aim = f"{batch:,} rows in a transaction", within(1 / 0.9)
        yield Row(f"q3, batches of {batch:,}: a row", size, measured[GRAPH], measured[DELTA], "deltas", aim)
    seconds_again = again(f"select count(*), sum(t) from {joined}", data) / batch
    yield Row(f"q3, batches of {batch:,}: a row", size, measured[GRAPH], seconds_again, "DuckDB again")


WROTE = "follower(u, f) -> int(u), int(f). author[t] = u -> int(t), int(u).\n"
KINDS = {  # schema, query, relation that changes
    "a joined column": (WROTE, "seen(f, t) <- follower(u, f), author[t] = u.", "author"),
    "a projected column": (SCHEMA, "seen(f, u, t, d) <- follower(u, f), tweet[u, t] = d.", "tweet"),
    "neither": (SCHEMA, "seen(f, u, t) <- follower(u, f), tweet[u, t] = _.", "tweet"),
}


def modifications(n: int, fan_out: int = 20) -> Iterator[Row]:
    """A tweet that 20 followers see: inserted, one column updated, deleted."""
    followers = [(u, AUTHORS + u * fan_out + i) for u in range(AUTHORS) for i in range(fan_out)]
    for what, (schema, query, relation) in KINDS.items():
        sides = {
            way: Modified(Side(way).open(query, {"follower": followers}, schema), relation, n)
            for way in (GRAPH, DELTA)
        }
        for _ in range(RUNS):
            for side in sides.values():
                side.run()
        for side in sides.values():
            side.change("insert", 0)
        all_equal({way: side.database for way, side in sides.items()}, query)
        size, graph, delta = f"{n:,} transactions", sides[GRAPH].best, sides[DELTA].best
        for kind, name in (("insert", "insert"), ("erase", "delete"), ("upsert", f"update {what}")):
            if kind == "upsert" or what == "a projected column":
                yield Row(f"{name}, fan-out {fan_out}", size, graph[kind], delta[kind], "deltas")
        if what == "a projected column":
            both, name = graph["insert"] + graph["erase"], f"update {what}, fan-out {fan_out}"
            yield Row(name, size, graph["upsert"], both, "delete, insert", faster(1.7))


@dataclass
class Modified:
    """A database whose rows are inserted, updated and deleted again, and the least time for each."""

    database: dlog.Database
    relation: str
    n: int
    turns: int = 0
    best: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        turn, self.turns = self.turns, self.turns + 2
        for kind, value in (("insert", turn), ("upsert", turn + 1), ("erase", turn + 1)):
            started = time.process_time()
            self.change(kind, value)
            took = (time.process_time() - started) / self.n
            self.best[kind] = min(took, self.best.get(kind, took))

    def change(self, kind: str, value: int) -> None:
        """One row in a transaction; values are those of an author, which are days, too."""
        for t in range(self.n):
            key = (t,) if self.relation == "author" else (t % AUTHORS, t)
            self.database.apply(**{kind: {self.relation: [(*key, (t + value) % AUTHORS)]}})
