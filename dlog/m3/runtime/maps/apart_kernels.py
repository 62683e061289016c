"""Owns elements that are stored apart from the slots of their map, inside kernels: see `layout`.

Knows nothing of hashes; `apart` allocates memory for elements.
"""

from __future__ import annotations

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.runtime.layout import (
    EMPTY,
    M_APART,
    M_BASE,
    M_FRESH,
    M_KEYS,
    M_MASK,
    M_SPARE,
    M_VALUES,
    M_WORDS,
)


@helper
def value_at(arena, maps, m, at):
    """Where the value of the slot at a place is."""
    at += maps[m + M_KEYS]
    return arena[at] if maps[m + M_APART] != 0 else at


@helper
def take_element(arena, maps, m):
    """An element that no slot has.  REQUIRES: room for one more slot."""
    at = maps[m + M_SPARE]
    if at != 0:
        maps[m + M_SPARE] = arena[at]
    else:
        at = maps[m + M_FRESH]
        maps[m + M_FRESH] += maps[m + M_APART]
    return at


@helper
def give_back(arena, maps, m, element):
    arena[element] = maps[m + M_SPARE]
    maps[m + M_SPARE] = element


# ---- kernels for `apart`


@kernel
def keep_rest(arena_words: Words, map_words: Words, m: int, end: int) -> None:
    """Make elements that were never used available before the next ones come from elsewhere.  O(their
    number).
    """
    arena, maps = pointer(arena_words), pointer(map_words)
    width = maps[m + M_APART]
    while end > maps[m + M_FRESH]:
        end -= width
        give_back(arena, maps, m, end)


@kernel
def move_elements(arena_words: Words, map_words: Words, m: int, to: int) -> None:
    """Move the elements of all slots side by side; what follows them is unused.  O(slots and elements)."""
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, keys = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS]
    for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
        if arena[at] != EMPTY:
            element = arena[at + keys]
            for w in range(maps[m + M_VALUES]):
                arena[to + w] = arena[element + w]
            arena[at + keys] = to
            to += maps[m + M_APART]
    maps[m + M_SPARE], maps[m + M_FRESH] = 0, to


@kernel
def write_whole(arena_words: Words, map_words: Words, m: int, out: Words) -> None:
    """Every slot's keys and value, one after the other.  O(slots and elements)."""
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, keys, values = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS], maps[m + M_VALUES]
    to = 0
    for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
        for j in range(keys):
            out[to + j] = arena[at + j]
        if arena[at] != EMPTY:
            for v in range(values):
                out[to + keys + v] = arena[arena[at + keys] + v]
        to += keys + values


@kernel
def read_whole(arena_words: Words, map_words: Words, m: int, given: Words) -> None:
    """Fill a table with what `write_whole` wrote.  REQUIRES: an empty one of as many slots."""
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, keys, values = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS], maps[m + M_VALUES]
    start = 0
    for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
        for j in range(keys):
            arena[at + j] = given[start + j]
        if arena[at] != EMPTY:
            element = take_element(arena, maps, m)
            arena[at + keys] = element
            for v in range(values):
                arena[element + v] = given[start + keys + v]
        start += keys + values
