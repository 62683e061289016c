"""Owns row queues: the rows that recursion has derived, in order of arrival and each row once, ready to drive
on.

A queue detects new rows with one of four sets, chosen from statistics while it grows
(`storage.queue.queue_choice`): a bitmap if rows are dense among the possible ones, else a hash table of
rows packed into one word, or of whole rows if they do not fit a word; and sorted runs of packed rows if
there are many, and come many at a time.  With runs the queue has only rows that have yet to drive, and new
ones wait until many are looked up at once.  In a queue that combines, a row is a key and a value, and only
the best row of a key counts: a row that a better one has replaced after it drove is *stale*, and is removed
when room is needed.  In a counted queue every row has a support: its stage and the number of its derivations
(`storage.queue.support_kernels`).  Kernels fill queues (`absorb`); this module gives them room.  Knows
nothing of predicates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from dlog.aggregates import aggregate_named
from dlog.jit import Words
from dlog.storage.index.sort import sorted_words
from dlog.storage.queue.queue_arrays import QueueArrays
from dlog.storage.queue.queue_choice import (
    METHODS,
    WORDS,
    Choice,
    PivotRange,
    QueueStatistics,
    Ranges,
    choose_best_set,
    choose_counted_set,
    choose_set,
)
from dlog.storage.queue.row_queue_kernels import (
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
    Q_READY,
    Q_ROOM,
    Q_SEEN,
    Q_SIZE,
    Q_STALE,
    Q_WAITING,
    RUNS,
    fill_seen,
    unpack_keys,
)
from dlog.storage.queue.run_kernels import take_out
from dlog.storage.queue.sorted_runs import SortedRuns
from dlog.storage.queue.support_kernels import rehash_pairs, settle_supports

MANY_ROWS: Final = 1 << 19  # from which on runs are considered
WAITING_SHARE: Final = 8  # of the rows, one in this many must have yet to drive: else batches are small
LEAST_WAITING: Final = 1 << 16  # packed rows that can wait, at least
MOST_WAITING: Final = 1 << 23
THIN: Final = 256  # a batch that is smaller than this part of the known rows costs more than a hash table
CALL: Final = 2048  # rows that a hash table processes in the time of looking up a batch of one
REPEATS: Final = 8  # rows of a batch for each new one at which runs and a hash table cost the same
PATIENCE: Final = 64 * CALL


class RowQueues(QueueArrays):
    """Queues of the given arities, each with the set of its rows.

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
        """`combine` says for each queue that combines whether by min or max; `counted`: rows have supports.

        REQUIRES: arities are positive, and at least 2 where values combine; no queue does both.
        """
        assert not (counted and combine)
        super().__init__(arities, counted)
        self.method = None if method is None else METHODS[method]
        if counted and self.method == RUNS:
            self.method = None
        self.may_run = runs
        self.least_waiting = LEAST_WAITING
        self.runs: list[SortedRuns | None] = [None] * self.n
        self.used: list[dict[int, None]] = [{} for _ in arities]  # kinds of sets so far, in order
        self.parts: list[PivotRange] = []  # of all rows, those that queues hold now; none: all
        self._loss = [0] * self.n  # the extra cost of runs over a hash table, in rows
        self._known: list[tuple[list[int], list[int]] | None] = [None] * self.n
        for q in range(self.n):
            self[q, Q_METHOD], self[q, Q_READY] = HASH, -1
        for q, op in (combine or {}).items():
            assert arities[q] > 1
            self[q, Q_COMBINE] = MIN if aggregate_named(op).direction > 0 else MAX

    def live(self, q: int) -> int:
        """Rows that are not stale; with runs also those that are no longer in the queue."""
        runs = self.runs[q]
        return self[q, Q_COUNT] - self[q, Q_STALE] if runs is None else len(runs)

    def start(self, q: int, columns: Words, room: int = 0) -> None:
        """Begin a queue again with distinct rows, a (arity, n) array, and with room for `room` more.

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
        self.parts = [PivotRange(pivot, low, high, expected) for pivot in pivots]

    # Sets

    def choose(self, q: int, room: int, more: Words | None = None, runs: bool = True) -> int:
        """A set that fits the queue's rows, and `more`, a (arity, n) array, to come.

        Returns how many rows came back to the queue, in front of those that it has; `runs`: whether it may
        have sorted runs.  O(rows).  REQUIRES: no row is stale, and none waits.
        """
        assert not self[q, Q_STALE] and not self[q, Q_WAITING]
        if self[q, Q_COMBINE]:
            self._use(q, choose_best_set(self[q, Q_ARITY], self.count(q) + room))
            return 0
        lows, highs = self._ranges(q, more)
        part = self.parts[q] if self.parts else None
        known = QueueStatistics(
            lows, highs, self.live(q), room, part, runs and self._come_in_large_batches(q)
        )
        if self[q, Q_COUNTED]:
            self._use_counted(q, choose_counted_set(known, self.method), more is None and part is None)
            return 0
        choice = choose_set(known, self.method)
        if choice.method == RUNS:
            self._use_runs(q, choice.ranges)
            return 0
        back = self._unfold(q)
        self._use(q, choice)
        return back

    def _use(self, q: int, choice: Choice) -> None:
        method, ranges, size = choice
        self.settle_supports(q)
        if size > self[q, Q_ROOM]:
            self.make_room(q, size)
        base, empty = self[q, Q_SEEN], 0 if method in (BITMAP, CELLS) else -1
        if not (method == BITMAP and self.is_clear[q]):
            room = self[q, Q_ROOM] if method == BITMAP else size
            self.seen[base : base + room] = empty
        self.is_clear[q] = False
        self[q, Q_SIZE], self[q, Q_METHOD] = size, method
        self.pack_by(q, ranges)
        self.used[q][method] = None
        fill_seen(self.queues, q, self.rows, self.seen)

    def _use_counted(self, q: int, choice: Choice, fits: bool) -> None:
        """`fits`: all rows can be packed with the current ranges, so that pairs only need room."""
        if fits and self[q, Q_METHOD] == KEYED and choice.method != CELLS and choice.size > self[q, Q_SIZE]:
            self._grow_pairs(q, choice.size)
        else:
            self._use(q, choice)

    def _grow_pairs(self, q: int, size: int) -> None:
        old = self.words_of_set(q).copy()
        self.make_room(q, size)
        self[q, Q_SIZE] = size
        self.words_of_set(q)[:] = -1
        rehash_pairs(old, len(old) // 2, self.seen, self[q, Q_SEEN], size // 2)

    def settle_supports(self, q: int) -> None:
        """Copy the supports in cells or pairs to the rows."""
        if self[q, Q_METHOD] in (CELLS, KEYED):
            settle_supports(self.queues, q, self.rows, self.seen)

    def drop_stale(self, q: int) -> Words:
        """Remove stale rows.  Returns the former numbers of those that stay, ascending.  O(set + rows)."""
        count = self.count(q)
        if not self[q, Q_STALE]:
            return np.arange(count)
        slots = self.words_of_set(q)
        live: np.ndarray = np.zeros(count + 1, bool)
        live[slots[1::2]] = True  # an empty slot, -1, marks the word after the last row
        kept = np.flatnonzero(live[:count])
        columns = self.columns(q)[:, kept]
        self[q, Q_COUNT], self[q, Q_STALE] = len(kept), 0
        self.columns(q)[:] = columns
        self[q, Q_DRIVEN] = int(np.searchsorted(kept, self[q, Q_DRIVEN]))
        slots[:] = -1
        fill_seen(self.queues, q, self.rows, self.seen)
        return kept

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

    def sets_used(self, q: int) -> Iterator[str]:
        """The kinds of sets that have detected new rows, as text."""
        return (WORDS[method] for method in self.used[q])

    # Sorted runs

    def _come_in_large_batches(self, q: int) -> bool:
        """Whether sorted runs fit a queue whose rows are packed and not dense."""
        if self.method == RUNS or (self.method is None and self.runs[q] is not None):
            return True
        count = self.count(q)
        large = count >= MANY_ROWS and WAITING_SHARE * (count - self[q, Q_DRIVEN]) >= count
        return large and self.may_run and self.method is None and not self.parts

    def _use_runs(self, q: int, ranges: Ranges) -> None:
        runs, before = self.runs[q], self.ranges_of(q).copy()
        self.pack_by(q, ranges)
        if runs is not None:
            runs.repack(self[q, Q_ARITY], before, self.ranges_of(q))
            return
        runs = self.runs[q] = SortedRuns()
        runs.put(sorted_words(self.keys(q)))
        self._loss[q], self.is_clear[q], self[q, Q_METHOD] = 0, False, RUNS
        self.used[q][RUNS] = None
        self[q, Q_ROOM] = self[q, Q_SIZE] = 0
        self._let_more_wait(q)

    def _let_more_wait(self, q: int) -> None:
        """The more rows are known, the more are looked up at once."""
        size = min(max(self.live(q) // 4, self.least_waiting), MOST_WAITING)
        if size > self[q, Q_SIZE]:
            self.make_room(q, size)
            self[q, Q_SIZE] = size

    def settle(self, q: int, first: int) -> int:
        """Look up the pending rows in the runs, and add the new ones: their number.

        Rows before `first` are removed from the queue, not from the runs.  O(rows that wait or stay, and a
        look-up in each run).
        """
        runs, n = self.runs[q], self[q, Q_WAITING]
        assert runs is not None
        new = runs.add(self.seen[self[q, Q_SEEN] :][:n])
        self[q, Q_WAITING] = 0
        self._replace(q, first, np.empty(0, np.int64), new)
        self._let_more_wait(q)
        self._loss[q] = max(0, self._loss[q] + _extra_cost(n, len(new), len(runs)))
        return len(new)

    def is_losing(self, q: int) -> bool:
        """Whether runs have cost more than a hash table, by half of the cost of making one."""
        return 2 * self._loss[q] > max(self.live(q), PATIENCE)

    def _replace(self, q: int, first: int, front: Words, back: Words) -> None:
        """Rows before `first` are removed; packed rows, ascending, come before and after those that stay."""
        stay, arity = self.count(q) - first, self[q, Q_ARITY]
        kept = self.block(q)[:, first:].copy()
        count = len(front) + stay + len(back)
        self[q, Q_COUNT] = 0
        if not count <= self[q, Q_CAPACITY] <= 8 * count + LEAST_WAITING:
            self.move(q, count)
        self[q, Q_COUNT] = count
        self.block(q)[:, len(front) : len(front) + stay] = kept
        base, stride = self[q, Q_BASE], self[q, Q_CAPACITY]
        for keys, at in ((front, 0), (back, len(front) + stay)):
            unpack_keys(keys, len(keys), arity, self.ranges_of(q), self.rows[base + at :], stride)
        for word in (Q_READY, Q_DRIVEN):
            if self[q, word] >= 0:
                self[q, word] += max(len(front) - first, -self[q, word])

    def _unfold(self, q: int) -> int:
        """Let a queue hold all its rows again, instead of runs.  Returns how many came back."""
        runs, self.runs[q] = self.runs[q], None
        if runs is None:
            return 0
        rest = runs.merged()
        n = take_out(rest, len(rest), sorted_words(self.keys(q)))
        self._replace(q, 0, rest[:n], rest[:0])
        return n

    def _packable(self, q: int) -> tuple[list[int], list[int]]:
        """The least and greatest values that can be packed: with runs, rows have these or others between."""
        lows, widths = self.ranges_of(q).reshape(2, -1)
        return lows.tolist(), (lows + widths - 1).tolist()

    def check(self) -> None:
        """Assert that rows are distinct and that the set has exactly these.  O(rows log rows)."""
        for q in range(self.n):
            columns = self.columns(q)
            assert len(np.unique(columns, axis=1).T) == self.count(q) <= self[q, Q_CAPACITY]
            assert self[q, Q_COMBINE] or not self[q, Q_STALE]
            seen = self.words_of_set(q)
            runs = self.runs[q]
            if runs is not None:
                runs.check()
                assert np.isin(self.keys(q), runs.merged()).all()
                held = len(runs)
            elif self[q, Q_METHOD] == BITMAP:
                held = int(np.unpackbits(seen.view(np.uint8)).sum())
            else:
                words = seen if self[q, Q_METHOD] in (HASH, CELLS) else seen[1::2]
                held = int(np.count_nonzero(words > 0 if self[q, Q_METHOD] == CELLS else words >= 0))
            assert held == self.live(q)


def _extra_cost(batch: int, new: int, known: int) -> int:
    """The extra cost of looking up a batch in runs over a hash table, in rows that a hash table processes.

    A small batch searches much for little.  In a large one each row is sorted, which for a known
    row costs about a quarter more than a hash table; a new one gains, since the queue stays in order.
    """
    if batch < known // THIN:
        return CALL + 2 * batch
    return CALL + (batch - REPEATS * new) // 4
