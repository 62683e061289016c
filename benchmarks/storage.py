"""Storage: bulk load, changes of one row and of batches, differences of versions, strings.

A changed row includes a new version and the end of the old one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.harness import Aim, Row, at_least, below, timed
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.diff.delta import difference
from dlog.storage.diff.surgery import surgeries
from dlog.storage.index.index import Index
from dlog.storage.values import decode, encode
from dlog.values import FLOAT, STRING

ROWS = 10_000_000
RUNS = 3
SINGLE = 2_000
STRINGS = 1_000_000


def benchmark(scale: float) -> Iterator[Row]:
    random = np.random.default_rng(1)
    rows = at_least(1000, ROWS * scale)
    table = random.integers(0, rows, (rows, 2))
    arena = Arena()
    yield from load(arena, table)
    index = Index.build(arena, table, 2)
    yield from single_rows(index, random, at_least(100, SINGLE * scale))
    yield from versions(index, random)
    yield from batches(index, random)
    yield from strings(random, at_least(1000, STRINGS * scale))


def load(arena: Arena, table: Words) -> Iterator[Row]:
    n = len(table)
    packed = (table[:, 0] << 31) | table[:, 1]
    in_order = Index.build(arena, table, 2).rows()
    measured = timed(
        {
            "any order": lambda: len(Index.build(arena, table, 2)),
            "in order": lambda: len(Index.build(arena, in_order, 2)),
            "np.sort": lambda: np.sort(packed)[0],
        }
    )
    bare = measured["np.sort"].seconds
    for order in ("any order", "in order"):
        name = f"Index.build, two columns, {order}"
        yield Row(name, f"{n:,} rows", measured[order].seconds, bare, "np.sort, packed")


def single_rows(index: Index, random: np.random.Generator, count: int) -> Iterator[Row]:
    n = len(index)
    size = f"at {n:,} rows"
    rows = [tuple(row) for row in random.integers(0, n, (count, 2)).tolist()]

    def there_and_back() -> tuple[float, float]:
        version = index
        started = time.process_time()
        for row in rows:
            version = version.insert_row(row) or version
        middle = time.process_time()
        for row in rows:
            version = version.erase_row(row) or version
        return middle - started, time.process_time() - middle

    times = [there_and_back() for _ in range(RUNS)]
    yield Row("one row inserted", size, min(t[0] for t in times) / count, aim=below(15e-6))
    yield Row("one row erased", size, min(t[1] for t in times) / count, aim=below(15e-6))
    yield each("one row looked up", size, lambda: [index.contains(row) for row in rows], count)
    yield each("rows of one key counted", size, lambda: [index.range_count(row[:1]) for row in rows], count)


def versions(index: Index, random: np.random.Generator) -> Iterator[Row]:
    row = random.integers(0, len(index), 2).tolist()
    later = index.insert_row(row) or index
    change = difference(index, later)
    size = f"at {len(index):,} rows"
    work = lambda: [difference(index, later) for _ in range(100)]  # noqa: E731
    yield each("difference of two versions", size, work, 100)
    yield each("its surgeries", size, lambda: [surgeries(index, later, change) for _ in range(100)], 100)


def batches(index: Index, random: np.random.Generator) -> Iterator[Row]:
    """Half inserts and half erases."""
    for size in (10, 1_000, 100_000):
        if size > len(index):
            return
        inserts = random.integers(0, len(index), (size // 2, 2))
        erases = index.rows()[random.integers(0, len(index), size // 2)]
        there, back = (inserts, erases), (erases, inserts)
        yield each("a row of a batch applied", f"{size:,} rows", partial(index.apply, *there), size)
        mine = index.compact()
        seconds = []
        for batch in (there, back) * RUNS:
            started = time.process_time()
            mine.apply_in_place(*batch)
            seconds.append(time.process_time() - started)
        yield Row("a row of a batch applied in place", f"{size:,} rows", min(seconds[1:]) / size)


def strings(random: np.random.Generator, n: int) -> Iterator[Row]:
    size = f"{n:,} strings"
    new = pa.array([f"item number {i}" for i in random.permutation(n).tolist()])
    known = new.take(pa.array(random.integers(0, n // 20, n)))
    names = Dictionary()
    yield each("new string encoded", size, lambda: Dictionary().encode(new), n, below(1 / 1.5e6))
    codes = encode(new, STRING, names)
    yield each(
        "known string encoded, 5% distinct", size, lambda: encode(known, STRING, names), n, below(1 / 5e6)
    )
    codes = codes[random.permutation(n)]
    yield each("string decoded, any order", size, lambda: decode(codes, STRING, names), n)
    yield once("string ranked, from nothing", size, lambda: names.rank, n)
    names.encode_one("one more")
    yield once("all ranked again, one string more", size, lambda: names.rank, 1)
    floats = pa.array(random.random(n))
    yield each("float encoded", f"{n:,} floats", lambda: encode(floats, FLOAT, names), n)


def each(name: str, size: str, work: Callable[[], object], n: int, aim: Aim | None = None) -> Row:
    """The time of one of the n operations of `work`."""
    return Row(name, size, timed({name: work})[name].seconds / n, aim=aim)


def once(name: str, size: str, work: Callable[[], object], n: int) -> Row:
    """The same for work that is done only once."""
    started = time.process_time()
    work()
    return Row(name, size, (time.process_time() - started) / n)
