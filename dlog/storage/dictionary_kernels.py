"""Owns the hash table of strings.  Knows nothing of Arrow or of types.

Strings lie one after the other: string i of a list is data[ends[i]:ends[i + 1]].  The table is an array of
slots, its size a power of two; a slot is 0 or (hash << 32) | (code + 1).  Hashes have 31 bits, so that their
arithmetic never leaves int64 and runs uncompiled as well.  meta is [number of codes, bytes of text used, a
word without meaning].  One byte of text stays unused, so that even an empty text at the end can be looked at.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Bytes, Words, helper, kernel
from dlog.storage.pointer import pointer

HASH_MASK: Final = 0x7FFFFFFF
CODE_MASK: Final = 0xFFFFFFFF
FNV_START: Final = 2166136261 & HASH_MASK
FNV_FACTOR: Final = 16777619
N_CODES: Final = 0
N_BYTES: Final = 1
SEEN: Final = 2
ABSENT: Final = -1
AHEAD: Final = 32


@helper
def hash_of(data: Bytes, start: int, end: int) -> int:
    """FNV-1a, then mixed once more: the low bits choose the slot."""
    h = FNV_START
    for i in range(start, end):
        h = ((h ^ int(data[i])) * FNV_FACTOR) & HASH_MASK
    return h ^ (h >> 15)


@helper
def find_slot(
    data: Bytes, start: int, end: int, h: int, table: Words, mask: int, text: Bytes, ends: Words
) -> int:
    """The slot that holds the string, or the empty one where it belongs.  O(length) expected."""
    slot = h & mask
    while table[slot] != 0:
        if table[slot] >> 32 == h and is_equal(data, start, end, text, ends, (table[slot] & CODE_MASK) - 1):
            return slot
        slot = (slot + 1) & mask
    return slot


@helper
def is_equal(data: Bytes, start: int, end: int, text: Bytes, ends: Words, code: int) -> bool:
    """Whether data[start:end] is the text of a code."""
    at = ends[code]
    if ends[code + 1] - at != end - start:
        return False
    i = 0
    while start + i < end and data[start + i] == text[at + i]:
        i += 1
    return start + i == end


@helper
def look_ahead(
    data: Bytes,
    starts: Words,
    first: int,
    last: int,
    table: Words,
    mask: int,
    text: Bytes,
    ends: Words,
    out: Words,
) -> int:
    """Hashes of some strings to `out`; reads what their look-up will read, so that cache misses overlap.

    The sum of what was read is returned only to make the reads happen.
    """
    for i in range(first, last):
        out[i] = hash_of(data, starts[i], starts[i + 1])
    seen = 0
    for i in range(first, last):
        seen += table[out[i] & mask] & 1
    for i in range(first, last):
        code = (table[out[i] & mask] & CODE_MASK) - 1
        if code >= 0:
            seen += int(text[ends[code]])
    return seen


@kernel
def encode_strings(
    data: Bytes,
    starts: Words,
    first: int,
    n: int,
    table: Words,
    text: Bytes,
    ends: Words,
    meta: Words,
    out: Words,
) -> int:
    """Codes of strings [first, n), new ones in order of arrival.  Returns n, or where room has run out."""
    d, t, e, slots = pointer(data), pointer(text), pointer(ends), pointer(table)
    ahead = first
    for i in range(first, n):
        if i == ahead:
            ahead = min(n, i + AHEAD)
            meta[SEEN] = look_ahead(d, starts, i, ahead, slots, len(table) - 1, t, e, out)
        start, end = starts[i], starts[i + 1]
        h = out[i]
        slot = find_slot(d, start, end, h, slots, len(table) - 1, t, e)
        if slots[slot] == 0:
            code = meta[N_CODES]
            used = meta[N_BYTES]
            if 2 * code >= len(table) or code + 2 > len(ends) or used + end - start >= len(text):
                return i
            for x in range(end - start):
                t[used + x] = d[start + x]
            e[code + 1] = used + end - start
            meta[N_BYTES] = used + end - start
            meta[N_CODES] = code + 1
            slots[slot] = (h << 32) | (code + 1)
        out[i] = (slots[slot] & CODE_MASK) - 1
    return n


@kernel
def find_strings(
    data: Bytes, starts: Words, n: int, table: Words, text: Bytes, ends: Words, out: Words
) -> None:
    """Codes of strings, ABSENT for those without one."""
    d, t, e, slots = pointer(data), pointer(text), pointer(ends), pointer(table)
    for i in range(n):
        h = hash_of(d, starts[i], starts[i + 1])
        slot = find_slot(d, starts[i], starts[i + 1], h, slots, len(table) - 1, t, e)
        out[i] = (table[slot] & CODE_MASK) - 1 if table[slot] != 0 else ABSENT


@kernel
def refill_table(old: Words, table: Words) -> None:
    """Put the slots of a table into a larger one."""
    mask = len(table) - 1
    for i in range(len(old)):
        if old[i] != 0:
            slot = (old[i] >> 32) & mask
            while table[slot] != 0:
                slot = (slot + 1) & mask
            table[slot] = old[i]


@helper
def is_before(text: Bytes, ends: Words, a: int, b: int) -> bool:
    """Whether the text of code a sorts before that of code b, by bytes."""
    start, other = ends[a], ends[b]
    length, other_length = ends[a + 1] - start, ends[b + 1] - other
    for i in range(min(length, other_length)):
        if text[start + i] != text[other + i]:
            return text[start + i] < text[other + i]
    return length < other_length


@kernel
def merge_order(text: Bytes, ends: Words, order: Words, n: int, new: Words, m: int, out: Words) -> None:
    """Merge m new codes, sorted by text, into n sorted ones.  O(n + m log n)."""
    t, e = pointer(text), pointer(ends)
    taken = 0
    for j in range(m):
        lo, hi = taken, n
        while lo < hi:
            middle = (lo + hi) >> 1
            if is_before(t, e, order[middle], new[j]):
                lo = middle + 1
            else:
                hi = middle
        for i in range(taken, lo):
            out[i + j] = order[i]
        out[lo + j] = new[j]
        taken = lo
    for i in range(taken, n):
        out[i + m] = order[i]
