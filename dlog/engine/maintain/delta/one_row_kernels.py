"""Owns the kernel of transactions of one row: the row goes into every index, and the delta joins that begin
with it run, all in one call from Python.

A *trigger* is what one predicate's rows of one sign set off, as data:

orders     for each index of the predicate its column order: k words
marks      for each one-row index that stands for the change: its root, then its column order: 1 + k words
joins      V words for each delta variant; see V_* below
available  roots that joins may read: the indices before the change, those after it, marks, others
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Words, helper, kernel
from dlog.lftj.machine import attach_on, run_on
from dlog.lftj.opcodes import DONE, NEXTS, SEEKS, STATUS
from dlog.storage.arena.arena_kernels import ROW, release_handed, release_root
from dlog.storage.arena.pointer import pointer, pointer_at
from dlog.storage.index.row_kernels import NEEDS_BATCH, UNCHANGED, change_row
from dlog.storage.layout import FLAT_BASE, FLAT_STRIDE

# What `fire` answers besides how many rows the joins gave.
NOTHING: Final = -1  # the row was there already, or was not there
TOO_LARGE: Final = -2  # a page must be split, or a join has much to do: nothing has been done

# Words of a join in the trigger's table.
V_CODE: Final = 0
V_STATE: Final = 1
V_INITIAL: Final = 2  # how many words of the state are set before a run
V_LEVELS: Final = 3
V_SOURCES: Final = 4  # for each atom the place of its root in `available`
V_ATOMS: Final = 5
V: Final = 6


@kernel
def fire(
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
    row: Words,
    out: Words,
    counts: Words,
    ranks: Words,
) -> int:
    """Change one row and run the joins.  shape: arity, op, orders, marks, joins, capacity, columns, budget.

    Writes the new roots to `available`, the output of join j to `out` (columns of `capacity` words), its
    number of rows to counts[j] and the operations of all to the last count.
    """
    A = pointer(arena)
    release_handed(A)
    k, op, n_orders, n_marks = shape[0], shape[1], shape[2], shape[3]
    for o in range(n_orders):
        for c in range(k):
            A[ROW + c] = row[orders[o * k + c]]
        changed = change_row(A, available[o], k, op, 0)
        if changed in (UNCHANGED, NEEDS_BATCH):
            for other in range(o):
                release_root(A, available[n_orders + other])
            return NOTHING if changed == UNCHANGED else TOO_LARGE
        available[n_orders + o] = changed
    for m in range(n_marks):
        root = marks[m * (1 + k)]
        for c in range(k):
            A[A[root + FLAT_BASE] + c * A[root + FLAT_STRIDE]] = row[marks[m * (1 + k) + 1 + c]]
    return run_joins(
        arena, n_orders, available, joins, words, initial, states, roots, ranks, out, counts, shape
    )


@helper
def run_joins(arena, n_orders, available, joins, words, initial, states, roots, ranks, out, counts, shape):
    """Run every join on the roots that are available.  TOO_LARGE: the new roots have been released."""
    A = pointer(arena)
    n_joins, capacity, columns, budget = shape[4], shape[5], shape[6], shape[7]
    total = 0
    operations = 0
    for j in range(n_joins):
        at = j * V
        start, n_atoms = joins[at + V_STATE], joins[at + V_ATOMS]
        for x in range(joins[at + V_INITIAL]):
            states[start + x] = initial[start + x]
        for a in range(n_atoms):
            roots[a] = available[words[joins[at + V_SOURCES] + a]]
        state, code = pointer_at(states, start), pointer_at(words, joins[at + V_CODE])
        attach_on(A, state, pointer_at(words, joins[at + V_LEVELS]), pointer(roots), n_atoms)
        to = pointer_at(out, j * capacity * columns)
        rows = run_on(A, code, state, pointer(ranks), to, np.int64(0), capacity, budget)
        operations += state[SEEKS] + state[NEXTS]
        if state[STATUS] != DONE:
            for o in range(n_orders):
                release_root(A, available[n_orders + o])
            return TOO_LARGE
        counts[j] = rows
        total += rows
    counts[n_joins] = operations
    return total
