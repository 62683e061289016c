"""Databases in folders: transactions a second against SQLite, recovery against loading, size, branching.

Both sides are equally durable: a commit has been synced when it returns.  SQLite has a table with a unique
index over both columns, a write-ahead log and `synchronous=FULL`; dlog the same rows as a predicate, which is
an index.  Times are wall-clock times, since waiting for the disk is what is measured.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dlog
from benchmarks.harness import Row, below, faster, timed, within

EDGES = "edge(x, y) -> int(x), int(y)."
DEGREES = EDGES + " degree[x] = n <- agg<<n = count()>> edge(x, y)."
THREADS = 8
WARM = (-1, -1)  # the first transaction, which is not measured
Commit = Callable[[int, int], None]


def benchmark(scale: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _transactions(Path(folder), max(16, int(1000 * scale)))
    with tempfile.TemporaryDirectory() as folder:
        yield from _recovery(Path(folder), max(2_000, int(10_000_000 * scale)))


# Transactions


def _transactions(folder: Path, n: int) -> Iterator[Row]:
    rows = [(k * 7919 % 1_000_003, k) for k in range(n)]
    for durability, synchronous, aim in (("full", "FULL", faster(1)), ("none", "OFF", None)):
        ours, theirs = _one_by_one(folder, durability, synchronous, rows)
        name = f"one-row transactions, {durability}"
        yield Row(name, f"{n:,} transactions", ours / n, theirs / n, "SQLite", aim)
    ours, theirs = _by_threads(folder, rows)
    yield Row("one-row transactions, group", f"{THREADS} threads", ours / n, theirs / n, "SQLite", faster(1))


def _one_by_one(
    folder: Path, durability: str, synchronous: str, rows: list[tuple[int, int]]
) -> tuple[float, float]:
    """Seconds for all rows, in turns of one: the speed of a disk varies over time, by a factor of 30."""
    database = dlog.Database(folder / f"dlog-{durability}", source=EDGES, durability=durability)
    connection = _connect(folder / f"sqlite-{synchronous}", synchronous)
    with database:
        sides = (_dlog_commit(database), _sqlite_commit(connection))
        for commit in sides:
            commit(*WARM)
        ours, theirs = _turns(sides, rows)
        assert database["edge"].rows() == sorted([WARM, *rows])
    assert connection.execute("SELECT count(*) FROM edge").fetchone() == (len(rows) + 1,)
    connection.close()
    return ours, theirs


def _turns(sides: Sequence[Commit], rows: list[tuple[int, int]]) -> list[float]:
    """Seconds of each side."""
    spent = [0.0] * len(sides)
    for row in rows:
        for side, commit in enumerate(sides):
            begin = time.perf_counter()
            commit(*row)
            spent[side] += time.perf_counter() - begin
    return spent


def _by_threads(folder: Path, rows: list[tuple[int, int]]) -> tuple[float, float]:
    """The same by several threads at once, each with a share of the rows."""
    database = dlog.Database(folder / "dlog-group", source=EDGES, durability="group")
    path = folder / "sqlite-group"
    _connect(path, "FULL").close()
    with database:
        ours = _shared(rows, lambda: _dlog_commit(database))
        theirs = _shared(rows, lambda: _sqlite_commit(_connect(path, "FULL")))
        assert database["edge"].rows() == sorted(rows)
    assert _connect(path, "FULL").execute("SELECT count(*) FROM edge").fetchone() == (len(rows),)
    return ours, theirs


def _shared(rows: list[tuple[int, int]], connected: Callable[[], Commit]) -> float:
    def work(share: list[tuple[int, int]]) -> None:
        commit = connected()
        for row in share:
            commit(*row)

    threads = [threading.Thread(target=work, args=(rows[k::THREADS],)) for k in range(THREADS)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def _dlog_commit(database: dlog.Database) -> Commit:
    def commit(x: int, y: int) -> None:
        with database.transaction() as tx:
            tx.insert("edge", [(x, y)])

    return commit


def _sqlite_commit(connection: sqlite3.Connection) -> Commit:
    def commit(x: int, y: int) -> None:
        connection.execute("INSERT INTO edge VALUES (?, ?)", (x, y))

    return commit


def _connect(path: Path, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=600, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={synchronous}")
    connection.execute("CREATE TABLE IF NOT EXISTS edge (x INTEGER NOT NULL, y INTEGER NOT NULL)")
    connection.execute("CREATE UNIQUE INDEX IF NOT EXISTS edges ON edge (x, y)")
    return connection


# Whole databases


def _recovery(folder: Path, n: int) -> Iterator[Row]:
    """A random graph with ten edges a node, and the degrees of its nodes."""
    rng = np.random.default_rng(9)
    edges = np.unique(rng.integers(0, max(n // 10, 2), (n, 2)), axis=0)
    rng.shuffle(edges)
    table = pa.table({"x": edges[:, 0], "y": edges[:, 1]})
    pq.write_table(table, folder / "edge.parquet")
    with dlog.Database(folder / "state", source=DEGREES, durability="none") as database:
        database.apply(insert={"edge": table})
        database.checkpoint()
        expected = len(database["degree"])
    size = f"{len(edges):,} facts"
    yield from _opening(folder, size, expected)
    bytes_a_fact = _bytes(folder / "state") / len(edges), _bytes(folder / "edge.parquet") / len(edges)
    yield Row("size on disk of a fact", size, *bytes_a_fact, "Parquet", None, "bytes")
    yield from _branching(folder, size)


def _opening(folder: Path, size: str, expected: int) -> Iterator[Row]:
    program = f'{DEGREES}\n.input edge(IO="parquet", filename="edge.parquet")\n'

    def recover() -> int:
        with dlog.Database(folder / "state") as database:
            return len(database.relation("degree"))

    def load() -> int:
        return len(dlog.Database(source=program, facts=folder).relation("degree"))

    measured = timed({"dlog": recover, "Parquet": load}, clock=time.perf_counter)
    assert measured["dlog"].result == measured["Parquet"].result == expected
    seconds = measured["dlog"].seconds, measured["Parquet"].seconds
    yield Row("recovery", size, *seconds, "loading Parquet", within(1))


def _branching(folder: Path, size: str) -> Iterator[Row]:
    for durability in ("none", "full"):
        target = folder / f"state-{durability}"
        shutil.copytree(folder / "state", target)
        with dlog.Database(target, durability=durability) as database:
            seconds = []
            for k in range(20):
                begin = time.perf_counter()
                database.branch(f"branch{k}")
                seconds.append(time.perf_counter() - begin)
        aim = below(0.001) if durability == "none" else None
        synced = "" if durability == "none" else ", synced to the disk"
        yield Row(f"a new branch{synced}", size, sorted(seconds)[10], aim=aim)


def _bytes(path: Path) -> int:
    return sum(os.path.getsize(p) for p in path.iterdir()) if path.is_dir() else os.path.getsize(path)
