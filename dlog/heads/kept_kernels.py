"""Owns the change of groups with min, max or float sums in one kernel call: from a few assignments to what is
kept of their groups and to the head's rows, as `group_kernels` has it for sums of ints.

The layout of a rule, as data: columns c, sums s, columns of the head h; then c columns of the assignments, s
columns of what is summed, h pairs (kind, place).

    values   c: the group's keys and the value.  Kept are rows (keys, value, count)
    floats   c: the group's keys.  Kept are rows (keys, count) and rows (keys, number, place, word)

A *record* tells of a group in one version: its keys, its number of assignments (of values: whether there are
any), then the least and the greatest value, or the sums.  A head's column is a literal's code, or the word at
a place of the record.
"""

from __future__ import annotations

from dlog.algebra import LIMBS, LOOSE_ADDITIONS, WORDS_PER_SUM, add_loosely, round_sum, settle
from dlog.heads.float_kernels import MAX, put_word
from dlog.heads.group_kernels import (
    LITERAL,
    SHAPE,
    TOO_LARGE,
    join_parts,
    load_group,
    sorted_assignments,
)
from dlog.heads.scan_kernels import find_run, previous_position
from dlog.jit import Words, helper, kernel
from dlog.lftj.primitives import code_of
from dlog.storage.arena.arena_kernels import (
    BUMP,
    EXTENT_BASE,
    LARGE_WORDS,
    LIMIT,
    RESULT,
    new_extent,
    release_extent,
)
from dlog.storage.arena.pointer import pointer, pointer_at
from dlog.storage.index.trie_kernels import key_at, next_position, seek_lub
from dlog.storage.relation.rows_kernels import change_all, is_small


@kernel
def change_values(
    arena: Words,
    layout: Words,
    gained: Words,
    gained_stride: int,
    added: int,
    lost: Words,
    lost_stride: int,
    taken: int,
    state_orders: Words,
    state_roots: Words,
    n_state: int,
    head_orders: Words,
    head_roots: Words,
    n_head: int,
    state_rows: Words,
    head_rows: Words,
    unread: Words,
    net: Words,
) -> int:
    """As `group_kernels.change_groups`, for the least and the greatest value of groups.

    O(n log n + n log values).  REQUIRES: the first order of the state is the natural one."""
    A = pointer(arena)
    k, h = layout[0] - 1, layout[2]
    n, columns = added + taken, columns_of(gained, gained_stride, lost, lost_stride)
    width = 2 * (k + 3)  # of both records of a group
    work = room_for(A, n * (2 + width + columns))
    if work < 0:
        return TOO_LARGE
    numbers = A[work + EXTENT_BASE]
    records, given = numbers + 2 * n, pointer_at(arena, numbers + n * (2 + width))
    bring(gained, gained_stride, added, lost, lost_stride, taken, columns, given)
    at = sorted_assignments(A, numbers, n, given, n, pointer(layout))
    groups, n_new, n_old, i, fits = 0, 0, 0, 0, True
    while i < n and fits:
        record = records + groups * width
        for c in range(k):
            A[record + c] = given[layout[SHAPE + c] * n + A[at + i]]
            A[record + k + 3 + c] = A[record + c]
        lo, hi = find_run(arena, state_roots[0], k, arena, record)
        put_edges(arena, state_roots[0], k, lo, hi, record)
        while i < n and fits and in_group(A, record, given, n, A[at + i], layout, k):
            value = given[layout[SHAPE + k] * n + A[at + i]]
            change = 0
            while (
                i < n
                and given[layout[SHAPE + k] * n + A[at + i]] == value
                and in_group(A, record, given, n, A[at + i], layout, k)
            ):
                change += 1 if A[at + i] < added else -1
                i += 1
            before = count_of(arena, state_roots[0], k, lo, hi, value)
            fits = before + change >= 0
            if fits and change != 0:
                n_new = put_value(A, record, k, value, before + change, state_rows, n_new)
                n_old = put_value(A, record, k, value, before, state_rows, n + n_old) - n
        groups += 1
    join_parts(state_rows, k + 2, n, n_new, n_old)
    fits = fits and all_small(A, pointer(state_roots), n_state, n_new + n_old, k + 2)
    fits = fits and all_small(A, pointer(head_roots), n_head, 2 * groups, h)
    if not fits or n_new + n_old == 0:
        release_extent(A, work, 1)
        A[RESULT] = 0
        return 0 if fits else TOO_LARGE
    change_all(
        A,
        k + 2,
        n_state,
        pointer(state_orders),
        pointer(state_roots),
        pointer(state_roots),
        pointer(state_rows),
        n_new,
        n_old,
        0,
        pointer(unread),
    )
    for x in range(groups):
        record = records + x * width + k + 3
        lo, hi = find_run(arena, state_roots[0], k, arena, record)
        put_edges(arena, state_roots[0], k, lo, hi, record)
    found = change_head(
        A, layout, k, records, width, groups, h, head_orders, head_roots, n_head, head_rows, net
    )
    release_extent(A, work, 1)
    return found


