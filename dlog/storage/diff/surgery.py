"""Owns tree surgery: a change of a predicate as branches inserted into and erased from its trie (paper,
4.2.1).

Knows nothing of sensitivity.  Correct output: INSERT of a prefix for each prefix, of any length, that the new
version has and the old one lacks; ERASE for the reverse; each once, in the order of the rows that cause
them, a branch inserted from the top down and erased from the bottom up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dlog.jit import Words
from dlog.storage.arena.arena_kernels import ROW
from dlog.storage.diff.delta import difference
from dlog.storage.diff.kernels import count_missing, write_surgeries
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index


@dataclass(frozen=True)
class Surgeries:
    """One surgery for each place: its sign (1 INSERT, -1 ERASE), its depth and its row.

    Only the first `depth` columns of the row count.
    """

    signs: Words
    depths: Words
    rows: Words

    def __len__(self) -> int:
        return len(self.signs)

    def __iter__(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(sign, prefix), in order."""
        for sign, depth, row in zip(
            self.signs.tolist(), self.depths.tolist(), self.rows.tolist(), strict=True
        ):
            yield sign, tuple(row[:depth])

    def at_depth(self, depth: int) -> Change:
        """The prefixes of this length that were inserted and erased, sorted, as (m, depth) arrays."""
        chosen = self.depths == depth
        prefixes = self.rows[:, :depth]
        return Change(prefixes[chosen & (self.signs > 0)], prefixes[chosen & (self.signs < 0)])


def surgeries(old: Index, new: Index, change: Change | None = None) -> Surgeries:
    """The surgeries that turn the trie of `old` into that of `new`; `change` is their difference if known.

    O(m (log n + k)) for m changed rows, besides finding the difference.
    """
    change = difference(old, new) if change is None else change
    k = old.arity
    inserted, erased = (np.ascontiguousarray(rows).reshape(-1) for rows in change)
    n, m = len(change.inserted), len(change.erased)
    kept, left = np.zeros(n, np.int64), np.zeros(m, np.int64)
    out = np.empty(((n + m) * k, k + 2), np.int64)
    if k == 0:
        return Surgeries(out[:, 0], out[:, 1], out[:, 2:])
    A = old.arena.A
    with old.arena.lock:  # the key of each look-up is in the arena
        count_missing(A, old.root, inserted, n, k, ROW, kept)
        count_missing(A, new.root, erased, m, k, ROW, left)
    at = write_surgeries(inserted, kept, n, erased, left, m, k, out.reshape(-1))
    return Surgeries(out[:at, 0], out[:at, 1], out[:at, 2:])
