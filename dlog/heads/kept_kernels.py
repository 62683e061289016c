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
    ADDED,
    DIGITS,
    HEAD,
    LITERAL,
    MOST_ORDERS,
    ROWS,
    SECOND,
    SHAPE,
    STATE,
    TAKEN,
    TOO_LARGE,
    are_few,
    bring,
    change_relation,
    columns_of,
    join_parts,
    load_group,
    room_for,
    sorted_assignments,
)
from dlog.heads.scan_kernels import find_run, previous_position
from dlog.jit import Words, helper, kernel, pointer, pointer_at, shifted
from dlog.lftj.primitives import code_of
from dlog.storage.arena.arena_kernels import EXTENT_BASE, RESULT, release_extent
from dlog.storage.index.trie_kernels import key_at, next_position, seek_lub


@kernel
def change_values(
    arena: Words,
    layout: Words,
    job: Words,
    gained: Words,
    lost: Words,
    orders: Words,
    roots: Words,
    room_words: Words,
) -> int:
    """As `group_kernels.change_groups`, for the least and the greatest value of groups.

    O(n log n + n log values).  REQUIRES: the first order of the state is the natural one."""
    A, room = pointer(arena), pointer(room_words)
    k, h = layout[0] - 1, layout[2]
    n, added, columns = job[ADDED] + job[TAKEN], job[ADDED], columns_of(job, gained, lost)
    width = 2 * (k + 3)  # of both records of a group
    work = room_for(A, n * (2 + width + columns))
    if work < 0:
        return TOO_LARGE
    numbers = A[work + EXTENT_BASE]
    records, given = numbers + 2 * n, pointer_at(arena, numbers + n * (2 + width))
    bring(job, gained, lost, columns, given)
    at = sorted_assignments(A, numbers, n, given, n, pointer(layout))
    state_rows, root = shifted(room, job[ROWS + STATE]), roots[0]
    groups, n_new, n_old, i, fits = 0, 0, 0, 0, True
    while i < n and fits:
        record = records + groups * width
        for c in range(k):
            A[record + c] = given[layout[SHAPE + c] * n + A[at + i]]
            A[record + k + 3 + c] = A[record + c]
        lo, hi = find_run(arena, root, k, arena, record)
        put_edges(arena, root, k, lo, hi, record)
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
            before = count_of(arena, root, k, lo, hi, value)
            fits = before + change >= 0
            if fits and change != 0:
                n_new = put_value(A, record, k, value, before + change, state_rows, n_new)
                n_old = put_value(A, record, k, value, before, state_rows, n + n_old) - n
        groups += 1
    join_parts(state_rows, k + 2, n, n_new, n_old)
    fits = fits and are_few(A, job, roots, STATE, n_new + n_old, k + 2)
    fits = fits and are_few(A, job, roots, HEAD, 2 * groups, h)
    if not fits or n_new + n_old == 0:
        release_extent(A, work, 1)
        A[RESULT] = 0
        return 0 if fits else TOO_LARGE
    change_relation(A, job, orders, roots, room, STATE, k + 2, n_new, n_old)
    for x in range(groups):
        record = records + x * width + k + 3
        lo, hi = find_run(arena, roots[0], k, arena, record)
        put_edges(arena, roots[0], k, lo, hi, record)
    n_new, n_old = put_heads(A, layout, k, records, width, groups, shifted(room, job[ROWS + HEAD]))
    release_extent(A, work, 1)
    return change_relation(A, job, orders, roots, room, HEAD, h, n_new, n_old)


@kernel
def change_floats(
    arena: Words,
    layout: Words,
    job: Words,
    gained: Words,
    lost: Words,
    orders: Words,
    roots: Words,
    room_words: Words,
) -> int:
    """The same for exact sums of floats, which are the second relation.  It has room, as what nobody reads
    has, for 2 WORDS_PER_SUM rows of each assignment and sum; there are 2 WORDS_PER_SUM digits.
    O(n log n + n s (log rows + WORDS_PER_SUM))."""
    A, room = pointer(arena), pointer(room_words)
    g, s, h = layout[0], layout[1], layout[2]
    n, added, columns = job[ADDED] + job[TAKEN], job[ADDED], columns_of(job, gained, lost)
    size = g + 1 + s
    work = room_for(A, n * (2 + 2 * size + columns) + g + 1)
    if work < 0:
        return TOO_LARGE
    numbers = A[work + EXTENT_BASE]
    records, named = numbers + 2 * n, numbers + n * (2 + 2 * size)
    given = pointer_at(arena, named + g + 1)
    bring(job, gained, lost, columns, given)
    at = sorted_assignments(A, numbers, n, given, n, pointer(layout))
    count_rows, sum_rows = shifted(room, job[ROWS + STATE]), shifted(room, job[ROWS + SECOND])
    digits, sum_root = room_words[job[DIGITS] :], roots[SECOND * MOST_ORDERS]
    most = n * s * WORDS_PER_SUM
    groups, n_new, n_old, words_new, words_old, i, fits = 0, 0, 0, 0, 0, 0, True
    while i < n and fits:
        old = records + groups * 2 * size
        new = old + size
        load_group(A, roots[0], old, given, n, A[at + i], pointer(layout), g + 1)
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
            first, last = load_both(arena, sum_root, g + 1, named, digits)
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
    fits = fits and are_few(A, job, roots, STATE, n_new + n_old, g + 1)
    fits = fits and are_few(A, job, roots, SECOND, words_new + words_old, g + 3)
    fits = fits and are_few(A, job, roots, HEAD, 2 * groups, h)
    if not fits:
        release_extent(A, work, 1)
        return TOO_LARGE
    change_relation(A, job, orders, roots, room, STATE, g + 1, n_new, n_old)
    change_relation(A, job, orders, roots, room, SECOND, g + 3, words_new, words_old)
    n_new, n_old = put_heads(A, layout, g, records, 2 * size, groups, shifted(room, job[ROWS + HEAD]))
    release_extent(A, work, 1)
    return change_relation(A, job, orders, roots, room, HEAD, h, n_new, n_old)


# ---- what both share


@helper
def in_group(A, record, given, n, i, layout, g):
    """Whether assignment i has the keys of a record."""
    c = 0
    while c < g and given[layout[SHAPE + c] * n + i] == A[record + c]:
        c += 1
    return c == g


@helper
def put_heads(A, layout, g, records, width, groups, head_rows):
    """Write the head's rows of groups that differ: how many are new, and how many are gone."""
    n_new, n_old, size, h = 0, 0, width // 2, layout[2]
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
    return n_new, n_old


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
