"""`dlog stream` with a state of a million groups: the time of a micro-batch, from files to results, in one
engine and in two shards, beside Spark's own streaming aggregation over the same files in the same session.

A batch's time is that between two batches that are done, while files wait: Spark's records, the transaction
in the durable store and the files of changes are included, and so is the occasional writing of all values.
Spark's own side has its state and writes nothing; it cannot erase, so that deletions have no peer.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Aim, Row, below

PROGRAM = """
sale(id, shop, amount) -> int(id), int(shop), int(amount).
total[shop] = t, sold[shop] = n <- agg<<t = sum(a), n = count()>> sale(_, shop, a).
.output total
.output sold
"""
MASTER = "local[2]"
SHARDS = 2
_FIRST_TIME = 1_700_000_000


@dataclass(frozen=True)
class Kind:
    """Batches of one size; `signs` are 1, or 1 and -1 in turns."""

    facts: int
    numbers: range  # of their batches
    erases: bool
    aim: Aim | None

    @property
    def name(self) -> str:
        return f"{self.facts:,} facts a batch{', half of them deletions' if self.erases else ''}"


def benchmark(scale: float) -> Iterator[Row]:
    groups = max(2_000, int(1_000_000 * scale))
    large = max(100, int(100_000 * scale))
    with tempfile.TemporaryDirectory() as name:
        files = Files(Path(name), groups)
        for facts, n, aim in ((min(1_000, large // 2), 20, below(0.5)), (large, 8, None)):
            files.write_kind(facts, max(1, int(n * min(scale, 1))), False, aim)
        inserts = files.links("inserts")
        for facts, n, aim in ((min(1_000, large // 2), 20, below(0.5)), (large, 4, None)):
            files.write_kind(facts, max(1, int(n * min(scale, 1))), True, aim)
        theirs = _spark_times(files, inserts)
        for shards, chosen in ((0, files.links("all")), (SHARDS, inserts)):
            ours = _dlog_times(files, chosen, shards)
            for kind in files.kinds:
                if kind.numbers.stop <= chosen.n:
                    yield _row(kind, groups, shards, ours, theirs)


def _row(kind: Kind, groups: int, shards: int, ours: list[float], theirs: list[float]) -> Row:
    seconds = median(ours[number] for number in kind.numbers)
    peer = None if kind.erases else median(theirs[number] for number in kind.numbers)
    name = kind.name + (f", {shards} shards" if shards else "")
    size = f"{groups:,} groups, {kind.facts / seconds:,.0f} facts/s"
    return Row(name, size, seconds, peer, "" if kind.erases else "Spark's own", kind.aim)


class Chosen(NamedTuple):
    """The first n files, in their own folder, and the totals that they give."""

    n: int
    folder: Path
    totals: np.ndarray


class Files:
    """A file of facts for each batch; the first has the state: one fact of each group."""

    def __init__(self, root: Path, groups: int):
        self.root = root
        self.kinds: list[Kind] = []
        self.n = 0
        self.totals = np.zeros(groups, np.int64)
        self.distinct: list[int] = []
        self._random = np.random.default_rng(7)
        self._gone = self._random.permutation(
            groups
        )  # the first fact of these is deleted, one after the other
        self._next_id = 0
        self.folder.mkdir(parents=True)
        self._write(np.arange(groups), np.empty(0, np.int64))

    @property
    def folder(self) -> Path:
        return self.root / "in" / "sale"

    def links(self, name: str) -> Chosen:
        """All files that have been written."""
        folder = self.root / name
        (folder / "sale").mkdir(parents=True)
        for path in self.folder.iterdir():
            os.link(path, folder / "sale" / path.name)
        return Chosen(self.n, folder, self.totals.copy())

    def write_kind(self, facts: int, batches: int, erases: bool, aim: Aim | None) -> None:
        first = self.n
        for _ in range(batches):
            gone, self._gone = np.split(self._gone, [facts // 2 if erases else 0])
            self._write(self._random.integers(0, len(self.totals), facts - len(gone)), gone)
        self.kinds.append(Kind(facts, range(first, self.n), erases, aim))

    def _write(self, shops: np.ndarray, gone: np.ndarray) -> None:
        """New facts of shops; and groups whose first fact, which has their number, is deleted."""
        ids = np.concatenate([np.arange(len(shops)) + self._next_id, gone])
        self._next_id += len(shops)
        shops, signs = np.concatenate([shops, gone]), np.repeat([1, -1], [len(shops), len(gone)])
        np.add.at(self.totals, shops, ids % 100 * signs)
        self.distinct.append(len(np.unique(shops)))
        path = self.folder / f"{self.n:04}.parquet"
        pq.write_table(pa.table({"id": ids, "shop": shops, "amount": ids % 100, "op": signs}), path)
        os.utime(path, (_FIRST_TIME + self.n, _FIRST_TIME + self.n))
        self.n += 1


def _dlog_times(files: Files, chosen: Chosen, shards: int) -> list[float]:
    from dlog.spark.stream.command import Options, Places, run_stream
    from dlog.spark.stream.progress import Report, Reporter

    class Clock(Reporter):
        done = [time.perf_counter()]

        def batch(self, report: Report) -> None:
            self.done.append(time.perf_counter())

        def print(self, text: str) -> None:
            """Where shards write what is not of interest here."""

    program, run = files.root / "program.dl", files.root / f"shards-{shards}"
    program.write_text(PROGRAM)
    clock = Clock()
    places = Places(program, [str(chosen.folder)], run / "out", run / "state")
    run_stream(places, Options(master=MASTER, once=True, batch_files=1, shards=shards), clock)
    found = np.zeros_like(chosen.totals)
    for path in (run / "out" / "values").glob("total/*.csv" if shards else "total.csv"):
        shops, totals = np.loadtxt(path, np.int64, delimiter="\t", unpack=True)
        found[shops] = totals
    assert np.array_equal(found, chosen.totals)
    return list(np.diff(clock.done))


def _spark_times(files: Files, chosen: Chosen) -> list[float]:
    """Spark's own sum and count by group, in update mode."""
    from pyspark.sql import functions

    from dlog.spark.cluster import session

    spark = session.start(MASTER)
    reader = spark.readStream.schema("id long, shop long, amount long").option("maxFilesPerTrigger", 1)
    totals = reader.parquet(str(chosen.folder / "sale")).groupBy("shop")
    frame = totals.agg(functions.sum("amount"), functions.count("*"))
    done, seen = [time.perf_counter()], []

    def take(batch: Any, number: int) -> None:
        seen.append(batch.count())
        done.append(time.perf_counter())

    partitions = "spark.sql.shuffle.partitions"
    before = spark.conf.get(partitions)
    assert before is not None
    spark.conf.set(partitions, "2")
    try:
        writer = frame.writeStream.foreachBatch(take).outputMode("update").trigger(availableNow=True)
        writer.option("checkpointLocation", str(files.root / "theirs")).start().awaitTermination()
    finally:
        spark.conf.set(partitions, before)
    assert seen == files.distinct[: chosen.n]
    return list(np.diff(done))
