"""Owns which rows go to which of several machines.  Knows no programs.

The hash of its key gives a row's bucket, and a table says which machine has a bucket.  The hash has another
multiplier than those that choose slots, so that the keys of one machine are spread over its tables.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.lftj.primitives import multiply
from dlog.m3.runtime.layout import (
    E_END,
    E_ENTRY,
    E_FIRST,
    E_INPUT,
    E_ROWS,
    E_SELECTED,
    E_STEP,
    E_STRIDE,
    E_WORDS,
    EMPTY,
    ROW_CODE_ROWS,
)
from dlog.m3.runtime.maps.map_kernels import shifted

PART_MULTIPLIER = np.int64(-2643881736870682267)
BUCKET_BITS = 11
BUCKETS: Final = 1 << BUCKET_BITS  # their table is a third of the fastest cache
BLOCK: Final = 512

# Words of a relation whose batches wait.
R_KEY: Final = 0  # the column that it is split by; -1: every machine has all rows
R_WIDTH: Final = 1  # columns, with that of multiplicities
R_BATCH: Final = 2  # whether it has a batch trigger
R_CLEARS: Final = 3  # whether machines without a row of a batch run its trigger, too
R_INSERT: Final = 4  # entry, step and rows, as of an event
R_DELETE: Final = 7
R_READ: Final = 10  # how many columns are read, then these

# Words of a machine's waiting rows.
W_INPUT: Final = 0  # words of its input that are used
W_EVENTS: Final = 1  # events that it has
W_WORDS: Final = 16

NO_ROOM: Final = EMPTY


@helper
def bucket_of(key):
    return shifted(multiply(key ^ shifted(key, 29), PART_MULTIPLIER), 64 - BUCKET_BITS)


@kernel
def find_machine(key: int, shares: Words) -> int:
    """The machine that has the rows with a key."""
    return int(shares[bucket_of(np.int64(key))])


@kernel
def count_buckets(words: Words, counts: Words) -> None:
    """Add the keys of each bucket.  O(n)."""
    given, counted = pointer(words), pointer(counts)
    for i in range(len(words)):
        counted[bucket_of(given[i])] += 1


@kernel
def share_out(order: Words, counts: Words, decided: Words, loads: Words, shares: Words) -> None:
    """Give each bucket that has rows and no machine, in an order, to the machine that has the fewest rows.
    O(buckets * machines).
    """
    for bucket in range(len(counts)):
        if decided[bucket] != 0:
            loads[shares[bucket]] += counts[bucket]
    for k in range(len(order)):
        bucket, least = order[k], 0
        if counts[bucket] > 0 and decided[bucket] == 0:
            for part in range(len(loads)):
                least = part if loads[part] < loads[least] else least
            loads[least] += counts[bucket]
            shares[bucket], decided[bucket] = least, 1


@kernel
def list_part(words: Words, first: int, n: int, part: int, shares: Words, rows: Words) -> int:
    """The numbers of the rows of one machine, of n whose keys begin at a place; returns how many.  `rows` is
    room for n and BLOCK.  O(n).
    """
    return list_rows(pointer(words), first, n, part, pointer(shares), pointer(rows))


@helper
def list_rows(given, first, n, part, shares, rows):
    """The buckets of a block are computed first, several at a time: 0.5 ns a row, not 0.7 (measured)."""
    found = 0
    for start in range(0, n, BLOCK):
        size = min(n - start, BLOCK)
        for i in range(size):
            rows[n + i] = bucket_of(given[first + start + i])
        for i in range(size):
            rows[found] = start + i
            found += 1 if shares[rows[n + i]] == part else 0
    return found


@helper
def copy_rows(given, stride, columns, listed, n_columns, rows, n, out, to, distance):
    """Columns of some rows, from a place on, at a distance from one to the next; they are listed from another
    place on."""
    for c in range(listed, listed + n_columns):
        at, start = columns[c] * stride, to + columns[c] * distance
        for i in range(n):
            out[start + i] = given[at + rows[i]]


@kernel
def take_part(
    words: Words,
    stride: int,
    n: int,
    key: int,
    part: int,
    shares: Words,
    columns: Words,
    rows: Words,
    marks: Words,
    first_mark: int,
    out: Words,
    to: int,
) -> int:
    """The rows of one machine, of n: those columns, from `to` on, one after the other at a distance of n.

    Returns how many rows.  A column of `words` is `stride` after the one before it.  marks[first_mark + i]
    becomes 1 for a row of the part, else 0, unless `marks` is empty.  `rows` is room for n and BLOCK.  A key
    below 0: all rows.  O(n * columns).
    """
    given, own, marked = pointer(words), pointer(rows), pointer(marks)
    if key >= 0:
        found = list_rows(given, key * stride, n, part, pointer(shares), own)
    else:
        found = all_rows(own, n)
    copy_rows(given, stride, pointer(columns), 0, len(columns), own, found, pointer(out), to, n)
    if len(marks) > 0:
        for i in range(n):
            marked[first_mark + i] = 0
        for i in range(found):
            marked[first_mark + own[i]] = 1
    return found


@helper
def all_rows(rows, n):
    for i in range(n):
        rows[i] = i
    return n


@kernel
def order_part(
    which: Words, batch: Words, marks: Words, following: Words, out_which: Words, out_batch: Words, n: int
) -> int:
    """The steps and batches of those of n rows, in order, that are marked; returns how many.

    following[s] is the place in `marks` of the next row of step s; it is changed.
    """
    found = 0
    for i in range(n):
        step = which[i]
        out_which[found], out_batch[found] = step, batch[i]
        found += marks[following[step]]
        following[step] += 1
    return found


# ---- batches that wait


@kernel
def add_waiting(
    words: Words,
    stride: int,
    n: int,
    relation: Words,
    shares: Words,
    rows: Words,
    inputs: Words,
    event_words: Words,
    waiting: Words,
    came: Words,
) -> int:
    """Divide a batch: the columns that are read go to the inputs of machines, with their events.  Returns the
    sum of multiplicities, or NO_ROOM, and then nothing has changed.  O(n * columns).

    Each machine has the same share of `inputs` and `event_words`, and W_WORDS of `waiting`; its rows are
    added to `came`.  `rows` is room for n.
    """
    given, how, whose, own = pointer(words), pointer(relation), pointer(shares), pointer(rows)
    out, events, ends = pointer(inputs), pointer(event_words), pointer(waiting)
    parts = len(came)
    room, most = len(inputs) // parts, len(event_words) // (parts * E_WORDS)
    width, key = how[R_WIDTH], how[R_KEY]
    for part in range(parts):
        at = part * W_WORDS
        used = ends[at + W_INPUT]
        if used + n * width > room or ends[at + W_EVENTS] + (1 if how[R_BATCH] != 0 else n) > most:
            return NO_ROOM
    for part in range(parts):
        at = part * W_WORDS
        start = part * room + ends[at + W_INPUT]
        if key < 0:
            found = all_rows(own, n) if part == 0 else n
        else:
            found = list_rows(given, key * stride, n, part, whose, own)
        copy_rows(given, stride, how, R_READ + 1, how[R_READ], own, found, out, start, found)
        if found == 0 and n > 0 and how[R_CLEARS] != 0:
            found = row_of_zeros(out, start, width)
        first = part * most + ends[at + W_EVENTS]
        ends[at + W_EVENTS] += add_events(how, out, start, found, events, first * E_WORDS)
        ends[at + W_INPUT] += found * width
        came[part] += found
    total = np.int64(0)
    for i in range((width - 1) * stride, (width - 1) * stride + n):
        total += given[i]
    return int(total)


@helper
def row_of_zeros(out, start, width):
    for w in range(start, start + width):
        out[w] = 0
    return 1


@helper
def add_events(relation, inputs, start, n, events, at):
    """Events of n rows that begin at a place of the input; returns how many.  Rows of one sign make one, of a
    batch trigger all do.
    """
    made, first = 0, 0
    signs = start + (relation[R_WIDTH] - 1) * n
    while first < n:
        end, sign = n, np.int64(1)
        if relation[R_BATCH] == 0:
            end, sign = first + 1, inputs[signs + first]
            while end < n and inputs[signs + end] == sign:
                end += 1
        how = R_INSERT if sign > 0 else R_DELETE
        if relation[how] >= 0:
            is_few = end - first == 1 or (end - first <= ROW_CODE_ROWS and relation[R_BATCH] == 0)
            events[at + E_ENTRY], events[at + E_STEP] = relation[how], relation[how + 1]
            events[at + E_INPUT], events[at + E_STRIDE] = start, n
            events[at + E_FIRST], events[at + E_END] = first, end
            events[at + E_ROWS] = relation[how + 2] if is_few else -1
            events[at + E_SELECTED] = 0
            made, at = made + 1, at + E_WORDS
        first = end
    return made
