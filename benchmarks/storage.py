"""Storage: bulk load, changes of one row and of batches, differences of versions, strings.

Run: python -m benchmarks.storage [ROWS]          (default 10,000,000)

Times are processor time, which other programs disturb less than the clock, the best of
some runs.  Aims: a changed row in at most 15 us from Python at 10 million rows, a new version and the end of
the old one included; 5 million strings a second for known strings, 1.5 million for new ones.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from dlog.jit import Words
from dlog.storage.arena import Arena
from dlog.storage.delta import difference
from dlog.storage.dictionary import Dictionary
from dlog.storage.index import Index
from dlog.storage.surgery import surgeries
from dlog.storage.values import decode, encode
from dlog.types import FLOAT, STRING

ROWS = 10_000_000
RUNS = 3
SINGLE = 2_000
STRINGS = 1_000_000


def main(rows: int = ROWS) -> None:
    random = np.random.default_rng(1)
    table = random.integers(0, rows, (rows, 2))
    arena = Arena()
    load(arena, table)
    index = Index.build(arena, table, 2)
    single_rows(index, random)
    versions(index, random)
    batches(index, random)
    strings(random)


def load(arena: Arena, table: Words) -> None:
    n = len(table)
    packed = (table[:, 0] << 31) | table[:, 1]
    first, second = table[:, 0].copy(), table[:, 1].copy()
    best(lambda: Index.build(arena, table[:1000], 2))
    ours = best(lambda: Index.build(arena, table, 2))
    in_order = Index.build(arena, table, 2).rows()
    print(f"bulk load of {n:,} rows of two columns")
    show("Index.build, any order", ours, n)
    show("Index.build, in order", best(lambda: Index.build(arena, in_order, 2)), n)
    show("np.sort of packed words, alone", best(lambda: np.sort(packed)), n)
    show("np.lexsort, alone", best(lambda: np.lexsort((second, first)), runs=1), n)


def single_rows(index: Index, random: np.random.Generator) -> None:
    n = len(index)
    rows = [tuple(row) for row in random.integers(0, n, (SINGLE * RUNS, 2)).tolist()]
    print(f"one row at {n:,} rows, from Python, each a new version that replaces the last")
    insert, erase = [], []
    for run in range(RUNS):
        part, version = rows[run * SINGLE : (run + 1) * SINGLE], index
        started = time.process_time()
        for row in part:
            version = version.insert_row(row) or version
        insert.append(time.process_time() - started)
        started = time.process_time()
        for row in part:
            version = version.erase_row(row) or version
        erase.append(time.process_time() - started)
    show("insert_row", min(insert), SINGLE)
    show("erase_row", min(erase), SINGLE)
    show("contains", best(lambda: [index.contains(row) for row in rows[:SINGLE]]), SINGLE)
    show("range_count", best(lambda: [index.range_count(row[:1]) for row in rows[:SINGLE]]), SINGLE)


def versions(index: Index, random: np.random.Generator) -> None:
    print("two versions one insert apart")
    row = random.integers(0, len(index), 2).tolist()
    later = index.insert_row(row) or index
    show("difference", best(lambda: [difference(index, later) for _ in range(1000)]), 1000)
    change = difference(index, later)
    seconds = best(lambda: [surgeries(index, later, change) for _ in range(1000)])
    show("surgeries, difference known", seconds, 1000)


def batches(index: Index, random: np.random.Generator) -> None:
    print("batches, half inserts and half erases")
    for size in (10, 1_000, 100_000):
        inserts = random.integers(0, len(index), (size // 2, 2))
        erases = index.rows()[random.integers(0, len(index), size // 2)]
        there, back = (inserts, erases), (erases, inserts)
        show(f"apply, {size:,} rows", best(partial(index.apply, *there)), size)
        mine = index.compact()
        times = [best(partial(mine.apply_in_place, *batch), runs=1) for batch in (there, back) * RUNS]
        show(f"apply_in_place, {size:,} rows", min(times[1:]), size)


def strings(random: np.random.Generator) -> None:
    n = STRINGS
    print(f"{n:,} strings and floats")
    new = pa.array([f"item number {i}" for i in random.permutation(n).tolist()])
    known = new.take(pa.array(random.integers(0, n // 20, n)))
    names = Dictionary()
    show("encode, all new", best(lambda: Dictionary().encode(new)), n)
    codes = encode(new, STRING, names)
    show("encode, known, 5% distinct", best(lambda: encode(known, STRING, names)), n)
    codes = codes[random.permutation(n)]
    show("decode, any order", best(lambda: decode(codes, STRING, names)), n)
    show("rank, from nothing", best(lambda: names.rank, runs=1), n)
    names.encode_one("one more")
    show("rank, one string more", best(lambda: names.rank, runs=1), n)
    floats = pa.array(random.random(n))
    show("encode floats", best(lambda: encode(floats, FLOAT, names)), n)


def best(work: Callable[[], object], runs: int = RUNS) -> float:
    """The least processor time of some runs."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def show(what: str, seconds: float, n: int) -> None:
    rate, unit = n / seconds, ""
    if rate > 1e5:
        rate, unit = rate / 1e6, " million"
    each = seconds / n * 1e6
    print(
        f"  {what:<34}{seconds * 1e3:>11.2f} ms {each:>10.3f} us each {rate:>9.2f}{unit} a second", flush=True
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