@kernel
def change_floats(
    arena: Words,
    layout: Words,
    gained: Words,
    gained_stride: int,
    added: int,
    lost: Words,
    lost_stride: int,
    taken: int,
    count_orders: Words,
    count_roots: Words,
    n_count: int,
    sum_orders: Words,
    sum_roots: Words,
    n_sum: int,
    head_orders: Words,
    head_roots: Words,
    n_head: int,
    count_rows: Words,
    sum_rows: Words,
    head_rows: Words,
    digits: Words,
    unread: Words,
    net: Words,
) -> int:
    """The same for exact sums of floats.  `sum_rows` and `unread` are room for 2 WORDS_PER_SUM rows of each
    assignment and sum; `digits` is 2 WORDS_PER_SUM zeros, and is so again.
    O(n log n + n s (log rows + WORDS_PER_SUM))."""
    A = pointer(arena)
    g, s, h = layout[0], layout[1], layout[2]
    n, columns = added + taken, columns_of(gained, gained_stride, lost, lost_stride)
    size = g + 1 + s
    work = room_for(A, n * (2 + 2 * size + columns) + g + 1)
    if work < 0:
        return TOO_LARGE
    numbers = A[work + EXTENT_BASE]
    records, named = numbers + 2 * n, numbers + n * (2 + 2 * size)
    given = pointer_at(arena, named + g + 1)
    bring(gained, gained_stride, added, lost, lost_stride, taken, columns, given)
    at = sorted_assignments(A, numbers, n, given, n, pointer(layout))
    most = n * s * WORDS_PER_SUM
    groups, n_new, n_old, words_new, words_old, i, fits = 0, 0, 0, 0, 0, 0, True
    while i < n and fits:
        old = records + groups * 2 * size
        new = old + size
        load_group(A, count_roots[0], old, given, n, A[at + i], pointer(layout), g + 1)
        end = i
        for c in range(g + 1):
            A[new + c] = A[old + c]
        while end < n and in_group(A, old, given, n, A[at + end], layout, g):
            A[new + g] += 1 if A[at + end] < added else -1
            end += 1
        fits = A[new + g] >= 0
        for x in range(s):
            for c in range(g):
                A[named + c] = A[old + c]
            A[named + g] = x
            first, last = load_both(arena, sum_roots[0], g + 1, named, digits)
            low, high = add_floats(A, digits, at, i, end, given, n, layout[SHAPE + g + x], added)
            first, last = min(first, low), max(last, high)
            used = min(last, LIMBS)
            A[old + g + 1 + x] = code_of(round_sum(digits, WORDS_PER_SUM, used))
            A[new + g + 1 + x] = code_of(round_sum(digits, 0, used))
            for d in range(first, last):
                before, after = digits[WORDS_PER_SUM + d], digits[d]
                digits[WORDS_PER_SUM + d] = 0
                digits[d] = 0
                if before != after and after != 0:
                    put_word(arena, named, g + 1, d, after, sum_rows, words_new)
                    words_new += 1
                if before != after and before != 0:
                    put_word(arena, named, g + 1, d, before, sum_rows, most + words_old)
                    words_old += 1
        if A[new + g] != A[old + g]:
            n_new = put_count(A, new, g, count_rows, n_new)
            n_old = put_count(A, old, g, count_rows, n + n_old) - n
        i = end
        groups += 1
    join_parts(count_rows, g + 1, n, n_new, n_old)
    join_parts(sum_rows, g + 3, most, words_new, words_old)
    fits = fits and all_small(A, pointer(count_roots), n_count, n_new + n_old, g + 1)
    fits = fits and all_small(A, pointer(sum_roots), n_sum, words_new + words_old, g + 3)
    fits = fits and all_small(A, pointer(head_roots), n_head, 2 * groups, h)
    if not fits:
        release_extent(A, work, 1)
        return TOO_LARGE
    if n_new + n_old > 0:
        change_all(
            A,
            g + 1,
            n_count,
            pointer(count_orders),
            pointer(count_roots),
            pointer(count_roots),
            pointer(count_rows),
            n_new,
            n_old,
            0,
            pointer(unread),
        )
    if words_new + words_old > 0:
        change_all(
            A,
            g + 3,
            n_sum,
            pointer(sum_orders),
            pointer(sum_roots),
            pointer(sum_roots),
            pointer(sum_rows),
            words_new,
            words_old,
            0,
            pointer(unread),
        )
    found = change_head(
        A, layout, g, records, 2 * size, groups, h, head_orders, head_roots, n_head, head_rows, net
    )
    release_extent(A, work, 1)
    return found


