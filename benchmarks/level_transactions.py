"""Levels of maps in transactions: one row of an order book under VWAP, against deltas on the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import dlog
from benchmarks.harness import Row, at_least, compare, faster

RULES = """
bids(id, v, p) -> int(id), int(v), int(p).
vwap[] = s <- agg<<s = sum(a)>> bids(_, v, p), a = p * v,
    total = sum w : { bids(_, w, _) }, above = sum w : { bids(_, w, q), q > p }, total > 4 * above.
"""
TRANSACTIONS = 8  # of a run insert a row, and as many delete it again


def benchmark(scale: float) -> Iterator[Row]:
    bids, prices = at_least(200, 10_000 * scale), at_least(20, 1_000 * scale)
    sides = {way: placing(way, bids, prices) for way in ("multilevel", "delta")}
    ours = sides.pop("multilevel")
    yield from compare(
        f"VWAP: {2 * TRANSACTIONS} transactions of one row",
        f"{bids:,} bids, {prices:,} prices",
        ours,
        {"deltas": sides["delta"]},
        {"deltas": faster(20)},
    )


def placing(way: str, bids: int, prices: int) -> Callable[[], list[tuple[int]]]:
    """A run of transactions; its result is VWAP after each of them."""
    rng = random.Random(7)
    db = dlog.Database(source=RULES, strategy=way)
    db.apply(insert={"bids": [(i, rng.randrange(1, 100), rng.randrange(prices)) for i in range(bids)]})
    db.apply(insert={"bids": [(-1, 1, 1)]})  # state is made by the first transactions
    new = [(bids + i, rng.randrange(1, 100), rng.randrange(prices)) for i in range(TRANSACTIONS)]

    def run() -> list[tuple[int]]:
        found = []
        for row in new:
            db.apply(insert={"bids": [row]})
            found += db["vwap"].rows()
        for row in new:
            db.apply(erase={"bids": [row]})
        return found

    return run
