"""Owns how a benchmark measures and what it reports.  Knows no benchmark.

A benchmark is a module of this folder with a function `benchmark(scale)` that yields `Row`s: `scale` is 1 for
the sizes of the table, less for a quick try, and every size has a floor, so that any scale runs.  Both sides
are measured in the same way: in one process, in turns, the best of the same number of runs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

import dlog
from dlog.engine.evaluate.evaluate import Evaluation, evaluate

DLOG = "dlog"  # the name of our side
RUNS = 3
PATIENCE = 30.0  # seconds after which no further round of runs begins


@dataclass(frozen=True)
class Aim:
    """What a row should reach: `fold` times as fast as the peer at least, or a measure of at most `limit`."""

    fold: float | None = None
    limit: float | None = None

    def met(self, row: Row) -> bool:
        if self.limit is not None and row.ours > self.limit:
            return False
        return self.fold is None or (row.ratio is not None and row.ratio >= self.fold)

    def show(self, unit: str) -> str:
        parts = [] if self.fold is None else [f">= {self.fold:.3g} x"]
        return ", ".join(parts + ([] if self.limit is None else [f"<= {show(self.limit, unit)}"]))


def faster(times: float) -> Aim:
    """At least this many times as fast as the peer."""
    return Aim(fold=times)


def within(times: float) -> Aim:
    """At most this many times the peer's time."""
    return Aim(fold=1 / times)


def below(limit: float) -> Aim:
    """A measure of at most this."""
    return Aim(limit=limit)


@dataclass(frozen=True)
class Row:
    """One line of the table: our measure, and a peer's if there is one.  Less is better."""

    name: str
    size: str
    ours: float
    theirs: float | None = None
    peer: str = ""
    aim: Aim | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float | None:
        """How many times as fast, or as small, as the peer."""
        return None if self.theirs is None else self.theirs / max(self.ours, 1e-9)

    @property
    def met(self) -> bool | None:
        return None if self.aim is None else self.aim.met(self)

    def cells(self) -> tuple[str, ...]:
        """As text, under `HEADER`."""
        return (
            self.name,
            self.size,
            show(self.ours, self.unit),
            "" if self.theirs is None else show(self.theirs, self.unit),
            self.peer,
            "" if self.ratio is None else f"{self.ratio:.2f}" if self.ratio < 10 else f"{self.ratio:.0f}",
            "" if self.aim is None else self.aim.show(self.unit),
            {None: "", True: "yes", False: "NO"}[self.met],
        )


HEADER = ("name", "size", "dlog", "peer", "peer is", "ratio", "aim", "met")


def show(value: float, unit: str) -> str:
    """A measure with a unit that gives it few digits."""
    if unit != "s":
        return f"{value:,.1f} {unit}" if value < 100 else f"{value:,.0f} {unit}"
    for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale or name == "us":
            return f"{value / scale:.3g} {name}" if value / scale < 100 else f"{value / scale:.0f} {name}"
    raise AssertionError


@dataclass(frozen=True)
class Measured:
    seconds: float
    result: Any


def timed(
    actions: Mapping[str, Callable[[], Any]],
    runs: int = RUNS,
    clock: Callable[[], float] = time.process_time,
    patience: float | None = None,
) -> dict[str, Measured]:
    """The least time of each action and its result, all in turns.  At least two rounds, since a kernel may be
    compiled in the first.

    Processor time, which other programs disturb less than wall-clock time; for work on several cores
    or in other processes pass `time.perf_counter`.
    """
    best: dict[str, Measured] = {}
    begin, limit = time.perf_counter(), PATIENCE if patience is None else patience
    for round in range(max(runs, 2)):
        if round >= 2 and time.perf_counter() - begin > limit:
            break
        gc.collect()
        for name, action in actions.items():
            started = clock()
            result = action()
            seconds = clock() - started
            if name not in best or seconds < best[name].seconds:
                best[name] = Measured(seconds, result)
            del result
    return best


def compare(
    name: str,
    size: str,
    ours: Callable[[], Any],
    peers: Mapping[str, Callable[[], Any]],
    aims: Mapping[str, Aim] | None = None,
    **how: Any,
) -> Iterator[Row]:
    """One row for each peer.  All sides must give the same result."""
    measured = timed({DLOG: ours, **peers}, **how)
    mine = measured[DLOG]
    for peer in peers:
        theirs = measured[peer]
        assert mine.result == theirs.result, (name, peer, mine.result, theirs.result)
        yield Row(name, size, mine.seconds, theirs.seconds, peer, (aims or {}).get(peer))


def duck(**tables: Any) -> duckdb.DuckDBPyConnection:
    """DuckDB on one thread, with these Arrow tables copied into its own storage."""
    connection = duckdb.connect(config={"threads": 1})
    for name, table in tables.items():
        connection.register("given", table)
        connection.execute(f"create table {name} as select * from given")
        connection.unregister("given")
    return connection


def derive_again(database: dlog.Database) -> None:
    """Evaluate all rules over the current base facts, in temporary relations."""
    store = database.store
    kept = store.relations
    try:
        store.relations = database._start()
        evaluate(database.program, store, Evaluation())
    finally:
        store.relations = kept


def at_least(floor: int, size: float) -> int:
    """A size that a small scale does not make meaningless."""
    return max(floor, int(size))
