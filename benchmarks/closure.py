"""Transitive closure and same generation: dlog against DuckDB's recursive CTE on one thread, in one run.

Four graphs: random, dense, sparse acyclic, and a chain, where each round adds little.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

import dlog

CLOSURE = """
edge(x, y) -> int(x), int(y).
reach(x, y) <- edge(x, y).
reach(x, z) <- reach(x, y), edge(y, z).
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


def main(scale: float = 1.0) -> None:
    print(f"{'graph':24}{'edges':>10}{'derived':>12}{'dlog s':>9}{'DuckDB s':>10}{'ratio':>8}")
    rng = np.random.default_rng(7)
    size = lambda n: max(10, int(n * scale**0.5))  # noqa: E731
    graphs = {
        "random": rng.integers(0, size(1500), (size(3500), 2)),
        "dense": rng.integers(0, size(1000), (size(30000), 2)),
        "sparse acyclic": np.sort(rng.integers(0, size(20000), (size(26000), 2)), axis=1),
        "chain": np.stack([np.arange(size(1500)), np.arange(1, size(1500) + 1)], axis=1),
    }
    for name, edges in graphs.items():
        compare(f"closure, {name}", CLOSURE, CLOSURE_SQL, "edge", "reach", edges[edges[:, 0] != edges[:, 1]])
    n = size(3000)
    tree = np.stack(
        [np.arange(1, n), np.array([rng.integers(0, max(1, i // 3)) for i in range(1, n)])], axis=1
    )
    compare("same generation, tree", GENERATION, GENERATION_SQL, "parent", "same", tree)


def compare(title: str, program: str, sql: str, base: str, derived: str, edges: np.ndarray) -> None:
    edges = np.unique(edges.astype(np.int64), axis=0)
    rows, ours = best(lambda: evaluate(program, base, derived, edges))
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    table = pa.table({"x": edges[:, 0], "y": edges[:, 1]})
    connection.register("input", table)
    connection.execute("create table edge as select * from input")
    theirs_rows, theirs = best(lambda: connection.execute(sql).fetchone()[0])  # type: ignore[index]
    assert rows == theirs_rows, (rows, theirs_rows)
    print(f"{title:24}{len(edges):>10,}{rows:>12,}{ours:>9.3f}{theirs:>10.3f}{theirs / ours:>8.1f}")


def evaluate(program: str, base: str, derived: str, edges: np.ndarray) -> int:
    database = dlog.Database(source=program)
    with database.transaction() as tx:
        tx.insert(base, edges)
    return len(database.store.relations[derived])


def best(function: Callable[[], int], runs: int = 3) -> tuple[int, float]:
    """(result, least seconds)."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - started)
    return result, min(times)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
