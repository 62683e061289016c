"""Owns row queues: what recursion has derived, in order of arrival and each row once, ready to drive on.

A queue tells what is new by one of four sets, chosen by what is seen while it grows: a bitmap when rows are
dense among those that could be, else a hash table of rows packed into one word, or of whole rows when they do
not fit a word; and sorted runs of packed rows where there are many, and come many at a time.  With runs the
queue keeps only rows that have yet to drive, and new ones wait until many are looked up at once.  In a queue
that combines, a row is a key and a value, and only the best row of a key counts: a row that a better one has
replaced after it drove is *stale*, and goes when room is needed.  In a counted queue every row has a support:
its stage and the number of its derivations (`storage.support_kernels`).
Kernels fill queues (`absorb`); this module gives them room.  Knows nothing of predicates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dlog.jit import Words
from dlog.storage.arena import Arena
from dlog.storage.index import Index
from dlog.storage.relation import Order, Relation
from dlog.storage.row_queue_kernels import (
    BEST,
    BITMAP,
    CELLS,
    HASH,
    KEYED,
    MAX,
    MIN,
    Q_ARITY,
    Q_BASE,
    Q_CAPACITY,
    Q_COMBINE,
    Q_COUNT,
    Q_COUNTED,
    Q_DRIVEN,
    Q_METHOD,
    Q_PACK,
    Q_READY,
    Q_ROOM,
    Q_SEEN,
    Q_SIZE,
    Q_STALE,
    Q_WAITING,
    QUEUE,
    RUNS,
    WIDE,
    clear_bits,
    fill_seen,
    pack_queue,
    read_bits,
    unpack_keys,
)
from dlog.storage.row_set import roomy
from dlog.storage.run_kernels import take_out
from dlog.storage.sort import sorted_with_last, sorted_words
from dlog.storage.sorted_runs import SortedRuns
from dlog.storage.support_kernels import read_cells, rehash_pairs, settle_supports

GROWTH: Final = 8  # room that is not yet used costs address space only; each step copies all rows
KEY_BITS: Final = 62
LARGEST_BITMAP: Final = 1 << 31  # bits: 256 MiB
SMALL_BITMAP: Final = 1 << 17  # bits: in the first cache
CHUNK_BITMAP: Final = 1 << 23  # bits: in the second
DENSE: Final = 128  # a hash table takes 128 bits a row and more
SMALL_CELLS: Final = 1 << 14  # words
DENSE_CELLS: Final = 8  # words: a hash table of pairs takes 4 to 8 a row
SCATTERED_CELLS: Final = 64  # words a row that are worth it as long as there are not many
MANY_CELLS: Final = 1 << 24  # words: 128 MiB
CELLS_READ: Final = 1 << 14  # at a time
MANY_ROWS: Final = 1 << 19  # from which on runs are thought of
WAITING_SHARE: Final = 8  # of the rows, one in so many must have yet to drive: else batches are small
LEAST_WAITING: Final = 1 << 16  # packed rows that can wait, at least
MOST_WAITING: Final = 1 << 23
THIN: Final = 256  # a batch that is smaller than this part of what is known costs more than a hash table
CALL: Final = 2048  # rows that a hash table takes in the time of looking up a batch of one
PATIENCE: Final = 64 * CALL
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


class _Chunk(NamedTuple):
    """Rows whose pivot column lies in [low, high); `pivots` are these columns, `expected` is their number."""

    pivots: tuple[int, ...]
    low: int
    high: int
    expected: float


class RowQueues:
    """Queues of the given arities, in the arrays that kernels work on: `queues`, `rows`, `seen`.

    `method` forces one kind of set wherever it can hold the rows (for tests); `runs`: whether sorted runs may
    be chosen.

    >>> queues = RowQueues([2])
    >>> queues.start(0, np.array([[1, 2], [5, 6]]))
    >>> queues.count(0), queues.columns(0).tolist()
    (2, [[1, 2], [5, 6]])
    """

    def __init__(
        self,
        arities: Sequence[int],
        method: str | None = None,
        combine: Mapping[int, str] | None = None,
        counted: bool = False,
        runs: bool = True,
    ):
        """`combine` tells for each queue that combines whether by min or max; `counted`: rows have supports.

        REQUIRES: arities are positive, and at least 2 where values combine; no queue does both.
        """
        assert not (counted and combine)
        n = len(arities)
        self.n = n
        self.method = None if method is None else METHODS[method]
        if counted and self.method == RUNS:
            self.method = None
        self.may_run = runs
        self.least_waiting = LEAST_WAITING
        self.runs: list[SortedRuns | None] = [None] * n
        self.used: list[dict[int, None]] = [{} for _ in range(n)]  # kinds of sets so far, in order
        self._loss = [0] * n  # what runs have cost more than a hash table, in rows
        self.queues = np.zeros(QUEUE * n + 2 * sum(arities), np.int64)
        self.rows: Words = np.empty(0, np.int64)
        self.seen: Words = np.empty(0, np.int64)
        self.chunk: _Chunk | None = None
        self._known: list[tuple[list[int], list[int]] | None] = [None] * n
        self._clear = [False] * n  # the room of its set is all zero
        pack = QUEUE * n
        for q, arity in enumerate(arities):
            assert arity > 0
            self.queues[QUEUE * q + Q_ARITY] = arity
            self.queues[QUEUE * q + Q_METHOD] = HASH
            self.queues[QUEUE * q + Q_PACK] = pack
            self.queues[QUEUE * q + Q_READY] = -1
            self.queues[QUEUE * q + Q_COUNTED] = counted
            pack += 2 * arity
        for q, op in (combine or {}).items():
            assert arities[q] > 1
            self[q, Q_COMBINE] = {"min": MIN, "max": MAX}[op]

    def __getitem__(self, place: tuple[int, int]) -> int:
        """A word of a queue: (queue, Q_...)."""
        return int(self.queues[QUEUE * place[0] + place[1]])

    def __setitem__(self, place: tuple[int, int], word: int) -> None:
        self.queues[QUEUE * place[0] + place[1]] = word

    def count(self, q: int) -> int:
        """Rows that the queue keeps, stale ones too."""
        return self[q, Q_COUNT]

    def live(self, q: int) -> int:
        """Rows that are not stale; with runs also those that the queue does not keep any more."""
        runs = self.runs[q]
        return self[q, Q_COUNT] - self[q, Q_STALE] if runs is None else len(runs)

    def columns(self, q: int, start: int = 0) -> Words:
        """A queue's rows from `start` on, in order of arrival: a (arity, n) view, valid until it grows."""
        return self.block(q)[: self[q, Q_ARITY], start:]

    def block(self, q: int) -> Words:
        """All rows as `columns` gives them; of a counted queue with their supports as one more column.

        Where its set are cells or pairs, these have the supports: see `storage.support_kernels`.
        """
        capacity, base, width = self[q, Q_CAPACITY], self[q, Q_BASE], self._width(q)
        return self.rows[base : base + width * capacity].reshape(width, capacity)[:, : self[q, Q_COUNT]]

    def _width(self, q: int) -> int:
        return self[q, Q_ARITY] + self[q, Q_COUNTED]

    # Room

    def start(self, q: int, columns: Words, room: int = 0) -> None:
        """Begin a queue anew with distinct rows, a (arity, n) array, and with room for `room` more.

        A counted queue is given the supports as one more column.
        """
        n = columns.shape[1]
        self[q, Q_COUNT] = self[q, Q_STALE] = self[q, Q_DRIVEN] = self[q, Q_WAITING] = 0
        self.runs[q] = None
        self.reserve(q, n + room)
        self[q, Q_COUNT], self[q, Q_METHOD] = n, HASH
        self.block(q)[:] = columns
        self.choose(q, room)

    def begin_chunk(self, pivots: Sequence[int], low: int, high: int, expected: float) -> None:
        """From here on queues hold rows whose pivot column is in [low, high), about `expected` in all."""
        self.chunk = _Chunk(tuple(pivots), low, high, expected)

    def reserve(self, q: int, capacity: int) -> None:
        """Room for so many rows in all.  O(rows of all queues) when it grows."""
        if capacity <= self[q, Q_CAPACITY]:
            return
        self._move(q, max(capacity, GROWTH * self[q, Q_CAPACITY]))

    def _move(self, q: int, capacity: int) -> None:
        """All queues' rows to new memory, with room for so many in one of them.  O(rows of all queues)."""
        kept = [self.block(p) for p in range(self.n)]
        self[q, Q_CAPACITY] = capacity
        self.rows = np.empty(sum(self._width(p) * self[p, Q_CAPACITY] for p in range(self.n)), np.int64)
        base = 0
        for p, block in enumerate(kept):
            self[p, Q_BASE] = base
            base += self._width(p) * self[p, Q_CAPACITY]
            self.block(p)[:] = block

    def choose(self, q: int, room: int, more: Words | None = None, runs: bool = True) -> int:
        """A set that suits what has been seen: the queue's rows, and `more`, a (arity, n) array, to come.

        Returns how many rows came back to the queue, in front of those that it has; `runs`: whether it may
        have sorted runs.  O(rows).  REQUIRES: no row is stale, and none waits.
        """
        assert not self[q, Q_STALE] and not self[q, Q_WAITING]
        if self[q, Q_COMBINE]:
            self._use(q, BEST, [(0, 0)] * self[q, Q_ARITY], 2 * _power_of_2(2 * (self.count(q) + room)))
            return 0
        lows, highs = self._ranges(q, more)
        tight = [roomy(low, high - low + 1) for low, high in zip(lows, highs, strict=True)]
        count, small = self.live(q), SMALL_BITMAP
        if self.chunk is not None:
            tight[self.chunk.pivots[q]] = (self.chunk.low, self.chunk.high - self.chunk.low)
            count, small = max(count, int(self.chunk.expected)), CHUNK_BITMAP
            room = max(room, count + count // 4 - self.count(q))
        domain = math.prod(width for _, width in tight)
        if self[q, Q_COUNTED]:
            same = more is None and self.chunk is None and self[q, Q_METHOD] == KEYED
            packed = self._packed(tight, domain, lows, highs)
            self._choose_counted(q, room, packed, same, tight, domain, count)
            return 0
        dense = domain <= small or count * DENSE > domain
        bitmap = self.method in (None, BITMAP) and domain <= LARGEST_BITMAP
        bitmap = bitmap and (dense or self.method == BITMAP)
        if runs and not bitmap and domain < 1 << KEY_BITS and self._come_in_large_batches(q):
            self._use_runs(q, tight)
            return 0
        back = self._unfold(q)
        if bitmap:
            self._use(q, BITMAP, tight, domain // 64 + 1)
        elif self.method != WIDE and (packed := self._packed(tight, domain, lows, highs)) is not None:
            self._use(q, HASH, packed, _power_of_2(2 * (self.count(q) + room)))
        else:
            self._use(q, WIDE, [(0, 0)] * len(lows), 2 * _power_of_2(2 * (self.count(q) + room)))
        return back

    def _choose_counted(
        self,
        q: int,
        room: int,
        packed: list[tuple[int, int]] | None,
        same: bool,
        tight: list[tuple[int, int]],
        domain: int,
        count: int,
    ) -> None:
        """`same`: rows are packed well enough as they are."""
        scattered = domain <= min(MANY_CELLS, SCATTERED_CELLS * count)
        dense = scattered or domain <= max(SMALL_CELLS, DENSE_CELLS * count)
        forced = self.method == BITMAP and domain <= LARGEST_BITMAP // 64
        pairs = 2 * _power_of_2(2 * (self.count(q) + room))
        if forced or (dense and self.method is None):
            self._use(q, CELLS, tight, domain)
        elif same and pairs > self[q, Q_SIZE]:
            self._grow_pairs(q, pairs)
        elif self.method != WIDE and packed is not None:
            self._use(q, KEYED, packed, pairs)
        else:
            self._use(q, WIDE, [(0, 0)] * len(tight), pairs)

    def _grow_pairs(self, q: int, size: int) -> None:
        old = self.seen[self[q, Q_SEEN] : self[q, Q_SEEN] + self[q, Q_SIZE]].copy()
        self._make_room(q, size)
        self.seen[self[q, Q_SEEN] : self[q, Q_SEEN] + size] = -1
        rehash_pairs(old, len(old) // 2, self.seen, self[q, Q_SEEN], size // 2)
        self[q, Q_SIZE] = size

    def _settle_supports(self, q: int) -> None:
        if self[q, Q_METHOD] in (CELLS, KEYED):
            settle_supports(self.queues, q, self.rows, self.seen)

    def drop_stale(self, q: int) -> Words:
        """Let stale rows go.  Returns the former numbers of those that stay, ascending.  O(set + rows)."""
        count = self.count(q)
        if not self[q, Q_STALE]:
            return np.arange(count)
        slots = self.seen[self[q, Q_SEEN] : self[q, Q_SEEN] + self[q, Q_SIZE]]
        live: np.ndarray = np.zeros(count + 1, bool)
        live[slots[1::2]] = True  # an empty slot, -1, marks the word behind the last row
        kept = np.flatnonzero(live[:count])
        columns = self.columns(q)[:, kept]
        self[q, Q_COUNT], self[q, Q_STALE] = len(kept), 0
        self.columns(q)[:] = columns
        self[q, Q_DRIVEN] = int(np.searchsorted(kept, self[q, Q_DRIVEN]))
        slots[:] = -1
        fill_seen(self.queues, q, self.rows, self.seen)
        return kept

    def _packed(
        self, tight: list[tuple[int, int]], domain: int, lows: list[int], highs: list[int]
    ) -> list[tuple[int, int]] | None:
        """How a hash table packs rows: as wide as can be, or tight where keys will be sorted."""
        if self.chunk is not None and domain < 1 << KEY_BITS:
            return tight
        return _generous(lows, highs)

    def _ranges(self, q: int, more: Words | None) -> tuple[list[int], list[int]]:
        """The least and greatest value of each column, in all chunks so far."""
        parts = [c for c in (self.columns(q), more) if c is not None and c.shape[1]]
        if not parts and self.runs[q] is None:
            arity = self[q, Q_ARITY]
            return self._known[q] or ([0] * arity, [0] * arity)
        if not parts:
            return self._packable(q)
        lows = np.min([part.min(axis=1) for part in parts], axis=0).tolist()
        highs = np.max([part.max(axis=1) for part in parts], axis=0).tolist()
        known = self._known[q] if self.runs[q] is None else self._packable(q)
        if known is not None:
            lows = [min(a, b) for a, b in zip(lows, known[0], strict=True)]
            highs = [max(a, b) for a, b in zip(highs, known[1], strict=True)]
        self._known[q] = (lows, highs)
        return lows, highs

    def _use(self, q: int, method: int, ranges: list[tuple[int, int]], size: int) -> None:
        self._settle_supports(q)
        if size > self[q, Q_ROOM]:
            self._make_room(q, size)
        base, empty = self[q, Q_SEEN], 0 if method in (BITMAP, CELLS) else -1
        if not (method == BITMAP and self._clear[q]):
            room = self[q, Q_ROOM] if method == BITMAP else size
            self.seen[base : base + room] = empty
        self._clear[q] = False
        self[q, Q_SIZE], self[q, Q_METHOD] = size, method
        self._pack_by(q, ranges)
        self.used[q][method] = None
        fill_seen(self.queues, q, self.rows, self.seen)

    def _ranges_of(self, q: int) -> Words:
        """How rows are packed: the lows of the columns, then their widths."""
        return self.queues[self[q, Q_PACK] :][: 2 * self[q, Q_ARITY]]

    def _pack_by(self, q: int, ranges: list[tuple[int, int]]) -> None:
        lows, widths = zip(*ranges, strict=True)
        self._ranges_of(q)[:] = [*lows, *widths]

    def _make_room(self, q: int, size: int) -> None:
        """Set so many words aside for a queue's set; what they hold is undefined."""
        old = [self.seen[self[p, Q_SEEN] : self[p, Q_SEEN] + self[p, Q_ROOM]] for p in range(self.n)]
        self[q, Q_ROOM] = size
        self._clear[q] = False
        self.seen = np.empty(sum(self[p, Q_ROOM] for p in range(self.n)), np.int64)
        base = 0
        for p, words in enumerate(old):
            self[p, Q_SEEN] = base
            if p != q:
                self.seen[base : base + len(words)] = words
            base += self[p, Q_ROOM]

    # Sorted runs

    def _come_in_large_batches(self, q: int) -> bool:
        """Whether sorted runs suit a queue whose rows are packed and not dense."""
        if self.method == RUNS or (self.method is None and self.runs[q] is not None):
            return True
        count = self.count(q)
        large = count >= MANY_ROWS and WAITING_SHARE * (count - self[q, Q_DRIVEN]) >= count
        return large and self.may_run and self.method is None and self.chunk is None

    def _use_runs(self, q: int, ranges: list[tuple[int, int]]) -> None:
        runs, before = self.runs[q], self._ranges_of(q).copy()
        self._pack_by(q, ranges)
        if runs is not None:
            runs.repack(self[q, Q_ARITY], before, self._ranges_of(q))
            return
        runs = self.runs[q] = SortedRuns()
        runs.put(sorted_words(self._keys(q)))
        self._loss[q], self._clear[q], self[q, Q_METHOD] = 0, False, RUNS
        self.used[q][RUNS] = None
        self[q, Q_ROOM] = self[q, Q_SIZE] = 0
        self._let_more_wait(q)

    def _let_more_wait(self, q: int) -> None:
        """The more is known, the more rows are looked up at once."""
        size = min(max(self.live(q) // 4, self.least_waiting), MOST_WAITING)
        if size > self[q, Q_SIZE]:
            self._make_room(q, size)
            self[q, Q_SIZE] = size

    def _keys(self, q: int) -> Words:
        """The rows that a queue keeps, packed."""
        keys = np.empty(self.count(q), np.int64)
        pack_queue(self.queues, q, self.rows, keys)
        return keys

    def settle(self, q: int, first: int) -> int:
        """Look the rows that wait up among the runs, and let those in that are new: their number.

        Rows before `first` go from the queue, not from the runs.  O(rows that wait or stay, and a look-up
        in each run).
        """
        runs, n = self.runs[q], self[q, Q_WAITING]
        assert runs is not None
        new = runs.add(self.seen[self[q, Q_SEEN] :][:n])
        self[q, Q_WAITING] = 0
        self._replace(q, first, np.empty(0, np.int64), new)
        self._let_more_wait(q)
        self._loss[q] = max(0, self._loss[q] + (CALL + 2 * n if n < len(runs) // THIN else CALL - n))
        return len(new)

    def told_by(self, q: int) -> Iterator[str]:
        """The kinds of sets that have told what is new, in words."""
        return (WORDS[method] for method in self.used[q])

    def is_thin(self, q: int) -> bool:
        """Whether runs have cost as much more than a hash table as making one would cost."""
        return self._loss[q] > max(self.live(q), PATIENCE)

    def _replace(self, q: int, first: int, front: Words, back: Words) -> None:
        """Rows before `first` go; packed rows, ascending, come before and behind those that stay."""
        stay, arity = self.count(q) - first, self[q, Q_ARITY]
        kept = self.block(q)[:, first:].copy()
        count = len(front) + stay + len(back)
        self[q, Q_COUNT] = 0
        if not count <= self[q, Q_CAPACITY] <= 8 * count + LEAST_WAITING:
            self._move(q, count)
        self[q, Q_COUNT] = count
        self.block(q)[:, len(front) : len(front) + stay] = kept
        base, stride = self[q, Q_BASE], self[q, Q_CAPACITY]
        for keys, at in ((front, 0), (back, len(front) + stay)):
            unpack_keys(keys, len(keys), arity, self._ranges_of(q), self.rows[base + at :], stride)
        for word in (Q_READY, Q_DRIVEN):
            if self[q, word] >= 0:
                self[q, word] += max(len(front) - first, -self[q, word])

    def _unfold(self, q: int) -> int:
        """Let a queue keep all its rows again, instead of runs.  Returns how many came back."""
        runs, self.runs[q] = self.runs[q], None
        if runs is None:
            return 0
        rest = runs.merged()
        n = take_out(rest, len(rest), sorted_words(self._keys(q)))
        self._replace(q, 0, rest[:n], rest[:0])
        return n

    def _packable(self, q: int) -> tuple[list[int], list[int]]:
        """The least and greatest values that can be packed: with runs, rows have these or others between."""
        lows, widths = self._ranges_of(q).reshape(2, -1)
        return lows.tolist(), (lows + widths - 1).tolist()

    # Reading

    def take(self, q: int) -> Words:
        """All rows sorted, as a (arity, n) array; the queue's set is no longer good for anything.

        Those of a counted queue have their supports as one more column.
        """
        if self[q, Q_COUNTED]:
            return self._take_counted(q)
        n, arity = self.live(q), self[q, Q_ARITY]
        out = np.empty((arity, n), np.int64)
        if self[q, Q_METHOD] == WIDE:
            columns = self.columns(q)
            return columns[:, np.lexsort(columns[::-1])]
        base, size, ranges = self[q, Q_SEEN], self[q, Q_SIZE], self._ranges_of(q)
        if self[q, Q_METHOD] == BITMAP and size <= 8 * n:
            read_bits(self.seen, base, size, arity, ranges, out.reshape(-1), n, 0)
            self.seen[base : base + size] = 0
            self._clear[q] = True
            return out
        runs = self.runs[q]
        keys = runs.merged() if runs is not None else self._keys(q)
        if self[q, Q_METHOD] == BITMAP:
            clear_bits(self.seen, base, keys, n)
            self._clear[q] = True
        unpack_keys(sorted_words(keys), n, arity, ranges, out.reshape(-1), n)
        return out

    def _take_counted(self, q: int) -> Words:
        n = self.count(q)
        out = np.empty((self._width(q), n), np.int64)
        at = 0
        for part in self.parts(q):
            out[:, at : at + part.shape[1]] = part
            at += part.shape[1]
        assert at == n
        return out

    def parts(self, q: int) -> Iterator[Words]:
        """All rows of a counted queue in order, with their supports, piece by piece: (arity + 1, n) views
        that are valid until the next one."""
        if self[q, Q_METHOD] != CELLS:
            self._settle_supports(q)
            yield sorted_with_last(self.block(q))
            return
        arity, size, ranges = self[q, Q_ARITY], self[q, Q_SIZE], self._ranges_of(q)
        piece = min(size, CELLS_READ)
        out = np.empty((arity + 1) * piece, np.int64)
        for start in range(0, size, piece):
            end = min(size, start + piece)
            n = read_cells(self.seen, self[q, Q_SEEN], start, end, arity, ranges, out, piece)
            if n:
                yield out.reshape(arity + 1, piece)[:, :n]

    def relation(self, q: int, arena: Arena, orders: Sequence[Order]) -> Relation:
        """All rows as a relation.  What a bitmap or runs hold is in order, and goes straight to the arena."""
        natural, runs = tuple(range(self[q, Q_ARITY])), self.runs[q] is not None
        bitmap = self[q, Q_METHOD] == BITMAP and self[q, Q_SIZE] <= 8 * self[q, Q_COUNT]
        if natural not in orders or not (bitmap or runs):
            return Relation.from_columns(arena, list(self.take(q) if runs else self.columns(q)), orders)
        others = [order for order in orders if order != natural]
        relation = Relation.of_index(Index.of_sorted(arena, len(natural), self.live(q), partial(self.put, q)))
        for order in others:
            relation.add_order(order)
        return relation

    def put(self, q: int, words: Words, at: int) -> None:
        """Write what a bitmap or runs hold, sorted: column c of row i to words[at + c * live + i]."""
        arity, ranges, runs = self[q, Q_ARITY], self._ranges_of(q), self.runs[q]
        if runs is not None:
            unpack_keys(runs.merged(), len(runs), arity, ranges, words[at:], len(runs))
            return
        found = read_bits(
            self.seen, self[q, Q_SEEN], self[q, Q_SIZE], arity, ranges, words, self.count(q), at
        )
        assert found == self.count(q)

    def check(self) -> None:
        """Assert that rows are distinct and that the set has them all and no other.  O(rows log rows)."""
        for q in range(self.n):
            columns = self.columns(q)
            assert len(np.unique(columns, axis=1).T) == self.count(q) <= self[q, Q_CAPACITY]
            assert self[q, Q_COMBINE] or not self[q, Q_STALE]
            seen = self.seen[self[q, Q_SEEN] : self[q, Q_SEEN] + self[q, Q_SIZE]]
            runs = self.runs[q]
            if runs is not None:
                runs.check()
                assert np.isin(self._keys(q), runs.merged()).all()
                held = len(runs)
            elif self[q, Q_METHOD] == BITMAP:
                held = int(np.unpackbits(seen.view(np.uint8)).sum())
            else:
                words = seen if self[q, Q_METHOD] in (HASH, CELLS) else seen[1::2]
                held = int(np.count_nonzero(words > 0 if self[q, Q_METHOD] == CELLS else words >= 0))
            assert held == self.live(q)


def _generous(lows: list[int], highs: list[int]) -> list[tuple[int, int]] | None:
    """Ranges as wide as a packed row allows, since a hash table does not care; None if they do not fit.

    >>> _generous([0, 0], [10, 20]) is not None, _generous([0, 0], [2**40, 2**40])
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


def _power_of_2(n: int) -> int:
    """The least power of 2 that is greater than n, at least 1024."""
    return 1 << max(10, n.bit_length())
