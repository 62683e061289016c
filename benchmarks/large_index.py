"""What 100 million rows cost that a hundredth of them do not: scans, counts and changes of one row.

And the rows of an open transaction, which are few and change row by row: `sortedcontainers` against a dict
that is searched.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Row, at_least, compare, faster, timed, within
from dlog.engine.state.pending import Pending
from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from dlog.storage.scan.scan_tree import scan_interval

ROWS = 100_000_000
SHARE = 100
OPERATIONS = 2_000
STATEMENTS = 1_000


def benchmark(scale: float) -> Iterator[Row]:
    n = at_least(10_000, ROWS * scale)
    small, large = index_of(n // SHARE), index_of(n)
    for name, work in (
        ("scan of an interval", scans),
        ("rows of an interval counted", counts),
        ("one row inserted", inserts),
    ):
        measured = timed({"large": lambda work=work: work(large), "small": lambda work=work: work(small)})
        times = [measured[side].seconds / OPERATIONS for side in ("large", "small")]
        yield Row(name, f"{n:,} rows", *times, f"at {n // SHARE:,} rows", within(4))
    entries = visited(large), visited(small)
    yield Row("a scan visits", f"{n:,} rows", *entries, f"at {n // SHARE:,} rows", within(2), "entries")
    statements = at_least(100, STATEMENTS * scale)
    yield from compare(
        "upserts and inserts of one transaction",
        f"{statements:,} statements",
        lambda: pending_rows(Pending(), statements),
        {"a dict": lambda: pending_rows(Searched(), statements)},
        {"a dict": faster(3)} if statements == STATEMENTS else {},
    )


def index_of(n: int) -> Index:
    a = np.arange(n) * 3
    return Index.from_columns(Arena(), [a, a * 7919 % 1_000_003], scan=1)


def intervals(index: Index) -> Iterator[tuple[int, int]]:
    ends = np.random.default_rng(1).integers(0, 3 * len(index), (OPERATIONS, 2))
    yield from map(tuple, np.sort(ends, axis=1).tolist())


def scans(index: Index) -> None:
    for lower, upper in intervals(index):
        scan_interval(index, (lower,), (upper,))


def counts(index: Index) -> None:
    for lower, upper in intervals(index):
        index.rank((upper,), inclusive=True) - index.rank((lower,))


def inserts(index: Index) -> None:
    """Each into a new version; the version before ends."""
    for row in intervals(index):
        index = index.insert_row(row) or index


def visited(index: Index) -> float:
    return float(np.mean([scan_interval(index, (a,), (b,)).work for a, b in intervals(index)]))


class Searched(Pending):
    """The same rows in a dict, in which the rows of a key have to be searched for."""

    def _of(self, predicate: str) -> Any:
        return self._signs.setdefault(predicate, {})

    def replace(self, predicate: str, rows: Any, n_keys: int, replaced: Any) -> None:
        signs = self._of(predicate)
        for row in replaced:
            signs.setdefault(row, -1)
        for row in rows:
            for other in [other for other in signs if other[:n_keys] == row[:n_keys]]:
                signs[other] = -1
            signs[row] = 1


def pending_rows(pending: Pending, statements: int) -> list[Any]:
    rng = random.Random(1)
    for i in range(statements):
        key = rng.randrange(statements // 2)
        if i % 2:
            pending.replace("f", [(key, i)], 1, [(key, key)])
        else:
            pending.say(1, "f", [(key, i)])
    return [(sign, sorted(rows.tolist())) for sign, _, rows in pending.steps()]
