"""Owns what is stored of groups, part by part, under a few assignments: the rows of a part that are new or
gone, and the results of its groups before and after.

A part of a rule is a *shape*: columns c, sums s, kind, place in a record, groups g; then c columns of the
assignments, the rule's groups first; then what the kind needs.  Assignments come as columns of n words.

    SUMS     s pairs (is a column, column or code).  Rows (groups, count, a wide number for each sum); results
             are the count and the sums
    WEIGHTED the same; then a column that says how many assignments each one stands for, with any sign
    FLOATS   s columns.  Rows (groups, number, place, word); results are the sums
    VALUES   the columns are the groups, further keys and the value; then for each key of a row its place
             among them, those of groups first.  Rows (keys, value, count); results are whether there is a
             value, the least and the greatest
"""

from __future__ import annotations

from typing import Final

from dlog.algebra import LIMBS, LOOSE_ADDITIONS, WORDS_PER_SUM, add_loosely, round_sum, settle
from dlog.heads.float_kernels import MAX, put_word
from dlog.heads.kernels import MIN, WIDE
from dlog.heads.scan_kernels import find_run, previous_position
from dlog.jit import helper
from dlog.lftj.primitives import code_of
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.tree_kernels import compare, entry_bound, leaf_bound, node_bound
from dlog.storage.index.trie_kernels import key_at, next_position, run_end, seek_lub
from dlog.storage.layout import (
    BASE,
    ENTRY,
    FILL,
    N_NODES,
    NODE_HEADER,
    ROOT_HEADER,
    SCAN_MAX,
    SCAN_MIN,
    STRIDE,
)
from dlog.storage.scan.scan_kernels import scan_rows

# Words of a shape.
COLUMNS: Final = 0
SUMMED: Final = 1
KIND: Final = 2
PLACE: Final = 3
GROUPS: Final = 4  # of the columns, which they begin
SHAPE: Final = 5  # where the columns begin

# Kinds of parts.
SUMS: Final = 0
FLOATS: Final = 1
VALUES: Final = 2
WEIGHTED: Final = 3

FACTOR: Final = 1 << 31  # products of smaller numbers are words


@helper
def most_rows(shape, n):
    """How many rows n assignments change at most, new ones and those that are gone each."""
    return n * shape[SUMMED] * WORDS_PER_SUM if shape[KIND] == FLOATS else n


@helper
def put_row(A, row, width, rows, i):
    for c in range(width):
        rows[i * width + c] = A[row + c]


# ---- counts and sums of ints


@helper
def add_sums(A, root, record, size, at, i, end, given, n, shape, added, old, rows, n_new, n_old):
    """Add assignments [i, end) to their group, in work space `old`: how many rows are new and gone so far, -1
    where a number does not fit."""
    g, s, place = shape[COLUMNS], shape[SUMMED], record + shape[PLACE]
    width = g + 1 + WIDE * s
    new = old + width
    load_group(A, root, old, given, n, A[at + i], shape, width)
    add_assignments(A, old, new, at, i, end, given, n, shape, added)
    if A[new + g] < 0 or not results_fit(A, old, shape) or not results_fit(A, new, shape):
        return -1, -1
    A[place] = A[old + g]
    A[place + size] = A[new + g]
    for x in range(s):
        A[place + 1 + x] = A[old + g + 1 + WIDE * x]
        A[place + size + 1 + x] = A[new + g + 1 + WIDE * x]
    if differ(A, old, new, width):
        if A[new + g] > 0:
            put_row(A, new, width, rows, n_new)
            n_new += 1
        if A[old + g] > 0:
            put_row(A, old, width, rows, n + n_old)
            n_old += 1
    return n_new, n_old


@helper
def load_group(A, root, to, columns, stride, i, shape, width):
    """Write the row of assignment i's group, zeros behind the group when there is none."""
    g = shape[0]
    for c in range(width):
        A[to + c] = columns[shape[SHAPE + c] * stride + i] if c < g else 0
    if A[root + N_NODES] == 0:
        return
    # The last row that is not after the group: if one has the group, that one does.
    node = A[root + ROOT_HEADER + node_bound(A, root, 0, to, 1, 0, g, 1)]
    entry = node + NODE_HEADER + ENTRY * entry_bound(A, node, 0, to, 1, 0, g, 1)
    base, step = A[entry + BASE], A[entry + STRIDE]
    row = leaf_bound(A, base, step, 0, A[entry + FILL], to, 1, 0, g, 1) - 1
    if row >= 0 and compare(A, base, step, row, to, 1, 0, g) == 0:
        for c in range(g, width):
            A[to + c] = A[base + c * step + row]


