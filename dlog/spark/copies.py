"""Owns copies of predicates as files: Arrow tables that shards memory-map, written once and never changed.

A predicate has a *copy* for each place where it is read: whole, or by the shards of one column.  Every part
of a copy is a file named by who wrote it, put in place in one step: a task that runs again writes the same
file again.  Equal rows may stand in several parts.  Knows nothing of rules or of Spark.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from dlog.ir.rules import Predicate
from dlog.spark.hashing import shards_of
from dlog.spark.shards import WHOLE, Place

PRESENT = "present"  # the column of a predicate without columns


@dataclass(frozen=True)
class Copies:
    """The copies below a folder, for a number of shards."""

    root: Path
    shards: int

    def put(self, predicate: Predicate, place: Place, table: pa.Table, writer: str) -> None:
        """Add rows to a copy, each to the shard it belongs to.  O(rows)."""
        if place == WHOLE:
            self._write(predicate.name, place, 0, table, writer)
            return
        owners = shards_of(table.column(place), predicate.columns[place].type, self.shards)
        order = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners[order], np.arange(self.shards + 1))
        rows = table if self.shards == 1 else table.take(pa.array(order))
        for shard in range(self.shards):
            part = rows.slice(bounds[shard], bounds[shard + 1] - bounds[shard])
            self._write(predicate.name, place, shard, part, writer)

    def put_own(self, name: str, place: Place, shard: int, table: pa.Table, writer: str) -> None:
        """The same where all rows are known to belong to one shard."""
        self._write(name, place, shard, table, writer)

    def read(self, name: str, place: Place, shard: int) -> list[pa.Table]:
        """The parts of a copy that a shard has, memory-mapped."""
        prefix = self._prefix(name, place, 0 if place == WHOLE else shard)
        return [map_table(self.root / file) for file in self._files(prefix)]

    def drop(self, name: str) -> None:
        """Remove all copies of a predicate."""
        for file in self._files(f"{quote(name, safe='')},"):
            (self.root / file).unlink(missing_ok=True)

    def _prefix(self, name: str, place: Place, shard: int) -> str:
        return f"{quote(name, safe='')},{'whole' if place == WHOLE else place},{shard},"

    def _files(self, prefix: str) -> list[str]:
        return sorted(f for f in os.listdir(self.root) if f.startswith(prefix) and f.endswith(".arrow"))

    def _write(self, name: str, place: Place, shard: int, table: pa.Table, writer: str) -> None:
        """All files lie in one folder: making and removing folders took a third of a small run."""
        if table.num_rows:
            write_table(table, self.root / f"{self._prefix(name, place, shard)}{writer}.arrow")


def write_table(table: pa.Table, path: Path) -> None:
    """A whole file or none, whoever else writes it at the same time."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with pa.OSFile(str(unfinished), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    os.replace(unfinished, path)


def map_table(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
