"""Owns which slots of a map have changed since it was last drained, inside kernels: see `layout`.

Correct output: from the first change of an entry on, its slot has the value before, and is listed once.
"""

from __future__ import annotations

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.runtime.layout import (
    CHANGE_WORDS,
    EMPTY,
    LAST,
    M_BASE,
    M_CHANGED,
    M_DRAINED,
    M_KEYS,
    M_MASK,
    M_VALUES,
    M_WORDS,
)


@helper
def first_link(maps, m):
    """Where in a slot the links of chains begin, if its value is not apart."""
    return maps[m + M_KEYS] + maps[m + M_VALUES] + (CHANGE_WORDS if maps[m + M_DRAINED] != 0 else 0)


@helper
def keep_before(arena, maps, m, slot):
    """The value of a slot is going to change.  REQUIRES: the changes of the map are drained."""
    at = maps[m + M_BASE] + slot * maps[m + M_WORDS]
    note = at + maps[m + M_DRAINED]
    if arena[note] == 0:
        arena[note] = maps[m + M_CHANGED]
        arena[note + 1] = arena[at + maps[m + M_KEYS]]
        maps[m + M_CHANGED] = slot + 2


@helper
def is_changed(arena, maps, m, at):
    """Whether the slot at a place is listed as changed."""
    return maps[m + M_DRAINED] != 0 and arena[at + maps[m + M_DRAINED]] != 0


@helper
def list_none(maps, m):
    if maps[m + M_DRAINED] != 0:
        maps[m + M_CHANGED] = LAST


@kernel
def list_changed(arena_words: Words, map_words: Words, m: int) -> None:
    """List changed slots again, after slots have been moved.  O(slots)."""
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, keys, note = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS], maps[m + M_DRAINED]
    maps[m + M_CHANGED] = LAST
    for slot in range(maps[m + M_MASK] + 1):
        at = base + slot * words
        if (keys == 0 or arena[at] != EMPTY) and arena[at + note] != 0:
            arena[at + note] = maps[m + M_CHANGED]
            maps[m + M_CHANGED] = slot + 2


@kernel
def check_changed(arena_words: Words, map_words: Words, m: int) -> bool:
    """Whether the list has exactly the slots that are marked as changed, once.  O(slots)."""
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, keys, note = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS], maps[m + M_DRAINED]
    marked = 0
    for slot in range(maps[m + M_MASK] + 1):
        at = base + slot * words
        if (keys == 0 or arena[at] != EMPTY) and arena[at + note] != 0:
            marked += 1
    listed, slot = 0, maps[m + M_CHANGED]
    while slot != LAST and listed <= marked:
        if slot < LAST or slot - 2 > maps[m + M_MASK]:
            return False
        listed += 1
        slot = arena[base + (slot - 2) * words + note]
    return listed == marked
