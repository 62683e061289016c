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

GROWTH: Final = 8  # room that is not yet used costs address space only; each step copies all rows


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
        """Room for this many rows in all.  O(rows of all queues) when it grows."""
        if capacity <= self[q, Q_CAPACITY]:
            return
        self.move(q, max(capacity, GROWTH * self[q, Q_CAPACITY]))

    def move(self, q: int, capacity: int) -> None:
        """All queues' rows to new memory, with room for this many in one of them.  O(rows of all queues)."""
        kept = [self.block(p) for p in range(self.n)]
        self[q, Q_CAPACITY] = capacity
        self.rows = np.empty(sum(self.width(p) * self[p, Q_CAPACITY] for p in range(self.n)), np.int64)
        base = 0
        for p, block in enumerate(kept):
            self[p, Q_BASE] = base
            base += self.width(p) * self[p, Q_CAPACITY]
            self.block(p)[:] = block

    # Room for sets

    def make_room(self, q: int, size: int) -> None:
        """Set this many words aside for a queue's set; their contents are undefined."""
        old = [self.seen[self[p, Q_SEEN] : self[p, Q_SEEN] + self[p, Q_ROOM]] for p in range(self.n)]
        self[q, Q_ROOM] = size
        self.is_clear[q] = False
        self.seen = np.empty(sum(self[p, Q_ROOM] for p in range(self.n)), np.int64)
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
