"""Transitive closure and same generation: dlog against DuckDB's recursive CTE on one thread.

Graphs: random, dense, sparse acyclic, wide acyclic (many nodes that reach few others each), and a chain,
where each round adds little.  Two cores against one, and counting: a million rounds of one row each.  Same
generation where each has two parents: millions of rows, spread thinly, with and without sorted runs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import dlog
from benchmarks.harness import Aim, Row, compare, duck, faster, timed
from dlog.engine.evaluate.evaluate import Evaluation
from dlog.engine.evaluate.evaluate import evaluate as run_rules

CLOSURE = """
edge(x, y) -> int(x), int(y).
reach(x, y) <- edge(x, y).
reach(x, z) <- reach(x, y), edge(y, z).
"""
TWO_STRATA = """
edge(x, y) -> int(x), int(y).
there(x, y) <- edge(x, y), x % 2 = 0.
there(x, z) <- there(x, y), edge(y, z).
back(y, x) <- edge(x, y), y % 2 = 0.
back(z, x) <- back(z, y), edge(x, y).
"""
CLOSURE_SQL = """
with recursive reach(x, y) as (
    select x, y from edge union select reach.x, edge.y from reach join edge on reach.y = edge.x
) select count(*) from reach
"""
GENERATION = """
parent(x, y) -> int(x), int(y).
same(x, y) <- parent(x, p), parent(y, p), x != y.
same(x, y) <- parent(x, p), same(p, q), parent(y, q).
"""
GENERATION_SQL = """
with recursive same(x, y) as (
    select a.x, b.x from edge a join edge b on a.y = b.y where a.x <> b.x
    union select a.x, b.x from same join edge a on a.y = same.x join edge b on b.y = same.y
) select count(*) from same
"""


PATHS = """
edge(x, y, w) -> int(x), int(y), int(w).
source(0).
dist[y] = d <- agg<<d = min(w)>> source(y), w = 0.
dist[y] = d <- agg<<d = min(e)>> dist[x] = c, edge(x, y, w), e = c + w.
"""
PATHS_SQL = """
with recursive dist(y, d) using key (y) as (
    select 0::bigint, 0::bigint
    union
    select e.y, min(dist.d + e.w) from dist join edge e on dist.y = e.x
    left join recurring.dist r on r.y = e.y where r.d is null or dist.d + e.w < r.d group by e.y
) select count(*) from dist
"""
COUNTING = """
first(x) -> int(x).
n(x) <- first(x).
n(y) <- n(x), y = x + 1, x < {}.
"""


def benchmark(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(7)
    size = lambda n: max(10, int(n * scale**0.5))  # noqa: E731  (the closure has the square of it)
    graphs = {
        "random": (rng.integers(0, size(1500), (size(3500), 2)), faster(2)),
        "dense": (rng.integers(0, size(1000), (size(30000), 2)), faster(2)),
        "sparse acyclic": (np.sort(rng.integers(0, size(20000), (size(60000), 2)), axis=1), faster(1)),
        "wide acyclic": (np.sort(rng.integers(0, size(200000), (size(400000), 2)), axis=1), faster(1)),
        "chain": (np.stack([np.arange(size(2500)), np.arange(1, size(2500) + 1)], axis=1), faster(1)),
    }
    for name, (edges, aim) in graphs.items():
        edges = edges[edges[:, 0] != edges[:, 1]]
        yield from derive(f"closure, {name}", CLOSURE, CLOSURE_SQL, ("edge", "reach"), edges, aim)
        if name == "wide acyclic":
            yield from both_cores(f"closure, {name}", CLOSURE, ("edge", "reach"), edges)
            yield from both_cores("two independent strata", TWO_STRATA, ("edge", "there"), edges)
    n = size(3000)
    parents = [int(rng.integers(0, max(1, i // 3))) for i in range(1, n)]
    tree = np.stack([np.arange(1, n), np.array(parents)], axis=1)
    yield from derive(
        "same generation, tree", GENERATION, GENERATION_SQL, ("parent", "same"), tree, faster(1)
    )
    yield from two_parents(size(20_000))
    yield from shortest_paths(max(10, int(50_000 * scale)))
    last = max(10, int(1_000_000 * scale))
    count = partial(evaluate, COUNTING.format(last), "first", "n", np.zeros((1, 1), np.int64))
    yield Row("counting", f"{last:,} rounds", timed({"": count})[""].seconds)


def two_parents(n: int) -> Iterator[Row]:
    """Five layers of n nodes.  New rows are too sparse for bitmaps: sorted runs against a hash table, by
    time and by the peak memory of the process."""
    rng = np.random.default_rng(1)
    layers = [
        np.stack([np.arange(n) + k * n, rng.integers(0, n, n) + (k - 1) * n], axis=1)
        for k in (1, 1, 2, 2, 3, 3, 4, 4)
    ]
    edges, names = np.concatenate(layers), ("parent", "same")
    yield from derive("same generation, two parents", GENERATION, GENERATION_SQL, names, edges, faster(1))
    ways = {
        "sorted runs": lambda: evaluate(GENERATION, *names, edges),
        "hash table": lambda: evaluate('.pragma "planner" "no-sorted-runs"\n' + GENERATION, *names, edges),
    }
    measured = timed(ways)
    size = f"{measured['sorted runs'].result:,} rows"
    times = [measured[way].seconds for way in ways]
    yield Row("same generation, two parents", size, *times, "a hash table of rows")
    grown = [most_memory(action) / 2**20 for action in ways.values()]
    if all(grown):
        yield Row("same generation, two parents: memory", size, *grown, "a hash table of rows", unit="MB")


def most_memory(action: Callable[[], object]) -> int:
    """By how many bytes the process grows while it runs something, at most; 0 if the system does not report
    it.
    """
    try:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        action()
        return _status("VmHWM") - before
    except OSError:
        return 0


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def shortest_paths(n: int) -> Iterator[Row]:
    """Recursive min against DuckDB's recursion with one row per key."""
    rng = np.random.default_rng(11)
    edges = np.concatenate([rng.integers(0, n, (4 * n, 2)), rng.integers(1, 100, (4 * n, 1))], axis=1)
    edges = np.unique(edges, axis=0)
    connection = duck(edge=pa.table({"x": edges[:, 0], "y": edges[:, 1], "w": edges[:, 2]}))
    yield from compare(
        "shortest paths from one node",
        f"{len(edges):,} edges",
        lambda: evaluate(PATHS, "edge", "dist", edges),
        {"DuckDB": lambda: connection.execute(PATHS_SQL).fetchone()[0]},  # type: ignore[index]
        {"DuckDB": faster(1)},
    )


