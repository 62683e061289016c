"""Owns the processing of a sharded stream's files: read them, split rows by shard, and send them.

Small files are split in this process, which is quicker than starting tasks; if one is not small,
Spark's workers do it.  What goes through Spark then is not rows but packs of rows, one for each file and
shard.  A task that is retried sends the same again, and the shard recognises it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from dlog.errors import DlogError
from dlog.ir.rules import Predicate
from dlog.spark.plan.hashing import shards_of
from dlog.spark.plan.places import WHOLE
from dlog.spark.stream.errors import encoded
from dlog.spark.stream.files import Params, Rows, read_file
from dlog.spark.stream.shard import ask, packed
from dlog.spark.stream.sources import File, file_of, files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SMALL = 4 << 20  # bytes of a file: reading and splitting them takes less time than starting tasks


class Pack(NamedTuple):
    """Rows of a file for one shard.  The first pack of a file counts its rows."""

    predicate: str
    name: str
    modified: float
    rows: int
    bad: int
    reason: str  # what is wrong with the first of the bad rows
    notice: str  # of the file
    data: bytes


class ShardAnswer(NamedTuple):
    """A shard's answer to a batch, or its `error`, and the packs that it got, without their rows."""

    answer: dict[str, Any]
    packs: list[Pack]


@dataclass(frozen=True)
class Task:
    """Settings of tasks."""

    predicates: Mapping[str, Predicate]
    params: Mapping[str, Params]
    operations: str | None
    places: Mapping[str, int | None]
    ports: tuple[int, ...]
    key: str


def hand_over(task: Task, number: int, frame: DataFrame) -> list[ShardAnswer]:
    """The rows of all files of a batch, and the answer of each shard that got some."""
    from pyspark.sql import functions

    content = functions.when(frame["length"] <= SMALL, frame["content"]).alias("content")
    small = frame.select("predicate", "path", "modified", content).toArrow()
    if small.column("content").null_count:
        return _by_tasks(task, number, frame)
    packs = by_shard(pack for file in files_of(small) for pack in packs_of(task, file))
    with ThreadPoolExecutor(len(task.ports)) as pool:
        return list(pool.map(lambda given: _given(task, number, *given), packs.items()))


def _by_tasks(task: Task, number: int, frame: DataFrame) -> list[ShardAnswer]:
    """Two stages: files to packs, packs to shards."""
    shards = len(task.ports)

    def cut(rows: Iterable[Any]) -> Iterator[tuple[int, Pack]]:
        for row in rows:
            data = pa.py_buffer(bytes(row.content))
            yield from packs_of(task, file_of(row.predicate, row.path, row.modified, data))

    def give(packs: Iterable[tuple[int, Pack]]) -> Iterator[ShardAnswer]:
        for shard, some in by_shard(packs).items():
            yield _given(task, number, shard, some)

    packs = frame.rdd.mapPartitions(cut).partitionBy(shards, lambda shard: shard)
    return packs.mapPartitions(give).collect()


def by_shard(packs: Iterable[tuple[int, Pack]]) -> dict[int, list[Pack]]:
    found: dict[int, list[Pack]] = {}
    for shard, pack in packs:
        found.setdefault(shard, []).append(pack)
    return found


def packs_of(task: Task, file: File) -> Iterator[tuple[int, Pack]]:
    """The packs of one file, and the shard of each."""
    predicate, params = task.predicates[file.predicate], task.params.get(file.predicate, {})
    rows = read_file(predicate, params, file.name, file.data, task.operations)
    n = rows.table.num_rows
    for number, (shard, some) in enumerate(cut_rows(task, predicate, rows)):
        reason = str(some.bad[0]) if some.bad else ""
        about = (file.predicate, file.name, file.modified, 0 if number else n, len(some.bad), reason)
        yield shard, Pack(*about, rows.notice, packed(some))


def _given(task: Task, number: int, shard: int, packs: list[Pack]) -> ShardAnswer:
    about = [[pack.predicate, pack.name, pack.modified] for pack in packs]
    request = {"do": "batch", "number": number, "about": about}
    try:
        answer = ask(task.ports[shard], task.key, request, [pack.data for pack in packs])
    except DlogError as error:  # an answer too: a retry would give the same
        answer = {"error": encoded(error)}
    return ShardAnswer(answer, [pack._replace(data=b"") for pack in packs])


def cut_rows(task: Task, predicate: Predicate, rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Each shard that gets rows, and its rows in their order.  Shard 0 gets the bad ones.  O(rows)."""
    shards, place = len(task.ports), task.places[predicate.name]
    if place == WHOLE or shards == 1:
        yield 0, rows
        yield from ((shard, replace(rows, bad=[])) for shard in range(1, shards))
        return
    assert place is not None
    owners = shards_of(rows.table.column(place), predicate.columns[place].type, shards)
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(shards + 1))
    for shard in range(shards):
        some = order[ends[shard] : ends[shard + 1]]
        if len(some) or shard == 0:
            yield shard, Rows(rows.table.take(pa.array(some)), rows.signs[some], [] if shard else rows.bad)
