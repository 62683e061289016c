"""Equivalence relations of 10 million rows: one class of 3,200 members, and 100,000 classes of 10.

Members form chains.  Measured: joining all pairs in one transaction, against the connected components of
rustworkx; transactions that insert and erase one pair; and the memory of pairs and classes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import rustworkx

import dlog
from benchmarks.harness import Row, at_least, below, compare, timed, within

PROGRAM = ".decl same(x: number, y: number) eqrel"
SINGLE = 20  # transactions of one row in a measurement


def chains(members: int, length: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in range(members) if (i + 1) % length]


def joined(pairs: list[tuple[int, int]]) -> dlog.Database:
    database = dlog.Database(source=PROGRAM)
    database.apply(insert={"same": pairs})
    return database


def components(pairs: list[tuple[int, int]], members: int) -> Callable[[], int]:
    def run() -> int:
        graph = rustworkx.PyGraph()
        graph.add_nodes_from(range(members))
        graph.add_edges_from_no_data(pairs)
        return sum(len(found) ** 2 for found in rustworkx.connected_components(graph))

    return run


def one_by_one(database: dlog.Database, length: int) -> Callable[[], Any]:
    """Transactions that add a member to the first class, and remove it."""
    numbers = itertools.count(10**9)

    def run() -> int:
        for number in itertools.islice(numbers, SINGLE):
            database.apply(insert={"same": [(number, length // 2)]})
            database.apply(erase={"same": [(number, length // 2)]})
        return len(database.relation("same"))

    return run


def benchmark(scale: float) -> Iterator[Row]:
    for members, length in ((at_least(32, 3200 * scale), 3200), (at_least(100, 1_000_000 * scale), 10)):
        length = min(length, members)
        pairs = chains(members, length)
        size = f"{members:,} members in classes of {length:,}"
        peers = {"rustworkx": components(pairs, members)}

        def ours(pairs: list[tuple[int, int]] = pairs) -> int:
            return len(joined(pairs).relation("same"))

        aims = {"rustworkx": within(2)} if length < members else {}  # one class: 3 ms make the database
        yield from compare("eqrel: all pairs at once", size, ours, peers, aims)
        database = joined(pairs)
        single = timed({"": one_by_one(database, length)})[""].seconds / (2 * SINGLE)
        yield Row("eqrel: one pair", size, single)
        bytes_ = database.memory() / members
        yield Row("eqrel: bytes for each member", size, bytes_, unit="bytes", aim=below(64))
