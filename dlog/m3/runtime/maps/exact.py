"""Owns the memory of exact sums of floats that do not fit into the slots of their map: see `layout`.

There are few of them: sums over very large and very small floats, and those of infinities and NaN.  Their
memory never moves and stays with the map.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.algebra import WORDS_PER_SUM
from dlog.jit import Words
from dlog.m3.runtime.layout import EMPTY, M_SPARE
from dlog.m3.runtime.maps.exact_kernels import add_spare
from dlog.storage.arena.regions import Memory

FEWEST = 4  # wide sums that are allocated at once


class WideSums:
    """Those of one map, `words[address:]`."""

    def __init__(self, arena: Memory, words: Words, address: int):
        self._arena, self._words, self._address = arena, words, address
        self._chunks: list[tuple[int, int, int]] = []  # record, base, number
        self.number = 0

    def grow(self) -> None:
        """Twice as many.  O(as many as there are)."""
        n = max(self.number, FEWEST)
        with self._arena.lock:
            record, base = self._arena.new_extent(n * WORDS_PER_SUM)
        self._chunks.append((record, base, n))
        self.number += n
        add_spare(self._arena.A, self._words, self._address, base, n)

    def copy(self) -> Words:
        """All wide sums, and which of them are spare.  O(memory)."""
        parts = [self._arena.A[base : base + n * WORDS_PER_SUM] for _, base, n in self._chunks]
        return np.concatenate([*parts, self._words[self._address + M_SPARE :][:1]])

    def put_back(self, copy: Words) -> None:
        """Those that did not exist when `copy` was made are spare."""
        at, end = 0, len(copy) - 1
        self._words[self._address + M_SPARE] = copy[end]
        for _, base, n in self._chunks:
            if at < end:
                self._arena.A[base : base + n * WORDS_PER_SUM] = copy[at : at + n * WORDS_PER_SUM]
            else:
                add_spare(self._arena.A, self._words, self._address, base, n)
            at += n * WORDS_PER_SUM

    def free(self) -> None:
        """All are spare."""
        self.put_back(np.zeros(1, np.int64))

    def release(self) -> None:
        """Give the memory back.  REQUIRES: the map is not used any more."""
        with self._arena.lock:
            for record, _, _ in self._chunks:
                self._arena.release_extent(record)

    def memory(self) -> int:
        return 8 * WORDS_PER_SUM * self.number

    def check(self, table: Words, keys: int, others: Sequence[int] = ()) -> None:
        """Assert that every wide sum is spare, or belongs to one slot, or is one of some others."""
        there = table[table[:, 0] != EMPTY, keys] if keys else table[:, 0]
        found = [*(-there[there < 0]).tolist(), *others]
        spare = int(self._words[self._address + M_SPARE])
        while spare and len(found) <= self.number:
            found.append(spare)
            spare = int(self._arena.A[spare])
        every = {base + i * WORDS_PER_SUM for _, base, n in self._chunks for i in range(n)}
        assert len(found) == self.number and set(found) == every
