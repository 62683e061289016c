"""Min, max and exact float sums of groups over a stream of facts: aggregates without an inverse, and floats.

Facts of 1,000 groups are inserted, in transactions of several sizes: only inserted, and as a window of ten
transactions that drops the oldest.  Seconds are for each inserted fact, end to end from Python, of processor
time; or wall-clock medians of transactions where there is a peer.  Pathway, if it is installed (see
`pathway_reach`), gets the same stream in fewer transactions; for float sums only insertions, since
with deletions it did not give their sums (99 of 615 groups were wrong, for integers too).  Both sides
get rows of Python: dlog one list of tuples for each statement, Pathway one call for each fact, as its
interface requires.  `transactions` measures sums of ints in the same way.  DuckDB takes the same changes on a
million facts and evaluates its query again after each transaction, a sample of them: its float sum is not
exact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import numpy as np

import dlog
from benchmarks.harness import Row, at_least, faster
from benchmarks.pathway_reach import interpreter
from benchmarks.pathway_streams import replay

PROGRAM = """
sale(id, shop, amount) -> int(id), int(shop), {type}(amount).
result[s] = r <- agg<<r = {op}(a)>> sale(_, s, a).
"""
KINDS = {
    "group sums": ("sum", "int"),
    "min": ("min", "int"),
    "max": ("max", "int"),
    "float sums": ("sum", "float"),
}
SHOPS = 1000
WINDOW = 10  # transactions
MOST = {1: 10_000, 100: 1000, 10_000: 100}  # size of transactions -> how many at most
FEWER = 60  # transactions that Pathway gets
SAMPLE = 5  # transactions after which DuckDB evaluates again


def benchmark(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(8)
    n = at_least(2000, 1_000_000 * scale)
    shops = rng.integers(0, SHOPS, n)
    whole = rng.integers(0, 1 << 40, n)
    amounts: dict[str, np.ndarray] = {
        "min": whole,
        "max": whole,
        "float sums": rng.standard_normal(n) * 10.0 ** rng.integers(-3, 6, n),
    }
    for kind, values in amounts.items():
        for size, most in MOST.items():
            yield from stream(kind, shops, values, size, at_least(30, most * scale))
            yield against_duckdb(kind, shops, values, min(size, n // 10))


def stream(kind: str, shops: np.ndarray, amounts: np.ndarray, size: int, most: int) -> Iterator[Row]:
    """Facts in transactions of one size, at most this many: only in, and as a window."""
    shown, end = f"{size:,} in a transaction", min(len(shops), size * most)
    for window in (False, True):
        what = f"{kind}, {'a window moves on' if window else 'insert only'}"
        seconds, _ = streamed(kind, shops[:end], amounts[:end], size, window)
        steady = seconds[min(2, len(seconds) - 1) :]
        yield Row(f"{what}: a fact", shown, sum(steady) / len(steady) / size)
        if (python := interpreter()) and not (window and kind == "float sums"):
            few = min(end, size * FEWER)
            yield against_pathway(python, what, kind, shops[:few], amounts[:few], size, window)


def rows_of(shops: np.ndarray, amounts: np.ndarray, start: int, end: int) -> list[tuple[Any, ...]]:
    return list(zip(range(start, end), shops[start:end].tolist(), amounts[start:end].tolist(), strict=True))


def database(kind: str) -> dlog.Database:
    op, type = KINDS[kind]
    return dlog.Database(source=PROGRAM.format(op=op, type=type))


def streamed(
    kind: str,
    shops: np.ndarray,
    amounts: np.ndarray,
    size: int,
    window: bool,
    clock: Callable[[], float] = time.process_time,
) -> tuple[list[float], dict[int, float]]:
    """(Seconds of each transaction, the results); these are checked."""
    db, n = database(kind), len(shops)
    parts = [rows_of(shops, amounts, i, min(i + size, n)) for i in range(0, n, size)]
    seconds = []
    for i, part in enumerate(parts):
        started = clock()
        with db.transaction() as tx:
            tx.insert("sale", part)
            if window and i >= WINDOW:
                tx.erase("sale", parts[i - WINDOW])
        seconds.append(clock() - started)
    first = max(0, len(parts) - WINDOW) * size if window else 0
    results = dict(db["result"].rows())
    assert results == expected(kind, shops[first:], amounts[first:])
    return seconds, results


def expected(kind: str, shops: np.ndarray, amounts: np.ndarray) -> dict[int, float]:
    order = np.argsort(shops, kind="stable")
    found, starts = np.unique(shops[order], return_index=True)
    groups = np.split(amounts[order], starts[1:])
    fold = {"group sums": sum, "min": min, "max": max, "float sums": math.fsum}[kind]
    return {int(shop): fold(values.tolist()) for shop, values in zip(found, groups, strict=True)}


def against_pathway(
    python: str, what: str, kind: str, shops: np.ndarray, amounts: np.ndarray, size: int, window: bool
) -> Row:
    """The median of a transaction, for each inserted fact."""
    ours, results = streamed(kind, shops, amounts, size, window, time.perf_counter)
    theirs, total, found = replay(python, shops, amounts, KINDS[kind][0], size, WINDOW if window else 0)
    if kind == "group sums":
        assert total == sum(results.values())
    else:
        assert all(math.isclose(found[s], r, rel_tol=1e-6, abs_tol=1e-6) for s, r in results.items())
    skipped = min(WINDOW + 1, len(ours) - 1)
    medians = [float(np.median(seconds[skipped:])) / size for seconds in (ours, theirs)]
    return Row(what, f"{size:,} in a transaction", *medians, "Pathway", faster(5))


def against_duckdb(kind: str, shops: np.ndarray, amounts: np.ndarray, size: int) -> Row:
    """Facts are inserted and as many of the oldest deleted, on all other facts; the median of a
    transaction.
    """
    n = len(shops) - SAMPLE * size
    db, peer = database(kind), duckdb.connect()
    with db.transaction() as tx:
        tx.insert("sale", rows_of(shops, amounts, 0, n))
    with db.transaction() as tx:  # the first change builds the state
        tx.erase("sale", rows_of(shops, amounts, 0, 1))
    ids = np.arange(len(shops))
    peer.execute("CREATE TABLE sale AS SELECT unnest($1) AS id, unnest($2) AS shop, unnest($3) AS amount",
                 [ids[1:n], shops[1:n], amounts[1:n]])  # fmt: skip
    ours, theirs = [], []
    for i in range(SAMPLE):
        new = rows_of(shops, amounts, n + i * size, n + (i + 1) * size)
        old = rows_of(shops, amounts, 1 + i * size, 1 + (i + 1) * size)
        started = time.perf_counter()
        with db.transaction() as tx:
            tx.insert("sale", new)
            tx.erase("sale", old)
        middle = time.perf_counter()
        found = recomputed(peer, kind, new, old)
        ours.append(middle - started)
        theirs.append(time.perf_counter() - middle)
    assert all(math.isclose(found[s], r, rel_tol=1e-6, abs_tol=1e-6) for s, r in db["result"].rows())
    medians = (float(np.median(ours)), float(np.median(theirs)))
    return Row(
        f"{kind} of {n:,} facts: a transaction", f"{size:,} in, {size:,} out", *medians, "DuckDB again"
    )


def recomputed(
    peer: duckdb.DuckDBPyConnection, kind: str, new: list[Any], old: list[Any]
) -> dict[int, float]:
    """Changes the table and queries all groups."""
    ids, shops, amounts = zip(*new, strict=True)
    peer.execute("INSERT INTO sale SELECT unnest($1), unnest($2), unnest($3)",
                 [np.array(ids), np.array(shops), np.array(amounts)])  # fmt: skip
    peer.execute("DELETE FROM sale WHERE id BETWEEN $1 AND $2", [old[0][0], old[-1][0]])
    op = KINDS[kind][0]
    answer = peer.execute(f"SELECT shop, {op}(amount) FROM sale GROUP BY shop").fetchnumpy()
    return dict(zip(answer["shop"].tolist(), list(answer.values())[1].tolist(), strict=True))
