"""Owns the trees of ordered maps inside kernels: entries that come, change and go, and whole trees.

Correct output: the leaves have the live entries of the map, sorted, with their values; every item of another
node has the sum of the values below it.  Sums of integers change by what their entries change by; sums of
floats are computed again from the items of the node below, so that nothing stays of what was removed.

See `layout` for the words; `orders` allocates pages.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.runtime.layout import (
    EMPTY,
    INT,
    M_APPLIED,
    M_BASE,
    M_LOG,
    M_LOG_SIZE,
    M_LOGGED,
    M_ORDER,
    M_ORDERS,
    M_VALUES,
    M_WORDS,
    NODE_COUNT,
    NODE_ITEMS,
    NODE_NEXT,
    T_ENTRIES,
    T_HEIGHT,
    T_INNER,
    T_KEY,
    T_KEYS,
    T_KINDS,
    T_LEAF,
    T_PARTS,
    T_PATH,
    T_PLACES,
    T_ROOT,
    T_SPARE,
    T_VALUES,
    T_WORDS,
)
from dlog.m3.runtime.maps.apart_kernels import value_at
from dlog.m3.runtime.maps.order_node_kernels import (
    add_wide,
    begin_sum,
    child_at,
    child_of_key,
    first_above,
    forget_sums,
    free_page,
    item_words,
    move_to,
    move_up,
    set_sums,
    take_page,
)
from dlog.m3.runtime.maps.order_shape_kernels import begin_child, fewest_items, make_room, refill

# ---- the log


@helper
def note(arena, maps, m, slot):
    """The value of a slot changes, or will do so before the map is read by range."""
    n = maps[m + M_LOGGED]
    if n < 0:
        return
    if n == maps[m + M_LOG_SIZE]:
        maps[m + M_LOGGED] = -1
    else:
        arena[maps[m + M_LOG] + n] = slot
        maps[m + M_LOGGED] = n + 1


@helper
def apply_log(arena, maps, m):
    """Bring all trees of a map up to date.  False: pages are missing; call it again when there are some.

    REQUIRES: valid trees.  O(log n) for each change.
    """
    trees = maps[m + M_ORDER]
    end = trees + maps[m + M_ORDERS] * T_WORDS
    i, n, log = maps[m + M_APPLIED], maps[m + M_LOGGED], maps[m + M_LOG]
    while i < n:
        for t in range(trees, end, T_WORDS):
            if lacks_pages(maps, t):
                maps[m + M_APPLIED] = i
                return False
        for t in range(trees, end, T_WORDS):
            put(arena, maps, m, t, arena[log + i])
        i += 1
    maps[m + M_APPLIED], maps[m + M_LOGGED] = 0, 0
    return True


@helper
def lacks_pages(maps, t):
    """Whether the next change of a tree may need more pages than are free."""
    return maps[t + T_SPARE] < maps[t + T_HEIGHT] + 2


# ---- one entry


@helper
def put(arena, maps, m, t, slot):
    """The entry of a slot as it is now: comes, changes or goes.  REQUIRES: pages.  O(log n)."""
    at = maps[m + M_BASE] + slot * maps[m + M_WORDS]
    if arena[at] == EMPTY:
        return
    key, places, keys = t + T_KEY, maps[t + T_PLACES], maps[t + T_KEYS]
    for j in range(keys):
        maps[key + j] = arena[at + maps[places + j]]
    value = value_at(arena, maps, m, at)
    is_live = False
    for v in range(maps[m + M_VALUES]):
        is_live |= arena[value + v] != 0
    leaf = descend(arena, maps, t)
    words = item_words(maps, t, 0)
    i = first_above(arena, maps, t, leaf, words, np.int64(0))
    if i > 0 and is_key(arena, maps, t, leaf + NODE_ITEMS + (i - 1) * words):
        i -= 1
        if is_live:
            write_entry(arena, maps, t, leaf + NODE_ITEMS + i * words + keys, value, False)
        else:
            remove(arena, maps, t, leaf, i, words)
        return
    if not is_live:
        return
    if arena[leaf + NODE_COUNT] == maps[t + T_LEAF]:
        make_room(arena, maps, t)
        leaf = descend(arena, maps, t)
        i = first_above(arena, maps, t, leaf, words, np.int64(0))
    item = leaf + NODE_ITEMS + i * words
    move_up(arena, item, (arena[leaf + NODE_COUNT] - i) * words, words)
    arena[leaf + NODE_COUNT] += 1
    maps[t + T_ENTRIES] += 1
    for j in range(keys):
        arena[item + j] = maps[key + j]
    write_entry(arena, maps, t, item + keys, value, True)


@helper
def is_key(arena, maps, t, at):
    j = 0
    while j < maps[t + T_KEYS] and arena[at + j] == maps[t + T_KEY + j]:
        j += 1
    return j == maps[t + T_KEYS]


@helper
def descend(arena, maps, t):
    """The leaf of the key that is searched; nodes and items on the way are the tree's path."""
    node = maps[t + T_ROOT]
    for level in range(maps[t + T_HEIGHT], 0, -1):
        i = child_of_key(arena, maps, t, node)
        maps[t + T_PATH + 2 * level] = node
        maps[t + T_PATH + 2 * level + 1] = i
        node = child_at(arena, maps, t, node, i)
    return node


