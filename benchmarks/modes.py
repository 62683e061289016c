"""Transactions of one row on a join with fan-out, by the mode of its head: what storing the head costs, and
telling a subscriber.

    timeline(a, b, c, t) <- f(a, b), f(b, c), tweet(c, t).      a tweet derives n rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dlog
from benchmarks.harness import Row, at_least, below, compare, faster, timed, within

RULES = """\
f(a, b) -> int(a), int(b).
tweet(c, t) -> int(c), int(t).
timeline(a, b, c, t) <- f(a, b), f(b, c), tweet(c, t).
"""
FAN_OUTS = (1, 10, 100)
AUTHORS = 50
KINDS = {  # mode, whether there is a subscriber
    "changes, a subscriber": ("changes", True),
    "changes": ("changes", False),
    "on_read": ("on_read", False),
}


def database(mode: str, subscribed: bool, fan_out: int) -> dlog.Database:
    db = dlog.Database(source=RULES, materialize={"timeline": mode})
    authors = range(0, 1000 * AUTHORS, 1000)
    followers = [(c + 1 + i, c) for c in authors for i in range(fan_out)]
    db.apply(insert={"f": [*followers, *((b + 500, b) for b, _ in followers)]})
    if subscribed:
        db.subscribe("timeline", lambda change: None)
    return db


def tweets(db: dlog.Database, transactions: int) -> Callable[[], Any]:
    """So many transactions of one row, others each time; returns how many rows were inserted last."""
    numbers = iter(range(10**9))

    def run() -> int:
        for _, number in zip(range(transactions), numbers, strict=False):
            commit = db.apply(insert={"tweet": [(number % AUTHORS * 1000, number)]})
        return len(commit.changes["tweet"].inserted)

    return run


def benchmark(scale: float) -> Iterator[Row]:
    n, flat = at_least(20, 1000 * scale), dict[int, float]()
    for fan_out in FAN_OUTS:
        size = f"{n:,} transactions, {fan_out} rows each"
        stored = {quiet: tweets(database("always", not quiet, fan_out), n) for quiet in (True, False)}
        for name, (mode, subscribed) in KINDS.items():
            ours = tweets(database(mode, subscribed, fan_out), n)
            aim = faster(2) if fan_out == 100 and not subscribed else within(1.2)
            peer = "always, a subscriber" if subscribed else "always"
            yield from compare(f"mode {name}", size, ours, {peer: stored[not subscribed]}, {peer: aim})
        flat[fan_out] = timed({"": tweets(database("on_read", False, fan_out), n)})[""].seconds
    ratio = flat[FAN_OUTS[-1]] / flat[FAN_OUTS[0]]
    yield Row("mode on_read: fan-out 100 to fan-out 1", "", ratio, unit="times", aim=below(1.3))
