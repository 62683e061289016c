"""Owns hash tables of rows with weights, in kernels.  Knows nothing of relations.

A table has a power of two of entries, each `width` key words and a weight, which is 0 in an empty entry.
Rows come as columns of one array: value c of row i is word c * stride + i.  An entry is sought from its hash
on, one by one; a table is at most half full.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer

_MIX = np.int64(-7046029254386353131)  # odd, its bits well mixed (2**64 divided by the golden ratio)


@helper
def _entry(table, mask, width, rows, stride, row):
    """The address of the entry of a row: its own, or the empty one where it belongs."""
    hashed = np.int64(0)
    for c in range(width):
        hashed = (hashed ^ rows[c * stride + row]) * _MIX
        hashed ^= (hashed >> 32) & 0xFFFFFFFF
    place = hashed & mask
    while True:
        at = place * (width + 1)
        if table[at + width] == 0:
            return at
        same = True
        for c in range(width):
            same = same and table[at + c] == rows[c * stride + row]
        if same:
            return at
        place = (place + 1) & mask


@kernel
def add_rows(
    table_words: Words,
    mask: int,
    width: int,
    row_words: Words,
    stride: int,
    n: int,
    weight_words: Words,
    weighted: int,
) -> int:
    """Add n rows, each with its weight (1, if not `weighted`); return how many entries are new.  O(n).

    REQUIRES: the table stays at most half full.
    """
    table, rows, weights = pointer(table_words), pointer(row_words), pointer(weight_words)
    new = 0
    for i in range(n):
        at = _entry(table, mask, width, rows, stride, i)
        if table[at + width] == 0:
            new += 1
            for c in range(width):
                table[at + c] = rows[c * stride + i]
        table[at + width] += weights[i] if weighted == 1 else 1
    return new


@kernel
def move_entries(old_words: Words, old_entries: int, new_words: Words, new_mask: int, width: int) -> None:
    """All entries of a table into an empty, larger one.  O(old_entries)."""
    old, table = pointer(old_words), pointer(new_words)
    for e in range(old_entries):
        at = e * (width + 1)
        if old[at + width] != 0:
            to = _entry(table, new_mask, width, old, 1, at)
            for c in range(width + 1):
                table[to + c] = old[at + c]


@kernel
def find_rows(
    table_words: Words,
    mask: int,
    width: int,
    row_words: Words,
    stride: int,
    n: int,
    found_words: Words,
    weight_words: Words,
) -> int:
    """Write the numbers of the rows that the table has, and their weights; return how many.  O(n)."""
    table, rows = pointer(table_words), pointer(row_words)
    found, weights = pointer(found_words), pointer(weight_words)
    count = 0
    for i in range(n):
        weight = table[_entry(table, mask, width, rows, stride, i) + width]
        found[count] = i
        weights[count] = weight
        count += weight != 0
    return count


@kernel
def sum_rows(table_words: Words, mask: int, width: int, row_words: Words, stride: int, n: int) -> int:
    """The sum of the weights of n rows; those that the table lacks weigh nothing.  O(n)."""
    table, rows = pointer(table_words), pointer(row_words)
    total = 0
    for i in range(n):
        total += table[_entry(table, mask, width, rows, stride, i) + width]
    return total
