"""Owns bounds of ranges: which items of a node are before one.

A bound is where a condition turns from true to false for keys in their order: what it compares, the key
itself or a sum with it, only grows or only falls with the key.  So a float is added to each key that is
looked at, as a scan would do, and never to the other side, where it might be rounded differently.  (A NaN key
is the greatest, but x - NaN is not the smallest: where a column less the key is compared, an entry with such
a key may be left out.)
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper
from dlog.lftj.primitives import add, code_of, compare, float_of
from dlog.m3.rings.kernels import sum_of_doubled
from dlog.m3.runtime.layout import (
    ALL_BEFORE,
    BOUND_WORDS,
    FLOAT_LESS,
    FLOAT_LESS_INT,
    FLOAT_PLUS,
    KEY_AS_FLOAT,
    KEY_ITSELF,
    KEY_PLUS,
    LESS_KEY,
    NO_BOUND,
    NODE_COUNT,
    NODE_ITEMS,
)
from dlog.m3.runtime.machine.arithmetic_kernels import to_float
from dlog.m3.runtime.maps.order_node_kernels import (
    item_words,
)


@helper
def is_before(arena, at, cols, i, code, bound, keys, n):
    """Whether the item at a place is before a bound, of those that agree with row i in the first n keys."""
    for j in range(n):
        key = cols[code[keys + j] + i]
        if arena[at + j] != key:
            return arena[at + j] < key
    how = code[bound]
    if how < 0:
        return how == ALL_BEFORE
    return is_true(how >> 3, how & 7, arena[at + n], cols, i, code, bound)


@helper
def is_true(what, op, key, cols, i, code, bound):
    """Whether a key, or a sum with it, compares so with a column."""
    other = cols[code[bound + 1] + i]
    if what == KEY_ITSELF:
        return compare(op, key, other)
    if what == KEY_AS_FLOAT:
        return compare(op, code_of(float(key)), other)
    given = cols[code[bound + 2] + i]
    if what in (KEY_PLUS, LESS_KEY):
        if what == LESS_KEY:
            key, given = given, -key
        total = add(key, given)
        if ((key ^ total) & (given ^ total)) < 0:  # beyond 64 bits: all words are on the other side
            return compare(op, np.int64(1 if key > 0 else -1), np.int64(0))
        return compare(op, total, other)
    value = float_of(key) if what in (FLOAT_PLUS, FLOAT_LESS) else float(key)
    if what in (FLOAT_LESS, FLOAT_LESS_INT):
        value = -value
    high, _ = sum_of_doubled(value, 0.0, to_float(given), to_float(cols[code[bound + 3] + i]))
    return compare(op, code_of(high), other)


@helper
def first_after(arena, node, words, first, cols, i, code, bound, keys, n):
    """The first item of a node, from one on, that is not before a bound.  O(log items)."""
    left, items = arena[node + NODE_COUNT] - first, node + NODE_ITEMS
    how = code[bound]
    if n <= 1 and how >= 0 and how >> 3 == KEY_ITSELF:
        # Without branches, which would be unpredictable.  The operator is < or <=.
        key, other = cols[code[keys] + i] if n == 1 else np.int64(0), cols[code[bound + 1] + i]
        also_equal = how & 1
        while left > 0:
            half = left >> 1
            at = items + (first + half) * words
            here = arena[at + n]
            before = (1 if here < other else 0) | (also_equal & (1 if here == other else 0))
            if n == 1:
                prefix = arena[at]
                before = (before & (1 if prefix == key else 0)) | (1 if prefix < key else 0)
            first += before * (half + 1)
            left = half - before * (half + 1 - (left - half))
        return first
    while left > 0:
        half = left >> 1
        if is_before(arena, items + (first + half) * words, cols, i, code, bound, keys, n):
            first += half + 1
            left -= half + 1
        else:
            left = half
    return first


@helper
def first_of_range(arena, node, words, first, cols, i, code, bound, keys, n):
    """The first item of a node, from one on, that is not before the bounds from below."""
    found = first_after(arena, node, words, first, cols, i, code, bound, keys, n)
    second = bound + BOUND_WORDS
    if code[second] == NO_BOUND:
        return found
    return max(found, first_after(arena, node, words, first, cols, i, code, second, keys, n))


@helper
def end_of_range(arena, node, words, first, cols, i, code, bound, keys, n):
    """The first item of a node, from one on, that is not before the bounds from above."""
    found = first_after(arena, node, words, first, cols, i, code, bound, keys, n)
    second = bound + BOUND_WORDS
    if code[second] == NO_BOUND:
        return found
    return min(found, first_after(arena, node, words, first, cols, i, code, second, keys, n))


@helper
def range_items(arena, maps, t, level, left, right, cols, i, code, lower, upper, keys, n):
    """Which items of a level are in a range as a whole: of the nodes that have its bounds, those of the left
    one from the first on, and those of the right one up to the last; whether both are one node.  Below the
    left node the range goes on in the child before the first item, below the right one in the last one.
    """
    words, begin = item_words(maps, t, level), np.int64(1 if level > 0 else 0)
    first = first_of_range(arena, left, words, begin, cols, i, code, lower, keys, n)
    last = end_of_range(arena, right, words, begin, cols, i, code, upper, keys, n) - begin
    return first, last, left == right
