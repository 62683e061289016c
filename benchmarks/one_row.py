"""One row that comes and goes under rules of several kinds: what dlog chooses, against every strategy."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import dlog
from benchmarks.harness import Row, at_least, compare, faster

RULES = {
    "a projection": "odd(x) <- a(x, y), x band 1 = 1.",
    "a disjunction": "either(x, y) <- (a(x, y) ; b(x, y) ; b(y, x)).",
    "a count of a disjunction": "n[x] = k <- agg<<k = count()>> (a(x, y) ; b(x, y)).",
    "a self-join": "s[x] = t <- agg<<t = sum(m)>> a(x, y), a(x, z), m = y * z.",
    "distinct values": "n[x] = k <- agg<<k = count_distinct(y)>> a(x, y).",
    "an inline sum": "large(y) <- a(x, y), 2 * y > sum z : { b(x, z) }.",
}
DECLARED = "a(x, y) -> int(x), int(y).  b(x, y) -> int(x), int(y)."
PAIRS = 20  # of transactions in a run
PEERS = ("delta", "trace", "views", "multilevel")
AIM = 1 / 1.5  # a choice may take this many times as long as the best strategy


def benchmark(scale: float) -> Iterator[Row]:
    rows = at_least(100, 3_000 * scale)
    for name, rule in RULES.items():
        sides = {way: turn(rule, way, rows) for way in (None, *PEERS)}
        ours = sides.pop(None)
        peers = {way: side for way, side in sides.items() if way is not None and side is not None}
        assert ours is not None
        size = f"{rows:,} rows, {2 * PAIRS} times"
        yield from compare(f"one row of {name}", size, ours, peers, dict.fromkeys(peers, faster(AIM)))


def turn(rule: str, way: str | None, rows: int) -> Callable[[], int] | None:
    """A run of transactions of one row; its result is the number of derived rows.  None: the strategy cannot
    maintain the rule."""
    rng = random.Random(3)
    db = dlog.Database(source=DECLARED + rule, strategy=way)
    for name in "ab":
        db.apply(insert={name: [(rng.randrange(rows // 10), rng.randrange(rows)) for _ in range(rows)]})
    number = len(db.program.strata) - 1
    (head,) = db.program.strata[number].predicates

    def run() -> int:
        found = 0
        for i in range(PAIRS):
            db.apply(insert={"a": [(i % 7, rows + i)]})
            found += len(db[head])
            db.apply(erase={"a": [(i % 7, rows + i)]})
        return found

    run()
    strategies = [s.offered_as for s in db._maintenance.strategies.values()]
    return run if way is None or way in strategies else None
