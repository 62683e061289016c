"""Owns row sets: which rows have been seen, for recursion that only has to detect new rows.

A sorted index pays for order with every batch; a row set has none.  It is a hash table of packed rows and
turns into a bitmap if the rows are dense among the possible ones (observed while it grows): a bitmap is
then smaller and several times faster.  Knows nothing of predicates.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dlog.jit import Words
from dlog.storage.queue.row_set_kernels import bitmap_add, bitmap_fill, hash_add, pack, rehash

LARGEST_DOMAIN: Final = 1 << 62
LARGEST_BITMAP: Final = 1 << 31  # bits: 256 MiB
_DENSE: Final = 128  # a table of two words a row and half full takes 128 bits and more


class RowSet:
    """Rows of one arity, and which of a batch are new.

    >>> seen = RowSet(2)
    >>> seen.add(np.array([[1, 1, 2], [5, 5, 6]])).tolist(), seen.add(np.array([[2, 3], [6, 7]])).tolist()
    ([[1, 2], [5, 6]], [[3], [7]])
    """

    def __init__(self, arity: int):
        """REQUIRES: arity > 0."""
        self.arity = arity
        self._count = 0
        self._lows = np.zeros(arity, np.int64)
        self._widths = np.zeros(arity, np.int64)
        self._table: Words = np.full(1 << 10, -1, np.int64)
        self._bits: Words | None = None
        self._rows: list[Words] = []

    def __len__(self) -> int:
        return self._count

    @property
    def is_bitmap(self) -> bool:
        return self._bits is not None

    def rows(self) -> Words:
        """All rows, in order of arrival, as a (arity, n) array."""
        if len(self._rows) != 1:
            self._rows = [np.concatenate([np.empty((self.arity, 0), np.int64), *self._rows], axis=1)]
        return self._rows[0]

    def add(self, columns: Words) -> Words | None:
        """The new ones among the rows of a (arity, n) array, each once, in order.  None if rows are too far
        apart to be packed; the set is then unchanged.

        O(n) expected.
        """
        n = columns.shape[1]
        if n == 0:
            return columns
        columns = np.ascontiguousarray(columns)
        keys = np.empty(n, np.int64)
        if not pack(columns.reshape(-1), n, self.arity, self._lows, self._widths, keys):
            if not self._widen(columns):
                return None
            pack(columns.reshape(-1), n, self.arity, self._lows, self._widths, keys)
        positions = np.empty(n, np.int64)
        m = self._add_keys(keys, positions)
        new = columns if m == n else columns[:, positions[:m]]
        if m == n:
            new = columns.copy()
        self._count += m
        if m:
            self._rows.append(new)
        self._choose()
        return new

    def _add_keys(self, keys: Words, positions: Words) -> int:
        if self._bits is not None:
            return bitmap_add(keys, len(keys), self._bits, positions)
        need = 2 * (self._count + len(keys))
        if need > len(self._table):
            table = np.full(1 << int(need).bit_length(), -1, np.int64)
            rehash(self._table, table)
            self._table = table
        return hash_add(keys, len(keys), self._table, positions)

    def _choose(self) -> None:
        """From hash to bitmap once the rows are dense enough; never back, since rows only grow."""
        domain = self._domain()
        if self._bits is None and domain <= LARGEST_BITMAP and self._count * _DENSE > domain:
            self._bits = np.zeros(domain // 64 + 1, np.int64)
            bitmap_fill(self._table, self._bits)
            self._table = np.full(2, -1, np.int64)

    def _domain(self) -> int:
        return math.prod(self._widths.tolist())

    def _widen(self, columns: Words) -> bool:
        """Ranges that also hold these rows, with room for as much again, and the set in terms of them."""
        lows, highs = columns.min(axis=1), columns.max(axis=1)
        if self._count:
            lows = np.minimum(lows, self._lows)
            highs = np.maximum(highs, self._lows + self._widths - 1)
        spans = [int(h) - int(low) + 1 for low, h in zip(lows.tolist(), highs.tolist(), strict=True)]
        ranges = [roomy(int(low), span) for low, span in zip(lows.tolist(), spans, strict=True)]
        if not _fits([w for _, w in ranges]):
            ranges = list(zip(lows.tolist(), spans, strict=True))
            if not _fits(spans):
                return False
        self._lows = np.array([low for low, _ in ranges], np.int64)
        self._widths = np.array([w for _, w in ranges], np.int64)
        self._rebuild()
        return True

    def _rebuild(self) -> None:
        rows = self.rows()
        n = rows.shape[1]
        self._bits, self._table = None, np.full(1 << max(10, int(2 * n).bit_length()), -1, np.int64)
        if n:
            keys = np.empty(n, np.int64)
            pack(np.ascontiguousarray(rows).reshape(-1), n, self.arity, self._lows, self._widths, keys)
            hash_add(keys, n, self._table, np.empty(n, np.int64))

    def check(self) -> None:
        rows = self.rows()
        assert rows.shape == (self.arity, self._count)
        assert len(np.unique(rows, axis=1).T) == self._count


def roomy(low: int, span: int) -> tuple[int, int]:
    """(low, width) of a range with slack above, and down to 0 if that is near: most ids begin there.

    >>> roomy(3, 100), roomy(2**63 - 1, 1)[1]
    ((0, 128), 1)
    """
    if 0 < low <= span:
        low, span = 0, span + low
    return low, min(span + span // 4, (1 << 63) - low)


def _fits(widths: list[int]) -> bool:
    return math.prod(widths) <= LARGEST_DOMAIN
