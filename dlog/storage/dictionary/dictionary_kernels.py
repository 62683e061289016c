"""Owns the hash table of strings.  Knows nothing of Arrow or of types.

Strings are stored one after the other: string i of a list is data[ends[i]:ends[i + 1]].  The table is an
array of slots, its size a power of two; a slot is 0 or (hash << 32) | (code + 1).  meta is [number of codes,
bytes of text used, bytes that would need room, a word without meaning].  SLACK bytes of text stay unused, so
that any text can be read and written by words.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Bytes, Words, helper, kernel
from dlog.storage.arena.pointer import pointer
from dlog.storage.dictionary.byte_kernels import (
    SLACK,
    append_bytes,
    copy_bytes,
    hash_bytes,
    move_bytes,
    same_bytes,
)
from dlog.storage.dictionary.text_sort_kernels import is_before_from

CODE_MASK: Final = 0xFFFFFFFF
N_CODES: Final = 0
N_BYTES: Final = 1
NEEDED: Final = 2
SEEN: Final = 3
META: Final = 4
ABSENT: Final = -1
AHEAD: Final = 32


@helper
def find_slot(
    data: Bytes, start: int, end: int, limit: int, h: int, table: Words, mask: int, text: Bytes, ends: Words
) -> int:
    """The slot that holds the string, or the empty one where it belongs.  O(length) expected."""
    slot = h & mask
    while table[slot] != 0:
        if table[slot] >> 32 == h:
            code = (table[slot] & CODE_MASK) - 1
            at = ends[code]
            if ends[code + 1] - at == end - start and same_bytes(data, start, end, limit, text, at):
                return slot
        slot = (slot + 1) & mask
    return slot


@helper
def look_ahead(
    table: Words, mask: int, text: Bytes, ends: Words, hashes: Words, first: int, last: int
) -> int:
    """Reads what looking up these hashes will read, so that cache misses overlap.

    The sum of what was read is returned only to make the reads happen.
    """
    seen = 0
    for i in range(first, last):
        seen += table[hashes[i] & mask] & 1
    for i in range(first, last):
        code = (table[hashes[i] & mask] & CODE_MASK) - 1
        if code >= 0:
            seen += int(text[ends[code]])
    return seen


@helper
def add_code(slots: Words, slot: int, h: int, length: int, ends: Words, meta: Words) -> None:
    """The next code for the text that begins where the others end."""
    code = meta[N_CODES]
    meta[N_BYTES] += length
    meta[N_CODES] = code + 1
    ends[code + 1] = meta[N_BYTES]
    slots[slot] = (h << 32) | (code + 1)


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
    limit, mask = len(data), len(table) - 1
    ahead = first
    for i in range(first, n):
        start, end = starts[i], starts[i + 1]
        if i == ahead:
            ahead = min(n, i + AHEAD)
            for j in range(i, ahead):
                out[j] = hash_bytes(d, starts[j], starts[j + 1], limit)
            meta[SEEN] = look_ahead(slots, mask, t, e, out, i, ahead)
        h = out[i]
        slot = find_slot(d, start, end, limit, h, slots, mask, t, e)
        if slots[slot] == 0:
            code, used = meta[N_CODES], meta[N_BYTES]
            if 2 * code >= len(table) or code + 2 > len(ends) or used + end - start + SLACK > len(text):
                meta[NEEDED] = end - start
                return i
            copy_bytes(d, start, end, limit, t, used)
            add_code(slots, slot, h, end - start, e, meta)
        out[i] = (slots[slot] & CODE_MASK) - 1
    return n


@kernel
def encode_joined(
    columns: Words,
    width: int,
    first: int,
    n: int,
    table: Words,
    text: Bytes,
    ends: Words,
    meta: Words,
    places: Words,
    out: Words,
) -> int:
    """Codes of rows [first, n), each the texts of `width` codes joined: code c of row i is word c * n + i.

    The texts of AHEAD rows are written after those of the dictionary, then looked up; a new one stays where
    it is, or moves down over those that were known.  `places` has room for AHEAD + 1 words.  Returns n, or
    where room has run out.
    """
    t, e, slots, p = pointer(text), pointer(ends), pointer(table), pointer(columns)
    limit, mask = len(text), len(table) - 1
    for block in range(first, n, AHEAD):
        last = min(n, block + AHEAD)
        needed = joined_length(p, width, n, block, last, e)
        codes, to = meta[N_CODES], meta[N_BYTES]
        if 2 * (codes + AHEAD) > len(table) or codes + AHEAD + 1 > len(ends) or to + needed + SLACK > limit:
            meta[NEEDED] = needed
            return block
        for i in range(block, last):
            places[i - block] = to
            for c in range(width):
                code = p[c * n + i]
                to = append_bytes(t, e[code], e[code + 1], to)
        places[last - block] = to
        for i in range(block, last):
            out[i] = hash_bytes(t, places[i - block], places[i - block + 1], limit)
        meta[SEEN] = look_ahead(slots, mask, t, e, out, block, last)
        for i in range(block, last):
            start, end, h = places[i - block], places[i - block + 1], out[i]
            slot = find_slot(t, start, end, limit, h, slots, mask, t, e)
            if slots[slot] == 0:
                move_bytes(t, start, end, meta[N_BYTES])
                add_code(slots, slot, h, end - start, e, meta)
            out[i] = (slots[slot] & CODE_MASK) - 1
    return n


@helper
def joined_length(columns: Words, width: int, n: int, first: int, last: int, ends: Words) -> int:
    """The bytes of rows [first, last) joined."""
    total = 0
    for c in range(width):
        for i in range(first, last):
            code = columns[c * n + i]
            total += ends[code + 1] - ends[code]
    return total


@kernel
def find_strings(
    data: Bytes, starts: Words, n: int, table: Words, text: Bytes, ends: Words, out: Words
) -> None:
    """Codes of strings, ABSENT for those without one."""
    d, t, e, slots = pointer(data), pointer(text), pointer(ends), pointer(table)
    limit = len(data)
    for i in range(n):
        h = hash_bytes(d, starts[i], starts[i + 1], limit)
        slot = find_slot(d, starts[i], starts[i + 1], limit, h, slots, len(table) - 1, t, e)
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


@kernel
def merge_order(text: Bytes, ends: Words, order: Words, n: int, new: Words, m: int, out: Words) -> None:
    """Merge m new codes, sorted by text, into n sorted ones.  O(n + m log n)."""
    t, e = pointer(text), pointer(ends)
    taken = 0
    for j in range(m):
        lo, hi = taken, n
        while lo < hi:
            middle = (lo + hi) >> 1
            if is_before_from(t, e, order[middle], new[j], 0):
                lo = middle + 1
            else:
                hi = middle
        for i in range(taken, lo):
            out[i + j] = order[i]
        out[lo + j] = new[j]
        taken = lo
    for i in range(taken, n):
        out[i + m] = order[i]