def both_cores(name: str, program: str, predicates: tuple[str, str], edges: np.ndarray) -> Iterator[Row]:
    """Ours with two threads; the peer is ours with one."""
    yield from compare(
        f"{name}, -j 2",
        f"{len(edges):,} edges",
        lambda: evaluate(program, *predicates, edges, jobs=2),
        {"-j 1": lambda: evaluate(program, *predicates, edges)},
        clock=time.perf_counter,
    )


def derive(
    name: str, program: str, sql: str, predicates: tuple[str, str], edges: np.ndarray, aim: Aim
) -> Iterator[Row]:
    edges = np.unique(edges.astype(np.int64), axis=0)
    connection = duck(edge=pa.table({"x": edges[:, 0], "y": edges[:, 1]}))
    rows = evaluate(program, *predicates, edges)
    yield from compare(
        name,
        f"{rows:,} rows",
        lambda: evaluate(program, *predicates, edges),
        {"DuckDB": lambda: connection.execute(sql).fetchone()[0]},  # type: ignore[index]
        {"DuckDB": aim},
    )


def evaluate(program: str, base: str, derived: str, edges: np.ndarray, jobs: int = 1) -> int:
    """From the text and unsorted rows to the derived relation in its index; the number of its rows."""
    database = dlog.Database(source=program, evaluated=False)
    database.store.relations[base].apply_in_place(inserts=edges)
    run_rules(database.program, database.store, Evaluation(jobs=jobs))
    return len(database.store.relations[derived])
