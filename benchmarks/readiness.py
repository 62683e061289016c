"""The cost of preparing for changes: counts, stages and the indices of deltas, against a plain evaluation.

A database has no state for maintenance before its first small transaction, which then evaluates every
stratum it touches, with its state: such a transaction is timed, with all it needs, against evaluating
everything from scratch in the same live database.  Both are done several times, so that both work in memory
that the process has, and both compare their result with the state before.  The very first one also
makes the indices of deltas, and allocates the memory of the state.
Bytes per row are those of the arena, all column orders and counts included, by rows of all predicates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import dlog
from benchmarks.harness import RUNS, Row, at_least, within
from benchmarks.transactions import graph, loaded, processor

GENERATION = "same(x, y) <- edge(p, x), edge(p, y). same(x, y) <- edge(p, x), same(p, q), edge(q, y)."
PROGRAMS = {
    "triangles": "triangle(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).",
    "two steps, with counts": "near(x, z) <- edge(x, y), edge(y, z), x < 2000.",
    "degrees": "degree[x] = n <- agg<<n = count()>> edge(x, _).",
    "reachability": "reach(x, y) <- edge(x, y). reach(x, z) <- reach(x, y), edge(y, z).",
    "reachability, squared": "reach(x, y) <- edge(x, y). reach(x, z) <- reach(x, y), reach(y, z).",
    "same generation, tree": GENERATION,
    "same generation, two parents": GENERATION,
}
DECLARED = "edge(x, y) -> int(x), int(y).\n"
# On random graphs below the size where nearly everything reaches everything, with this many edges.
LOOSE = {"reachability": 1_300, "reachability, squared": 600}
# On a tree whose nodes have three children: most pairs of a level are of the same generation.  With two
# parents each, among all that came before, the pairs are sparse.
CHILDREN, TREE, PARENTS = 3, 2_000, 20_000


def benchmark(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(12)
    for name, rules in PROGRAMS.items():
        yield from ready(name, DECLARED + rules, np.unique(edges_for(name, scale, rng), axis=0))


def edges_for(name: str, scale: float, rng: np.random.Generator) -> np.ndarray:
    if name == "same generation, tree":
        children = np.arange(1, at_least(100, TREE * scale**0.5))
        return np.stack([(children - 1) // CHILDREN, children], axis=1)
    if name == "same generation, two parents":
        n = at_least(500, PARENTS * scale)
        pairs = np.sort(rng.integers(0, n, (2 * n, 2)), axis=1)
        return pairs[pairs[:, 0] < pairs[:, 1]]
    if name in LOOSE:
        return rng.integers(0, LOOSE[name] // 2, (LOOSE[name], 2))
    return graph(at_least(500, 300_000 * scale), rng)


def ready(name: str, program: str, edges: np.ndarray) -> Iterator[Row]:
    fresh = int(edges.max()) + 1
    database = loaded(program, edge=edges)
    first = processor(lambda: database.apply(insert={"edge": [(fresh, fresh)]}))
    state = min(with_state(database, (fresh, fresh + 1 + run)) for run in range(RUNS))
    plain = min(processor(database.verify) for _ in range(RUNS))
    rows = sum(len(database[predicate]) for predicate in database.predicates())
    size = f"{rows:,} rows"
    yield Row(f"{name}: state", size, state, plain, "plain evaluation", within(2))
    yield Row(f"{name}: first transaction", size, first, plain, "plain evaluation")
    yield Row(f"{name}: memory", size, database.store.arena.usage().used_words * 8 / rows, unit="bytes/row")


def with_state(database: dlog.Database, edge: tuple[int, int]) -> float:
    """Processor seconds of a transaction of one row that finds no state."""
    for strategy in database._maintenance.strategies.values():
        if strategy is not None:
            strategy.forget(database.store)
    return processor(lambda: database.apply(insert={"edge": [edge]}))