@helper
def add_assignments(A, old, new, at, i, end, columns, stride, shape, added):
    """The group at `old` under assignments [i, end), to `new`."""
    g, s = shape[0], shape[1]
    for c in range(g + 1 + WIDE * s):
        A[new + c] = A[old + c]
    weights = column_of_weights(shape) * stride
    for j in range(i, end):
        weight = abs(columns[weights + A[at + j]]) if weights >= 0 else 1
        A[new + g] += weight if A[at + j] < added else -weight
    for x in range(s):
        is_column, word = shape[SHAPE + g + 2 * x], shape[SHAPE + g + 2 * x + 1]
        for j in range(i, end):
            value = columns[word * stride + A[at + j]] if is_column == 1 else word
            weight = abs(columns[weights + A[at + j]]) if weights >= 0 else 1
            add_times(A, new + g + 1 + WIDE * x, value, weight, 1 if A[at + j] < added else -1)


@helper
def column_of_weights(shape):
    """The column of weights, or a negative number."""
    return shape[SHAPE + shape[0] + 2 * shape[1]] if shape[KIND] == WEIGHTED else -1


@helper
def add_times(A, at, value, weight, sign):
    """Add a word so many times to a wide number, or take it away."""
    if weight < FACTOR and -FACTOR < value < FACTOR:
        add_word(A, at, value * weight, sign)
        return
    for _ in range(weight):
        add_word(A, at, value, sign)


@helper
def add_word(A, at, value, sign):
    """Add a word to a wide number, or take it away."""
    before = A[at]
    if sign > 0:
        A[at] = before + value
        carry = (1 if (A[at] ^ MIN) < (before ^ MIN) else 0) + (-1 if value < 0 else 0)
    else:
        A[at] = before - value
        carry = (-1 if (A[at] ^ MIN) > (before ^ MIN) else 0) + (1 if value < 0 else 0)
    w = 1
    while carry != 0 and w < WIDE:
        before = A[at + w]
        A[at + w] = before + carry
        if carry > 0:
            carry = 1 if before == -1 else 0
        else:
            carry = -1 if before == 0 else 0
        w += 1


@helper
def results_fit(A, group, shape):
    """Whether all sums of a group are ints."""
    for x in range(shape[SUMMED]):
        at = group + shape[COLUMNS] + 1 + WIDE * x
        above = -1 if A[at] < 0 else 0
        for w in range(1, WIDE):
            if A[at + w] != above:
                return False
    return True


@helper
def differ(A, a, b, width):
    c = 0
    while c < width and A[a + c] == A[b + c]:
        c += 1
    return c < width


# ---- sums of floats


@helper
def add_all_floats(
    arena, root, record, size, at, i, end, given, n, shape, added, named, digits, rows, n_new, n_old
):
    """The same for sums of floats.  Digits are twice WORDS_PER_SUM zeros, and are so again."""
    g, most = shape[COLUMNS], most_rows(shape, n)
    for c in range(g):
        arena[named + c] = arena[record + c]
    for x in range(shape[SUMMED]):
        arena[named + g] = x
        first, last = load_both(arena, root, g + 1, named, digits)
        low, high = add_floats(arena, digits, at, i, end, given, n, shape[SHAPE + g + x], added)
        first, last = min(first, low), max(last, high)
        used = min(last, LIMBS)
        arena[record + shape[PLACE] + x] = code_of(round_sum(digits, WORDS_PER_SUM, used))
        arena[record + size + shape[PLACE] + x] = code_of(round_sum(digits, 0, used))
        for d in range(first, last):
            before, after = digits[WORDS_PER_SUM + d], digits[d]
            digits[WORDS_PER_SUM + d] = 0
            digits[d] = 0
            if before != after and after != 0:
                put_word(arena, named, g + 1, d, after, rows, n_new)
                n_new += 1
            if before != after and before != 0:
                put_word(arena, named, g + 1, d, before, rows, most + n_old)
                n_old += 1
    return n_new, n_old


@helper
def add_floats(A, digits, at, start, end, given, n, column, added):
    """Add what assignments [start, end) have in a column to a sum; from where to where its words changed."""
    low, high = LIMBS, 0
    for block in range(start, end, LOOSE_ADDITIONS):
        first, last = LIMBS, 0
        for j in range(block, min(block + LOOSE_ADDITIONS, end)):
            number = A[at + j]
            code = given[column * n + number]
            limb = add_loosely(digits, 0, code if code >= 0 else code ^ MAX, 1 if number < added else -1)
            if limb == LIMBS:  # a zero, or a counter behind the limbs
                high = WORDS_PER_SUM
            else:
                first, last = min(first, limb), max(last, limb)
        low, high = min(low, first), max(high, settle(digits, 0, first, min(last + 2, LIMBS)))
    return low, high


