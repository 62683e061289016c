"""Owns the execution of an assembled plan over indices: state, output batches, budgets, splitting for
threads.

Knows the arena only as words and an index only by its root; nothing of rules or transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from copy import copy
from dataclasses import dataclass

import numpy as np

from dlog.jit import DISABLED, Words
from dlog.lftj import opcodes as o
from dlog.lftj.assemble import INT64_MAX, INT64_MIN, Assembled
from dlog.lftj.directory import add_directories
from dlog.lftj.machine import attach, run
from dlog.lftj.plan import Leap
from dlog.storage.index.trie_kernels import key_at, position_of
from dlog.storage.layout import N_ROWS

BATCH_ROWS = 1 << 15  # three columns of it are 768 KiB: written and read again before they leave the cache
FIRST_ROWS = 1 << 10  # a small answer needs no fresh memory from the system
FIRST_BUDGET = 1 << 16
BUDGET = 1 << 22  # operations between two checks of the clock: about 20 ms
NO_WORDS: Words = np.zeros(0, np.int64)

# Uncompiled, numpy warns where integers wrap and floats overflow.
_run = np.errstate(all="ignore")(run) if DISABLED else run


@dataclass(frozen=True)
class Counters:
    """What a join has done so far."""

    seeks: int
    nexts: int
    opens: int
    comparisons: int
    undefined: int
    emitted: int


class Join:
    """One run of a plan.

    `roots[a]` is the root of the index that atom a reads, all in the arena `words`; the caller holds these
    versions while the join runs.  `ranks[code]` is the rank of a string's code.  Creation is O(size of the
    plan), 3 us for a small one.  A Join may run in any thread, but in one at a time; the kernel releases the
    interpreter's lock.
    """

    def __init__(
        self,
        assembled: Assembled,
        words: Words,
        roots: Sequence[int],
        ranks: Words = NO_WORDS,
    ):
        assert len(roots) == len(assembled.ranges)
        self.assembled = assembled
        self.words = words
        self.roots = tuple(roots)
        self.ranks = ranks
        self.state = assembled.initial.copy()
        self.indices: Sequence[Sized] = ()  # kept alive by the caller as long as the join, or a part, runs
        self._slice_budget = FIRST_BUDGET
        attach(words, self.state, assembled.levels, np.array(self.roots, np.int64))

    def load(self, slot: int, code: int) -> None:
        """Set a constant slot before the run."""
        self.state[o.HEADER + slot] = code

    def restrict(self, lower: int = INT64_MIN, upper: int = INT64_MAX) -> None:
        """Give the first Leap inclusive bounds, before the run.  REQUIRES: the plan has a Leap at the top."""
        assert self.assembled.first is not None
        self.state[list(self.assembled.first)] = lower, upper

    def again(self, lower: int = INT64_MIN, upper: int = INT64_MAX) -> None:
        """Back to the start, for other values of the first Leap; counters continue and directories stay."""
        assert self.assembled.first is not None
        initial, state = self.assembled.initial, self.state
        kept = state[o.SEEKS : o.EMITTED].copy()
        directories = [int(state[block + o.DIRECTORY]) for block in self.assembled.ranges]
        far = [int(state[block + o.FAR]) for block in self.assembled.ranges]
        state[: len(initial)] = initial
        state[o.SEEKS : o.EMITTED] = kept
        attach(self.words, state, self.assembled.levels, np.array(self.roots, np.int64))
        for block, directory, seeks in zip(self.assembled.ranges, directories, far, strict=True):
            state[block + o.DIRECTORY], state[block + o.FAR] = directory, seeks
        self.restrict(lower, upper)

    def split(self, parts: int) -> list[Join]:
        """At most `parts` joins, for as many threads, whose outputs in turn are the output of this one.

        Splits the keys of the first Leap so that its smallest atom has about as many rows in each part; a
        plan that begins otherwise stays whole.  O(parts * (nodes + FANOUT)).  REQUIRES: not yet run.
        """
        cuts = self.cuts(parts) if self.assembled.first is not None else []
        lowers = [INT64_MIN, *cuts]
        uppers = [*(cut - 1 for cut in cuts), INT64_MAX]
        joins = []
        for lower, upper in zip(lowers, uppers, strict=True):
            join = copy(self)
            join.state = self.state.copy()
            if cuts:
                join.restrict(lower, upper)
            joins.append(join)
        return joins

    def cuts(self, parts: int) -> list[int]:
        """Keys at which to split the first Leap, fewer than `parts`; none if it is not at first levels."""
        leap = next(step for step in self.assembled.plan.steps if isinstance(step, Leap))
        if any(level > 0 for _, level in leap.participants):
            return []
        root = min((self.roots[a] for a, _ in leap.participants), key=lambda r: int(self.words[r + N_ROWS]))
        n = int(self.words[root + N_ROWS])
        rows = {n * part // parts for part in range(1, parts)}
        keys = {
            int(key_at(self.words, root, 0, position_of(self.words, root, row))) for row in rows if row < n
        }
        return sorted(keys - {INT64_MIN})

    def batches(
        self, rows: int = BATCH_ROWS, budget: int = BUDGET, between: Callable[[], None] | None = None
    ) -> Iterator[Words]:
        """Yield the output as (n, k) arrays with contiguous columns, each valid until the next is requested.

        `between` is called after every slice of about `budget` operations and may raise to stop the join.
        Columns are contiguous since sorting, deduplicating and storing all go column by column.
        """
        for out, n in self.buffers(rows, budget, between):
            yield out[:, :n].T

    def buffers(
        self,
        rows: int = BATCH_ROWS,
        budget: int = BUDGET,
        between: Callable[[], None] | None = None,
        first: int = FIRST_ROWS,
    ) -> Iterator[tuple[Words, int]]:
        """As `batches`, each as a contiguous (k, capacity) array and the number of its rows; the first has at
        most `first`.
        """
        k = self.assembled.n_columns
        assert k >= 0 and rows > 0 and budget > 0
        capacity = min(rows, first)
        out = np.empty((k, capacity), np.int64)
        while not self.done:
            n = self._slice(out.reshape(-1), capacity, budget)
            if n:
                yield out, n
            if n == capacity < rows:
                capacity = min(rows, 8 * capacity)
                out = np.empty((k, capacity), np.int64)
            if between is not None:
                between()

    def rows(
        self, rows: int = BATCH_ROWS, budget: int = BUDGET, between: Callable[[], None] | None = None
    ) -> Words:
        """All output rows as one (n, k) array with contiguous columns.  O(output) memory."""
        parts = [batch.T.copy() for batch in self.batches(rows, budget, between)]
        return np.concatenate(parts, axis=1).T if parts else np.empty((0, self.assembled.n_columns), np.int64)

    def count(self, budget: int = BUDGET, between: Callable[[], None] | None = None) -> int:
        """Run a plan that ends in Count; return the number of its solutions."""
        assert self.assembled.n_columns < 0
        while not self.done:
            self._slice(NO_WORDS, 0, budget)
            if between is not None:
                between()
        return int(self.state[o.EMITTED])

    def _slice(self, out: Words, capacity: int, budget: int) -> int:
        """Continue for about `budget` operations; at first for fewer, to find out early where directories
        pay.
        """
        if self._slice_budget > FIRST_BUDGET:
            self.state = add_directories(self.words, self.state, self.assembled.ranges)
        budget = min(budget, self._slice_budget)
        self._slice_budget = min(2 * self._slice_budget, BUDGET)
        return _run(self.words, self.assembled.code, self.state, self.ranks, out, capacity, budget)

    @property
    def done(self) -> bool:
        return bool(self.state[o.STATUS] == o.DONE)

    def counters(self) -> Counters:
        s = self.state
        numbers = (s[o.SEEKS], s[o.NEXTS], s[o.OPENS], s[o.COMPARISONS], s[o.UNDEFINED], s[o.EMITTED])
        return Counters(*map(int, numbers))