# ---- what both share


@helper
def columns_of(gained, gained_stride, lost, lost_stride):
    """Of the assignments; one of both may have none."""
    return max(len(gained) // gained_stride, len(lost) // lost_stride)


@helper
def room_for(A, words):
    """An extent to work in, or -1 if that would be a large one."""
    if words >= LARGE_WORDS or A[LIMIT] - A[BUMP] < 4 * LARGE_WORDS:
        return -1
    return new_extent(A, words, 1)


@helper
def bring(gained, gained_stride, added, lost, lost_stride, taken, columns, given):
    """All assignments by columns, those that are added first."""
    n = added + taken
    for c in range(columns):
        for i in range(added):
            given[c * n + i] = gained[c * gained_stride + i]
        for i in range(taken):
            given[c * n + added + i] = lost[c * lost_stride + i]


@helper
def in_group(A, record, given, n, i, layout, g):
    """Whether assignment i has the keys of a record."""
    c = 0
    while c < g and given[layout[SHAPE + c] * n + i] == A[record + c]:
        c += 1
    return c == g


@helper
def all_small(A, roots, n_orders, m, k):
    """Whether m changed rows are few for all indices of a relation."""
    o = 0
    while o < n_orders and m > 0 and is_small(A, roots[o], m, k):
        o += 1
    return o == n_orders or m == 0


@helper
def change_head(
    A, layout, g, records, width, groups, h, head_orders, head_roots, n_head, head_rows, net
):  # fmt: skip
    """The head's rows of groups that differ: how many came or went, the number of new ones in RESULT."""
    n_new, n_old, size = 0, 0, width // 2
    pairs = SHAPE + layout[0] + layout[1]
    for x in range(groups):
        old = records + x * width
        new = old + size
        if A[old + g] == 0 and A[new + g] == 0:
            continue
        differs = A[old + g] == 0 or A[new + g] == 0
        for c in range(h):
            place = layout[pairs + 2 * c + 1]
            differs = differs or (layout[pairs + 2 * c] != LITERAL and A[old + place] != A[new + place])
        if differs:
            n_new = put_shown(A, new, g, layout, pairs, h, head_rows, n_new)
            n_old = put_shown(A, old, g, layout, pairs, h, head_rows, groups + n_old) - groups
    join_parts(head_rows, h, groups, n_new, n_old)
    A[RESULT] = 0
    if n_new + n_old == 0:
        return 0
    roots = pointer(head_roots)
    return change_all(
        A, h, n_head, pointer(head_orders), roots, roots, pointer(head_rows), n_new, n_old, 0, pointer(net)
    )


@helper
def put_shown(A, record, g, layout, pairs, h, rows, i):
    """Write the head's row of a record, if its group exists; the place of the next row."""
    if A[record + g] == 0:
        return i
    for c in range(h):
        word = layout[pairs + 2 * c + 1]
        rows[i * h + c] = word if layout[pairs + 2 * c] == LITERAL else A[record + word]
    return i + 1


# ---- values


@helper
def put_edges(arena, root, k, lo, hi, record):
    """Whether a group has values, the least and the greatest, behind the keys of a record."""
    arena[record + k] = 1 if lo < hi else 0
    if lo < hi:
        arena[record + k + 1] = key_at(arena, root, k, lo)
        arena[record + k + 2] = key_at(arena, root, k, previous_position(arena, root, hi))


@helper
def count_of(arena, root, k, lo, hi, value):
    """How many assignments give a value, of a group whose rows are [lo, hi)."""
    if lo >= hi:
        return 0
    at = seek_lub(arena, root, k, lo, hi, value)
    return key_at(arena, root, k + 1, at) if at < hi and key_at(arena, root, k, at) == value else 0


@helper
def put_value(A, record, k, value, count, rows, i):
    """Write a row of the state unless nothing counts; the place of the next row."""
    if count == 0:
        return i
    at = i * (k + 2)
    for c in range(k):
        rows[at + c] = A[record + c]
    rows[at + k] = value
    rows[at + k + 1] = count
    return i + 1


# ---- floats


@helper
def put_count(A, record, g, rows, i):
    """Write a group with its count unless it is 0; the place of the next row."""
    if A[record + g] == 0:
        return i
    for c in range(g + 1):
        rows[i * (g + 1) + c] = A[record + c]
    return i + 1


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
            if limb == LIMBS:  # a zero, or a counter that stands behind the limbs
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
