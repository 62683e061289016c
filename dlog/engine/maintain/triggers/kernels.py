"""Owns the kernels of transactions of a few rows of one predicate and one sign: the rows go into every index,
the delta joins that begin with them run, and a head that no rule reads takes in what the joins give.

What rows of a predicate set off is data: a *layout*, which is only read, and a block that is *written*.  The
layout is L words, then

orders     for each index of the predicate its column order: k words
marks      for each index that stands for the change: its root, then its column order: 1 + k words
joins      V words for each delta variant; see V_* below
words      code, levels and sources of the joins
initial    the states of the joins before a run

A mark has room for as many rows as the block has, and holds as many as there are.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Words, helper, kernel, pointer, shifted
from dlog.lftj.machine import attach_on, run_on
from dlog.lftj.opcodes import DONE, NEXTS, SEEKS, STATUS
from dlog.storage.arena.arena_kernels import (
    EXTENT_BASE,
    ROW,
    new_extent,
    release_extent,
    release_handed,
    release_root,
)
from dlog.storage.index.row_kernels import NEEDS_BATCH as NEEDS_PAGES
from dlog.storage.index.row_kernels import UNCHANGED, change_row
from dlog.storage.index.tree_kernels import count_prefix, has_prefix
from dlog.storage.layout import FLAT_BASE, FLAT_STRIDE, N_ROWS
from dlog.storage.relation.rows_kernels import NEEDS_BATCH, change_all, sorted_numbers

# What `fire` answers besides how many rows the joins gave.
NOTHING: Final = -1  # the rows were there already, or were not there
# Pages must be built, or a join has much to do, or a key would have two values: nothing has been done.
TOO_LARGE: Final = -2

# Words of the layout: sizes.
ARITY: Final = 0
OP: Final = 1  # 1: rows come, 0: they go, GIVEN: the roots of both versions are given
N_ORDERS: Final = 2
N_MARKS: Final = 3
N_JOINS: Final = 4
CAPACITY: Final = 5  # rows of the output of a join
COLUMNS: Final = 6  # of such an output
BUDGET: Final = 7  # operations of a join
# Where parts of the layout begin.
ORDERS: Final = 8
MARKS: Final = 9
JOINS: Final = 10
WORDS: Final = 11
INITIAL: Final = 12
# Where parts of the block that is written begin.
AVAILABLE: Final = 13  # roots that joins may read: indices before the change, after it, of others, marks
ROWS: Final = 14  # the rows, k words each
NET: Final = 15  # those of them that changed something
COUNTS: Final = 16  # rows of each join, the operations of all, the number of net rows
STATES: Final = 17
ROOTS: Final = 18  # room for those of one join
OUT: Final = 19  # the output of each join: columns of CAPACITY words
KEYS: Final = 20  # columns of the key, if rows of a function come; else -1
NATURAL: Final = 21  # the index of the predicate in its own column order
L: Final = 22

GIVEN: Final = 2

# Words of a join; places are in the words, or in the states.
V_CODE: Final = 0
V_STATE: Final = 1
V_INITIAL: Final = 2  # how many words of the state are set before a run
V_LEVELS: Final = 3
V_SOURCES: Final = 4  # for each atom the place of its root among those available
V_ATOMS: Final = 5
V: Final = 6

# Words of a head's shape.
H_ARITY: Final = 0
H_ORDERS: Final = 1
H_JOINS: Final = 2
H_CAPACITY: Final = 3  # rows of the output of a join
H_WIDTH: Final = 4  # columns of it
H_INSERTS: Final = 5  # whether rows come: 1 or 0
H: Final = 6


@kernel
def fire(arena_words: Words, layout_words: Words, written_words: Words, rank_words: Words, n: int) -> int:
    """Change n rows and run the joins; returns how many rows these gave, or NOTHING, or TOO_LARGE."""
    A, layout, written = pointer(arena_words), pointer(layout_words), pointer(written_words)
    release_handed(A)
    found = change_predicate(A, layout, written, n)
    if found < 0:
        return int(found)
    written[layout[COUNTS] + layout[N_JOINS] + 1] = found
    for m in range(layout[N_MARKS]):
        mark = shifted(layout, layout[MARKS] + m * (1 + layout[ARITY]))
        write_mark(A, mark[0], shifted(mark, 1), shifted(written, layout[NET]), found, layout[ARITY])
    return int(run_joins(A, layout, written, pointer(rank_words)))


@helper
def change_predicate(A, layout, written, n):
    """Write the roots under the change behind the old ones, and the rows that changed something to NET;
    returns how many these are, or NOTHING, or TOO_LARGE."""
    k, n_orders = layout[ARITY], layout[N_ORDERS]
    old, rows, net = (
        shifted(written, layout[AVAILABLE]),
        shifted(written, layout[ROWS]),
        shifted(written, layout[NET]),
    )
    orders, inserts = shifted(layout, layout[ORDERS]), n if layout[OP] == 1 else 0
    if n == 1 or layout[OP] == GIVEN:
        for x in range(n * k):
            net[x] = rows[x]
    if layout[OP] == GIVEN:
        return np.int64(n)
    if n == 1:
        if layout[KEYS] >= 0 and has_key(A, old[layout[NATURAL]], net, k, layout[KEYS]):
            is_there = has_key(A, old[layout[NATURAL]], net, k, k)
            return np.int64(NOTHING) if is_there else np.int64(TOO_LARGE)
        return change_row_of_all(A, k, n_orders, orders, old, net, layout[OP])
    new = shifted(old, n_orders)
    found = change_all(A, k, n_orders, orders, old, new, rows, inserts, n - inserts, 0, net)
    if found > 0 and layout[KEYS] >= 0 and not have_one_value(A, new, layout, net, found):
        for o in range(n_orders):
            release_root(A, new[o])
        return np.int64(TOO_LARGE)
    if found > 0:
        return np.int64(found)
    return np.int64(TOO_LARGE) if found == NEEDS_BATCH else np.int64(NOTHING)


@helper
def has_key(A, root, row, k, keys):
    """Whether an index of all columns in their order has a row that begins like this one."""
    if A[root + N_ROWS] == 0:
        return False
    for c in range(k):
        A[ROW + c] = row[c]
    return has_prefix(A, root, ROW, 1, 0, keys) == 1


@helper
def have_one_value(A, roots, layout, rows, n):
    """Whether the key of each of n rows of a predicate is that of one row only."""
    k, keys, root = layout[ARITY], layout[KEYS], roots[layout[NATURAL]]
    for i in range(n):
        for c in range(k):
            A[ROW + c] = rows[i * k + c]
        if count_prefix(A, root, ROW, 1, 0, keys) > 1:
            return False
    return True


@helper
def change_row_of_all(A, k, n_orders, orders, roots, row, op):
    """One row in every index, each in a version of its own."""
    for o in range(n_orders):
        for c in range(k):
            A[ROW + c] = row[orders[o * k + c]]
        changed = change_row(A, roots[o], k, op, 0)
        if changed in (UNCHANGED, NEEDS_PAGES):
            for other in range(o):
                release_root(A, roots[n_orders + other])
            return np.int64(NOTHING) if changed == UNCHANGED else np.int64(TOO_LARGE)
        roots[n_orders + o] = changed
    return np.int64(1)


@helper
def write_mark(A, root, order, rows, n, k):
    """Let a mark hold n rows, in its column order."""
    base, stride = A[root + FLAT_BASE], A[root + FLAT_STRIDE]
    A[root + N_ROWS] = n
    if n == 1:
        for c in range(k):
            A[base + c * stride] = rows[order[c]]
        return
    work = new_extent(A, 2 * n, 1)
    numbers = sorted_numbers(A, A[work + EXTENT_BASE], n, rows, k, order, 0)
    for i in range(n):
        number = A[numbers + i]
        for c in range(k):
            A[base + c * stride + i] = rows[number * k + order[c]]
    release_extent(A, work, 1)


@helper
def run_joins(A, layout, written, ranks):
    """Run every join on the roots that are available.  TOO_LARGE: the new roots have been released."""
    n_joins, capacity = layout[N_JOINS], layout[CAPACITY]
    words, roots = shifted(layout, layout[WORDS]), shifted(written, layout[ROOTS])
    available, counts = shifted(written, layout[AVAILABLE]), shifted(written, layout[COUNTS])
    total, operations = np.int64(0), np.int64(0)
    for j in range(n_joins):
        join = shifted(layout, layout[JOINS] + j * V)
        state, initial = (
            shifted(written, layout[STATES] + join[V_STATE]),
            shifted(layout, layout[INITIAL] + join[V_STATE]),
        )
        for x in range(join[V_INITIAL]):
            state[x] = initial[x]
        for a in range(join[V_ATOMS]):
            roots[a] = available[words[join[V_SOURCES] + a]]
        attach_on(A, state, shifted(words, join[V_LEVELS]), roots, join[V_ATOMS])
        to = shifted(written, layout[OUT] + j * capacity * layout[COLUMNS])
        rows = run_on(
            A, shifted(words, join[V_CODE]), state, ranks, to, np.int64(0), capacity, layout[BUDGET]
        )
        operations += state[SEEKS] + state[NEXTS]
        if state[STATUS] != DONE:
            if layout[OP] != GIVEN:
                for o in range(layout[N_ORDERS]):
                    release_root(A, available[layout[N_ORDERS] + o])
            return np.int64(TOO_LARGE)
        counts[j] = rows
        total += rows
    counts[n_joins] = operations
    return total


@kernel
def change_head(
    arena: Words, shape: Words, orders: Words, roots: Words, out: Words, counts: Words, rows: Words
) -> int:
    """Change a head by the rows of joins: how many it gained or lost, or what `change_all` answers where it
    did nothing.

    `out` and `counts` are as `fire` has left them.  The new roots come behind the old ones, the rows that
    changed to `rows`, which has room for all of the joins.
    """
    return int(
        change_joined_head(
            pointer(arena),
            pointer(shape),
            pointer(orders),
            pointer(roots),
            pointer(out),
            pointer(counts),
            pointer(rows),
        )
    )


@helper
def change_joined_head(A, shape, orders, roots, out, counts, rows):
    k, capacity, n_orders = shape[H_ARITY], shape[H_CAPACITY], shape[H_ORDERS]
    n = 0
    for j in range(shape[H_JOINS]):
        for i in range(counts[j]):
            for c in range(k):
                rows[n * k + c] = out[(j * shape[H_WIDTH] + c) * capacity + i]
            n += 1
    inserts = n if shape[H_INSERTS] == 1 else 0
    new = shifted(roots, n_orders)
    return change_all(A, k, n_orders, orders, roots, new, rows, inserts, n - inserts, 0, rows)