@helper
def write_entry(arena, maps, t, at, value, is_new):
    """The value of an entry, and the sums above it."""
    floats = False
    for part in range(maps[t + T_PARTS]):
        kinds = maps[t + T_KINDS] + 2 * part
        w = maps[kinds + 1]
        if maps[kinds] == INT:
            change_sums(arena, maps, t, part, np.int64(0) if is_new else arena[at + w], arena[value + w])
        else:
            floats = True
    for w in range(maps[t + T_VALUES]):
        arena[at + w] = arena[value + w]
    if floats:
        sum_again(arena, maps, t)


@helper
def change_sums(arena, maps, t, part, before, after):
    """Add the difference of two integers to the sums along the path."""
    if before == after:
        return
    high, low = add_wide(~(before >> 63), ~before, np.int64(0), np.int64(1))  # -before
    high, low = add_wide(high, low, after >> 63, after)
    words, first = item_words(maps, t, 1), maps[t + T_KEYS] + 1 + 2 * part
    for level in range(maps[t + T_HEIGHT], 0, -1):
        path = t + T_PATH + 2 * level
        at = maps[path] + NODE_ITEMS + maps[path + 1] * words + first
        arena[at], arena[at + 1] = add_wide(arena[at], arena[at + 1], high, low)


@helper
def sum_again(arena, maps, t):
    """All sums along the path, from the leaf up."""
    for level in range(1, maps[t + T_HEIGHT] + 1):
        set_sums(arena, maps, t, maps[t + T_PATH + 2 * level], maps[t + T_PATH + 2 * level + 1], level)


@helper
def remove(arena, maps, t, leaf, i, words):
    item, keys = leaf + NODE_ITEMS + i * words, maps[t + T_KEYS]
    floats = False
    for part in range(maps[t + T_PARTS]):
        kinds = maps[t + T_KINDS] + 2 * part
        if maps[kinds] == INT:
            change_sums(arena, maps, t, part, arena[item + keys + maps[kinds + 1]], np.int64(0))
        else:
            floats = True
    arena[leaf + NODE_COUNT] -= 1
    maps[t + T_ENTRIES] -= 1
    move_to(arena, item, item + words, (arena[leaf + NODE_COUNT] - i) * words)
    if floats:
        sum_again(arena, maps, t)
    if arena[leaf + NODE_COUNT] < fewest_items(maps[t + T_LEAF]) and maps[t + T_HEIGHT] > 0:
        refill(arena, maps, t)
        if floats:
            descend(arena, maps, t)
            sum_again(arena, maps, t)


