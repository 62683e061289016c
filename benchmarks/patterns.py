"""Triangles and 4-cliques as rules, including plans: against DuckDB and Kuzu, each on one thread.

The same graphs as in `triangles`, where the kernel alone is measured.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from benchmarks.harness import Row, at_least, compare, duck, faster
from benchmarks.joins import GRAPH, counting, loaded, run
from benchmarks.triangles import CLIQUE_EDGES, CLIQUE_SQL, EDGES, TRIANGLE_SQL, power_law
from dlog.jit import Words

TRIANGLE = "e(x, y), e(y, z), e(x, z)"
CLIQUE = "e(x, y), e(x, z), e(x, w), e(y, z), e(y, w), e(z, w)"
TRIANGLE_CYPHER = "match (x:V)-[:E]->(y:V)-[:E]->(z:V), (x)-[:E]->(z) return"


def benchmark(scale: float) -> Iterator[Row]:
    source, target = power_law(edges := at_least(2000, EDGES * scale), edges // 10)
    yield from triangles(source, target)
    source, target = power_law(edges := at_least(2000, CLIQUE_EDGES * scale), edges // 20)
    cliques = loaded(GRAPH + counting(CLIQUE), {"e": [source, target]})
    peers = {"DuckDB": in_duck(source, target, CLIQUE_SQL)}
    yield from compare(
        "4-clique rule, count",
        f"{edges:,} edges",
        lambda: run(cliques, "n"),
        peers,
        {"DuckDB": faster(50)},
    )


def triangles(source: Words, target: Words) -> Iterator[Row]:
    """Counted, and listed: into a predicate here and into tables there."""
    aims = {"DuckDB": faster(5), "Kuzu": faster(2)}
    size = f"{len(source):,} edges"
    count = loaded(GRAPH + counting(TRIANGLE), {"e": [source, target]})
    rows = loaded(GRAPH + f"triangle(x, y, z) <- {TRIANGLE}.\n", {"e": [source, target]})
    with tempfile.TemporaryDirectory() as folder:
        kuzu = in_kuzu(source, target, Path(folder))
        peers = {"DuckDB": in_duck(source, target, TRIANGLE_SQL)}
        peers |= {name: partial(counted, ask) for name, ask in kuzu.items()}
        yield from compare("triangle rule, count", size, lambda: run(count, "n"), peers, aims)
        peers = {"DuckDB": listed_in_duck(source, target)}
        peers |= {name: partial(listed, ask) for name, ask in kuzu.items()}
        yield from compare("triangle rule, list", size, lambda: run(rows, "triangle"), peers, aims)


def in_duck(source: Words, target: Words, sql: str) -> Callable[[], int]:
    connection = duck(e=pa.table({"a": source, "b": target}))
    return lambda: int(connection.execute(f"select count(*) {sql}").fetchall()[0][0])


def listed_in_duck(source: Words, target: Words) -> Callable[[], int]:
    connection = duck(e=pa.table({"a": source, "b": target}))
    query = f"create or replace temp table t as select xy.a x, xy.b y, yz.b z {TRIANGLE_SQL}"
    return lambda: int(connection.execute(query).fetchall()[0][0])


def in_kuzu(source: Words, target: Words, folder: Path) -> dict[str, Callable[[str], Any]]:
    """Kuzu with the graph loaded, to be queried for something of each triangle; nothing if it is not
    installed.
    """
    try:
        import kuzu  # type: ignore[import-not-found]
    except ImportError:
        return {}
    vertices = pa.table({"id": pa.array(range(int(target.max()) + 1), pa.int64())})
    for name, table in (("v", vertices), ("e", pa.table({"from": source, "to": target}))):
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
    connection = kuzu.Connection(kuzu.Database(str(folder / "graph")), num_threads=1)
    connection.execute("create node table V(id int64, primary key(id))")
    connection.execute("create rel table E(from V to V)")
    connection.execute(f"copy V from '{folder}/v.parquet'")
    connection.execute(f"copy E from '{folder}/e.parquet'")
    return {"Kuzu": lambda what: connection.execute(f"{TRIANGLE_CYPHER} {what}")}


def counted(ask: Callable[[str], Any]) -> int:
    return int(ask("count(*)").get_next()[0])


def listed(ask: Callable[[str], Any]) -> int:
    """The rows stay in the result: Python does not touch them."""
    return int(ask("x.id, y.id, z.id").get_num_tuples())
