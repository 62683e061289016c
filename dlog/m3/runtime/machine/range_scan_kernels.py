"""Owns the entries of a range one after the other: each row to the slots of those in its range."""

from __future__ import annotations

import numpy as np

from dlog.jit import helper, prefetch
from dlog.m3.runtime.layout import (
    BOUND_WORDS,
    CHUNK,
    FLOAT_LESS,
    FLOAT_LESS_INT,
    LESS_KEY,
    M_BASE,
    M_MASK,
    M_ORDER,
    M_SHIFT,
    M_USED,
    M_WORDS,
    NO_BOUND,
    NODE_COUNT,
    NODE_ITEMS,
    NODE_NEXT,
    T_HEIGHT,
    T_KEY,
    T_KEYS,
    T_PLACES,
    T_ROOT,
    T_WORDS,
)
from dlog.m3.runtime.machine.range_bound_kernels import (
    first_of_range,
    is_before,
)
from dlog.m3.runtime.maps.map_kernels import hash_more, hash_one, shifted
from dlog.m3.runtime.maps.order_node_kernels import (
    child_at,
    item_words,
)


@helper
def range_next(arena, maps, code, pc, state, cols):
    """Up to CHUNK pairs of a row and the slot of an entry in its range; 0 at the end.

    The cursor is (row, leaf, item); the leaf is 0 before a row's first.
    """
    a = pc + 2
    rows, m, cursor = state[code[a + 1]], code[a + 2], code[a + 4]
    row_out, slot_out, n = code[a + 5], code[a + 6], code[a + 9]
    if maps[m + M_USED] == 0:
        return np.int64(0)
    lower = a + 10
    keys = lower + 4 * BOUND_WORDS
    t = maps[m + M_ORDER] + code[a + 3] * T_WORDS
    words = item_words(maps, t, 0)
    row, leaf, item = state[cursor], state[cursor + 1], state[cursor + 2]
    out = np.int64(0)
    while row < rows and out < CHUNK:
        begin, end = lower, lower + 2 * BOUND_WORDS
        if code[a + 8] != 0 and is_later(cols, row, code, lower):
            begin, end = end, begin
        if leaf == 0:
            leaf, inner = maps[t + T_ROOT], item_words(maps, t, 1)
            for _ in range(maps[t + T_HEIGHT]):
                first = first_of_range(arena, leaf, inner, np.int64(1), cols, row, code, begin, keys, n)
                leaf = child_at(arena, maps, t, leaf, first - 1)
            item = first_of_range(arena, leaf, words, np.int64(0), cols, row, code, begin, keys, n)
        is_inside = True
        while out < CHUNK:
            if item == arena[leaf + NODE_COUNT]:
                leaf, item = arena[leaf + NODE_NEXT], np.int64(0)
                if leaf == 0:
                    is_inside = False
                    break
                continue
            at = leaf + NODE_ITEMS + item * words
            if not is_before(arena, at, cols, row, code, end, keys, n) or not (
                code[end + BOUND_WORDS] == NO_BOUND
                or is_before(arena, at, cols, row, code, end + BOUND_WORDS, keys, n)
            ):
                is_inside = False
                break
            cols[row_out + out] = row
            cols[slot_out + out] = at
            prefetch(arena, maps[m + M_BASE] + maps[m + M_WORDS] * first_slot(arena, maps, m, t, at))
            out += 1
            item += 1
        if not is_inside:
            row += 1
            leaf = np.int64(0)
    state[cursor], state[cursor + 1], state[cursor + 2] = row, leaf, item
    for i in range(out):
        cols[slot_out + i] = slot_of(arena, maps, m, t, cols[slot_out + i])
    return out


@helper
def is_later(cols, i, code, lower):
    """Of two bounds that differ in the column that they compare with: whether the first is the later one."""
    what = code[lower] >> 3
    falls = what in (LESS_KEY, FLOAT_LESS, FLOAT_LESS_INT)
    one, other = cols[code[lower + 1] + i], cols[code[lower + 2 * BOUND_WORDS + 1] + i]
    return one < other if falls else one > other


@helper
def first_slot(arena, maps, m, t, at):
    """Where the search for the slot of the entry at a place in a leaf begins; its keys, as slots have them,
    are then in the tree's memory for keys.
    """
    keys, key, places = maps[t + T_KEYS], t + T_KEY, maps[t + T_PLACES]
    for j in range(keys):
        maps[key + maps[places + j]] = arena[at + j]
    hash = hash_one(maps[key])
    for j in range(1, keys):
        hash = hash_more(hash, maps[key + j])
    return shifted(hash, maps[m + M_SHIFT])


@helper
def slot_of(arena, maps, m, t, at):
    """The slot of the entry at a place in a leaf.  REQUIRES: it has one."""
    slot = first_slot(arena, maps, m, t, at)
    keys, key = maps[t + T_KEYS], t + T_KEY
    base, words, mask = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK]
    while True:
        j, place = 0, base + slot * words
        while j < keys and arena[place + j] == maps[key + j]:
            j += 1
        if j == keys:
            return slot
        slot = (slot + 1) & mask
