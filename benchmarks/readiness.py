"""What being ready for change costs: counts, stages and the indices of deltas, against a plain evaluation.

A database keeps no state for maintenance before its first small transaction, which then evaluates every
stratum it touches, with its state: that transaction is timed, with all it needs, against evaluating
everything from scratch in the live database.  Both compare what they find with what was there before.
Bytes per row are those of the arena, all column orders and counts included, by rows of all predicates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.harness import RUNS, Row, at_least, within
from benchmarks.transactions import graph, loaded, processor

PROGRAMS = {
    "triangles": "triangle(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).",
    "two steps, with counts": "near(x, z) <- edge(x, y), edge(y, z), x < 2000.",
    "degrees": "degree[x] = n <- agg<<n = count()>> edge(x, _).",
    "reachability": "reach(x, y) <- edge(x, y). reach(x, z) <- reach(x, y), edge(y, z).",
}
DECLARED = "edge(x, y) -> int(x), int(y).\n"
LOOSE = ("reachability",)  # on a random graph below the size where nearly everything reaches everything


def benchmark(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(12)
    for name, rules in PROGRAMS.items():
        n = at_least(500, (1_300 if name in LOOSE else 300_000) * max(scale, 0.4 if name in LOOSE else 0))
        edges = rng.integers(0, n // 2, (n, 2)) if name in LOOSE else graph(n, rng)
        yield from ready(name, DECLARED + rules, np.unique(edges, axis=0))


def ready(name: str, program: str, edges: np.ndarray) -> Iterator[Row]:
    fresh = int(edges.max()) + 1
    first = math.inf
    for _ in range(RUNS):
        database = loaded(program, edge=edges)
        first = min(first, processor(partial(database.apply, insert={"edge": [(fresh, fresh + 1)]})))
    plain = min(processor(database.verify) for _ in range(RUNS))
    rows = sum(len(database[predicate]) for predicate in database.predicates())
    size = f"{rows:,} rows"
    yield Row(f"{name}: state", size, first, plain, "plain evaluation", within(2))
    yield Row(f"{name}: memory", size, database.store.arena.usage().used_words * 8 / rows, unit="bytes/row")
