"""Owns the kernels of sets of rows: sorting, deduplicating, and differences of two.  Knows no meaning.

Rows are row-major, k words each.
"""

from __future__ import annotations

from dlog.jit import Words, helper, kernel, pointer


@kernel
def row_changes(
    old: Words, n: int, new: Words, m: int, k: int, erased: Words, inserted: Words, sizes: Words
) -> None:
    """Rows only in `old` and only in `new`, each once; both are sorted, and may have rows several times.

    Leaves the numbers of rows written in `sizes`.  O((n + m) k).
    """
    find_changes(pointer(old), n, pointer(new), m, k, pointer(erased), pointer(inserted), pointer(sizes))


@helper
def find_changes(old, n, new, m, k, erased, inserted, sizes):
    """As `row_changes`, over pointers, as all helpers here."""
    i, j, e, a = 0, 0, 0, 0
    while i < n or j < m:
        order = -1 if j == m else 1 if i == n else compare_rows(old, i, new, j, k)
        if order < 0:
            e = put_row(old, i, k, erased, e)
        elif order > 0:
            a = put_row(new, j, k, inserted, a)
        if order <= 0:
            i = after_same(old, i, n, k)
        if order >= 0:
            j = after_same(new, j, m, k)
    sizes[0] = e
    sizes[1] = a


@kernel
def sort_few(rows: Words, n: int, k: int) -> None:
    """Sort rows in place.  O(n^1.5 k): for a few."""
    put_in_order(pointer(rows), n, k)


@helper
def put_in_order(rows, n, k):
    """As `sort_few`.  O(n k) if they are in order."""
    in_order = 1
    while in_order < n and compare_rows(rows, in_order - 1, rows, in_order, k) <= 0:
        in_order += 1
    if in_order >= n:
        return
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            j = i
            while j >= gap and compare_rows(rows, i, rows, j - gap, k) < 0:
                j -= gap
            if j < i:
                move_row(rows, i, j, gap, k)
        gap //= 3


@helper
def move_row(rows, i, j, gap, k):
    """Put row i at the place of row j, and those between, `gap` apart, one further."""
    for c in range(k):
        word = rows[i * k + c]
        x = i
        while x > j:
            rows[x * k + c] = rows[(x - gap) * k + c]
            x -= gap
        rows[j * k + c] = word


@helper
def distinct(rows, n, k, step):
    """Leave of n sorted rows, `step` words each, one for each k first words, in place; returns how many."""
    kept = min(n, 1)
    for i in range(1, n):
        if compare_at(rows, i * step, rows, (kept - 1) * step, k) != 0:
            kept = put_row(rows, i, step, rows, kept)
    return kept


@helper
def compare_rows(a, i, b, j, k):
    """-1, 0 or 1: row i of some against row j of others."""
    return compare_at(a, i * k, b, j * k, k)


@helper
def compare_at(a, i, b, j, k):
    """The same of k words from place i on and k from place j on."""
    for c in range(k):
        if a[i + c] != b[j + c]:
            return -1 if a[i + c] < b[j + c] else 1
    return 0


@helper
def after_same(rows, i, n, k):
    """The first row after those that are the same as row i."""
    j = i + 1
    while j < n and compare_rows(rows, i, rows, j, k) == 0:
        j += 1
    return j


@helper
def put_row(rows, i, k, out, at):
    for c in range(k):
        out[at * k + c] = rows[i * k + c]
    return at + 1