# ---- whole trees


@helper
def empty_trees(arena, maps, m):
    """No entries, if the trees are valid.  O(pages)."""
    if maps[m + M_LOGGED] < 0:
        return
    maps[m + M_APPLIED], maps[m + M_LOGGED] = 0, 0
    trees = maps[m + M_ORDER]
    for t in range(trees, trees + maps[m + M_ORDERS] * T_WORDS, T_WORDS):
        empty_tree(arena, maps, t)


@helper
def empty_tree(arena, maps, t):
    forget_sums(arena, maps, t)
    first = maps[t + T_ROOT]
    for level in range(maps[t + T_HEIGHT], -1, -1):
        node, below = first, np.int64(0)
        if level > 0:
            below = child_at(arena, maps, t, first, np.int64(0))
        while node != 0:
            following = arena[node + NODE_NEXT]
            free_page(arena, maps, t, node)
            node = following
        first = below
    maps[t + T_ROOT], maps[t + T_HEIGHT], maps[t + T_ENTRIES] = take_page(arena, maps, t), 0, 0


@kernel
def add_pages(arena_words: Words, map_words: Words, t: int, base: int, n: int, words: int) -> None:
    """Make pages, one after the other from a place on, available."""
    arena, maps = pointer(arena_words), pointer(map_words)
    for i in range(n - 1, -1, -1):
        free_page(arena, maps, t, base + i * words)


@kernel
def build_tree(arena_words: Words, map_words: Words, t: int, entries: Words, n: int, fill: int) -> None:
    """A tree of n sorted entries, keys and value words one after the other, in `fill` / 8 full nodes.

    REQUIRES: enough free pages.  O(n).
    """
    arena, maps, given = pointer(arena_words), pointer(map_words), pointer(entries)
    words, keys = item_words(maps, t, 0), maps[t + T_KEYS]
    most = max(maps[t + T_LEAF] * fill // 8, np.int64(1))
    nodes = max((n + most - 1) // most, np.int64(1))
    first, last = np.int64(0), np.int64(0)
    for k in range(nodes):
        node = take_page(arena, maps, t)
        start, end = n * k // nodes, n * (k + 1) // nodes
        for w in range((end - start) * words):
            arena[node + NODE_ITEMS + w] = given[start * words + w]
        arena[node + NODE_COUNT] = end - start
        if k == 0:
            first = node
        else:
            arena[last + NODE_NEXT] = node
        last = node
    level = 0
    while nodes > 1:
        level += 1
        most = max(maps[t + T_INNER] * fill // 8, np.int64(2))
        below, child, words = nodes, first, item_words(maps, t, level)
        nodes = (below + most - 1) // most
        for k in range(nodes):
            node = take_page(arena, maps, t)
            count = below * (k + 1) // nodes - below * k // nodes
            arena[node + NODE_COUNT] = count
            for i in range(count):
                arena[node + NODE_ITEMS + i * words + keys] = child
                begin_sum(arena, maps, t, node + NODE_ITEMS + i * words)
                begin_child(arena, maps, t, node, np.int64(i), level)
                child = arena[child + NODE_NEXT]
            if k == 0:
                first = node
            else:
                arena[last + NODE_NEXT] = node
            last = node
    maps[t + T_ROOT], maps[t + T_HEIGHT], maps[t + T_ENTRIES] = first, level, n


@kernel
def free_sums(arena_words: Words, map_words: Words, t: int) -> None:
    """Before a tree is dropped: what its exact sums have outside of it can be used again."""
    forget_sums(pointer(arena_words), pointer(map_words), t)


@kernel
def apply_changes(arena_words: Words, map_words: Words, m: int) -> bool:
    """`apply_log` for Python."""
    return apply_log(pointer(arena_words), pointer(map_words), m)
