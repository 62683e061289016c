"""Reachability of one node, requested by a constant: dlog rewrites the rules for the goal, DuckDB's recursive
CTE is written for it by hand.

The closure of the first graph has some ten million rows; the second is too large to close.  Rules recur on
the left or on the right: that must not matter.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import dlog
from benchmarks.harness import Row, at_least, compare, duck, faster, timed

DECLARED = '.decl edge(x: number, y: number)\n.input edge(IO="parquet", filename="edge.parquet")\n'
EXIT = "reach(x, y) <- edge(x, y).\n"
LEFT = "reach(x, z) <- reach(x, y), edge(y, z).\n"
RIGHT = "reach(x, z) <- edge(x, y), reach(y, z).\n"
SQL = """
with recursive reach(y) as (
    select y from edge where x = 0 union select edge.y from reach join edge on reach.y = edge.x
) select count(*) from reach
"""
BACK_SQL = """
with recursive reach(x) as (
    select x from edge where y = 0 union select edge.x from reach join edge on reach.x = edge.y
) select count(*) from reach
"""


def benchmark(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(3)
    for nodes, edges in ((3_500, 10_000), (500_000, 1_500_000)):
        n = at_least(10, nodes * scale)
        graph = rng.integers(0, n, (at_least(30, edges * scale), 2))
        yield from ask(np.unique(graph, axis=0), closed=nodes == 3_500)


def ask(edges: np.ndarray, closed: bool) -> Iterator[Row]:
    table = pa.table({"x": edges[:, 0], "y": edges[:, 1]})
    connection = duck(edge=table)
    size = f"{len(edges):,} edges"
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(table, Path(folder) / "edge.parquet")
        for side, rule in (("left", LEFT), ("right", RIGHT)):
            database = dlog.Database(source=DECLARED + EXIT + rule, facts=folder, evaluated=False)
            for query, sql in (("reach(0, y)", SQL), ("reach(x, 0)", BACK_SQL)):
                yield from compare(
                    f"{query}, recursion on the {side}",
                    size,
                    lambda query=query, database=database: len(database.query(f"?- {query}.")),  # type: ignore[misc]
                    {"DuckDB": lambda sql=sql: connection.execute(sql).fetchone()[0]},  # type: ignore[misc]
                )
        if closed:
            yield from against_closure(database, size)


def against_closure(database: dlog.Database, size: str) -> Iterator[Row]:
    """The saving: the closure of all, computed to answer for one node."""
    measured = timed(
        {
            "one": lambda: len(database.query("?- reach(0, y).")),
            "all": lambda: int((database.relation("reach").rows()[:, 0] == 0).sum()),
        },
        runs=2,
    )
    assert measured["one"].result == measured["all"].result
    one, whole = measured["one"].seconds, measured["all"].seconds
    yield Row("reach(0, y)", size, one, whole, "the closure of all", faster(50))
