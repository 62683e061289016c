"""Owns batches that wait for others, so that several machines get enough rows to be worth their threads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime.feeder import Step

MOST_WAITING = 1 << 16  # rows; as many as one machine needs a few milliseconds for
SMALL_BATCH = 1 << 14  # rows: larger batches wait for none


class Waiting:
    """Copies of batches, in order.  `columns_read`: by relation, the columns that are copied."""

    def __init__(self, columns_read: Mapping[str | None, frozenset[int]]):
        self._columns_read = {relation: sorted(columns) for relation, columns in columns_read.items()}
        self._steps: dict[str, tuple[int, Words]] = {}  # rows so far, and memory
        self._order: list[tuple[str, int]] = []
        self.rows = 0

    def add(self, relation: str, words: Words) -> None:
        width, n = words.shape
        filled, memory = self._steps.get(relation, (0, np.empty((width, 0), np.int64)))
        if filled + n > memory.shape[1]:
            larger = np.empty((width, max(2 * (filled + n), 1 << 12)), np.int64)
            larger[:, :filled] = memory[:, :filled]
            memory = larger
        for column in self._columns_read.get(relation, ()):
            memory[column, filled : filled + n] = words[column]
        memory[-1, filled : filled + n] = words[-1]
        self._steps[relation] = filled + n, memory
        self._order.append((relation, n))
        self.rows += n

    def take(self) -> tuple[list[Step], Words, Words]:
        """All of them, as `Runtime.apply_steps` takes them; then there are none.  Their memory is used
        again.
        """
        names = [relation for relation, (n, _) in self._steps.items() if n]
        steps = [Step(name, self._steps[name][1][:, : self._steps[name][0]]) for name in names]
        sizes = np.array([n for _, n in self._order], np.int64)
        which = np.repeat([names.index(relation) for relation, n in self._order if n], sizes[sizes > 0])
        batch = np.repeat(np.arange(len(sizes)), sizes)
        self._steps = {relation: (0, memory) for relation, (_, memory) in self._steps.items()}
        self._order, self.rows = [], 0
        return steps, which.astype(np.int64), batch
