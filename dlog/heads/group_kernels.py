"""Owns the change of groups in one kernel call: from a few assignments to the state's and the head's rows.

Assignments come as columns, those that are added apart from those that are taken away.  The layout of a
rule, as data:

    groups g, sums s, columns of the head h
    g columns of the assignments             the group
    s pairs (is a column, column or code)    what is added up
    h pairs (kind, number)                   the head: a group's column, a literal's code, or the number of a
                                             sum (-1: the count)

A row of the state is the group, its number of assignments, and a wide number for each sum (`kernels`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.heads.kernels import MIN, WIDE
from dlog.jit import Words, helper, kernel
from dlog.storage.arena.arena_kernels import EXTENT_BASE, RESULT, new_extent, release_extent
from dlog.storage.arena.pointer import pointer, pointer_at
from dlog.storage.index.tree_kernels import compare, entry_bound, leaf_bound, node_bound
from dlog.storage.layout import BASE, ENTRY, FILL, N_NODES, NODE_HEADER, ROOT_HEADER, STRIDE
from dlog.storage.relation.rows_kernels import change_all, is_small

# Kinds of columns of a head.
GROUP: Final = 0
LITERAL: Final = 1
RESULT_OF: Final = 2

SHAPE: Final = 3  # where the groups of a layout begin
TOO_LARGE: Final = -2  # a number does not fit, or a relation must be built anew: nothing has been done


@kernel
def change_groups(
    arena: Words,
    layout: Words,
    gained: Words,
    gained_stride: int,
    added: int,
    lost: Words,
    lost_stride: int,
    taken: int,
    state_orders: Words,
    state_roots: Words,
    n_state: int,
    head_orders: Words,
    head_roots: Words,
    n_head: int,
    state_rows: Words,
    head_rows: Words,
    unread: Words,
    net: Words,
) -> int:
    """Add assignments and take others away: the number of the head's rows that are new or gone, new ones
    first in `net`, their number in RESULT; or TOO_LARGE, and nothing has been done.

    Column c of the assignments that are added begins at gained[c * gained_stride].
    Writes new roots over the old ones.  `state_rows`, `head_rows`
    and `unread` are room for two rows of each assignment.
    O(n log n + n log groups) for n assignments.  REQUIRES: the first order of the state is the natural one.
    """
    A = pointer(arena)
    g, h = layout[0], layout[2]
    width = g + 1 + WIDE * layout[1]
    n = added + taken
    k = np.int64(
        max(len(gained) // gained_stride, len(lost) // lost_stride)
    )  # one of them may have no columns
    work = new_extent(A, 2 * n + 2 * width + n * k, 1)
    numbers = A[work + EXTENT_BASE]
    old, new = numbers + 2 * n, numbers + 2 * n + width
    shape, given, stride = pointer(layout), pointer_at(arena, numbers + 2 * n + 2 * width), n
    for c in range(k):
        for i in range(added):
            given[c * n + i] = gained[c * gained_stride + i]
        for i in range(taken):
            given[c * n + added + i] = lost[c * lost_stride + i]
    at = sorted_assignments(A, numbers, n, given, stride, shape)
    n_new, n_old, head_new, head_old = 0, 0, 0, 0
    fits = True
    i = 0
    while i < n and fits:
        end = i + 1
        while end < n and not is_before(given, stride, A[at + i], A[at + end], shape):
            end += 1
        load_group(A, state_roots[0], old, given, stride, A[at + i], shape, width)
        add_assignments(A, old, new, at, i, end, given, stride, shape, width, added)
        i = end
        fits = A[new + g] >= 0 and results_fit(A, old, shape) and results_fit(A, new, shape)
        if not fits or not differ(A, old, new, width):
            continue
        if A[new + g] > 0:
            put_row(A, new, width, state_rows, n_new)
            n_new += 1
        if A[old + g] > 0:
            put_row(A, old, width, state_rows, n + n_old)
            n_old += 1
        if heads_differ(A, old, new, shape):
            if A[new + g] > 0:
                put_head(A, new, shape, head_rows, head_new)
                head_new += 1
            if A[old + g] > 0:
                put_head(A, old, shape, head_rows, n + head_old)
                head_old += 1
    release_extent(A, work, 1)
    if not fits:
        return TOO_LARGE
    join_parts(state_rows, width, n, n_new, n_old)
    join_parts(head_rows, h, n, head_new, head_old)
    return carry_out(
        A,
        width,
        pointer(state_orders),
        pointer(state_roots),
        n_state,
        pointer(state_rows),
        n_new,
        n_old,
        h,
        pointer(head_orders),
        pointer(head_roots),
        n_head,
        pointer(head_rows),
        head_new,
        head_old,
        pointer(unread),
        pointer(net),
    )


@helper
def carry_out(
    A, width, state_orders, state_roots, n_state, state_rows, n_new, n_old,
    h, head_orders, head_roots, n_head, head_rows, head_new, head_old, unread, net,
):  # fmt: skip
    """Change the state and the head: both or none."""
    for o in range(n_state):
        if not is_small(A, state_roots[o], n_new + n_old, width):
            return TOO_LARGE
    for o in range(n_head):
        if head_new + head_old > 0 and not is_small(A, head_roots[o], head_new + head_old, h):
            return TOO_LARGE
    change_all(A, width, n_state, state_orders, state_roots, state_roots, state_rows, n_new, n_old, 0, unread)
    if head_new + head_old == 0:
        A[RESULT] = 0
        return 0
    return change_all(
        A, h, n_head, head_orders, head_roots, head_roots, head_rows, head_new, head_old, 0, net
    )


@helper
def sorted_assignments(A, numbers, n, columns, stride, shape):
    """The numbers of assignments in the order of their groups; returns where they lie.  O(n log n)."""
    for i in range(n):
        A[numbers + i] = i
    source, target, run = numbers, numbers + n, 1
    while run < n:
        for start in range(0, n, 2 * run):
            a, b = start, min(start + run, n)
            middle, end = b, min(start + 2 * run, n)
            for to in range(start, end):
                take_left = b >= end or (
                    a < middle and not is_before(columns, stride, A[source + b], A[source + a], shape)
                )
                A[target + to] = A[source + a] if take_left else A[source + b]
                a += 1 if take_left else 0
                b += 0 if take_left else 1
        source, target = target, source
        run *= 2
    return source


@helper
def is_before(columns, stride, i, j, shape):
    """Whether the group of assignment i comes before that of j."""
    for c in range(shape[0]):
        x, y = columns[shape[SHAPE + c] * stride + i], columns[shape[SHAPE + c] * stride + j]
        if x != y:
            return x < y
    return False


@helper
def load_group(A, root, to, columns, stride, i, shape, width):
    """Write the row of assignment i's group, zeros behind the group when there is none."""
    g = shape[0]
    for c in range(width):
        A[to + c] = columns[shape[SHAPE + c] * stride + i] if c < g else 0
    if A[root + N_NODES] == 0:
        return
    # The last row that is not after the group: if one has the group, that one does.
    node = A[root + ROOT_HEADER + node_bound(A, root, 0, to, 1, 0, g, 1)]
    entry = node + NODE_HEADER + ENTRY * entry_bound(A, node, 0, to, 1, 0, g, 1)
    base, step = A[entry + BASE], A[entry + STRIDE]
    row = leaf_bound(A, base, step, 0, A[entry + FILL], to, 1, 0, g, 1) - 1
    if row >= 0 and compare(A, base, step, row, to, 1, 0, g) == 0:
        for c in range(g, width):
            A[to + c] = A[base + c * step + row]


