"""Owns exact sums over ranges, and those of the inner nodes of trees, which are computed when they are read.

Correct output: as `exact_kernels`.  A sum of a node that was forgotten, since an entry below it changed, is
made again from the items below.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper
from dlog.m3.runtime.layout import (
    ASKED,
    BOUND_WORDS,
    EXACT_WORDS,
    M_BASE,
    M_KEYS,
    M_ORDER,
    M_SPARE,
    M_USED,
    M_WORDS,
    NODE_COUNT,
    NODE_ITEMS,
    NOT_COMPUTED,
    RESUME,
    ROOM,
    T_HEIGHT,
    T_KEYS,
    T_PATH,
    T_ROOT,
    T_WORDS,
    WIDE,
)
from dlog.m3.runtime.machine.exact_kernels import add_sum, is_short
from dlog.m3.runtime.machine.range_bound_kernels import (
    range_items,
)
from dlog.m3.runtime.maps.exact_kernels import make_exact_zero
from dlog.m3.runtime.maps.order_node_kernels import (
    child_at,
    forget_sum,
    item_words,
)


@helper
def range_merges(arena, maps, code, pc, state, cols):
    """The instruction RANGE_MERGE; False: it needs memory first, and continues with the row it was at.

    REQUIRES: trees that are current, if there are entries.
    """
    a = pc + 2
    rows, m, n, to, slots = state[code[a]], code[a + 1], code[a + 3], code[a + 5], code[a + 6]
    lower, upper = a + 7, a + 7 + 2 * BOUND_WORDS
    keys = upper + 2 * BOUND_WORDS
    t = maps[m + M_ORDER] + code[a + 2] * T_WORDS
    for i in range(state[RESUME], rows):
        target = maps[to + M_BASE] + cols[slots + i] * maps[to + M_WORDS] + maps[to + M_KEYS]
        make_exact_zero(arena, maps, to, target)
        if maps[m + M_USED] > 0 and not merge_range(
            arena, maps, m, t, to, target, state, pc, cols, i, code, lower, upper, keys, n
        ):
            state[RESUME] = i
            return False
    state[RESUME] = 0
    return True


@helper
def merge_range(arena, maps, m, t, to, target, state, pc, cols, i, code, lower, upper, keys, n):
    """As `range_sum`, of exact sums, into one at a place.  False: memory is missing."""
    level, left, right = maps[t + T_HEIGHT], maps[t + T_ROOT], maps[t + T_ROOT]
    while level >= 0:
        first, last, is_one = range_items(
            arena, maps, t, level, left, right, cols, i, code, lower, upper, keys, n
        )
        if level > 0 and is_one and last < first - 1:
            break
        end = last if is_one else arena[left + NODE_COUNT]
        if not merge_items(arena, maps, m, t, level, left, first, end, to, target, state, pc):
            return False
        if not is_one and not merge_items(
            arena, maps, m, t, level, right, np.int64(0), last, to, target, state, pc
        ):
            return False
        if level > 0:
            left, right = child_at(arena, maps, t, left, first - 1), child_at(arena, maps, t, right, last)
        level -= 1
    return True


@helper
def merge_items(arena, maps, m, t, level, node, first, end, to, target, state, pc):
    words, start = item_words(maps, t, level), node + NODE_ITEMS + maps[t + T_KEYS]
    for at in range(start + first * words, start + end * words, words):
        source = at + 1 if level > 0 else at
        is_there = level == 0 or arena[source] != NOT_COMPUTED
        if not is_there and not compute_sum(arena, maps, m, t, at, level, state, pc):
            return False
        if is_short(maps, to, state, np.int64(0)):
            return False
        add_sum(arena, maps, to, target, source, np.int64(1), state, pc)
    return True


@helper
def compute_sum(arena, maps, m, t, at, level, state, pc):
    """The exact sum of a child, which is at a place in a node of a level, and those below it that are needed.
    False: memory is missing; what was begun is forgotten.  Amortised O(items of a node) for each change.

    The tree's path has the node that is being added, and its next item, of each level.
    """
    top, lv, path = level - 1, level - 1, t + T_PATH
    keys, inner = maps[t + T_KEYS], item_words(maps, t, 1)
    maps[path + 2 * lv], maps[path + 2 * lv + 1] = arena[at], 0
    make_sum_zero(arena, at + 1)
    while True:
        node, i = maps[path + 2 * lv], maps[path + 2 * lv + 1]
        if i == arena[node + NODE_COUNT]:
            if lv == top:
                return True
            lv += 1
            continue
        source = node + NODE_ITEMS + i * item_words(maps, t, lv) + keys
        if lv > 0:
            source += 1
            if arena[source] == NOT_COMPUTED:
                make_sum_zero(arena, source)
                lv -= 1
                maps[path + 2 * lv], maps[path + 2 * lv + 1] = arena[source - 1], 0
                continue
        if maps[m + M_SPARE] == 0:
            while lv <= top:
                forget_sum(arena, maps, t, sum_place(maps, t, path, lv, top, at, keys, inner))
                lv += 1
            state[ASKED], state[ROOM] = m, WIDE
            return False
        total = sum_place(maps, t, path, lv, top, at, keys, inner)
        add_sum(arena, maps, m, total, source, np.int64(1), state, pc)
        maps[path + 2 * lv + 1] = i + 1


@helper
def sum_place(maps, t, path, lv, top, at, keys, inner):
    """Where the sum of the node that a path has at a level is."""
    if lv == top:
        return at + 1
    return maps[path + 2 * lv + 2] + NODE_ITEMS + maps[path + 2 * lv + 3] * inner + keys + 1


@helper
def make_sum_zero(arena, at):
    for w in range(EXACT_WORDS):
        arena[at + w] = 0
