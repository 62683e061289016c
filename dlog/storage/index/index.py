"""Owns the index: a set of rows of one arity in one column order, as immutable versions.

Knows nothing of predicates, column orders or values: rows are int64 codes.

Lifecycle.  1 `build` sorts rows into one flat extent.  2 `apply`, `insert_row`, `erase_row` make a new
version that shares what did not change; `apply_in_place` changes the handle itself and copies nothing that
only this version holds.  3 `close`, or the garbage collector, frees its memory; others stay readable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.arena_kernels import ROW, ROW_WORDS
from dlog.storage.arena.kernels import release_root
from dlog.storage.index.batch import Change, build_root, changed_root, compact_root, put_root, spread_root
from dlog.storage.index.checks import check_index
from dlog.storage.index.kernels import change_row, count_changes, count_prefix, has_prefix, rank, read_rows
from dlog.storage.index.leaf_kernels import ERASE, INSERT
from dlog.storage.index.row_kernels import NEEDS_BATCH, UNCHANGED
from dlog.storage.index.sort import Rows, as_rows, from_columns
from dlog.storage.layout import FLAT_BASE, FLAT_STRIDE, LEAF_ROWS, N_ROWS, ROOT_REFERENCES

SAMPLED_LEAVES = 64


class Index:
    """One version.  `arena.A` and `root` are what kernels read (see `layout`).

    >>> arena = Arena(1 << 28)
    >>> index = Index.build(arena, [(2, 1), (1, 2), (2, 1)], 2)
    >>> later, change = index.apply(inserts=[(3, 3), (1, 2)], erases=[(2, 1)])
    >>> later.rows().tolist(), index.rows().tolist(), change.inserted.tolist(), change.erased.tolist()
    ([[1, 2], [3, 3]], [[1, 2], [2, 1]], [[3, 3]], [[2, 1]])
    """

    __slots__ = ("__weakref__", "_distinct", "arena", "arity", "root")

    def __init__(self, arena: Arena, root: int, arity: int):
        """Takes over one reference to the root."""
        self.root = root  # first: see `__del__`
        self.arena = arena
        self.arity = arity
        self._distinct: list[int] | None = None

    # Making versions

    @classmethod
    def build(cls, arena: Arena, rows: Any, arity: int, *, scan: int | None = None) -> Index:
        """From an (n, arity) array, nested sequences, or a list of `arity` 1-D arrays, in any order.

        `scan` names a column whose count, sum, min and max are stored for every leaf and node
        (`scan_tree`).  O(n) for each byte that varies; rows already in order are not sorted again.
        """
        return cls._load(arena, as_rows(rows, arity), arity, scan)

    @classmethod
    def from_columns(cls, arena: Arena, columns: Sequence[Any], *, scan: int | None = None) -> Index:
        """As `build`, from a (k, n) array or k arrays."""
        return cls._load(arena, from_columns(columns, len(columns)), len(columns), scan)

    @classmethod
    def of_sorted(
        cls, arena: Arena, arity: int, n: int, put: Callable[[Words, int], None], *, scan: int | None = None
    ) -> Index:
        """From n > 0 sorted, distinct rows that `put(words, at)` writes: column c of row i at + c * n + i.
        `scan` is as in `build`."""
        with arena.lock:
            arena.release_dropped()
            return cls(arena, put_root(arena, arity, n, put, 0 if scan is None else scan + 1), arity)

    @classmethod
    def _load(cls, arena: Arena, rows: Rows, arity: int, scan: int | None) -> Index:
        assert scan is None or 0 <= scan < arity
        with arena.lock:
            arena.release_dropped()
            return cls(arena, build_root(arena, rows, arity, 0 if scan is None else scan + 1), arity)

    def apply(self, inserts: Any = None, erases: Any = None) -> tuple[Index, Change]:
        """(A new version, the net change).  A row that is in both is inserted.

        O(m log n + touched pages), or O(n + m) when the batch is more than a quarter of the rows; the
        result is then flat.
        """
        arena, k = self.arena, self.arity
        new, old = _rows_or_none(inserts, k), _rows_or_none(erases, k)
        with arena.lock:
            arena.release_dropped()
            root, change = changed_root(arena, self.root, k, new, old, in_place=False)
        return Index(arena, root, k), change

    def apply_in_place(self, inserts: Any = None, erases: Any = None) -> Change:
        """The same, but this handle becomes the new version.  Pages that only it holds are changed in place.

        Other handles, including snapshots of this one, are not affected.
        """
        arena, k = self.arena, self.arity
        new, old = _rows_or_none(inserts, k), _rows_or_none(erases, k)
        with arena.lock:
            arena.release_dropped()
            self.root, change = changed_root(arena, self.root, k, new, old, in_place=True)
        self._distinct = None
        return change

    def renew(self, root: int) -> None:
        """Replace this handle's root, whose reference has been used up."""
        self.root = root
        self._distinct = None

    def insert_row(self, row: Sequence[int]) -> Index | None:
        """A new version with one more row; None if the row exists.  O(log n + a page)."""
        return self._change_row(row, INSERT)

    def erase_row(self, row: Sequence[int]) -> Index | None:
        """A new version with one row less; None if the row does not exist.  O(log n + a page)."""
        return self._change_row(row, ERASE)

    def replace_row(self, old: Sequence[int], new: Sequence[int]) -> Index | None:
        """A new version with one row replaced by another; None if `old` does not exist or `new` does.

        One version is made, not two, unless leaves have to be split or joined.  O(log n + a page).
        """
        arena, arity = self.arena, self.arity
        with arena.lock:
            arena.release_dropped()
            self._put_row(old)
            root = change_row(arena.A, self.root, arity, ERASE, 0)
            if root != UNCHANGED and root != NEEDS_BATCH:
                self._put_row(new)
                changed = change_row(arena.A, root, arity, INSERT, 1)
                if changed == root:
                    return Index(arena, root, arity)
                release_root(arena.A, root)
        without = self.erase_row(old)
        return None if without is None else without.insert_row(new)

    def snapshot(self) -> Index:
        """Another handle on this version, to be closed separately.  O(1)."""
        with self.arena.lock:
            self.arena.words[self.root + ROOT_REFERENCES] += 1
        return Index(self.arena, self.root, self.arity)

    def compact(self) -> Index:
        """The same rows, flat again.  O(n)."""
        arena = self.arena
        with arena.lock:
            arena.release_dropped()
            root = compact_root(arena, self.root, self.arity)
        return Index(arena, root, self.arity)

    def spread(self) -> Index:
        """The same rows in separate leaves with room for more: for an index that will be changed in place
        and is not joined.  O(n).  REQUIRES: it is flat."""
        arena = self.arena
        with arena.lock:
            arena.release_dropped()
            root = spread_root(arena, self.root, self.arity)
        return Index(arena, root, self.arity)

    def close(self) -> None:
        """Free this version's memory.  The handle must not be used any more."""
        root, self.root = self.root, 0
        if root:
            self.arena.drop_root(root)

    def __del__(self, _finalizing: Any = sys.is_finalizing) -> None:
        if self.root and not _finalizing():
            self.arena.forget_root(self.root)

    # Reading

    def __len__(self) -> int:
        return self.arena.words[self.root + N_ROWS]

    def __contains__(self, row: Sequence[int]) -> bool:
        return self.contains(row)

    def contains(self, row: Sequence[int]) -> bool:
        """O(log n)."""
        if len(row) != self.arity:
            raise ValueError(f"a row of {len(row)} values in an index of arity {self.arity}")
        return self.has_prefix(row)

    def has_prefix(self, prefix: Sequence[int]) -> bool:
        """Whether some row begins with these values.  O(log n)."""
        if len(self) == 0 or not len(prefix):
            return len(self) > 0
        with self.arena.lock:
            d = self._put_row(prefix)
            return has_prefix(self.arena.A, self.root, ROW, d) == 1

    def range_count(self, prefix: Sequence[int]) -> int:
        """How many rows begin with these values.  O(log n + nodes + a node)."""
        if len(self) == 0 or not len(prefix):
            return len(self)
        with self.arena.lock:
            d = self._put_row(prefix)
            return count_prefix(self.arena.A, self.root, ROW, d)

    def rank(self, row: Sequence[int], *, inclusive: bool = False) -> int:
        """How many rows are before this row or prefix; `inclusive`: or begin with it.  As `range_count`."""
        if len(self) == 0:
            return 0
        with self.arena.lock:
            d = self._put_row(row)
            return rank(self.arena.A, self.root, ROW, d, 1 if inclusive else 0)

    def rows(self) -> Words:
        """All rows in order, as an (n, arity) array.  O(n)."""
        out = np.empty((len(self), self.arity), np.int64)
        read_rows(self.arena.A, self.root, self.arity, self.arity, 1, out.reshape(-1))
        return out

    def columns(self) -> Words:
        """All rows in order, as an (arity, n) array.  O(n)."""
        n = len(self)
        out = np.empty((self.arity, n), np.int64)
        read_rows(self.arena.A, self.root, self.arity, 1, n, out.reshape(-1))
        return out

    def flat_columns(self) -> list[Words] | None:
        """The columns without a copy, if they are contiguous; to be read before this version is closed.
        O(1).
        """
        if not self.is_flat:
            return None
        words, n = self.arena.words, len(self)
        base, stride = int(words[self.root + FLAT_BASE]), int(words[self.root + FLAT_STRIDE])
        return [self.arena.A[base + c * stride : base + c * stride + n] for c in range(self.arity)]

    @property
    def is_flat(self) -> bool:
        """Whether all rows are contiguous."""
        return self.arena.words[self.root + FLAT_BASE] >= 0

    def distinct_prefixes(self, sampled_leaves: int = SAMPLED_LEAVES) -> list[int]:
        """For d = 1 .. arity, how many distinct prefixes of length d: exact if few leaves, else estimated.

        A new prefix begins where two neighbours differ, so the share of such pairs in a sample of leaves
        is an unbiased estimate.  Cached with the version.  O(leaves + sampled rows).
        """
        if self._distinct is None:
            self._distinct = self._count_distinct(sampled_leaves)
        return self._distinct

    def _count_distinct(self, sampled_leaves: int) -> list[int]:
        n, k = len(self), self.arity
        if n == 0:
            return [0] * k
        leaves = max(1, n // LEAF_ROWS)
        changes = np.zeros(max(k, 1), np.int64)
        every = max(1, leaves // sampled_leaves)
        pairs = count_changes(self.arena.A, self.root, k, every, changes)
        counts = [1 + round(int(c) * (n - 1) / max(pairs, 1)) for c in changes[:k]]
        return [*counts[:-1], n] if k else []

    def check(self) -> None:
        """Assert all invariants.  O(n)."""
        check_index(self.arena, self.root, self.arity)

    # Helpers

    def _put_row(self, row: Sequence[int]) -> int:
        """Pass a row or prefix to a kernel.  REQUIRES: lock held."""
        if len(row) > min(self.arity, ROW_WORDS):
            raise ValueError(f"a row of {len(row)} values in an index of arity {self.arity}")
        words, at = self.arena.words, ROW
        for value in row:
            words[at] = value
            at += 1
        return at - ROW

    def _change_row(self, row: Sequence[int], op: int) -> Index | None:
        arena, arity = self.arena, self.arity
        if len(row) != arity:
            raise ValueError(f"a row of {len(row)} values in an index of arity {arity}")
        with arena.lock:
            arena.release_dropped()
            self._put_row(row)
            root = change_row(arena.A, self.root, arity, op, 0) if arity else NEEDS_BATCH
            if root == NEEDS_BATCH:
                rows = as_rows([tuple(row)], arity)
                new, old = (rows, None) if op == INSERT else (None, rows)
                root, change = changed_root(arena, self.root, arity, new, old, in_place=False)
                if not change:
                    release_root(arena.A, root)
                    return None
        return None if root == UNCHANGED else Index(arena, root, arity)


def _rows_or_none(rows: Any, arity: int) -> Rows | None:
    return None if rows is None else as_rows(rows, arity)
