"""Owns the kernels of row sets: rows packed into one number each, in a hash table or a bitmap.

A row is packed in mixed radix: ((c0 - low0) * width1 + (c1 - low1)) * width2 + ...; the caller makes sure
that the product of the widths fits.  A hash table is open addressing over packed rows, -1 for an empty slot.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, kernel

MULTIPLIER = -7046029254386353131  # 2^64 / golden ratio, as a signed word
WORD_MASK = (1 << 63) - 1


@kernel
def pack(columns: Words, n: int, k: int, lows: Words, widths: Words, out: Words) -> int:
    """Packed rows into `out`; 0 if a value is outside its column's range, else 1.

    Column c of row i is columns[c * n + i].
    """
    for i in range(n):
        out[i] = 0
    for c in range(k):
        low, width, base = lows[c], widths[c], c * n
        for i in range(n):
            offset = columns[base + i] - low
            if offset < 0 or offset >= width:
                return 0
            out[i] = out[i] * width + offset
    return 1


@kernel
def hash_add(keys: Words, n: int, table: Words, out: Words) -> int:
    """Adds keys to a table; positions of those that were new go to `out`.  Returns their number.

    REQUIRES: the table stays at most half full; its length is a power of 2.
    """
    mask = len(table) - 1
    found = 0
    for i in range(n):
        key = keys[i]
        slot = (((key * np.int64(MULTIPLIER)) & np.int64(WORD_MASK)) >> 20) & mask
        while table[slot] >= 0 and table[slot] != key:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = key
            out[found] = i
            found += 1
    return found


@kernel
def rehash(old: Words, table: Words) -> int:
    """Puts all keys of one table into a larger, empty one."""
    mask = len(table) - 1
    for i in range(len(old)):
        key = old[i]
        if key >= 0:
            slot = (((key * np.int64(MULTIPLIER)) & np.int64(WORD_MASK)) >> 20) & mask
            while table[slot] >= 0:
                slot = (slot + 1) & mask
            table[slot] = key
    return 0


@kernel
def bitmap_add(keys: Words, n: int, bits: Words, out: Words) -> int:
    """As `hash_add`, with one bit for every possible row."""
    found = 0
    for i in range(n):
        key = keys[i]
        word, bit = key >> 6, np.int64(1) << (key & 63)
        if bits[word] & bit == 0:
            bits[word] |= bit
            out[found] = i
            found += 1
    return found


@kernel
def bitmap_fill(table: Words, bits: Words) -> int:
    """Sets the bits of all keys of a hash table."""
    for i in range(len(table)):
        key = table[i]
        if key >= 0:
            bits[key >> 6] |= np.int64(1) << (key & 63)
    return 0
