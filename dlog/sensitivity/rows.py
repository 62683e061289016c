"""Owns small sets of rows: sorting, and what is in one but not in another.  Knows no meaning."""

from __future__ import annotations

import numpy as np

from dlog.jit import Words
from dlog.sensitivity.row_kernels import row_changes, sort_few

INSERTION_SORT_ROWS = 48  # rows that are sorted by insertion: for fewer, numpy's sort takes longer


def sorted_rows(rows: Words) -> Words:
    """An (n, k) array in order, contiguous.  O(n log n)."""
    n, k = rows.shape
    if n <= INSERTION_SORT_ROWS or k == 0:
        copied = np.array(rows, np.int64, order="C")
        if n > 1 and k > 0:
            sort_few(copied.reshape(-1), n, k)
        return copied
    return np.ascontiguousarray(rows[np.lexsort(rows.T[::-1])])


def distinct_rows(rows: Words) -> Words:
    """Sorted, each once.  O(n log n)."""
    return changes(rows[:0], rows)[1]


def changes(old: Words, new: Words) -> tuple[Words, Words]:
    """(Rows only in `old`, rows only in `new`), each once, sorted.  O((n + m) log).

    >>> changes(np.array([[2], [1], [2]]), np.array([[3], [1]]))[0].tolist()
    [[2]]
    """
    k = old.shape[1]
    if k == 0:
        n, m = min(len(old), 1), min(len(new), 1)
        return old[: max(n - m, 0)], new[: max(m - n, 0)]
    a, b = sorted_rows(old), sorted_rows(new)
    erased, inserted, sizes = np.empty_like(a), np.empty_like(b), np.empty(2, np.int64)
    row_changes(
        a.reshape(-1), len(a), b.reshape(-1), len(b), k, erased.reshape(-1), inserted.reshape(-1), sizes
    )
    return erased[: sizes[0]], inserted[: sizes[1]]
