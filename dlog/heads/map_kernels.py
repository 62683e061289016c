"""Owns heads whose rows are changed entries of maps: how a head changes in one kernel call.

A changed entry is a row of words: keys, then for each map the value before and the value after.  The layout
of a head, as data:

    columns of the head, its column orders, words of an entry, the place of the number of assignments before
    a pair (kind, place) for each column: a literal's code, a key, or the place of a value before
    the column orders
"""

from __future__ import annotations

from typing import Final

from dlog.heads.group_kernels import LITERAL, RESULT_OF
from dlog.jit import Words, helper, kernel, pointer, shifted
from dlog.storage.relation.rows_kernels import change_all

# Words of a layout.
COLUMNS: Final = 0
N_ORDERS: Final = 1
WIDTH: Final = 2
COUNT: Final = 3
PAIRS: Final = 4


@kernel
def change_mapped_head(arena: Words, layout: Words, roots: Words, changed: Words, n: int, rows: Words) -> int:
    """Change a head by n entries: how many rows it gained or lost, or what `change_all` answers where it did
    nothing.

    A group without assignments has no row.  The new roots come behind the old ones, the rows that changed to
    `rows`, which has room for two of each entry.
    """
    head, given, entries, old = pointer(layout), pointer(rows), pointer(changed), pointer(roots)
    k, n_orders = head[COLUMNS], head[N_ORDERS]
    inserts = put_rows(head, entries, n, 1, given, 0)
    m = put_rows(head, entries, n, 0, given, inserts)
    if m == 0:
        return 0
    orders, new = shifted(head, PAIRS + 2 * k), shifted(old, n_orders)
    return int(
        change_all(pointer(arena), k, n_orders, orders, old, new, given, inserts, m - inserts, 0, given)
    )


@helper
def put_rows(head, entries, n, when, rows, m):
    """Write the rows of entries that differ, as they are (1) or were (0), from row m on; returns the row
    after them."""
    k, width = head[COLUMNS], head[WIDTH]
    for i in range(n):
        entry = i * width
        if entries[entry + head[COUNT] + when] <= 0 or not differs(head, entries, entry):
            continue
        for c in range(k):
            kind, place = head[PAIRS + 2 * c], head[PAIRS + 2 * c + 1]
            if kind == RESULT_OF:
                place += when
            rows[m * k + c] = place if kind == LITERAL else entries[entry + place]
        m += 1
    return m


@helper
def differs(head, entries, entry):
    """Whether the row of an entry comes, goes or has another value."""
    count = entry + head[COUNT]
    if entries[count] <= 0 or entries[count + 1] <= 0:
        return True
    for c in range(head[COLUMNS]):
        value = entry + head[PAIRS + 2 * c + 1]
        if head[PAIRS + 2 * c] == RESULT_OF and entries[value] != entries[value + 1]:
            return True
    return False
