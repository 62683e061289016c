"""Owns the nodes of the trees of ordered maps: pages, items, searching in a node, and sums of items.

A sum is an integer of 128 bits or a doubled float; or an exact one, which is computed when it is read, and
here only forgotten.  See `layout` for the words.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import choose, helper
from dlog.lftj.primitives import add
from dlog.m3.rings.kernels import sum_of_doubled
from dlog.m3.runtime.layout import (
    DOUBLED,
    EXACT_WORDS,
    INT,
    NODE_COUNT,
    NODE_ITEMS,
    NODE_NEXT,
    NOT_COMPUTED,
    T_FREE,
    T_HEIGHT,
    T_INNER,
    T_KEY,
    T_KEYS,
    T_KINDS,
    T_LEAF,
    T_MAP,
    T_PARTS,
    T_ROOT,
    T_SPARE,
    T_SUM,
    T_VALUES,
)
from dlog.m3.runtime.maps.exact_kernels import free_wide

LOWEST = np.int64(-(2**63))
HIGHEST = np.int64(2**63 - 1)


@helper
def take_page(arena, maps, t):
    page = maps[t + T_FREE]
    maps[t + T_FREE] = arena[page + NODE_NEXT]
    maps[t + T_SPARE] -= 1
    arena[page + NODE_COUNT] = 0
    arena[page + NODE_NEXT] = 0
    return page


@helper
def free_page(arena, maps, t, page):
    arena[page + NODE_NEXT] = maps[t + T_FREE]
    maps[t + T_FREE] = page
    maps[t + T_SPARE] += 1


@helper
def item_words(maps, t, level):
    if level == 0:
        return maps[t + T_KEYS] + maps[t + T_VALUES]
    return maps[t + T_KEYS] + 1 + maps[t + T_SUM] * maps[t + T_PARTS]


@helper
def most_items(maps, t, level):
    return maps[t + T_LEAF] if level == 0 else maps[t + T_INNER]


@helper
def child_at(arena, maps, t, node, i):
    return arena[node + NODE_ITEMS + i * item_words(maps, t, 1) + maps[t + T_KEYS]]


@helper
def move_up(arena, start, n, by):
    """Move n words to higher places."""
    for w in range(n - 1, -1, -1):
        arena[start + by + w] = arena[start + w]


@helper
def move_to(arena, to, start, n):
    """Move n words to lower places, or to other ones."""
    for w in range(n):
        arena[to + w] = arena[start + w]


@helper
def items_below(arena, at, count, words, n, prefix, word):
    """How many of some sorted items are below a word, or below two: prefix, word.  O(log count).

    `n` is 0 for one word, 1 for two.  Without branches, which would be unpredictable.
    """
    found = np.int64(0)
    if count <= 0:
        return found
    while count > 1:
        half = count >> 1
        is_below = is_item_below(arena, at + (half - 1) * words, n, prefix, word)
        at = choose(is_below, at + half * words, at)
        found = choose(is_below, found + half, found)
        count -= half
    return choose(is_item_below(arena, at, n, prefix, word), found + 1, found)


@helper
def is_item_below(arena, at, n, prefix, word):
    is_below = arena[at + n] < word
    if n == 0:
        return is_below
    return (arena[at] < prefix) | ((arena[at] == prefix) & is_below)


@helper
def is_above(arena, maps, t, at):
    """Whether the keys at a place are above the one that is searched."""
    key = t + T_KEY
    for j in range(maps[t + T_KEYS]):
        if arena[at + j] != maps[key + j]:
            return arena[at + j] > maps[key + j]
    return False


@helper
def first_above(arena, maps, t, node, words, first):
    """The first item, from one on, whose keys are above the key that is searched.  O(log items)."""
    end, n = arena[node + NODE_COUNT], maps[t + T_KEYS] - 1
    last = maps[t + T_KEY + n]
    if n <= 1 and last < HIGHEST:
        at = node + NODE_ITEMS + first * words
        return first + items_below(arena, at, end - first, words, n, maps[t + T_KEY], last + 1)
    while first < end:
        middle = (first + end) >> 1
        if is_above(arena, maps, t, node + NODE_ITEMS + middle * words):
            end = middle
        else:
            first = middle + 1
    return first


@helper
def child_of_key(arena, maps, t, node):
    """Which child has the key that is searched, or would have it."""
    return first_above(arena, maps, t, node, item_words(maps, t, 1), np.int64(1)) - 1


# ---- sums: an integer of 128 bits, or a doubled float


@helper
def add_wide(high, low, more_high, more_low):
    total = add(low, more_low)
    carry = 1 if (total ^ LOWEST) < (low ^ LOWEST) else 0
    return add(add(high, more_high), np.int64(carry)), total


@helper
def as_float(word):
    return np.int64(word).view(np.float64)


@helper
def as_bits(value):
    return np.float64(value).view(np.int64)


@helper
def add_doubled(high, low, more_high, more_low):
    high, low = sum_of_doubled(as_float(high), as_float(low), as_float(more_high), as_float(more_low))
    return as_bits(high), as_bits(low)


@helper
def sum_items(arena, maps, t, part, level, node, first, end, high, low):
    """Two words of a sum, and those of some items of a node.  O(items)."""
    kinds, keys, words = maps[t + T_KINDS] + 2 * part, maps[t + T_KEYS], item_words(maps, t, level)
    kind = maps[kinds]
    start, stop = node + NODE_ITEMS + first * words, node + NODE_ITEMS + end * words
    if level > 0:
        for at in range(start + keys + 1 + 2 * part, stop, words):
            if kind == INT:
                high, low = add_wide(high, low, arena[at], arena[at + 1])
            else:
                high, low = add_doubled(high, low, arena[at], arena[at + 1])
        return high, low
    for at in range(start + keys + maps[kinds + 1], stop, words):
        word = arena[at]
        if kind == INT:
            high, low = add_wide(high, low, word >> 63, word)
        else:
            high, low = add_doubled(high, low, word, arena[at + 1] if kind == DOUBLED else np.int64(0))
    return high, low


@helper
def set_sums(arena, maps, t, node, i, level):
    """The sums of a child of a node, which is at a level, from the child's items."""
    at = node + NODE_ITEMS + i * item_words(maps, t, level) + maps[t + T_KEYS]
    if has_exact(maps, t):
        forget_sum(arena, maps, t, at + 1)
        return
    child = arena[at]
    for part in range(maps[t + T_PARTS]):
        high, low = sum_items(
            arena, maps, t, part, level - 1, child, np.int64(0), arena[child + NODE_COUNT], np.int64(0),
            np.int64(0),
        )  # fmt: skip
        arena[at + 1 + 2 * part] = high
        arena[at + 2 + 2 * part] = low


