"""Owns relations that are only probed for a row and its weight: hash tables."""

from __future__ import annotations

import numpy as np

from dlog.jit import Words
from dlog.storage.hash_kernels import add_rows, find_rows, move_entries, sum_rows

_FIRST_ENTRIES = 1 << 10
_NO_WEIGHTS = np.zeros(0, np.int64)


class Hashed:
    """Rows of `width` codes, each once, with the sum of the weights it was added with.

    >>> table = Hashed(2)
    >>> table.add(np.array([[1, 1, 2], [5, 5, 6]]), 3)
    >>> rows, weights = table.find(np.array([[2, 1, 7], [6, 5, 7]]), 3)
    >>> rows.tolist(), weights.tolist(), len(table)
    ([0, 1], [1, 2], 2)
    """

    def __init__(self, width: int):
        self.width = width
        self._entries = _FIRST_ENTRIES
        self._table = np.zeros(self._entries * (width + 1), np.int64)
        self._n = 0
        self.heaviest = 0  # no weight is greater

    def __len__(self) -> int:
        return self._n

    def add(self, rows: Words, n: int, weights: Words | None = None) -> None:
        """The first n columns of a contiguous (width, m) array.  O(n)."""
        if 2 * (self._n + n) > self._entries:
            self._grow(2 * (self._n + n))
        flat, stride = rows.reshape(-1), rows.shape[1]
        self.heaviest += n if weights is None else int(weights.sum())
        given = _NO_WEIGHTS if weights is None else weights
        self._n += add_rows(
            self._table, self._entries - 1, self.width, flat, stride, n, given, int(weights is not None)
        )

    def find(self, rows: Words, n: int) -> tuple[Words, Words]:
        """(Numbers, weights) of those of the first n columns of a (width, m) array that it has.  O(n)."""
        found, weights = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
        flat, stride = rows.reshape(-1), rows.shape[1]
        count = find_rows(self._table, self._entries - 1, self.width, flat, stride, n, found, weights)
        return found[:count], weights[:count]

    def total(self, rows: Words, n: int) -> int:
        """The sum of the weights of the first n columns.  REQUIRES: it fits 64 bits.  O(n)."""
        return sum_rows(self._table, self._entries - 1, self.width, rows.reshape(-1), rows.shape[1], n)

    def _grow(self, least: int) -> None:
        entries = 1 << (least - 1).bit_length()
        table = np.zeros(entries * (self.width + 1), np.int64)
        move_entries(self._table, self._entries, table, entries - 1, self.width)
        self._table, self._entries = table, entries
