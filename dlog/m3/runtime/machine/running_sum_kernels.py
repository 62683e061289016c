"""Owns running sums: sums over ranges for many rows, in the order of their bounds, in one pass.

Correct output: what a descent for each row gives.  Only integers: what is before one bound is subtracted from
what is before the other one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import helper
from dlog.m3.runtime.layout import (
    ALL_AFTER,
    BOUND_WORDS,
    CHUNK,
    EMPTY,
    KEY_AS_FLOAT,
    KEY_ITSELF,
    NO_BOUND,
    NODE_COUNT,
    NODE_ITEMS,
    NODE_NEXT,
    OVERFLOW,
    T_ENTRIES,
    T_HEIGHT,
    T_KEYS,
    T_KINDS,
    T_ROOT,
)
from dlog.m3.runtime.machine.range_bound_kernels import (
    is_before,
)
from dlog.m3.runtime.maps.order_node_kernels import (
    add_wide,
    child_at,
    item_words,
)

FEWEST_ROWS: Final = 8  # that are worth to be sorted by their bounds
ENTRIES_A_ROW: Final = 32  # at most, for one pass over all of them


@helper
def is_worth_order(maps, t, rows, code, lower, upper):
    """Whether one pass over all entries is faster than a descent for each row, and one order of rows is that
    of both bounds: there is one bound, which is a key, or both are the same one.
    """
    is_high = maps[t + T_HEIGHT] > 0
    if rows < FEWEST_ROWS or not is_high or maps[t + T_ENTRIES] > rows * ENTRIES_A_ROW:
        return False
    if code[lower + BOUND_WORDS] != NO_BOUND or code[upper + BOUND_WORDS] != NO_BOUND:
        return False
    one, other = code[lower], code[upper]
    if one < 0 or other < 0:
        bound = max(one, other)
        return bound >= 0 and (bound >> 3 == KEY_ITSELF or bound >> 3 == KEY_AS_FLOAT)
    same = code[lower + 1] == code[upper + 1]
    is_key = one >> 3 == other >> 3 and (one >> 3 == KEY_ITSELF or one >> 3 == KEY_AS_FLOAT)
    return same and is_key and one & 1 <= other & 1  # else the upper one may be before the lower one


@helper
def is_row_after(cols, i, j, code, bound, keys, n):
    """Whether the bound of row i is after that of row j."""
    for k in range(n):
        one, other = cols[code[keys + k] + i], cols[code[keys + k] + j]
        if one != other:
            return one > other
    return code[bound] >= 0 and cols[code[bound + 1] + i] > cols[code[bound + 1] + j]


@helper
def sort_rows(state, work, cols, rows, code, lower, upper, keys, n):
    """The rows by one of their bounds: by the lower one, if there is one.  O(rows log rows).

    They are in the first CHUNK words of the work memory.
    """
    bound = lower if code[lower] >= 0 else upper
    is_sorted = True
    for i in range(rows):
        state[work + i] = i
        if i > 0 and is_sorted and is_row_after(cols, i - 1, i, code, bound, keys, n):
            is_sorted = False
    source, target, width = work, work + CHUNK, 1
    while width < rows and not is_sorted:
        for start in range(0, rows, 2 * width):
            middle, end = min(start + width, rows), min(start + 2 * width, rows)
            i, j = start, middle
            for k in range(start, end):
                if j == end or (
                    i < middle
                    and not is_row_after(cols, state[source + i], state[source + j], code, bound, keys, n)
                ):
                    state[target + k] = state[source + i]
                    i += 1
                else:
                    state[target + k] = state[source + j]
                    j += 1
        source, target, width = target, source, 2 * width
    if source != work:
        for i in range(rows):
            state[work + i] = state[source + i]


@helper
def running_sums(arena, maps, t, part, state, work, cols, rows, code, lower, keys, n, out, pc):
    """Sums of integers for all rows: what is before the upper bound, less what is before the lower one.

    Each of them in one pass over the leaves.  O(entries + rows).
    """
    upper, highs = lower + 2 * BOUND_WORDS, work + CHUNK
    for i in range(rows):
        state[highs + i], cols[out + i] = 0, 0
    sum_before(arena, maps, t, part, state, work, cols, rows, code, lower, keys, n, out)
    for i in range(rows):  # negative
        high, low = add_wide(~state[highs + i], ~cols[out + i], np.int64(0), np.int64(1))
        state[highs + i], cols[out + i] = high, low
    sum_before(arena, maps, t, part, state, work, cols, rows, code, upper, keys, n, out)
    for i in range(rows):
        low = cols[out + i]
        if state[highs + i] != low >> 63 or low == EMPTY:
            state[OVERFLOW] = pc + 1


@helper
def sum_before(arena, maps, t, part, state, work, cols, rows, code, bound, keys, n, out):
    """Add to each row what is before a bound."""
    if n == 0 and code[bound] == ALL_AFTER:
        return
    words, first_leaf = item_words(maps, t, 0), maps[t + T_ROOT]
    for _ in range(maps[t + T_HEIGHT]):
        first_leaf = child_at(arena, maps, t, first_leaf, np.int64(0))
    word = maps[t + T_KEYS] + maps[maps[t + T_KINDS] + 2 * part + 1]
    leaf, item, high, low = first_leaf, np.int64(0), np.int64(0), np.int64(0)
    for k in range(rows):
        i = state[work + k]
        while True:
            if item == arena[leaf + NODE_COUNT]:
                if arena[leaf + NODE_NEXT] == 0:
                    break
                leaf, item = arena[leaf + NODE_NEXT], np.int64(0)
                continue
            at = leaf + NODE_ITEMS + item * words
            if not is_before(arena, at, cols, i, code, bound, keys, n):
                break
            high, low = add_wide(high, low, arena[at + word] >> 63, arena[at + word])
            item += 1
        at = work + CHUNK + i
        state[at], cols[out + i] = add_wide(state[at], cols[out + i], high, low)
