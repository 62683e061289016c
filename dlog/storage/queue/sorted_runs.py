"""Owns sorted runs: a set of words in geometric levels, which detects the new words of a batch.

A batch is sorted, loses what a level has, and becomes a level itself; a level that is not LEVELS times as
large as the next is merged with it.  So a word is moved O(log n) times, always in order, and takes eight
bytes: a hash table takes 16 to 64, and a cache miss for each word.  Pays for large batches: see
docs/performance.md.  Knows nothing of rows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from dlog.jit import Words
from dlog.storage.index.sort import distinct_words
from dlog.storage.queue.run_kernels import merge_runs, repack_keys, take_out

LEVELS: Final = 4


class SortedRuns:
    """
    >>> runs = SortedRuns()
    >>> runs.add(np.array([5, 3, 5])).tolist(), runs.add(np.array([4, 3])).tolist()
    ([3, 5], [4])
    >>> len(runs), runs.merged().tolist()
    (3, [3, 4, 5])
    """

    def __init__(self) -> None:
        self.levels: list[Words] = []

    def __len__(self) -> int:
        return sum(map(len, self.levels))

    def add(self, batch: Words) -> Words:
        """Add a batch; returns its new words, ascending.  The batch is overwritten.

        O(n) for each byte that varies in it, and O(n log(level / n)) for each level.
        """
        new = self.unknown(batch)
        self.put(new)
        return new

    def unknown(self, batch: Words) -> Words:
        """The words of a batch that are not here, ascending and each once.  The batch is overwritten."""
        words = distinct_words(batch)
        n = len(words)
        for level in self.levels:
            n = take_out(words, n, level)
        return words[:n].copy()

    def put(self, new: Words) -> None:
        """One more level.  REQUIRES: words that are not here, ascending."""
        if len(new):
            self.levels.append(new)
        while len(self.levels) > 1 and len(self.levels[-2]) < LEVELS * len(self.levels[-1]):
            self.levels[-2:] = [union(*self.levels[-2:])]

    def merged(self) -> Words:
        """All words, ascending, as the only level.  O(n)."""
        while len(self.levels) > 1:
            self.levels[-2:] = [union(*self.levels[-2:])]
        return self.levels[0] if self.levels else np.empty(0, np.int64)

    def repack(self, arity: int, before: Words, after: Words) -> None:
        """Packed rows in other ranges: see `storage.queue.row_queue_kernels`.  O(n)."""
        for level in self.levels:
            repack_keys(level, len(level), arity, before, after, level)

    def check(self) -> None:
        """Assert that levels ascend, that none has what another has, and that sizes are geometric.  O(n)."""
        words = np.concatenate([*self.levels, np.empty(0, np.int64)])
        assert len(np.unique(words)) == len(words)
        assert all((np.diff(level) > 0).all() for level in self.levels)
        sizes = list(map(len, self.levels))
        assert all(a >= LEVELS * b for a, b in pairwise(sizes))


def union(a: Words, b: Words) -> Words:
    """Words of two arrays that ascend, each once.  O(a + b)."""
    out = np.empty(len(a) + len(b), np.int64)
    n = merge_runs(a, b, out)
    return out if n == len(out) else out[:n].copy()
