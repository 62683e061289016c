"""Owns the choice of a set for a row queue: which kind, how it packs rows, and how many words it takes.

Pure functions of statistics of the rows; queues follow them (`storage.queue.row_queue`).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from dlog.storage.queue.row_queue_kernels import BEST, BITMAP, CELLS, HASH, KEYED, RUNS, WIDE
from dlog.storage.queue.row_set import roomy

KEY_BITS: Final = 62
LARGEST_BITMAP: Final = 1 << 31  # bits: 256 MiB
SMALL_BITMAP: Final = 1 << 17  # bits: in the first cache
CHUNK_BITMAP: Final = 1 << 23  # bits: in the second
DENSE: Final = 128  # a hash table takes 128 bits a row and more
SMALL_CELLS: Final = 1 << 14  # words
DENSE_CELLS: Final = 8  # words: a hash table of pairs takes 4 to 8 a row
SCATTERED_CELLS: Final = 64  # words a row that are worth it as long as there are not many
MANY_CELLS: Final = 1 << 24  # words: 128 MiB
METHODS: Final = {"bitmap": BITMAP, "hash": HASH, "wide": WIDE, "runs": RUNS}
WORDS: Final = {
    BITMAP: "a bitmap",
    HASH: "a hash table",
    WIDE: "a hash table of whole rows",
    BEST: "a hash table of the best rows",
    CELLS: "cells with supports",
    KEYED: "a hash table with supports",
    RUNS: "sorted runs",
}

Ranges = list[tuple[int, int]]  # the low and the width of each column, by which rows are packed


class PivotRange(NamedTuple):
    """Rows whose column `pivot` is in [low, high), about `expected` in all."""

    pivot: int
    low: int
    high: int
    expected: float


class QueueStatistics(NamedTuple):
    """Statistics of a queue: least and greatest values of its columns, rows, and how many may come."""

    lows: list[int]
    highs: list[int]
    rows: int
    room: int
    part: PivotRange | None = None  # it holds only these of all rows
    in_batches: bool = False  # rows are many, and come many at a time

    def tight(self) -> Ranges:
        """Ranges with some space to grow, and unchanged where they cannot."""
        ranges = [roomy(low, high - low + 1) for low, high in zip(self.lows, self.highs, strict=True)]
        if self.part is not None:
            ranges[self.part.pivot] = (self.part.low, self.part.high - self.part.low)
        return ranges

    def expected(self) -> int:
        return self.rows if self.part is None else max(self.rows, int(self.part.expected))

    def capacity(self) -> int:
        """Rows that a table must have room for."""
        expected = self.expected() if self.part is not None else 0
        return max(self.rows + self.room, expected + expected // 4)

    def packed(self, tight: Ranges) -> Ranges | None:
        """How a hash table packs rows: as wide as possible, or tight if keys will be sorted."""
        if self.part is not None and _domain(tight) < 1 << KEY_BITS:
            return tight
        return generous(self.lows, self.highs)


class Choice(NamedTuple):
    """A kind of set, the ranges by which it packs rows, and its words."""

    method: int
    ranges: Ranges
    size: int


def choose_set(known: QueueStatistics, forced: int | None) -> Choice:
    """A set that fits the statistics; `forced`: this kind wherever it can hold the rows."""
    tight = known.tight()
    domain = _domain(tight)
    small = SMALL_BITMAP if known.part is None else CHUNK_BITMAP
    dense = domain <= small or known.expected() * DENSE > domain
    if forced in (None, BITMAP) and domain <= LARGEST_BITMAP and (dense or forced == BITMAP):
        return Choice(BITMAP, tight, domain // 64 + 1)
    if known.in_batches and domain < 1 << KEY_BITS:
        return Choice(RUNS, tight, 0)
    slots = slots_for(known.capacity())
    if forced != WIDE and (packed := known.packed(tight)) is not None:
        return Choice(HASH, packed, slots)
    return Choice(WIDE, [(0, 0)] * len(tight), 2 * slots)


def choose_counted_set(known: QueueStatistics, forced: int | None) -> Choice:
    """The same for rows with supports."""
    tight, count = known.tight(), known.expected()
    domain = _domain(tight)
    scattered = domain <= min(MANY_CELLS, SCATTERED_CELLS * count)
    dense = scattered or domain <= max(SMALL_CELLS, DENSE_CELLS * count)
    if (dense and forced is None) or (forced == BITMAP and domain <= LARGEST_BITMAP // 64):
        return Choice(CELLS, tight, domain)
    pairs = 2 * slots_for(known.capacity())
    if forced != WIDE and (packed := known.packed(tight)) is not None:
        return Choice(KEYED, packed, pairs)
    return Choice(WIDE, [(0, 0)] * len(tight), pairs)


def choose_best_set(arity: int, capacity: int) -> Choice:
    """The same for rows that combine."""
    return Choice(BEST, [(0, 0)] * arity, 2 * slots_for(capacity))


def _domain(ranges: Ranges) -> int:
    return math.prod(width for _, width in ranges)


def generous(lows: list[int], highs: list[int]) -> Ranges | None:
    """Ranges as wide as a packed row allows, since a hash table does not mind; None if they do not fit.

    >>> generous([0, 0], [10, 20]) is not None, generous([0, 0], [2**40, 2**40])
    (True, None)
    """
    bits = [(high - low + 1).bit_length() for low, high in zip(lows, highs, strict=True)]
    spare = (KEY_BITS - sum(bits)) // len(bits)
    if spare < 0:
        return None
    ranges = []
    for low, high, b in zip(lows, highs, bits, strict=True):
        width = 1 << (b + spare)
        low = max(low - (width - (high - low + 1)) // 4, -(1 << 63))
        ranges.append((min(low, (1 << 63) - width), width))
    return ranges


def slots_for(rows: int) -> int:
    """A table of rows is at most half full: the least power of 2 that is greater, at least 1024.

    >>> slots_for(3), slots_for(512)
    (1024, 2048)
    """
    return 1 << max(10, (2 * rows).bit_length())
