"""Owns the kernel of transactions of a few rows of one predicate and one sign: as `one_row_kernels.fire`, for
all of them at once.

The index that stands for the change, a *mark*, has room for MARK_ROWS rows and holds as many as there are.
"""

from __future__ import annotations

from typing import Final

from dlog.engine.maintain.delta.one_row_kernels import NOTHING, TOO_LARGE, run_joins
from dlog.jit import Words, helper, kernel
from dlog.storage.arena.arena_kernels import EXTENT_BASE, new_extent, release_extent
from dlog.storage.arena.pointer import pointer, pointer_at
from dlog.storage.layout import FLAT_BASE, FLAT_STRIDE, N_ROWS
from dlog.storage.relation.rows_kernels import NEEDS_BATCH, change_all, sorted_numbers

MARK_ROWS: Final = 1024


@kernel
def fire_rows(
    arena: Words,
    shape: Words,
    orders: Words,
    marks: Words,
    available: Words,
    joins: Words,
    words: Words,
    initial: Words,
    states: Words,
    roots: Words,
    rows: Words,
    out: Words,
    counts: Words,
    ranks: Words,
    net: Words,
    n: int,
) -> int:
    """As `fire`, for n <= MARK_ROWS rows; writes those that changed something to `net`, how many behind the
    last count."""
    A = pointer(arena)
    k, op, n_orders, n_marks, n_joins = shape[0], shape[1], shape[2], shape[3], shape[4]
    new = pointer_at(available, n_orders)
    found = change_all(
        A,
        k,
        n_orders,
        pointer(orders),
        pointer(available),
        new,
        pointer(rows),
        n if op == 1 else 0,
        0 if op == 1 else n,
        0,
        pointer(net),
    )
    if found <= 0:
        return TOO_LARGE if found == NEEDS_BATCH else NOTHING
    for m in range(n_marks):
        write_mark(A, marks[m * (1 + k)], pointer_at(marks, m * (1 + k) + 1), pointer(net), found, k)
    counts[n_joins + 1] = found
    return run_joins(
        arena, n_orders, available, joins, words, initial, states, roots, ranks, out, counts, shape
    )


@helper
def write_mark(A, root, order, rows, n, k):
    """Let a mark hold n rows, in its column order."""
    work = new_extent(A, 2 * n, 1)
    numbers = sorted_numbers(A, A[work + EXTENT_BASE], n, rows, k, order, 0)
    base, stride = A[root + FLAT_BASE], A[root + FLAT_STRIDE]
    for i in range(n):
        number = A[numbers + i]
        for c in range(k):
            A[base + c * stride + i] = rows[number * k + order[c]]
    A[root + N_ROWS] = n
    release_extent(A, work, 1)