@helper
def load_both(arena, root, d, named, digits):
    """The words of one sum, twice; from where to where there are some."""
    first, last = WORDS_PER_SUM, 0
    lo, hi = find_run(arena, root, d, arena, named)
    while lo < hi:
        place, word = key_at(arena, root, d, lo), key_at(arena, root, d + 1, lo)
        digits[place] = word
        digits[WORDS_PER_SUM + place] = word
        first, last = min(first, place), max(last, place + 1)
        lo = next_position(arena, root, lo)
    return first, last


# ---- least and greatest values


@helper
def add_values(arena, A, root, at, i, end, given, n, shape, added, keys, rows, n_new, n_old):
    """The same for values, after `put_edges` for the group, which writes the keys and the results."""
    g, k = shape[GROUPS], shape[COLUMNS] - 1
    lo, hi = find_run(arena, root, g, arena, keys)
    while i < end:
        first, change = A[at + i], 0
        while i < end and not is_before(given, n, first, A[at + i], shape):
            change += 1 if A[at + i] < added else -1
            i += 1
        for c in range(g, k):
            A[keys + c] = given[shape[SHAPE + shape[SHAPE + k + 1 + c]] * n + first]
        value = given[shape[SHAPE + k] * n + first]
        before = count_of(arena, root, g, k, lo, hi, keys, value)
        if before + change < 0:
            return -1, -1
        if change != 0:
            n_new = put_value(A, keys, k, value, before + change, rows, n_new)
            n_old = put_value(A, keys, k, value, before, rows, n + n_old) - n
    return n_new, n_old


@helper
def put_edges(arena, A, root, record, to, shape, keys):
    """Write the results of a record's group `to` a place, and its keys in the order of rows."""
    g, k = shape[GROUPS], shape[COLUMNS] - 1
    for c in range(g):
        A[keys + c] = A[record + shape[SHAPE + k + 1 + c]]
    if g < k:
        A[to] = 1 if scan_rows(A, root, keys, g, keys, g, k) > 0 else 0
        A[to + 1] = A[RESULT + SCAN_MIN]
        A[to + 2] = A[RESULT + SCAN_MAX]
        return
    lo, hi = find_run(arena, root, k, arena, keys)
    A[to] = 1 if lo < hi else 0
    if lo < hi:
        A[to + 1] = key_at(arena, root, k, lo)
        A[to + 2] = key_at(arena, root, k, previous_position(arena, root, hi))


@helper
def count_of(arena, root, g, k, lo, hi, keys, value):
    """How many assignments give a value; [lo, hi) are the rows of the first g of k keys."""
    for c in range(g, k + 1):
        key = value if c == k else arena[keys + c]
        if lo < hi:
            lo = seek_lub(arena, root, c, lo, hi, key)
        if lo >= hi or key_at(arena, root, c, lo) != key:
            return 0
        if c < k:
            hi = run_end(arena, root, c, lo, hi)
    return key_at(arena, root, k + 1, lo)


@helper
def put_value(A, keys, k, value, count, rows, i):
    """Write a row unless nothing counts; the place of the next row."""
    if count == 0:
        return i
    at = i * (k + 2)
    for c in range(k):
        rows[at + c] = A[keys + c]
    rows[at + k] = value
    rows[at + k + 1] = count
    return i + 1


# ---- assignments in the order of their columns


@helper
def sorted_assignments(A, numbers, n, columns, stride, shape):
    """The numbers of assignments in the order of a shape's columns; returns where they lie.  O(n log n)."""
    for i in range(n):
        A[numbers + i] = i
    source, target, run = numbers, numbers + n, 1
    while run < n:
        for start in range(0, n, 2 * run):
            a, b = start, min(start + run, n)
            middle, end = b, min(start + 2 * run, n)
            for to in range(start, end):
                take_left = b >= end or (
                    a < middle and not is_before(columns, stride, A[source + b], A[source + a], shape)
                )
                A[target + to] = A[source + a] if take_left else A[source + b]
                a += 1 if take_left else 0
                b += 0 if take_left else 1
        source, target = target, source
        run *= 2
    return source


@helper
def is_before(columns, stride, i, j, shape):
    """Whether assignment i comes before j."""
    for c in range(shape[0]):
        x, y = columns[shape[SHAPE + c] * stride + i], columns[shape[SHAPE + c] * stride + j]
        if x != y:
            return x < y
    return False
