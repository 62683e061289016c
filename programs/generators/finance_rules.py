"""Writes the data of the rules in `finance/`: a small order book, and by loops what each program derives."""

from __future__ import annotations

import random
from collections import defaultdict

from common import Example, Row

BROKERS, ORDERS = 4, 30


def orders(side: str) -> list[Row]:
    """t, id, broker, volume, price."""
    rng = random.Random(f"orders {side}")
    middle = 10_000 if side == "bids" else 10_400
    return [
        (t, t + 100, rng.randrange(BROKERS), rng.randrange(1, 40) * 10, middle + rng.randrange(-90, 90) * 10)
        for t in sorted(rng.sample(range(100), ORDERS))
    ]


def top(rows: list[Row]) -> list[Row]:
    """Those for which less than a quarter of all volume has a higher price."""
    volume = sum(row[3] for row in rows)
    return [row for row in rows if 4 * sum(o[3] for o in rows if o[4] > row[4]) < volume]


def large(rows: list[Row]) -> list[Row]:
    volume = sum(row[3] for row in rows)
    return [row for row in rows if 20 * row[3] > volume]


def by_broker(pairs: list[tuple[int, int]]) -> list[Row]:
    sums: dict[int, int] = defaultdict(int)
    for broker, value in pairs:
        sums[broker] += value
    return list(sums.items())


def value(row: Row) -> int:
    return row[3] * row[4]


BIDS, ASKS = orders("bids"), orders("asks")
SAME = [(x, y) for x in BIDS for y in BIDS if x[2] == y[2]]
FAR = [(b, a) for b in BIDS for a in ASKS if b[2] == a[2] and abs(a[4] - b[4]) > 1000]
EXPECTED: dict[str, tuple[str, list[Row]]] = {
    "vwap": ("vwap", [(sum(map(value, top(BIDS))),)]),
    "mst": ("missed", by_broker([(b[2], value(a) - value(b)) for b in top(BIDS) for a in top(ASKS)])),
    "psp": ("spread", [(sum(a[4] - b[4] for b in large(BIDS) for a in large(ASKS)),)]),
    "axf": ("far", by_broker([(b[2], a[3] - b[3]) for b, a in FAR])),
    "bsp": ("moved", by_broker([(x[2], value(x) - value(y)) for x, y in SAME if x[0] > y[0]])),
    "bsv": ("together", by_broker([(x[2], value(x) * value(y)) for x, y in SAME])),
}
ONE_SIDE = ("vwap", "bsp", "bsv")

if __name__ == "__main__":
    for name, (relation, rows) in EXPECTED.items():
        example = Example(f"finance/{name}")
        example.facts("bids", BIDS)
        if name not in ONE_SIDE:
            example.facts("asks", ASKS)
        example.expected(relation, rows)
