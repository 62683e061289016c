"""Owns the arrays of row queues: the words of each queue, its rows, and the words set aside for its set.

Gives kernels room (`storage.queue.row_queue_kernels` has the layout), and packs rows.  Does not know which
set is best for a queue, nor what is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from dlog.jit import Words
from dlog.storage.queue.queue_choice import Ranges
from dlog.storage.queue.row_queue_kernels import (
    Q_ARITY,
    Q_BASE,
    Q_CAPACITY,
    Q_COUNT,
    Q_COUNTED,
    Q_PACK,
    Q_ROOM,
    Q_SEEN,
    Q_SIZE,
    QUEUE,
    pack_queue,
)

GROWTH: Final = 8  # room that is not yet used costs address space only; each step copies the queue's rows
MOST_SPARE: Final = 1 << 22  # words of memory, used by no queue yet, at most


class QueueArrays:
    """Queues of the given arities, in the arrays that kernels work on: `queues`, `rows`, `seen`.

    >>> arrays = QueueArrays([2, 1])
    >>> arrays.reserve(0, 10)
    >>> arrays.count(0), arrays.columns(0).shape, arrays.columns(1).shape
    (0, (2, 0), (1, 0))
    """

    def __init__(self, arities: Sequence[int], counted: bool = False):
        """`counted`: rows have supports.  REQUIRES: arities are positive."""
        n = len(arities)
        self.n = n
        self.queues = np.zeros(QUEUE * n + 2 * sum(arities), np.int64)
        self.rows: Words = np.empty(0, np.int64)
        self.seen: Words = np.empty(0, np.int64)
        self._rows_end = self._seen_end = 0  # words in use; behind them both arrays have spare memory
        self.is_clear = [False] * n  # the room of its set is all zero
        pack = QUEUE * n
        for q, arity in enumerate(arities):
            assert arity > 0
            self[q, Q_ARITY], self[q, Q_PACK], self[q, Q_COUNTED] = arity, pack, counted
            pack += 2 * arity

    def __getitem__(self, place: tuple[int, int]) -> int:
        """A word of a queue: (queue, Q_...)."""
        return int(self.queues[QUEUE * place[0] + place[1]])

    def __setitem__(self, place: tuple[int, int], word: int) -> None:
        self.queues[QUEUE * place[0] + place[1]] = word

    def count(self, q: int) -> int:
        """Rows in the queue, including stale ones."""
        return self[q, Q_COUNT]

    def columns(self, q: int, start: int = 0) -> Words:
        """A queue's rows from `start` on, in order of arrival: a (arity, n) view, valid until it grows."""
        return self.block(q)[: self[q, Q_ARITY], start:]

    def block(self, q: int) -> Words:
        """All rows as `columns` gives them; for a counted queue with their supports as one more column.

        If its set is cells or pairs, these have the supports: see `storage.queue.support_kernels`.
        """
        capacity, base, width = self[q, Q_CAPACITY], self[q, Q_BASE], self.width(q)
        return self.rows[base : base + width * capacity].reshape(width, capacity)[:, : self[q, Q_COUNT]]

    def width(self, q: int) -> int:
        return self[q, Q_ARITY] + self[q, Q_COUNTED]

    # Room for rows

    def reserve(self, q: int, capacity: int) -> None:
        """Makes room for this many rows in total; costs as much as `move` if the queue grows."""
        if capacity <= self[q, Q_CAPACITY]:
            return
        self.move(q, max(capacity, GROWTH * self[q, Q_CAPACITY]))

    def move(self, q: int, capacity: int) -> None:
        """A queue's rows to other memory, with room for so many.  O(its rows) while there is spare memory at
        the end, else O(rows of all queues)."""
        size = self.width(q) * capacity
        if self._rows_end + size > len(self.rows):
            self._move_all(q, capacity)
            return
        block = self.block(q)
        self[q, Q_CAPACITY], self[q, Q_BASE] = capacity, self._rows_end
        self._rows_end += size
        self.block(q)[:] = block

    def _move_all(self, q: int, capacity: int) -> None:
        kept = [self.block(p) for p in range(self.n)]
        self[q, Q_CAPACITY] = capacity
        self._rows_end = sum(self.width(p) * self[p, Q_CAPACITY] for p in range(self.n))
        self.rows = np.empty(self._with_spare(self._rows_end), np.int64)
        base = 0
        for p, block in enumerate(kept):
            self[p, Q_BASE] = base
            base += self.width(p) * self[p, Q_CAPACITY]
            self.block(p)[:] = block

    def _with_spare(self, size: int) -> int:
        """As many words again, within a bound: so many queues can get room one by one in time linear in
        their number."""
        return size if self.n == 1 else size + min(size, MOST_SPARE)

    # Room for sets

    def make_room(self, q: int, size: int) -> None:
        """Set so many words aside for a queue's set; what they hold is undefined.  O(1) while there is spare
        memory at the end, else O(words of all sets)."""
        self.is_clear[q] = False
        if self._seen_end + size > len(self.seen):
            self._move_sets(q, size)
            return
        self[q, Q_ROOM], self[q, Q_SEEN] = size, self._seen_end
        self._seen_end += size

    def _move_sets(self, q: int, size: int) -> None:
        old = [self.seen[self[p, Q_SEEN] : self[p, Q_SEEN] + self[p, Q_ROOM]] for p in range(self.n)]
        self[q, Q_ROOM] = size
        self._seen_end = sum(self[p, Q_ROOM] for p in range(self.n))
        self.seen = np.empty(self._with_spare(self._seen_end), np.int64)
        base = 0
        for p, words in enumerate(old):
            self[p, Q_SEEN] = base
            if p != q:
                self.seen[base : base + len(words)] = words
            base += self[p, Q_ROOM]

    def words_of_set(self, q: int) -> Words:
        """The words that a queue's set uses: a view, valid until one gets room."""
        return self.seen[self[q, Q_SEEN] : self[q, Q_SEEN] + self[q, Q_SIZE]]

    # Packing

    def ranges_of(self, q: int) -> Words:
        """How rows are packed: the lows of the columns, then their widths."""
        return self.queues[self[q, Q_PACK] :][: 2 * self[q, Q_ARITY]]

    def pack_by(self, q: int, ranges: Ranges) -> None:
        lows, widths = zip(*ranges, strict=True)
        self.ranges_of(q)[:] = [*lows, *widths]

    def keys(self, q: int) -> Words:
        """The rows in a queue, packed."""
        keys = np.empty(self.count(q), np.int64)
        pack_queue(self.queues, q, self.rows, keys)
        return keys