@helper
def has_exact(maps, t):
    """Whether the sums of a tree are exact ones, computed when they are read."""
    return maps[t + T_SUM] == EXACT_WORDS


@helper
def forget_sum(arena, maps, t, at):
    """An exact sum at a place is not valid any more."""
    if arena[at] < 0 and arena[at] != NOT_COMPUTED:
        free_wide(arena, maps, maps[t + T_MAP], -arena[at])
    arena[at] = NOT_COMPUTED


@helper
def begin_sum(arena, maps, t, item):
    """The sums of an item in memory of any content."""
    if has_exact(maps, t):
        arena[item + maps[t + T_KEYS] + 1] = NOT_COMPUTED


@helper
def forget_sums(arena, maps, t):
    """All exact sums of a tree.  O(nodes)."""
    first, words = maps[t + T_ROOT], item_words(maps, t, 1)
    for _ in range(maps[t + T_HEIGHT] if has_exact(maps, t) else np.int64(0)):
        node = first
        while node != 0:
            start = node + NODE_ITEMS + maps[t + T_KEYS] + 1
            for at in range(start, start + arena[node + NODE_COUNT] * words, words):
                forget_sum(arena, maps, t, at)
            node = arena[node + NODE_NEXT]
        first = child_at(arena, maps, t, first, np.int64(0))
