"""Owns heads whose rows are changed entries of maps: how a head changes in one kernel call.

A changed entry is a row of words: keys, then for each map the value before and the value after.  The layout
of a head, as data:

    columns of the head, its column orders, words of an entry, the place of the number of assignments before,
    where the lists begin
    four words for each column: its kind, a place, a factor, a limit
    the column orders
    lists: a number of places, then each

A column is a literal's code, a key, the value of a map, or a sum of several: then its place is that of a
list.  What it is made of must be smaller than its limit, if that is not 0; it is multiplied by its factor.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.heads.group_kernels import LITERAL, RESULT_OF
from dlog.jit import Words, helper, kernel, pointer, shifted
from dlog.lftj.primitives import add
from dlog.storage.relation.rows_kernels import change_all

UNFIT: Final = -1000  # a value does not fit its column: nothing has been done
SUM_OF: Final = 3  # a kind, besides those of `group_kernels`

# Words of a layout.
COLUMNS: Final = 0
N_ORDERS: Final = 1
WIDTH: Final = 2
COUNT: Final = 3
LISTS: Final = 4
PLACES: Final = 5
# Words of a column.
P_KIND: Final = 0
P_PLACE: Final = 1
P_FACTOR: Final = 2
P_LIMIT: Final = 3
P: Final = 4


@kernel
def change_mapped_head(arena: Words, layout: Words, roots: Words, changed: Words, n: int, rows: Words) -> int:
    """Change a head by n entries: how many rows it gained or lost, or UNFIT, or what `change_all` answers
    where it did nothing.

    A group without assignments has no row.  The new roots come behind the old ones, the rows that changed to
    `rows`, which has room for two of each entry.
    """
    head, given, entries, old = pointer(layout), pointer(rows), pointer(changed), pointer(roots)
    k, n_orders = head[COLUMNS], head[N_ORDERS]
    inserts = put_rows(head, entries, n, 1, given, 0)
    m = put_rows(head, entries, n, 0, given, inserts) if inserts >= 0 else inserts
    if m <= 0:
        return int(m)
    orders, new = shifted(head, PLACES + P * k), shifted(old, n_orders)
    return int(
        change_all(pointer(arena), k, n_orders, orders, old, new, given, inserts, m - inserts, 0, given)
    )


@helper
def put_rows(head, entries, n, when, rows, m):
    """Write the rows of entries that differ, as they are (1) or were (0), from row m on; returns the row
    after them, or UNFIT."""
    k, width = head[COLUMNS], head[WIDTH]
    for i in range(n):
        entry = i * width
        if entries[entry + head[COUNT] + when] <= 0 or not differs(head, entries, entry):
            continue
        for c in range(k):
            at = PLACES + P * c
            if not is_whole(head, entries, entry, at, when):
                return UNFIT
            value = value_of(head, entries, entry, at, when)
            limit = head[at + P_LIMIT]
            if limit > 0 and (value <= -limit or value >= limit):
                return UNFIT
            rows[m * k + c] = value * head[at + P_FACTOR]
        m += 1
    return m


@helper
def value_of(head, entries, entry, at, when):
    """What a column is made of, after (1) or before (0).  A sum that is not whole wraps around."""
    kind, place = head[at + P_KIND], head[at + P_PLACE]
    if kind == LITERAL:
        return place
    if kind == RESULT_OF:
        return entries[entry + place + when]
    if kind != SUM_OF:
        return entries[entry + place]
    found = np.int64(0)
    for j in range(head[place]):
        found = add(found, entries[entry + head[place + 1 + j] + when])
    return found


@helper
def is_whole(head, entries, entry, at, when):
    """Whether no sum of the values of several maps leaves 64 bits."""
    if head[at + P_KIND] != SUM_OF:
        return True
    place, found = head[at + P_PLACE], np.int64(0)
    for j in range(head[place]):
        more = entries[entry + head[place + 1 + j] + when]
        total = add(found, more)
        if ((found ^ total) & (more ^ total)) < 0:
            return False
        found = total
    return True


@helper
def differs(head, entries, entry):
    """Whether the row of an entry comes, goes or has another value."""
    count = entry + head[COUNT]
    if entries[count] <= 0 or entries[count + 1] <= 0:
        return True
    for c in range(head[COLUMNS]):
        at = PLACES + P * c
        if head[at + P_KIND] >= RESULT_OF and (
            value_of(head, entries, entry, at, 0) != value_of(head, entries, entry, at, 1)
        ):
            return True
    return False
