"""Owns which machine has which rows: who has each bucket of keys, and which rows of a batch these are.  Knows
no maps and no threads.

A bucket has the keys of one hash.  The first rows decide who has it: the machine that has the fewest rows so
far.  So few keys are divided evenly, too: by their hashes alone, one of two machines had 86 of 150 keys, and
the other waited for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime.compile.compiler import Compiled
from dlog.m3.runtime.compile.partition import Partition
from dlog.m3.runtime.feeder import Step, flat, has_batch_trigger
from dlog.m3.runtime.machine.partition_kernels import (
    BUCKET_BITS,
    BUCKETS,
    count_buckets,
    find_machine,
    list_part,
    share_out,
    take_part,
)

DECIDING = 1 << 13  # rows after which all buckets are decided
SPREAD_OUT = np.arange(DECIDING) * 0.6180339887498949 % 1  # places of a sample: they have no period
NO_WORDS: Words = np.empty(0, np.int64)


class Division:
    """`is_fixed`: buckets do not depend on the rows."""

    def __init__(self, compiled: Compiled, partition: Partition, machines: int, is_fixed: bool):
        self.compiled, self.partition, self.machines = compiled, partition, machines
        self.shares: Words = (np.arange(BUCKETS) * machines) >> BUCKET_BITS
        self._decided = np.zeros(BUCKETS, np.int64)
        self._loads = np.zeros(machines, np.int64)
        self._rows_left = 0 if is_fixed else DECIDING

    def key(self, relation: str) -> int | None:
        """The column that a relation is split by."""
        return self.partition.columns[relation]

    def clears(self, relation: str) -> bool:
        """Whether machines that have no row of a batch run its trigger, too."""
        return relation in self.partition.clearing and self.key(relation) is not None

    def read(self, relation: str, width: int) -> list[int]:
        """The columns that are read, with that of multiplicities."""
        return sorted({*self.compiled.columns_read.get(relation, range(width - 1)), width - 1})

    def see(self, relation: str, words: Words) -> None:
        """Rows come: decide who has their buckets.  O(DECIDING) for all calls together."""
        key, n = self.key(relation), words.shape[1]
        if self._rows_left <= 0 or key is None or n == 0:
            return
        counts, keys = np.zeros(BUCKETS, np.int64), words[key]
        seen = keys[(SPREAD_OUT * n).astype(np.int64)] if n > DECIDING else np.ascontiguousarray(keys)
        count_buckets(seen, counts)
        share_out(np.argsort(-counts), counts, self._decided, self._loads, self.shares)
        self._rows_left -= n

    def machine_of(self, relation: str, row: Sequence[int]) -> int:
        """The machine that has one row.  REQUIRES: the relation is split."""
        key = self.partition.columns[relation]
        assert key is not None
        if self._rows_left > 0:
            self.see(relation, np.array(row, np.int64).reshape(-1, 1))
        return find_machine(int(row[key]), self.shares)

    def take(self, step: Step, part: int, out: Words, to: int, rows: Words, marks: Words, row: int) -> int:
        """Put the rows of one machine, the columns that are read, from a place on; returns how many they are.
        See `take_part`.
        """
        key, (width, n) = self.key(step.relation), step.words.shape
        columns = np.array(self.read(step.relation, width), np.int64)
        given, stride = flat(step.words)
        key = -1 if key is None else key
        return take_part(given, stride, n, key, part, self.shares, columns, rows, marks, row, out, to)

    def is_listed(self, relation: str) -> bool:
        """Whether rows of a batch can stay where they are, listed by machine."""
        return self.key(relation) is not None and has_batch_trigger(self.compiled, relation)

    def list(self, step: Step, part: int, rows: Words) -> Words:
        """The numbers of the rows that one machine has.  REQUIRES: `is_listed`."""
        key, (given, stride) = self.key(step.relation), flat(step.words)
        assert key is not None
        return rows[: list_part(given, key * stride, step.words.shape[1], part, self.shares, rows)]
