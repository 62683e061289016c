"""Owns reads of a range of one key: the sum of its entries, and the entries one after the other.

Correct output: what a scan of the map with the same conditions gives.  A bound of a range is where a
condition turns from true to false for keys in their order: what it compares, the key itself or a sum with it,
only grows or only falls with the key.  So a float is added to each key that is looked at, as a scan would do,
and never to the other side, where it might be rounded differently.  (A NaN key is the greatest, but x - NaN
is not the smallest: where a column less the key is compared, an entry with such a key may be left out.)

Sums of integers have 128 bits until the answer; those of floats are doubled, added in the order of the tree.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import helper, prefetch
from dlog.lftj.primitives import add, code_of, compare, float_of
from dlog.m3.rings.kernels import sum_of_doubled
from dlog.m3.runtime.layout import (
    ALL_AFTER,
    ALL_BEFORE,
    ASKED,
    BOUND_WORDS,
    CHUNK,
    DOUBLED,
    EMPTY,
    EXACT_WORDS,
    FLOAT_LESS,
    FLOAT_LESS_INT,
    FLOAT_PLUS,
    INT,
    KEY_AS_FLOAT,
    KEY_ITSELF,
    KEY_PLUS,
    LESS_KEY,
    M_BASE,
    M_KEYS,
    M_LOGGED,
    M_MASK,
    M_ORDER,
    M_SHIFT,
    M_SPARE,
    M_USED,
    M_WORDS,
    NO_BOUND,
    NODE_COUNT,
    NODE_ITEMS,
    NODE_NEXT,
    NOT_COMPUTED,
    OVERFLOW,
    PAGES,
    RANGE_MERGE,
    RANGE_OPEN,
    RANGE_SUM,
    RESUME,
    ROOM,
    T_ENTRIES,
    T_HEIGHT,
    T_KEY,
    T_KEYS,
    T_KINDS,
    T_PARTS,
    T_PATH,
    T_PLACES,
    T_ROOT,
    T_WORDS,
    TREES,
    WIDE,
)
from dlog.m3.runtime.machine.arithmetic_kernels import to_bits, to_float
from dlog.m3.runtime.machine.exact_kernels import add_sum, is_short
from dlog.m3.runtime.maps.exact_kernels import make_exact_zero
from dlog.m3.runtime.maps.map_kernels import hash_more, hash_one, shifted
from dlog.m3.runtime.maps.order_kernels import (
    add_wide,
    apply_log,
    child_at,
    forget_sum,
    item_words,
    sum_items,
)

RANGE_STEPS: Final = (RANGE_SUM, RANGE_MERGE, RANGE_OPEN)
FEWEST_ROWS: Final = 8  # that are worth to be sorted by their bounds
ENTRIES_A_ROW: Final = 32  # at most, for one pass over all of them


@helper
def range_step(arena, maps, code, pc, state, cols):
    """An instruction on ranges; False: it needs memory first."""
    a = pc + 2
    if not is_current(arena, maps, code[a + 1], state):
        return False
    if code[pc] == RANGE_SUM:
        range_sums(arena, maps, code, pc, state, cols)
    elif code[pc] == RANGE_MERGE:
        return range_merges(arena, maps, code, pc, state, cols)
    else:
        cursor = code[a + 3]
        state[cursor], state[cursor + 1], state[cursor + 2] = 0, 0, 0
    return True


@helper
def is_current(arena, maps, m, state):
    """Whether a map's trees are up to date; if not, they need memory first, and the state says so."""
    if maps[m + M_LOGGED] == 0:
        return True
    if maps[m + M_LOGGED] < 0 and maps[m + M_USED] == 0:
        return True
    if maps[m + M_LOGGED] < 0:
        state[ASKED], state[ROOM] = m, TREES
        return False
    if not apply_log(arena, maps, m):
        state[ASKED], state[ROOM] = m, PAGES
        return False
    return True


# ---- bounds


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


# ---- sums


@helper
def range_sums(arena, maps, code, pc, state, cols):
    """The instruction RANGE_SUM.  REQUIRES: trees that are current, if there are entries."""
    a = pc + 2
    rows, m, n, work = state[code[a]], code[a + 1], code[a + 3], code[a + 4]
    lower, upper = a + 5, a + 5 + 2 * BOUND_WORDS
    keys = upper + 2 * BOUND_WORDS
    t, out = maps[m + M_ORDER] + code[a + 2] * T_WORDS, keys + n
    in_order = maps[m + M_USED] > 0 and is_worth_order(maps, t, rows, code, lower, upper)
    if in_order:
        sort_rows(state, work, cols, rows, code, lower, upper, keys, n)
    for part in range(maps[t + T_PARTS]):
        kind, word = maps[maps[t + T_KINDS] + 2 * part], maps[maps[t + T_KINDS] + 2 * part + 1]
        if in_order and kind == INT:
            running_sums(
                arena, maps, t, part, state, work, cols, rows, code, lower, keys, n, code[out + word], pc
            )
            continue
        for i in range(rows):
            high, low = np.int64(0), np.int64(0)
            if maps[m + M_USED] > 0:
                high, low = range_sum(arena, maps, t, part, cols, i, code, lower, upper, keys, n)
            if kind == INT:
                if high != low >> 63 or low == EMPTY:
                    state[OVERFLOW] = pc + 1
                cols[code[out + word] + i] = low
            elif kind == DOUBLED:
                cols[code[out + word] + i] = high
                cols[code[out + word + 1] + i] = low
            else:
                cols[code[out + word] + i] = to_bits(to_float(high) + to_float(low))


