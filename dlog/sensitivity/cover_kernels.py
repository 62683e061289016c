"""Owns the positions of covers in a sensitivity index by context.  Knows nothing of how its rows are used.

A cover is a row (d columns of context, a, b), row-major, as the rows of the index are.
"""

from __future__ import annotations

from dlog.jit import helper, prefetch
from dlog.storage.arena.arena_kernels import LINE
from dlog.storage.index.ops_kernels import FEW_LEAVES, NOT_SOUGHT, next_leaf
from dlog.storage.index.tree_kernels import count_keys
from dlog.storage.index.trie_kernels import entry_of
from dlog.storage.layout import (
    BASE,
    CAPACITY,
    FANOUT,
    FILL,
    N_ENTRIES,
    N_NODES,
    NODE_FIRST,
    ROOT_HEADER,
    STRIDE,
)


@helper
def find_covers(words, root, d, covers, n, places):
    """Of each cover the leaf and, in it, the row after all that come before (context, last key).

    All covers are sought together, one step after the other: the processor waits for the memory of many at
    once.  Leaves are first sought for covers whose first word differs from the last one's; most of the
    others are in the same leaf or in one of the next few.  O(n d log rows).
    """
    for i in range(n):
        places[2 * i] = 0
        places[2 * i + 1] = NOT_SOUGHT if i > 0 and is_near(covers, i, d) else 0
    find_leaves_of_covers(words, root, d, covers, n, places)
    ordinal, others = 0, 0
    for i in range(n):
        if places[2 * i + 1] != NOT_SOUGHT:
            ordinal = places[2 * i]
            places[2 * i + 1] = NOT_SOUGHT
            continue
        steps = 0
        while steps < FEW_LEAVES and is_beyond(words, root, ordinal, covers, i, d):
            ordinal = next_leaf(words, root, ordinal)
            steps += 1
        places[2 * i] = ordinal
        if steps == FEW_LEAVES:
            places[2 * i + 1] = 0
            others += 1
    if others > 0:
        find_leaves_of_covers(words, root, d, covers, n, places)
    find_rows_of_covers(words, root, d, covers, n, places)


@helper
def is_near(covers, i, d):
    """Whether a cover begins as the one before it does, and comes after it."""
    at, before = i * (d + 2), (i - 1) * (d + 2)
    if d == 0 or covers[at] != covers[before]:
        return False
    for c in range(1, d):
        if covers[at + c] != covers[before + c]:
            return covers[at + c] > covers[before + c]
    return covers[at + d + 1] >= covers[before + d + 1]


@helper
def is_beyond(words, root, ordinal, covers, i, d):
    """Whether a cover belongs to a leaf after this one.  REQUIRES: not to one before it."""
    node = ordinal // FANOUT
    if ordinal % FANOUT + 1 < words[words[root + ROOT_HEADER + node] + N_ENTRIES]:
        return not begins_behind(words, root, ordinal + 1, covers, i, d)
    if node + 1 < words[root + N_NODES]:
        return not begins_behind(words, root, (node + 1) * FANOUT, covers, i, d)
    return False


@helper
def find_leaves_of_covers(words, root, d, covers, n, places):
    """The last leaf that does not begin after a cover, to the first place of each that is sought."""
    find_nodes_of_covers(words, root, d, covers, n, places)
    for i in range(n):
        if places[2 * i + 1] != NOT_SOUGHT:
            first = words[root + ROOT_HEADER + places[2 * i] - 1] + NODE_FIRST
            for x in range(0, FANOUT, LINE):
                prefetch(words, first + x)
    for i in range(n):
        if places[2 * i + 1] == NOT_SOUGHT:
            continue
        start = (places[2 * i] - 1) * FANOUT
        node = words[root + ROOT_HEADER + places[2 * i] - 1]
        first, asked = node + NODE_FIRST, covers[i * (d + 2) + (0 if d > 0 else 1)]
        lo, equal = count_keys(words, first, first + words[node + N_ENTRIES], asked)
        hi = lo + equal
        while lo < hi:  # only leaves that begin with the same key
            middle = (lo + hi) >> 1
            if begins_behind(words, root, start + middle, covers, i, d):
                hi = middle
            else:
                lo = middle + 1
        places[2 * i] = start + max(lo - 1, 0)


@helper
def find_nodes_of_covers(words, root, d, covers, n, places):
    """One more than the last node that does not begin after a cover, to the first place of each that is
    sought."""
    n_nodes = words[root + N_NODES]
    for i in range(n):
        if places[2 * i + 1] != NOT_SOUGHT:
            places[2 * i] = 1
            places[2 * i + 1] = n_nodes
    width = n_nodes - 1
    while width > 0:
        for i in range(n):
            low, high = places[2 * i], places[2 * i + 1]
            if low < high:
                middle = (low + high) >> 1
                first = words[root + ROOT_HEADER + words[root + CAPACITY] + middle]
                asked = covers[i * (d + 2) + (0 if d > 0 else 1)]
                if first > asked or (
                    first == asked and begins_behind(words, root, middle * FANOUT, covers, i, d)
                ):
                    places[2 * i + 1] = middle
                else:
                    places[2 * i] = middle + 1
        width >>= 1


@helper
def find_rows_of_covers(words, root, d, covers, n, places):
    """From the leaf in the first place, the row in it to the second."""
    for i in range(n):
        if i == 0 or places[2 * i] != places[2 * i - 2]:
            entry = entry_of(words, root, places[2 * i])
            for x in range(0, words[entry + FILL], LINE):
                prefetch(words, words[entry + BASE] + x)
    for i in range(n):
        entry = entry_of(words, root, places[2 * i])
        base, stride, fill = words[entry + BASE], words[entry + STRIDE], words[entry + FILL]
        places[2 * i + 1] = row_of_cover(words, base, stride, fill, covers, i, d)
        row = base + places[2 * i + 1]
        for c in range(d + 2):  # the rows around are read next
            prefetch(words, row + c * stride)
            prefetch(words, row + c * stride - LINE)


@helper
def row_of_cover(words, base, stride, fill, covers, i, d):
    """The first row of a leaf that does not come before the context and b of a cover: see `place_of`."""
    at = i * (d + 2)
    lo, hi = 0, fill
    for c in range(d + 1):
        column, asked = base + c * stride, covers[at + c + (1 if c == d else 0)]
        below, equal = count_keys(words, column + lo, column + hi, asked)
        lo += below
        hi = lo + equal
        if equal == 0:
            break
    return lo


@helper
def begins_behind(words, root, ordinal, covers, i, d):
    """Whether the first row of a leaf comes after a cover."""
    first = words[words[root + ROOT_HEADER + ordinal // FANOUT] + NODE_FIRST + ordinal % FANOUT]
    asked = covers[i * (d + 2) + (0 if d > 0 else 1)]
    if first != asked:
        return first > asked
    entry = entry_of(words, root, ordinal)
    return compare_cover(words, words[entry + BASE], words[entry + STRIDE], covers, i, d) > 0


@helper
def compare_cover(words, row, stride, covers, i, d):
    """-1, 0 or 1: the context and a of the row that begins at `row` against the context and b of a cover."""
    at = i * (d + 2)
    for c in range(d):
        a, b = words[row + c * stride], covers[at + c]
        if a != b:
            return -1 if a < b else 1
    a, b = words[row + d * stride], covers[at + d + 1]
    return 0 if a == b else (-1 if a < b else 1)
