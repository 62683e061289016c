"""Owns the trees of ordered maps inside kernels: nodes, entries that come, change and go, sums on the way.

Correct output: the leaves have the live entries of the map, sorted, with their values; every item of another
node has the sum of the values below it.  Sums of integers change by what their entries change by; sums of
floats are computed again from the items of the node below, so that nothing stays of what was removed.

A node that is full shares items with one beside it, if that has room, before it is split: so nodes are well
filled, also those of keys that only grow.  See `layout` for the words; `orders` allocates pages.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.lftj.primitives import add
from dlog.m3.rings.kernels import sum_of_doubled
from dlog.m3.runtime.layout import (
    DOUBLED,
    EMPTY,
    EXACT_WORDS,
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
    NOT_COMPUTED,
    T_ENTRIES,
    T_FREE,
    T_HEIGHT,
    T_INNER,
    T_KEY,
    T_KEYS,
    T_KINDS,
    T_LEAF,
    T_MAP,
    T_PARTS,
    T_PATH,
    T_PLACES,
    T_ROOT,
    T_SPARE,
    T_SUM,
    T_VALUES,
    T_WORDS,
)
from dlog.m3.runtime.maps.apart_kernels import value_at
from dlog.m3.runtime.maps.exact_kernels import free_wide

LOWEST = np.int64(-(2**63))


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


# ---- nodes


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
    end = arena[node + NODE_COUNT]
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
        mend(arena, maps, t)
        if floats:
            descend(arena, maps, t)
            sum_again(arena, maps, t)


# ---- the shape of a tree


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
def mend(arena, maps, t):
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
