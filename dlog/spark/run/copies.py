"""Owns copies of predicates as files: Arrow tables that shards memory-map, written once and never changed.

A predicate has a *copy* for each place where it is read: whole, or by the shards of one column.  Every part
of a copy is a file named by its writer, created atomically: a task that runs again writes the same
file again.  Equal rows may be in several parts.  Knows nothing of rules or of Spark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from dlog.ir.rules import Predicate
from dlog.jit import Words
from dlog.spark.plan.hashing import by_shard, shards_of
from dlog.spark.plan.places import WHOLE, Place, columns_of
from dlog.values.heavy import pc

PRESENT = "present"  # the column of a predicate without columns


@dataclass(frozen=True)
class Copies:
    """The copies below a folder, for a number of shards."""

    root: Path
    shards: int
    heavy: Mapping[tuple[str, int], pa.Array] = field(default_factory=dict)  # values, by type and scale

    def put(self, predicate: Predicate, place: Place, table: pa.Table, writer: str) -> None:
        """Add rows to a copy, each to the shard it belongs to.  O(rows)."""
        if place == WHOLE:
            self._write(predicate.name, place, 0, table, writer)
            return
        column, second, is_split = columns_of(place)
        owners = shards_of(table.column(column), predicate.columns[column].type, self.shards)
        if is_split:
            many = self._is_heavy(predicate, column, table)
            self._put_heavy(predicate, place, second, table.filter(pa.array(many)), f"{writer}-heavy")
            table, owners = table.filter(pa.array(~many)), owners[~many]
        self._put_rows(predicate.name, place, table, owners, writer)

    def _put_rows(self, name: str, place: Place, table: pa.Table, owners: Words, writer: str) -> None:
        order, bounds = by_shard(owners, self.shards)
        rows = table if self.shards == 1 else table.take(pa.array(order))
        for shard in range(self.shards):
            part = rows.slice(bounds[shard], bounds[shard + 1] - bounds[shard])
            self._write(name, place, shard, part, writer)

    def _is_heavy(self, predicate: Predicate, column: int, table: pa.Table) -> np.ndarray:
        type = predicate.columns[column].type
        values = self.heavy.get((type.name, type.scale))
        if values is None:
            return np.zeros(table.num_rows, bool)
        return pc.is_in(table.column(column), value_set=values).to_numpy().astype(bool)

    def _put_heavy(
        self, predicate: Predicate, place: Place, second: int | None, table: pa.Table, writer: str
    ) -> None:
        """Rows of heavy values: by their second column, or in every shard."""
        if second is not None:
            owners = shards_of(table.column(second), predicate.columns[second].type, self.shards)
            self._put_rows(predicate.name, place, table, owners, writer)
        else:
            for shard in range(self.shards):
                self._write(predicate.name, place, shard, table, writer)

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
        """All files are in one folder: creating and removing folders took a third of a small run's time."""
        if table.num_rows:
            write_table(table, self.root / f"{self._prefix(name, place, shard)}{writer}.arrow")


def write_table(table: pa.Table, path: Path) -> None:
    """A complete file or none, even if others write it at the same time."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with pa.OSFile(str(unfinished), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    os.replace(unfinished, path)


def map_table(path: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
