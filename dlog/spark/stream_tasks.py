"""Owns what Spark's workers do for a sharded stream: read files, cut rows by shard, and hand them over.

What goes through Spark is not rows but packs of rows, one for each file and shard.  A task that is tried
again sends again what it has sent, and the shard knows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dlog.ir.rules import Predicate
from dlog.spark.hashing import shards_of
from dlog.spark.shards import WHOLE
from dlog.spark.stream_files import Params, Rows, read_file
from dlog.spark.stream_shard import ask, packed
from dlog.spark.stream_sources import files_of

PACKS = (
    "shard int, predicate string, name string, modified double, n long, bad long, reason string, pack binary"
)
REPORTS = "report string"
_PACKS = pa.schema(
    [
        ("shard", pa.int32()),
        ("predicate", pa.string()),
        ("name", pa.string()),
        ("modified", pa.float64()),
        ("n", pa.int64()),
        ("bad", pa.int64()),
        ("reason", pa.string()),
        ("pack", pa.binary()),
    ]
)

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class Task:
    """What tasks have to know."""

    predicates: Mapping[str, Predicate]
    params: Mapping[str, Params]
    operations: str | None
    places: Mapping[str, int | None]
    ports: tuple[int, ...]
    key: str


def cutting(task: Task) -> Callable[[Batches], Batches]:
    """Files in, packs out."""

    def cut(batches: Batches) -> Batches:
        for batch in batches:
            for file in files_of(pa.Table.from_batches([batch])):
                predicate, params = task.predicates[file.predicate], task.params.get(file.predicate, {})
                rows = read_file(predicate, params, file.name, file.data, task.operations)
                packs = [
                    {
                        "shard": shard,
                        "predicate": file.predicate,
                        "name": file.name,
                        "modified": file.modified,
                        "n": rows.table.num_rows if not number else 0,
                        "bad": len(some.bad),
                        "reason": str(some.bad[0]) if some.bad else "",
                        "pack": packed(some),
                    }
                    for number, (shard, some) in enumerate(cut_rows(task, predicate, rows))
                ]
                yield pa.RecordBatch.from_pylist(packs, _PACKS)

    return cut


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
            yield shard, Rows(rows.table.take(pa.array(some)), rows.says[some], [] if shard else rows.bad)


def handing_over(task: Task, number: int) -> Callable[[Batches], Batches]:
    """Packs in, what shards say out: one report for each shard of the partition."""

    def hand_over(batches: Batches) -> Batches:
        packs: dict[int, list[dict[str, object]]] = {}
        for batch in batches:
            for pack in batch.to_pylist():
                packs.setdefault(pack["shard"], []).append(pack)
        for shard, some in packs.items():
            about = [[p["predicate"], p["name"], p["modified"]] for p in some]
            request = {"do": "batch", "number": number, "about": about}
            answer = ask(task.ports[shard], task.key, request, [p["pack"] for p in some])  # type: ignore[misc]
            told = [{k: p[k] for k in ("predicate", "name", "modified", "n", "bad", "reason")} for p in some]
            yield pa.RecordBatch.from_pydict({"report": [json.dumps({**answer, "packs": told})]})

    return hand_over
