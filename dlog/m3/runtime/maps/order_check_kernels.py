"""Owns the consistency check of the trees of ordered maps, for `Orders.check`.  Changes nothing."""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.runtime.layout import (
    LEVELS,
    NODE_COUNT,
    NODE_ITEMS,
    NODE_NEXT,
    NOT_COMPUTED,
    T_ENTRIES,
    T_FREE,
    T_HEIGHT,
    T_KEYS,
    T_PARTS,
    T_ROOT,
    T_SPARE,
)
from dlog.m3.runtime.maps.order_node_kernels import child_at, has_exact, item_words, most_items, sum_items


@kernel
def read_tree(arena_words: Words, map_words: Words, t: int, out: Words) -> int:
    """The entries of a tree in order, keys and value words one after the other.  Returns their number."""
    arena, maps = pointer(arena_words), pointer(map_words)
    node, words, n = maps[t + T_ROOT], item_words(maps, t, 0), 0
    for _ in range(maps[t + T_HEIGHT]):
        node = child_at(arena, maps, t, node, np.int64(0))
    while node != 0:
        for w in range(arena[node + NODE_COUNT] * words):
            out[n * words + w] = arena[node + NODE_ITEMS + w]
        n += arena[node + NODE_COUNT]
        node = arena[node + NODE_NEXT]
    return n


@kernel
def check_tree(arena_words: Words, map_words: Words, t: int, pages: int) -> int:
    """0 if a tree is sound, else the number of the rule that it violates.

    1 entries are sorted and distinct, and between the keys of the nodes above; 2 sums are those of the items
    below, to the word (exact ones are not looked at); 3 nodes but the root have enough items, and no more
    than fit; 4 the levels are chained; 5 every page is in use or free, once; 6 entries are counted correctly.
    O(entries).
    """
    arena, maps = pointer(arena_words), pointer(map_words)
    first, used, keys = maps[t + T_ROOT], 0, maps[t + T_KEYS]
    if maps[t + T_HEIGHT] >= LEVELS:
        return 3
    for level in range(maps[t + T_HEIGHT], -1, -1):
        node, words, count, below = first, item_words(maps, t, level), 0, np.int64(0)
        following, before, child = np.int64(0), np.int64(0), np.int64(0)
        if level > 0:
            below = child_at(arena, maps, t, first, np.int64(0))
            following = below
        while node != 0:
            used += 1
            n = arena[node + NODE_COUNT]
            if n > most_items(maps, t, level) or (n < 1 and node != maps[t + T_ROOT]):
                return 3
            if level > 0 and n < 2 and node == maps[t + T_ROOT]:
                return 3
            for i in range(n):
                item = node + NODE_ITEMS + i * words
                if before != 0 and not is_below(arena, before, item, keys) and (level == 0 or i > 1):
                    return 1
                before = item
                if level > 0:
                    if arena[item + keys] != following:
                        return 4
                    if (
                        level == 1
                        and i > 0
                        and not is_below(arena, last_item(arena, maps, t, child), item, keys)
                    ):
                        return 1
                    child = following
                    following = arena[child + NODE_NEXT]
                    broken = check_item(arena, maps, t, item, child, level, node == first and i == 0)
                    if broken != 0:
                        return broken
            count += n
            node = arena[node + NODE_NEXT]
        if level > 0 and following != 0:
            return 4
        if level == 0 and count != maps[t + T_ENTRIES]:
            return 6
        first = below
    free, page = 0, maps[t + T_FREE]
    while page != 0 and free <= pages:
        free += 1
        page = arena[page + NODE_NEXT]
    return 0 if free == maps[t + T_SPARE] and used + free == pages else 5


@helper
def is_below(arena, one, other, keys):
    for j in range(keys):
        if arena[one + j] != arena[other + j]:
            return arena[one + j] < arena[other + j]
    return False


@helper
def last_item(arena, maps, t, leaf):
    return leaf + NODE_ITEMS + (arena[leaf + NODE_COUNT] - 1) * item_words(maps, t, 0)


@helper
def check_item(arena, maps, t, item, child, level, is_first):
    """Of a child: its keys are not above its first ones, its sums are right."""
    keys = maps[t + T_KEYS]
    if not is_first and is_below(arena, child + NODE_ITEMS, item, keys):
        return 1
    for part in range(0 if has_exact(maps, t) else maps[t + T_PARTS]):
        high, low = sum_items(
            arena, maps, t, part, level - 1, child, np.int64(0), arena[child + NODE_COUNT], np.int64(0),
            np.int64(0),
        )  # fmt: skip
        if arena[item + keys + 1 + 2 * part] != high or arena[item + keys + 2 + 2 * part] != low:
            return 2
    return 0


@kernel
def list_wide(arena_words: Words, map_words: Words, t: int, out: Words) -> int:
    """Where the wide ones of a tree's exact sums are.  Returns their number."""
    arena, maps = pointer(arena_words), pointer(map_words)
    first, words, n = maps[t + T_ROOT], item_words(maps, t, 1), 0
    for _ in range(maps[t + T_HEIGHT] if has_exact(maps, t) else np.int64(0)):
        node = first
        while node != 0:
            start = node + NODE_ITEMS + maps[t + T_KEYS] + 1
            for at in range(start, start + arena[node + NODE_COUNT] * words, words):
                if arena[at] < 0 and arena[at] != NOT_COMPUTED:
                    out[n] = -arena[at]
                    n += 1
            node = arena[node + NODE_NEXT]
        first = child_at(arena, maps, t, first, np.int64(0))
    return n
