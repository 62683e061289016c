"""Owns rows -> events of one machine: which trigger they have, how many are processed together.

Knows no other machines.  See `dlog.m3.runtime.runtime` for the meaning of batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dlog.jit import Words
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.compiler import Compiled
from dlog.m3.runtime.compile.statements import LOAD
from dlog.m3.runtime.machine.event_kernels import make_events
from dlog.m3.runtime.worker import Worker
from dlog.m3.syntax import ast

LONGEST_BATCH = 1 << 40
ROWS_AT_ONCE = 1 << 15  # of several relations: the machine's input then stays in the cache


@dataclass(frozen=True)
class Step:
    """Rows of a relation as codes: (columns + 1, rows), the last multiplicities."""

    relation: str
    words: Words


def has_batch_trigger(compiled: Compiled, relation: str) -> bool:
    return (relation, ast.BATCH) in compiled.entries


class Feeder:
    """The input of one worker.  Each method returns at once after an overflow, and sets `worker.overflow`."""

    def __init__(self, worker: Worker):
        self.worker, self.compiled = worker, worker.compiled
        # Rows that are announced and did not come yet.
        self.coming = dict.fromkeys([s.name for s in self.compiled.program.sources], 0)
        self._taken = self._events = np.empty(0, np.int64)  # memory of `apply_steps`

    def load(self, table: str, words: Words) -> None:
        """Rows of a table."""
        n = words.shape[1]
        entry = self.compiled.entries[table, LOAD]
        events = np.array([entry, 0, n, 0, n, LONGEST_BATCH, -1, 0], np.int64)
        self.coming[table] = max(self.coming[table], n)
        self._run(events, np.ascontiguousarray(words).reshape(-1))
        self.coming[table] -= n

    def once(self, entry: int) -> None:
        """Code that has no rows."""
        self._run(np.array([entry, 0, 0, 0, 1, 1, -1, 0], np.int64), np.zeros(1, np.int64))

    def apply_selected(self, relation: str, words: Words, rows: Words) -> None:
        """A batch of those rows of an array that are listed.  REQUIRES: a batch trigger."""
        n = len(rows)
        self.coming[relation] = max(self.coming[relation], n)
        entry, step, _ = self.entry(relation, 1)
        inputs, stride = flat(words)
        events = np.array([entry, 0, stride, 0, n, step, -1, 1], np.int64)
        self.worker.run(events, inputs, self.coming_to, rows)
        self.coming[relation] -= n

    def apply(self, relation: str, words: Words) -> None:
        """Rows of a stream, which are one batch.  REQUIRES: multiplicities of 1 or -1 where there is no batch
        trigger.
        """
        n = words.shape[1]
        sign = int(words[-1, 0]) if n else 0
        if not has_batch_trigger(self.compiled, relation) and not np.all(words[-1] == sign):
            nothing = np.zeros(n, np.int64)
            self.apply_steps([Step(relation, words)], nothing, nothing)
            return
        self.coming[relation] = max(self.coming[relation], n)
        entry, step, rows = self.entry(relation, sign)
        if n and entry >= 0:
            few = n == 1 or (n <= o.ROW_CODE_ROWS and step < LONGEST_BATCH)
            inputs, stride = flat(words)
            events = np.array([entry, 0, stride, 0, n, step, rows if few else -1, 0], np.int64)
            self._run(events, inputs)
        self.coming[relation] -= n

    def apply_inputs(
        self, relations: Sequence[str], table: Words, which: Words, batch: Words, inputs: Words
    ) -> None:
        """The same as `apply_steps` for rows that are in the input already; `table` has the words of
        steps.
        """
        for relation, words in zip(relations, table, strict=True):
            words[o.S_INSERT : o.S_DELETE] = self.entry(relation, 1)
            words[o.S_DELETE :] = self.entry(relation, -1)
        self._events = _room(self._events, len(which) * o.E_WORDS)
        made = make_events(which, batch, inputs, table.reshape(-1), self._events, len(which))
        self._run(self._events[: made * o.E_WORDS], inputs)

    def apply_events(self, events: Words, inputs: Words) -> None:
        """Events that are made already."""
        self._run(events, inputs)

    def apply_steps(self, steps: Sequence[Step], which: Words, batch: Words) -> None:
        """Rows of several relations: see `Runtime.apply_steps`."""
        done = np.zeros(len(steps), np.int64)
        for step in steps:
            self.coming[step.relation] = max(self.coming[step.relation], step.words.shape[1])
        for first, end in _slices(batch):
            n = end - first
            counts = np.bincount(which[first:end], minlength=len(steps))
            inputs, table = self._inputs(steps, done, counts)
            self._events = _room(self._events, n * o.E_WORDS)
            made = make_events(which[first:end], batch[first:end], inputs, table, self._events, n)
            self._run(self._events[: made * o.E_WORDS], inputs)
            if self.worker.overflow is not None:
                return
            done += counts
            for step, came in zip(steps, counts.tolist(), strict=True):
                self.coming[step.relation] = max(self.coming[step.relation] - came, 0)

    def _inputs(self, steps: Sequence[Step], done: Words, counts: Words) -> tuple[Words, Words]:
        """The next rows of each step, those of their columns that a trigger reads, and the words of steps."""
        sizes = [step.words.shape[0] * n for step, n in zip(steps, counts.tolist(), strict=True)]
        self._taken = _room(self._taken, sum(sizes))
        table = np.zeros((len(steps), o.S_WORDS), np.int64)
        base = 0
        for words, step, first, n, size in zip(table, steps, done, counts, sizes, strict=True):
            rows = self._taken[base : base + size].reshape(-1, n) if n else step.words[:, :0]
            for column in {*self.compiled.columns_read.get(step.relation, ()), len(rows) - 1}:
                rows[column] = step.words[column, first : first + n]
            signs = -1 if has_batch_trigger(self.compiled, step.relation) else base + size - n
            words[: o.S_INSERT] = base, n, signs, 0
            words[o.S_INSERT : o.S_DELETE] = self.entry(step.relation, 1)
            words[o.S_DELETE :] = self.entry(step.relation, -1)
            base += size
        return self._taken, table.reshape(-1)

    def entry(self, relation: str, sign: int) -> tuple[int, int, int]:
        """Where the trigger for rows begins, and how many of them it processes at a time; where its code for
        one row begins.  -1: there is none.
        """
        entries, rows = self.compiled.entries, self.compiled.row_entries
        key: tuple[str, str] = (relation, ast.BATCH)
        if key in entries:
            return entries[key], LONGEST_BATCH, rows.get(key, -1)
        key = (relation, ast.INSERT if sign > 0 else ast.DELETE)
        return entries.get(key, -1), o.CHUNK if key in self.compiled.together else 1, rows.get(key, -1)

    def _run(self, events: Words, inputs: Words) -> None:
        self.worker.run(events, inputs, self.coming_to)

    def coming_to(self, address: int) -> int:
        return sum(self.coming[r] for r in self.compiled.feeding.get(address, ()))


def flat(words: Words) -> tuple[Words, int]:
    """All columns as one array, and the distance from one to the next."""
    if words.flags.c_contiguous:
        return words.reshape(-1), words.shape[1]  # `as_strided` takes 3 us
    if words.strides[1] != words.itemsize or words.strides[0] % words.itemsize or words.strides[0] < 0:
        words = np.ascontiguousarray(words)
    width, n = words.shape
    stride = words.strides[0] // words.itemsize
    return as_strided(words, ((width - 1) * stride + n,), (words.itemsize,)), stride


def _room(words: Words, n: int) -> Words:
    """An array of at least this many words: the given one, if it is large enough."""
    return words if len(words) >= n else np.empty(2 * n, np.int64)


def _slices(batch: Words) -> Iterator[tuple[int, int]]:
    """Where to split rows, about ROWS_AT_ONCE apart and between batches."""
    start, n = 0, len(batch)
    while start < n:
        end = min(start + ROWS_AT_ONCE, n)
        while end < n and batch[end] == batch[end - 1]:
            end += 1
        yield start, end
        start = end
