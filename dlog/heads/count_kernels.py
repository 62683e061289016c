"""Owns heads with support counts: how a head and its counts change in one kernel call, by the rows of joins.

Correct output: that of `dlog.heads.counts.apply_counts`.  A *derivation* here is a row of the output of a
join: one more or one less of a row of the head.  The layout, as data:

    words       see below
    orders      the column orders of the head, then those of its counts, the first of these the natural one
    joins       for each join 1 or -1, what a row of it counts; 1 if equal rows of this sign count once; -1,
                or the column of its output that says what a row counts instead; then for each column of the
                head a pair: 1 and a column of the join's output, or 0 and a code

The block that is written has room for as many derivations as MOST says:

    net         the head's rows that came, then those that went
    rows        the derivations as rows of the head
    signs       what each counts; 1 or -1 times ONCE if equal ones count once
    records     for each of the rows that differ: its place, its counts before and after
    entries     those of the counts that came, then those that went: a row and its count
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Words, helper, kernel, pointer, shifted
from dlog.storage.arena.arena_kernels import EXTENT_BASE, RESULT, new_extent, release_extent, release_root
from dlog.storage.index.trie_kernels import end_position, key_at, run_end, seek_lub
from dlog.storage.layout import N_ROWS
from dlog.storage.relation.rows_kernels import NEEDS_BATCH, change_all, sorted_numbers

# Words of a layout.
ARITY: Final = 0
N_ORDERS: Final = 1
COUNT_ORDERS: Final = 2  # how many the counts have
N_JOINS: Final = 3
CAPACITY: Final = 4  # rows of the output of a join
WIDTH: Final = 5  # columns of it
MOST: Final = 6  # derivations
CHANGED: Final = 7  # written: how many entries of the counts came or went
L: Final = 8

JOIN: Final = 3  # words of a join before its columns
ONCE: Final = 1 << 62

# Words of a record.
PLACE: Final = 0
BEFORE: Final = 1
AFTER: Final = 2
RECORD: Final = 3


def block_words(arity: int, most: int) -> int:
    """Of the block that is written."""
    return most * (arity + arity + 1 + RECORD + 2 * (arity + 1))


@kernel
def change_counted_head(
    arena: Words, layout_words: Words, roots: Words, out: Words, found: Words, written: Words
) -> int:
    """How many rows the head gained or lost, the gained ones in RESULT; NEEDS_BATCH: nothing was done.

    `out` and `found` are the rows of each join and their numbers, MOST in all at most.  `roots` has those of
    the head, room for as many new ones, and the same for the counts; new ones are written where something
    has changed.  O(m (log m + log n)) for m derivations and each order.
    """
    A, layout, net = pointer(arena), pointer(layout_words), pointer(written)
    k, n_orders, n_counts, most = layout[ARITY], layout[N_ORDERS], layout[COUNT_ORDERS], layout[MOST]
    orders, old = shifted(layout, L), pointer(roots)
    count_orders, old_counts = shifted(orders, k * n_orders), shifted(old, 2 * n_orders)
    rows, signs = shifted(net, most * k), shifted(net, 2 * most * k)
    records, entries = shifted(signs, most), shifted(signs, most * (1 + RECORD))
    m = put_derivations(layout, shifted(count_orders, (k + 1) * n_counts), out, found, rows, signs)
    if m < 0:
        return NEEDS_BATCH
    n = put_records(A, m, rows, signs, k, orders, records)
    if not find_counts(arena, n, records, rows, k, orders, old[0], old_counts[0]):
        return NEEDS_BATCH
    more = put_entries(n, records, AFTER, rows, k, entries, 0)
    changed = put_entries(n, records, BEFORE, rows, k, entries, more)
    came = put_rows(n, records, BEFORE, AFTER, rows, k, net, 0)
    moved = put_rows(n, records, AFTER, BEFORE, rows, k, net, came)
    new_counts = shifted(old_counts, n_counts)
    layout[CHANGED] = changed
    if changed > 0:
        less = changed - more
        if (
            change_all(
                A, k + 1, n_counts, count_orders, old_counts, new_counts, entries, more, less, 0, entries
            )
            < 0
        ):
            return NEEDS_BATCH
    result = 0
    if moved > 0:
        result = change_all(
            A, k, n_orders, orders, old, shifted(old, n_orders), net, came, moved - came, 0, net
        )
    if result < 0 and changed > 0:
        for o in range(n_counts):
            release_root(A, new_counts[o])
    A[RESULT] = came
    return int(result)


@helper
def put_derivations(layout, joins, out, found, rows, signs):
    """Write the rows of all joins as rows of the head, with what they count; returns how many there are, or
    -1 if one counts too often."""
    k, capacity, m = layout[ARITY], layout[CAPACITY], 0
    for j in range(layout[N_JOINS]):
        join = shifted(joins, j * (JOIN + 2 * k))
        for i in range(found[j]):
            for c in range(k):
                column = join[JOIN + 2 * c + 1]
                is_column = join[JOIN + 2 * c] == 1
                rows[m * k + c] = out[(j * layout[WIDTH] + column) * capacity + i] if is_column else column
            weight = join[0] if join[2] < 0 else out[(j * layout[WIDTH] + join[2]) * capacity + i]
            if weight >= ONCE or weight <= -ONCE:
                return -1
            signs[m] = weight * ONCE if join[1] == 1 else weight
            m += 1
    return m


@helper
def put_records(A, m, rows, signs, k, orders, records):
    """Write the place of each row that differs and whose signs do not cancel, with their sum as AFTER;
    returns how many there are."""
    work = new_extent(A, 2 * m, 1)
    numbers = sorted_numbers(A, A[work + EXTENT_BASE], m, rows, k, orders, 0)
    n, i = 0, 0
    while i < m:
        place, total, once = A[numbers + i] * k, 0, 0
        while i < m and is_equal(rows, place, A[numbers + i] * k, k):
            sign = signs[A[numbers + i]]
            if sign == ONCE or sign == -ONCE:
                once |= 1 if sign > 0 else 2
            else:
                total += sign
            i += 1
        total += (once & 1) - (once >> 1)
        if total != 0:
            records[n * RECORD + PLACE], records[n * RECORD + AFTER] = place, total
            n += 1
    release_extent(A, work, 1)
    return n


@helper
def is_equal(rows, one, other, k):
    c = 0
    while c < k and rows[one + c] == rows[other + c]:
        c += 1
    return c == k


@helper
def find_counts(arena, n, records, rows, k, orders, head, counts):
    """Write the counts before and after; False: a row loses a derivation that it does not have."""
    for i in range(n):
        record = shifted(records, i * RECORD)
        row, position = shifted(rows, record[PLACE]), -1
        if arena[counts + N_ROWS] > 0:
            position = position_of_row(arena, counts, row, k, orders, False)
        if position >= 0:
            record[BEFORE] = key_at(arena, counts, k, position)
        else:
            record[BEFORE] = 1 if position_of_row(arena, head, row, k, orders, True) >= 0 else 0
        record[AFTER] += record[BEFORE]
        if record[AFTER] < 0:
            return False
    return True


@helper
def position_of_row(arena, root, row, k, orders, permuted):
    """Of the first row of an index that begins with k words, in the first order if they are to be permuted;
    -1: there is none."""
    lo, hi = 0, end_position(arena, root)
    for c in range(k):
        key = row[orders[c]] if permuted else row[c]
        lo = seek_lub(arena, root, c, lo, hi, key)
        if lo >= hi or key_at(arena, root, c, lo) != key:
            return -1
        hi = run_end(arena, root, c, lo, hi)
    return lo


@helper
def put_rows(n, records, absent, present, rows, k, net, to):
    """Write the rows that are there on one side only, from a row on; returns the row after them."""
    for i in range(n):
        record = shifted(records, i * RECORD)
        if record[absent] == 0 and record[present] > 0:
            for c in range(k):
                net[to * k + c] = rows[record[PLACE] + c]
            to += 1
    return to


@helper
def put_entries(n, records, side, rows, k, entries, to):
    """Write the entries of one side that the other one does not have, in the same way."""
    for i in range(n):
        record = shifted(records, i * RECORD)
        if record[side] > 1:  # the two sides differ
            for c in range(k):
                entries[to * (k + 1) + c] = rows[record[PLACE] + c]
            entries[to * (k + 1) + k] = record[side]
            to += 1
    return to
