"""Owns ranges of a key whose bounds are words, from a lowest key to a highest one, and sums over them.

Correct output: the same as a comparison of each key with all four bounds.  A bound on the key itself, on an
integer that it is added to or subtracted from, or on a float that integers are compared with, is a word;
where it would lie outside of 64 bits, all keys are on one side of it.  Sums of floats with a key are
rounded, so that their bounds are found by comparing: see `range_bound_kernels`.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper
from dlog.lftj.primitives import add, float_of, subtract
from dlog.m3.runtime.layout import (
    BOUND_WORDS,
    EMPTY,
    KEY_AS_FLOAT,
    KEY_ITSELF,
    KEY_PLUS,
    LESS_KEY,
    NODE_COUNT,
    NODE_ITEMS,
    T_HEIGHT,
    T_ROOT,
)
from dlog.m3.runtime.maps.order_node_kernels import (
    child_at,
    is_item_below,
    item_words,
    items_below,
    sum_items,
)

HIGHEST = np.int64(2**63 - 1)
LEAST = np.int64(EMPTY + 1)  # of all keys
WHOLE = 2.0**53  # integers below it are floats


@helper
def word_range(cols, i, code, bounds):
    """(Whether the four bounds of a row are words, the lowest key of the range, the highest)."""
    low, high = LEAST, HIGHEST
    for number in range(4):
        bound = bounds + number * BOUND_WORDS
        if code[bound] >= 0:
            is_word, last = last_before(cols, i, code, bound)
            if not is_word:
                return False, low, high
            if number >= 2:
                high = min(high, last)
            elif last == HIGHEST:
                return True, HIGHEST, LEAST
            else:
                low = max(low, last + 1)
    return True, low, high


@helper
def last_before(cols, i, code, bound):
    """(Whether a bound is a word, the highest key before it); EMPTY if no key is before it."""
    what, is_included = code[bound] >> 3, code[bound] & 1 != 0
    word = cols[code[bound + 1] + i]
    if what == KEY_AS_FLOAT:
        value = float_of(word)
        if not (-WHOLE < value < WHOLE):
            return False, word
        word = np.int64(np.floor(value))
        is_included = is_included or float(word) != value
    elif what in (KEY_PLUS, LESS_KEY):
        given = cols[code[bound + 2] + i]
        word, taken = (word, given) if what == KEY_PLUS else (given, word)
        total = subtract(word, taken)
        if ((word ^ taken) & (word ^ total)) < 0:  # beyond 64 bits
            return True, HIGHEST if word > 0 else np.int64(EMPTY)
        word = total
    elif what != KEY_ITSELF:
        return False, word
    return True, word if is_included or word == EMPTY else word - 1


@helper
def word_range_sum(arena, maps, t, part, n, prefix, low, high):
    """The sum of one part of values over the entries from one key to another, behind n equal keys.

    Down to where the bounds part, then along each of them.  A side without a bound needs no search.
    O(items of a node * log n).  REQUIRES: n <= 1.
    """
    total, rest = np.int64(0), np.int64(0)
    if high < low:
        return total, rest
    end_prefix, end = (prefix, high + 1) if high < HIGHEST else (add(prefix, np.int64(1)), np.int64(EMPTY))
    is_from_start = n == 0 and low == LEAST
    is_to_end = high == HIGHEST and (n == 0 or prefix == HIGHEST)
    level, left, right = maps[t + T_HEIGHT], maps[t + T_ROOT], maps[t + T_ROOT]
    while level >= 0:
        words, begin = item_words(maps, t, level), np.int64(1 if level > 0 else 0)
        items = NODE_ITEMS + begin * words
        first, last = begin, arena[right + NODE_COUNT] - begin
        if not is_from_start:
            first += items_below(arena, left + items, arena[left + NODE_COUNT] - begin, words, n, prefix, low)
        if not is_to_end:
            # Often both bounds are between the same items.
            at = left + NODE_ITEMS + first * words
            is_same = left == right and first < arena[left + NODE_COUNT]
            if is_same and not is_item_below(arena, at, n, end_prefix, end):
                last = first - begin
            else:
                last = items_below(arena, right + items, last, words, n, end_prefix, end)
        if left == right:
            if last > first:
                total, rest = sum_items(arena, maps, t, part, level, left, first, last, total, rest)
            elif level > 0 and last < first - 1:
                break  # no entry is between the bounds
        else:
            until = arena[left + NODE_COUNT]
            total, rest = sum_items(arena, maps, t, part, level, left, first, until, total, rest)
            total, rest = sum_items(arena, maps, t, part, level, right, np.int64(0), last, total, rest)
        if level > 0:
            left, right = child_at(arena, maps, t, left, first - 1), child_at(arena, maps, t, right, last)
        level -= 1
    return total, rest
