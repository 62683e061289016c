"""Owns regions: arenas side by side in one reserved range, for threads that allocate and write at the same
time.

Kernels see one array, so what is in one region can be read with what is in another.  Each region has its own
lock, free memory and large pages: where two threads shared these, they needed 2 to 5% more time (measured).
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words
from dlog.storage.arena.arena import DEFAULT_BYTES, HUGE_PAGE_BYTES, Arena, reserve


class Region:
    """The part of an arena's interface that large tables need.  Places are those of the whole range."""

    __slots__ = ("A", "_arena", "_first", "lock")

    def __init__(self, arena: Arena, whole: Words, first: int):
        self._arena, self._first = arena, first
        self.A, self.lock = whole, arena.lock

    def new_extent(self, words: int, count: int = 1) -> tuple[int, int]:
        """See `Arena.new_extent`."""
        record, base = self._arena.new_extent(words, count)
        return record, base + self._first

    def release_extent(self, record: int, count: int = 1) -> None:
        """See `Arena.release_extent`."""
        self._arena.release_extent(record, count)


Memory = Arena | Region


def regions(number: int) -> list[Region]:
    """In large pages."""
    memory = reserve(number * DEFAULT_BYTES, 0)
    size = len(memory) // number // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
    whole: Words = np.frombuffer(memory, dtype=np.int64)
    arenas = [Arena(size, in_large_pages=True, within=(memory, i * size)) for i in range(number)]
    return [Region(arena, whole, i * size // 8) for i, arena in enumerate(arenas)]
