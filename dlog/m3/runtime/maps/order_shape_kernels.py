"""Owns the shape of the trees of ordered maps: nodes that are full or have few items.

A node that is full shares items with one beside it, if that has room, before it is split: so nodes are well
filled, also those of keys that only grow.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper
from dlog.m3.runtime.layout import (
    NODE_COUNT,
    NODE_ITEMS,
    NODE_NEXT,
    T_HEIGHT,
    T_KEYS,
    T_ROOT,
)
from dlog.m3.runtime.maps.order_node_kernels import (
    begin_sum,
    child_at,
    child_of_key,
    forget_sum,
    free_page,
    has_exact,
    item_words,
    most_items,
    move_to,
    move_up,
    set_sums,
    take_page,
)


@helper
def fewest_items(most):
    """Of a node with one beside it."""
    return max(np.int64(1), most * 2 // 5)


@helper
def make_room(arena, maps, t):
    """Split, or empty a little, every full node on the way to the key that is searched."""
    root, height = maps[t + T_ROOT], maps[t + T_HEIGHT]
    if arena[root + NODE_COUNT] == most_items(maps, t, height):
        node = take_page(arena, maps, t)
        arena[node + NODE_COUNT] = 1
        move_to(arena, node + NODE_ITEMS, root + NODE_ITEMS, maps[t + T_KEYS])
        arena[node + NODE_ITEMS + maps[t + T_KEYS]] = root
        begin_sum(arena, maps, t, node + NODE_ITEMS)
        maps[t + T_ROOT] = node
        height += 1
        maps[t + T_HEIGHT] = height
        set_sums(arena, maps, t, node, np.int64(0), height)
    node = maps[t + T_ROOT]
    for level in range(height, 0, -1):
        i = child_of_key(arena, maps, t, node)
        child, most = child_at(arena, maps, t, node, i), most_items(maps, t, level - 1)
        if arena[child + NODE_COUNT] == most:
            n = arena[node + NODE_COUNT]
            if i + 1 < n and has_room(arena, child_at(arena, maps, t, node, i + 1), most):
                share(arena, maps, t, node, i, level)
            elif i > 0 and has_room(arena, child_at(arena, maps, t, node, i - 1), most):
                share(arena, maps, t, node, i - 1, level)
            else:
                split(arena, maps, t, node, i, level)
            i = child_of_key(arena, maps, t, node)
        node = child_at(arena, maps, t, node, i)


@helper
def has_room(arena, node, most):
    return arena[node + NODE_COUNT] < most * 7 // 8


@helper
def refill(arena, maps, t):
    """Fill up, or merge, every node with few items on the way to the key that is searched."""
    node = maps[t + T_ROOT]
    for level in range(maps[t + T_HEIGHT], 0, -1):
        i = child_of_key(arena, maps, t, node)
        count, most = arena[child_at(arena, maps, t, node, i) + NODE_COUNT], most_items(maps, t, level - 1)
        few = fewest_items(most)
        if arena[node + NODE_COUNT] > 1 and (count < few or (count == few and level > 1)):
            left = i if i + 1 < arena[node + NODE_COUNT] else i - 1
            other = child_at(arena, maps, t, node, left + 1 if left == i else left)
            if count + arena[other + NODE_COUNT] <= most * 15 // 16:
                merge(arena, maps, t, node, left, level)
            else:
                share(arena, maps, t, node, left, level)
            i = child_of_key(arena, maps, t, node)
        node = child_at(arena, maps, t, node, i)
    while maps[t + T_HEIGHT] > 0 and arena[maps[t + T_ROOT] + NODE_COUNT] == 1:
        root = maps[t + T_ROOT]
        if has_exact(maps, t):
            forget_sum(arena, maps, t, root + NODE_ITEMS + maps[t + T_KEYS] + 1)
        maps[t + T_ROOT] = child_at(arena, maps, t, root, np.int64(0))
        maps[t + T_HEIGHT] -= 1
        free_page(arena, maps, t, root)


@helper
def share(arena, maps, t, node, i, level):
    """Divide the items of a child and the one after it evenly."""
    left, right = child_at(arena, maps, t, node, i), child_at(arena, maps, t, node, i + 1)
    words = item_words(maps, t, level - 1)
    n, more = arena[left + NODE_COUNT], arena[right + NODE_COUNT]
    wanted = (n + more + 1) >> 1
    if wanted > n:
        moved = wanted - n
        move_to(arena, left + NODE_ITEMS + n * words, right + NODE_ITEMS, moved * words)
        move_to(arena, right + NODE_ITEMS, right + NODE_ITEMS + moved * words, (more - moved) * words)
    else:
        moved = n - wanted
        move_up(arena, right + NODE_ITEMS, more * words, moved * words)
        move_to(arena, right + NODE_ITEMS, left + NODE_ITEMS + wanted * words, moved * words)
    arena[left + NODE_COUNT] = wanted
    arena[right + NODE_COUNT] = n + more - wanted
    begin_child(arena, maps, t, node, i + 1, level)
    set_sums(arena, maps, t, node, i, level)


@helper
def split(arena, maps, t, node, i, level):
    """Move half of a child's items to a new one after it.  REQUIRES: room in the node for one more."""
    left, right = child_at(arena, maps, t, node, i), take_page(arena, maps, t)
    words, above = item_words(maps, t, level - 1), item_words(maps, t, level)
    n = arena[left + NODE_COUNT]
    wanted = (n + 1) >> 1
    move_to(arena, right + NODE_ITEMS, left + NODE_ITEMS + wanted * words, (n - wanted) * words)
    arena[left + NODE_COUNT] = wanted
    arena[right + NODE_COUNT] = n - wanted
    arena[right + NODE_NEXT] = arena[left + NODE_NEXT]
    arena[left + NODE_NEXT] = right
    item = node + NODE_ITEMS + (i + 1) * above
    move_up(arena, item, (arena[node + NODE_COUNT] - i - 1) * above, above)
    arena[node + NODE_COUNT] += 1
    arena[item + maps[t + T_KEYS]] = right
    begin_sum(arena, maps, t, item)
    begin_child(arena, maps, t, node, i + 1, level)
    set_sums(arena, maps, t, node, i, level)


@helper
def merge(arena, maps, t, node, i, level):
    """Move all items of the child after one to that one."""
    left, right = child_at(arena, maps, t, node, i), child_at(arena, maps, t, node, i + 1)
    words, above = item_words(maps, t, level - 1), item_words(maps, t, level)
    n, more = arena[left + NODE_COUNT], arena[right + NODE_COUNT]
    move_to(arena, left + NODE_ITEMS + n * words, right + NODE_ITEMS, more * words)
    arena[left + NODE_COUNT] = n + more
    arena[left + NODE_NEXT] = arena[right + NODE_NEXT]
    free_page(arena, maps, t, right)
    item = node + NODE_ITEMS + (i + 1) * above
    if has_exact(maps, t):
        forget_sum(arena, maps, t, item + maps[t + T_KEYS] + 1)
    move_to(arena, item, item + above, (arena[node + NODE_COUNT] - i - 2) * above)
    arena[node + NODE_COUNT] -= 1
    set_sums(arena, maps, t, node, i, level)


@helper
def begin_child(arena, maps, t, node, i, level):
    """The keys and sums of a child of a node whose first item changed."""
    item = node + NODE_ITEMS + i * item_words(maps, t, level)
    child = arena[item + maps[t + T_KEYS]]
    move_to(arena, item, child + NODE_ITEMS, maps[t + T_KEYS])
    set_sums(arena, maps, t, node, i, level)
