"""Owns sums over a range of one key, and when the trees of a map are brought up to date.

Correct output: what a scan of the map with the same conditions gives.  Sums of integers have 128 bits until
the answer; those of floats are doubled, added in the order of the tree.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import helper
from dlog.m3.runtime.layout import (
    ASKED,
    BOUND_WORDS,
    DOUBLED,
    EMPTY,
    INT,
    M_LOGGED,
    M_ORDER,
    M_USED,
    NODE_COUNT,
    OVERFLOW,
    PAGES,
    RANGE_MERGE,
    RANGE_OPEN,
    RANGE_SUM,
    ROOM,
    T_HEIGHT,
    T_KINDS,
    T_PARTS,
    T_ROOT,
    T_WORDS,
    TREES,
)
from dlog.m3.runtime.machine.arithmetic_kernels import to_bits, to_float
from dlog.m3.runtime.machine.range_bound_kernels import (
    range_items,
)
from dlog.m3.runtime.machine.range_exact_kernels import range_merges
from dlog.m3.runtime.machine.running_sum_kernels import is_worth_order, running_sums, sort_rows
from dlog.m3.runtime.machine.word_range_kernels import word_range, word_range_sum
from dlog.m3.runtime.maps.order_kernels import apply_log
from dlog.m3.runtime.maps.order_node_kernels import child_at, sum_items

RANGE_STEPS: Final = (RANGE_SUM, RANGE_MERGE, RANGE_OPEN)


@helper
def range_step(arena, maps, code, pc, state, cols):
    """An instruction on ranges; False: it needs memory first."""
    a = pc + 2
    if not is_current(arena, maps, code[a + 1], state):
        return False
    if code[pc] == RANGE_SUM:
        range_sums(arena, maps, code, pc, state, cols)
    elif code[pc] == RANGE_MERGE:
        return range_merges(arena, maps, code, pc, state, cols)
    else:
        cursor = code[a + 3]
        state[cursor], state[cursor + 1], state[cursor + 2] = 0, 0, 0
    return True


@helper
def is_current(arena, maps, m, state):
    """Whether a map's trees are up to date; if not, they need memory first, and the state says so."""
    if maps[m + M_LOGGED] == 0:
        return True
    if maps[m + M_LOGGED] < 0 and maps[m + M_USED] == 0:
        return True
    if maps[m + M_LOGGED] < 0:
        state[ASKED], state[ROOM] = m, TREES
        return False
    if not apply_log(arena, maps, m):
        state[ASKED], state[ROOM] = m, PAGES
        return False
    return True


# ---- sums


@helper
def range_sums(arena, maps, code, pc, state, cols):
    """The instruction RANGE_SUM.  REQUIRES: trees that are current, if there are entries."""
    a = pc + 2
    rows, m, n, work = state[code[a]], code[a + 1], code[a + 3], code[a + 4]
    lower, upper = a + 5, a + 5 + 2 * BOUND_WORDS
    keys = upper + 2 * BOUND_WORDS
    t, out = maps[m + M_ORDER] + code[a + 2] * T_WORDS, keys + n
    in_order = maps[m + M_USED] > 0 and is_worth_order(maps, t, rows, code, lower, upper)
    if in_order:
        sort_rows(state, work, cols, rows, code, lower, upper, keys, n)
    for part in range(maps[t + T_PARTS]):
        kind, word = maps[maps[t + T_KINDS] + 2 * part], maps[maps[t + T_KINDS] + 2 * part + 1]
        if in_order and kind == INT:
            running_sums(
                arena, maps, t, part, state, work, cols, rows, code, lower, keys, n, code[out + word], pc
            )
            continue
        for i in range(rows):
            high, low = np.int64(0), np.int64(0)
            if maps[m + M_USED] > 0:
                high, low = range_sum(arena, maps, t, part, cols, i, code, lower, upper, keys, n)
            if kind == INT:
                if high != low >> 63 or low == EMPTY:
                    state[OVERFLOW] = pc + 1
                cols[code[out + word] + i] = low
            elif kind == DOUBLED:
                cols[code[out + word] + i] = high
                cols[code[out + word + 1] + i] = low
            else:
                cols[code[out + word] + i] = to_bits(to_float(high) + to_float(low))


@helper
def range_sum(arena, maps, t, part, cols, i, code, lower, upper, keys, n):
    """The sum of the entries from a lower bound to an upper one, of one part of values.

    Down to where the bounds part, then along each of them: O(items of a node * log n).
    """
    if n <= 1:
        is_word, lowest, highest = word_range(cols, i, code, lower)
        if is_word:
            prefix = cols[code[keys] + i] if n == 1 else np.int64(0)
            return word_range_sum(arena, maps, t, part, n, prefix, lowest, highest)
    high, low = np.int64(0), np.int64(0)
    level, left, right = maps[t + T_HEIGHT], maps[t + T_ROOT], maps[t + T_ROOT]
    while level >= 0:
        first, last, is_one = range_items(
            arena, maps, t, level, left, right, cols, i, code, lower, upper, keys, n
        )
        if is_one:
            if last > first:
                high, low = sum_items(arena, maps, t, part, level, left, first, last, high, low)
            elif level > 0 and last < first - 1:
                break  # the upper bound is before the lower one
        else:
            end = arena[left + NODE_COUNT]
            high, low = sum_items(arena, maps, t, part, level, left, first, end, high, low)
            high, low = sum_items(arena, maps, t, part, level, right, np.int64(0), last, high, low)
        if level > 0:
            left, right = child_at(arena, maps, t, left, first - 1), child_at(arena, maps, t, right, last)
        level -= 1
    return high, low