@helper
def range_sum(arena, maps, t, part, cols, i, code, lower, upper, keys, n):
    """The sum of the entries from a lower bound to an upper one, of one part of values.

    Down to where the bounds part, then along each of them: O(items of a node * log n).
    """
    high, low = np.int64(0), np.int64(0)
    level, left, right = maps[t + T_HEIGHT], maps[t + T_ROOT], maps[t + T_ROOT]
    while level >= 0:
        first, last, is_one = range_items(
            arena, maps, t, level, left, right, cols, i, code, lower, upper, keys, n
        )
        if is_one:
            if last > first:
                high, low = sum_items(arena, maps, t, part, level, left, first, last, high, low)
            elif level > 0 and last < first - 1:
                break  # the upper bound is before the lower one
        else:
            end = arena[left + NODE_COUNT]
            high, low = sum_items(arena, maps, t, part, level, left, first, end, high, low)
            high, low = sum_items(arena, maps, t, part, level, right, np.int64(0), last, high, low)
        if level > 0:
            left, right = child_at(arena, maps, t, left, first - 1), child_at(arena, maps, t, right, last)
        level -= 1
    return high, low


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


# ---- running sums: many rows, in the order of their bounds


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


# ---- exact sums


@helper
def range_merges(arena, maps, code, pc, state, cols):
    """The instruction RANGE_MERGE; False: it needs memory first, and continues with the row it was at.

    REQUIRES: trees that are current, if there are entries.
    """
    a = pc + 2
    rows, m, n, to, slots = state[code[a]], code[a + 1], code[a + 3], code[a + 5], code[a + 6]
    lower, upper = a + 7, a + 7 + 2 * BOUND_WORDS
    keys = upper + 2 * BOUND_WORDS
    t = maps[m + M_ORDER] + code[a + 2] * T_WORDS
    for i in range(state[RESUME], rows):
        target = maps[to + M_BASE] + cols[slots + i] * maps[to + M_WORDS] + maps[to + M_KEYS]
        make_exact_zero(arena, maps, to, target)
        if maps[m + M_USED] > 0 and not merge_range(
            arena, maps, m, t, to, target, state, pc, cols, i, code, lower, upper, keys, n
        ):
            state[RESUME] = i
            return False
    state[RESUME] = 0
    return True


@helper
def merge_range(arena, maps, m, t, to, target, state, pc, cols, i, code, lower, upper, keys, n):
    """As `range_sum`, of exact sums, into one at a place.  False: memory is missing."""
    level, left, right = maps[t + T_HEIGHT], maps[t + T_ROOT], maps[t + T_ROOT]
    while level >= 0:
        first, last, is_one = range_items(
            arena, maps, t, level, left, right, cols, i, code, lower, upper, keys, n
        )
        if level > 0 and is_one and last < first - 1:
            break
        end = last if is_one else arena[left + NODE_COUNT]
        if not merge_items(arena, maps, m, t, level, left, first, end, to, target, state, pc):
            return False
        if not is_one and not merge_items(
            arena, maps, m, t, level, right, np.int64(0), last, to, target, state, pc
        ):
            return False
        if level > 0:
            left, right = child_at(arena, maps, t, left, first - 1), child_at(arena, maps, t, right, last)
        level -= 1
    return True


@helper
def merge_items(arena, maps, m, t, level, node, first, end, to, target, state, pc):
    words, start = item_words(maps, t, level), node + NODE_ITEMS + maps[t + T_KEYS]
    for at in range(start + first * words, start + end * words, words):
        source = at + 1 if level > 0 else at
        is_there = level == 0 or arena[source] != NOT_COMPUTED
        if not is_there and not compute_sum(arena, maps, m, t, at, level, state, pc):
            return False
        if is_short(maps, to, state, np.int64(0)):
            return False
        add_sum(arena, maps, to, target, source, np.int64(1), state, pc)
    return True


@helper
def compute_sum(arena, maps, m, t, at, level, state, pc):
    """The exact sum of a child, which is at a place in a node of a level, and those below it that are needed.
    False: memory is missing; what was begun is forgotten.  Amortised O(items of a node) for each change.

    The tree's path has the node that is being added, and its next item, of each level.
    """
    top, lv, path = level - 1, level - 1, t + T_PATH
    keys, inner = maps[t + T_KEYS], item_words(maps, t, 1)
    maps[path + 2 * lv], maps[path + 2 * lv + 1] = arena[at], 0
    make_sum_zero(arena, at + 1)
    while True:
        node, i = maps[path + 2 * lv], maps[path + 2 * lv + 1]
        if i == arena[node + NODE_COUNT]:
            if lv == top:
                return True
            lv += 1
            continue
        source = node + NODE_ITEMS + i * item_words(maps, t, lv) + keys
        if lv > 0:
            source += 1
            if arena[source] == NOT_COMPUTED:
                make_sum_zero(arena, source)
                lv -= 1
                maps[path + 2 * lv], maps[path + 2 * lv + 1] = arena[source - 1], 0
                continue
        if maps[m + M_SPARE] == 0:
            while lv <= top:
                forget_sum(arena, maps, t, sum_place(maps, t, path, lv, top, at, keys, inner))
                lv += 1
            state[ASKED], state[ROOM] = m, WIDE
            return False
        total = sum_place(maps, t, path, lv, top, at, keys, inner)
        add_sum(arena, maps, m, total, source, np.int64(1), state, pc)
        maps[path + 2 * lv + 1] = i + 1


@helper
def sum_place(maps, t, path, lv, top, at, keys, inner):
    """Where the sum of the node that a path has at a level is."""
    if lv == top:
        return at + 1
    return maps[path + 2 * lv + 2] + NODE_ITEMS + maps[path + 2 * lv + 3] * inner + keys + 1


@helper
def make_sum_zero(arena, at):
    for w in range(EXACT_WORDS):
        arena[at + w] = 0


# ---- entries one after the other


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
