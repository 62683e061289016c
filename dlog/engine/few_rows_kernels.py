"""Owns the kernel of transactions of a few rows of one predicate and one sign: as `one_row_kernels.fire`, for
all of them at once.

The index that stands for the change, a *mark*, has room for MARK_ROWS rows and holds as many as there are.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.engine.one_row_kernels import (
    NOTHING,
    TOO_LARGE,
    V_ATOMS,
    V_CODE,
    V_INITIAL,
    V_LEVELS,
    V_SOURCES,
    V_STATE,
    V,
)
from dlog.jit import Words, helper, kernel
from dlog.lftj.machine import attach, run_on
from dlog.lftj.opcodes import DONE, NEXTS, SEEKS, STATUS
from dlog.storage.arena_kernels import EXTENT_BASE, new_extent, release_extent, release_root
from dlog.storage.layout import FLAT_BASE, FLAT_STRIDE, N_ROWS
from dlog.storage.pointer import pointer, pointer_at
from dlog.storage.rows_kernels import NEEDS_BATCH, change_all, sorted_numbers

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
    ranks: Words,
    rows: Words,
    n: int,
    net: Words,
    out: Words,
    counts: Words,
) -> int:
    """As `fire`, for n <= MARK_ROWS rows; writes those that changed something to `net`, how many behind the
    last count."""
    A = pointer(arena)
    k, op, n_orders, n_marks, n_joins = shape[0], shape[1], shape[2], shape[3], shape[4]
    capacity, columns, budget = shape[5], shape[6], shape[7]
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
    total = 0
    operations = 0
    for j in range(n_joins):
        at = j * V
        start, n_atoms = joins[at + V_STATE], joins[at + V_ATOMS]
        for x in range(joins[at + V_INITIAL]):
            states[start + x] = initial[start + x]
        for a in range(n_atoms):
            roots[a] = available[words[joins[at + V_SOURCES] + a]]
        levels = joins[at + V_LEVELS]
        attach(arena, states[start:], words[levels : levels + 2 * n_atoms], roots[:n_atoms])
        state, code = pointer_at(states, start), pointer_at(words, joins[at + V_CODE])
        to = pointer_at(out, j * capacity * columns)
        produced = run_on(A, code, state, pointer(ranks), to, np.int64(0), capacity, budget)
        operations += state[SEEKS] + state[NEXTS]
        if state[STATUS] != DONE:
            for o in range(n_orders):
                release_root(A, available[n_orders + o])
            return TOO_LARGE
        counts[j] = produced
        total += produced
    counts[n_joins] = operations
    counts[n_joins + 1] = found
    return total


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
