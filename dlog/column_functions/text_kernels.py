"""Owns functions and relations of strings where several columns vary, row by row over the dictionary's bytes.

The text of a code c is text[ends[c]:ends[c + 1]], in UTF-8.  Pieces that make up new texts are written one
after the other to `out`, with the end of each in `out_ends`.
"""

from __future__ import annotations

from typing import Final

from dlog.jit import Bytes, Words, helper, kernel
from dlog.storage.arena.pointer import pointer

CONTAINS: Final = 0
STARTS: Final = 1
ENDS: Final = 2


@helper
def is_at(text: Bytes, at: int, part: int, length: int) -> bool:
    """Whether `length` bytes at two places are the same."""
    i = 0
    while i < length and text[at + i] == text[part + i]:
        i += 1
    return i == length


@kernel
def parts_hold(text: Bytes, ends: Words, parts: Words, rows: Words, kind: int, out: Words) -> None:
    """out[i] = whether the text of rows[i] contains, starts with or ends with that of parts[i]."""
    t, e = pointer(text), pointer(ends)
    for i in range(len(rows)):
        part, length = e[parts[i]], e[parts[i] + 1] - e[parts[i]]
        first, last = e[rows[i]], e[rows[i] + 1] - length
        if kind == STARTS:
            last = min(first, last)
        elif kind == ENDS:
            first = max(first, last)
        found = 0
        while first <= last and found == 0:
            if is_at(t, first, part, length):
                found = 1
            first += 1
        out[i] = found


@helper
def after_characters(text: Bytes, at: int, end: int, count: int) -> int:
    """Where a text continues after some characters: bytes 10xxxxxx continue one."""
    while count > 0 and at < end:
        at += 1
        while at < end and (int(text[at]) & 0xC0) == 0x80:
            at += 1
        count -= 1
    return at


@kernel
def slice_ends(
    text: Bytes, ends: Words, rows: Words, firsts: Words, counts: Words, begins: Words, out_ends: Words
) -> None:
    """Where each slice begins in the text, and the ends of all slices one after the other."""
    t, e = pointer(text), pointer(ends)
    out_ends[0] = 0
    for i in range(len(rows)):
        end = e[rows[i] + 1]
        begins[i] = after_characters(t, e[rows[i]], end, firsts[i])
        out_ends[i + 1] = out_ends[i] + after_characters(t, begins[i], end, counts[i]) - begins[i]


@kernel
def copy_slices(text: Bytes, begins: Words, out_ends: Words, out: Bytes) -> None:
    """The bytes of slices, one after the other."""
    t, o = pointer(text), pointer(out)
    for i in range(len(begins)):
        for j in range(out_ends[i + 1] - out_ends[i]):
            o[out_ends[i] + j] = t[begins[i] + j]