@helper
def add_assignments(A, old, new, at, i, end, columns, stride, shape, width, added):
    """The group at `old` under assignments [i, end), to `new`."""
    g, s = shape[0], shape[1]
    for c in range(width):
        A[new + c] = A[old + c]
    for j in range(i, end):
        A[new + g] += 1 if A[at + j] < added else -1
    for x in range(s):
        is_column, word = shape[SHAPE + g + 2 * x], shape[SHAPE + g + 2 * x + 1]
        for j in range(i, end):
            add_word(
                A,
                new + g + 1 + WIDE * x,
                columns[word * stride + A[at + j]] if is_column == 1 else word,
                1 if A[at + j] < added else -1,
            )


@helper
def add_word(A, at, value, sign):
    """Add a word to a wide number, or take it away."""
    before = A[at]
    if sign > 0:
        A[at] = before + value
        carry = (1 if (A[at] ^ MIN) < (before ^ MIN) else 0) + (-1 if value < 0 else 0)
    else:
        A[at] = before - value
        carry = (-1 if (A[at] ^ MIN) > (before ^ MIN) else 0) + (1 if value < 0 else 0)
    w = 1
    while carry != 0 and w < WIDE:
        before = A[at + w]
        A[at + w] = before + carry
        if carry > 0:
            carry = 1 if before == -1 else 0
        else:
            carry = -1 if before == 0 else 0
        w += 1


@helper
def result_of(A, group, shape, number):
    """Where the count (-1) or a sum of a group lies."""
    return group + shape[0] if number < 0 else group + shape[0] + 1 + WIDE * number


@helper
def results_fit(A, group, shape):
    """Whether all sums of a group are ints."""
    for x in range(shape[1]):
        at = result_of(A, group, shape, x)
        above = -1 if A[at] < 0 else 0
        for w in range(1, WIDE):
            if A[at + w] != above:
                return False
    return True


@helper
def differ(A, a, b, width):
    c = 0
    while c < width and A[a + c] == A[b + c]:
        c += 1
    return c < width


@helper
def heads_differ(A, old, new, shape):
    """Whether the head's rows of a group are not the same before and after."""
    g, s, h = shape[0], shape[1], shape[2]
    if A[old + g] == 0 or A[new + g] == 0:
        return A[old + g] != A[new + g]
    for c in range(h):
        kind, number = shape[SHAPE + g + 2 * s + 2 * c], shape[SHAPE + g + 2 * s + 2 * c + 1]
        if kind == RESULT_OF and A[result_of(A, old, shape, number)] != A[result_of(A, new, shape, number)]:
            return True
    return False


@helper
def put_row(A, row, width, rows, i):
    for c in range(width):
        rows[i * width + c] = A[row + c]


@helper
def put_head(A, group, shape, rows, i):
    """Write the head's row of a group."""
    g, s, h = shape[0], shape[1], shape[2]
    for c in range(h):
        kind, number = shape[SHAPE + g + 2 * s + 2 * c], shape[SHAPE + g + 2 * s + 2 * c + 1]
        value = number
        if kind == GROUP:
            value = A[group + number]
        elif kind == RESULT_OF:
            value = A[result_of(A, group, shape, number)]
        rows[i * h + c] = value


@helper
def join_parts(rows, width, n, first, second):
    """Move rows n, n + 1, ... down behind the first ones."""
    for x in range(second * width):
        rows[first * width + x] = rows[n * width + x]
