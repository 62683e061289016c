"""Programs on Spark, in one Spark application on this machine: against Spark SQL's own joins, and against one
process of dlog.

The time of a whole run is measured over base facts in this process: to the shards, the job, and a count back.
The Java machine compiles with the settings of Spark's own scripts, so that Spark SQL is not slowed down.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import dlog
from benchmarks.harness import Aim, Measured, Row, at_least, faster, timed, within
from benchmarks.triangles import power_law
from dlog.spark.cluster.session import start, stop
from dlog.spark.run.run import ShardedDatabase
from dlog.spark.run.runner import spark_runner

EDGES, ROWS = 500_000, 10_000_000
LOOP_EDGES = 50_000  # for Spark SQL's own loop, which takes 40 times as long as the shards
RUNS = 3
ROUNDS = 2  # sessions of each number of workers
SMALL = 0.01
TINY = 0.001  # below, only what a test needs to see: no loop in Spark SQL, no second session
FULL = ("-XX:+UseParallelGC",)  # both of Java's compilers
Query = Callable[[Any, str], int]  # a session, the file of edges -> the answer

INPUT = '.input edge(IO="parquet", filename="edge.parquet")\nedge(x, y) -> int(x), int(y).\n'
TRIANGLES = (
    INPUT + "triangles[] = n <- agg<<n = count()>> edge(x, y), edge(y, z), edge(x, z). .output triangles"
)
CLOSURE = (
    INPUT
    + """
reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z).
size[] = n <- agg<<n = count()>> reach(x, y).  .output size
"""
)
GROUPS = """
sale(item, amount) -> int(item), int(amount).  .input sale(IO="parquet", filename="sales")
sold[item] = s <- agg<<s = sum(amount)>> sale(item, amount).
best[] = m <- agg<<m = max(s)>> sold[item] = s.  .output best
"""


def benchmark(scale: float) -> Iterator[Row]:
    options = FULL if scale > SMALL else None  # a quick try starts quickly
    spark = start("local[2]", java_options=options)
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield from triangles(spark, Path(folder), at_least(1000, EDGES * scale))
            yield from closure(spark, Path(folder), at_least(200, EDGES * scale), None)
            if scale > TINY:
                yield from closure(spark, Path(folder), at_least(200, LOOP_EDGES * scale), doubled)
            yield from rows(
                Path(folder), at_least(1000, ROWS * scale), options, ROUNDS if scale > TINY else 0
            )
    finally:
        if options is not None:  # no other test uses such a machine
            stop()


def sharded(spark: Any, text: str, folder: Path, shards: int, answer: str) -> Callable[[], int]:
    """A run on shards; its answer is the one value of a predicate."""

    def run() -> int:
        database = ShardedDatabase(None, spark_runner(spark), shards, source=text, facts=folder, spark=spark)
        return int(database[answer].rows()[0][0])

    return run


def local(text: str, folder: Path, answer: str) -> Callable[[], int]:
    return lambda: int(dlog.Database(source=text, facts=folder)[answer].rows()[0][0])


def write_edges(folder: Path, source: Any, target: Any) -> None:
    parquet.write_table(pa.table({"x": source, "y": target}), folder / "edge.parquet")


def triangles(spark: Any, folder: Path, edges: int) -> Iterator[Row]:
    write_edges(folder, *power_law(edges, edges // 10))
    measured = against(spark, folder, TRIANGLES, "triangles", sql)
    yield from compared("triangles", edges, measured, {"Spark SQL": faster(2)})


def closure(spark: Any, folder: Path, edges: int, loop: Query | None) -> Iterator[Row]:
    """A forest of short paths: Spark SQL doubles paths until nothing is new, in its own loop."""
    random = np.random.default_rng(3)
    source = np.arange(edges)
    target = source + 1 + random.integers(0, 3, edges)
    target = np.where(source // 40 == target // 40, target, source)  # components of 40 vertices
    write_edges(folder, source, target)
    measured = against(spark, folder, CLOSURE, "size", loop)
    yield from compared("closure", edges, measured, {} if loop else {"one process": within(3)})


def against(spark: Any, folder: Path, text: str, answer: str, query: Query | None) -> dict[str, Measured]:
    actions: dict[str, Callable[[], int]] = {
        "shards": sharded(spark, text, folder, 2, answer),
        "one process": local(text, folder, answer),
    }
    if query is not None:
        actions["Spark SQL"] = lambda: query(spark, str(folder / "edge.parquet"))
    best = timed(actions, RUNS, time.perf_counter)
    assert len({m.result for m in best.values()}) == 1, {k: m.result for k, m in best.items()}
    return best


def compared(name: str, edges: int, best: dict[str, Measured], aims: dict[str, Aim]) -> Iterator[Row]:
    for peer in ("Spark SQL", "one process"):
        if peer in best:
            ours, theirs = best["shards"].seconds, best[peer].seconds
            yield Row(f"{name} on two shards", f"{edges:,} edges", ours, theirs, peer, aims.get(peer))


def sql(spark: Any, file: str) -> int:
    query = "SELECT count(*) FROM edge a JOIN edge b ON a.y = b.x JOIN edge c ON a.x = c.x AND b.y = c.y"
    spark.read.parquet(file).createOrReplaceTempView("edge")
    return int(spark.sql(query).collect()[0][0])


def doubled(spark: Any, file: str) -> int:
    """The closure in DataFrames: pairs joined with themselves, without their lineage each time."""
    edge = spark.read.parquet(file)
    pairs, before = edge.distinct().localCheckpoint(), -1
    while (now := pairs.count()) != before:
        before = now
        joined = pairs.alias("a").join(pairs.alias("b"), on=_meets()).selectExpr("a.x AS x", "b.y AS y")
        pairs = pairs.union(joined).distinct().localCheckpoint()
    return now


def _meets() -> Any:
    from pyspark.sql import functions

    return functions.expr("a.y = b.x")


def rows(folder: Path, n: int, options: tuple[str, ...] | None, rounds: int) -> Iterator[Row]:
    """Files of Parquet to shards by item, sums there, and the largest of them: one and two workers.

    Sessions of both take turns, as the load of the machine varies; the first run of each starts
    workers and is not counted.
    """
    random = np.random.default_rng(5)
    (folder / "sales").mkdir()
    for part in range(8):
        count = n // 8
        table = {"item": random.integers(0, n // 10, count), "amount": random.integers(1, 1000, count)}
        parquet.write_table(pa.table(table), folder / "sales" / f"{part}.parquet")
    best: dict[str, Measured] = {}
    for master in ("local[2]", "local[1]") * rounds or ("local[2]",):
        spark = start(master, java_options=options)
        found = timed({master: sharded(spark, GROUPS, folder, 2, "best")}, RUNS, time.perf_counter)[master]
        best[master] = min(found, best.get(master, found), key=lambda m: m.seconds)
    size, two = f"{n:,} rows", best["local[2]"]
    yield Row("rows through two shards, per million", size, two.seconds / (n / 1e6))
    if "local[1]" in best:
        one = best["local[1]"]
        assert one.result == two.result
        yield Row("two workers", size, two.seconds, one.seconds, "one worker", faster(1.6))
