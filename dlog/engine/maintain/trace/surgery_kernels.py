"""Owns what one changed row of a predicate contributes to the oracle of a rule maintained by its trace.

The row's surgeries, one for each column order and level that is new to the index, are matched with the
watches of the rule; for the layout see `dlog.engine.maintain.trace.row_layout`.  Knows nothing of evaluation.
"""

from __future__ import annotations

import numpy as np

from dlog.engine.maintain.trace.row_layout import (
    ARITY,
    ATOM,
    ATOMS,
    CAPACITY,
    CHECK,
    CHECKS,
    FOUND,
    INTERVAL,
    N_ARITY,
    N_ORDERS,
    N_PREFIX,
    N_ROOT,
    N_WATCHES,
    N_WIDE,
    NOTE,
    NOTES,
    OP,
    ORDERS,
    OTHERS,
    SHARED,
    W_ATOM,
    W_BELOW,
    W_CHECKS,
    W_DEPTH,
    W_ENDS,
    W_LEVEL,
    W_NOTE,
    W_WILD,
    WATCH,
    WATCHES,
    WIDE,
    WIDE_WORDS,
    WIDER,
    WIDER_WORDS,
    WIDTH,
    WORK,
)
from dlog.jit import helper, shifted
from dlog.sensitivity.index_kernels import find_overlapping, find_prefixed
from dlog.sensitivity.oracle_kernels import LEAST
from dlog.storage.arena.arena_kernels import ROW
from dlog.storage.diff.delta_kernels import deepest
from dlog.storage.index.leaf_kernels import INSERT
from dlog.storage.scan.interval_kernels import POINT, STATE_WORDS, stab


@helper
def put_key(A, row, tables, shape, o):
    """The row in one column order, where kernels look for it."""
    k = shape[ARITY]
    for c in range(k):
        A[ROW + c] = row[tables[shape[ORDERS] + o * k + c]]


@helper
def contributions(A, shape, tables, available, room, row):
    """How many contributions there are; -1 if there are too many."""
    for o in range(shape[N_ORDERS]):
        put_key(A, row, tables, shape, o)
        root = available[o] if shape[OP] == INSERT else available[shape[N_ORDERS] + o]
        room[shape[SHARED] + o] = deepest(A, root, ROW, 1, shape[ARITY])
    m = 0
    for w in range(shape[N_WATCHES]):
        at = shape[WATCHES] + w * (WATCH + shape[WIDTH])
        o = tables[shape[ATOMS] + tables[at + W_ATOM] * ATOM + 2]
        if o < 0:
            continue
        if tables[at + W_LEVEL] < room[shape[SHARED] + o]:  # its level is not new to the index
            continue
        put_key(A, row, tables, shape, o)
        if not fits(A, tables, shape[CHECKS], at):
            continue
        if tables[at + W_NOTE] < 0:
            if m == shape[CAPACITY]:
                return -1
            put_contribution(A, shape, tables, at, room, 0, m)
            if tables[at + W_ENDS] == WIDER and not widen(A, shape, tables, available, room, w, m):
                return -1
            m += 1
        else:
            n = matching(A, shape, tables, available, room, at)
            if n < 0 or m + n > shape[CAPACITY]:
                return -1
            put_key(A, row, tables, shape, o)
            arity = tables[shape[NOTES] + tables[at + W_NOTE] * NOTE + N_ARITY]
            for i in range(n):
                put_contribution(A, shape, tables, at, room, shape[WORK] + i * arity, m)
                m += 1
    return m


@helper
def fits(A, tables, checks, at):
    """Whether the row has the constants, and the equal columns, that a watch asks for."""
    start = tables[at + W_CHECKS]
    for i in range(tables[at + W_CHECKS + 1]):
        check = checks + (start + i) * CHECK
        value = A[ROW + tables[check + 1]]
        other = tables[check + 2]
        if value != (other if tables[check] == 0 else A[ROW + other]):
            return False
    return True


@helper
def matching(A, shape, tables, available, room, at):
    """Rows of a watch's index that hold the row's key, to the start of the work space; -1 if too many."""
    note = shape[NOTES] + tables[at + W_NOTE] * NOTE
    prefix, arity = tables[note + N_PREFIX], tables[note + N_ARITY]
    root, capacity = available[tables[note + N_ROOT]], shape[CAPACITY]
    rows = shape[WORK]
    which = rows + capacity * arity
    state = which + capacity
    for x in range(STATE_WORDS):
        room[state + x] = 0
    points = state + STATE_WORDS
    for c in range(prefix + 1):
        room[points + c] = A[ROW + c]
    if tables[at + W_BELOW] == 1:
        n = find_prefixed(
            A,
            root,
            prefix,
            arity,
            shifted(room, points),
            1,
            shifted(room, rows),
            shifted(room, which),
            capacity,
        )
        return n if n <= capacity else -1
    n = stab(
        A,
        root,
        prefix,
        arity,
        shifted(room, points),
        1,
        shifted(room, state),
        shifted(room, rows),
        shifted(room, which),
        capacity,
    )
    return n if room[state + POINT] == 1 else -1


@helper
def put_contribution(A, shape, tables, at, room, row, m):
    """One contribution of a watch, from the row and from a row of its note."""
    depth, wild, width = tables[at + W_DEPTH], tables[at + W_WILD], shape[WIDTH]
    to = shape[FOUND] + m * (width + 3)
    room[to] = depth
    last = np.int64(LEAST)
    for d in range(width):
        value = np.int64(LEAST)
        if d < depth and (wild >> d) & 1 == 0:
            source = tables[at + WATCH + d]
            value = A[ROW + source] if source < OTHERS else room[row + source - OTHERS]
        room[to + 1 + d] = value
        if d == depth - 1:
            last = value
    if tables[at + W_ENDS] == INTERVAL:
        interval = row + tables[shape[NOTES] + tables[at + W_NOTE] * NOTE + N_PREFIX]
        room[to + depth] = room[interval]
        last = room[interval + 1]
    room[to + 1 + width] = last
    room[to + 2 + width] = wild


@helper
def widen(A, shape, tables, available, room, w, m):
    """Widen contribution m by the intervals of other participants that hold its key; False if too many."""
    width, capacity, work = shape[WIDTH], shape[CAPACITY], shape[WORK]
    to = shape[FOUND] + m * (width + 3)
    last = to + 1 + width
    key = room[last]
    for i in range(shape[N_WIDE]):
        at = shape[WIDE] + i * shape[WIDE_WORDS]
        if tables[at] != w:
            continue
        note = shape[NOTES] + tables[at + 1] * NOTE
        k = tables[note + N_ARITY]
        for c in range(k - 2):
            source = tables[at + WIDER_WORDS + 2 * c + 1]
            room[work + c] = source if tables[at + WIDER_WORDS + 2 * c] == 1 else room[to + 1 + source]
        room[work + k - 2] = key
        room[work + k - 1] = key
        rows = work + k
        which = rows + capacity * k
        root = available[tables[note + N_ROOT] + 1]
        places = shifted(room, which + capacity)
        n = find_overlapping(
            A,
            root,
            k - 2,
            shifted(room, work),
            1,
            shifted(room, rows),
            shifted(room, which),
            places,
            capacity,
            False,
        )
        if n > capacity:
            return False
        for j in range(n):
            a, b = room[rows + j * k + k - 2], room[rows + j * k + k - 1]
            if a <= key <= b:
                room[to + room[to]] = min(room[to + room[to]], a)
                room[last] = max(room[last], b)
    return True
