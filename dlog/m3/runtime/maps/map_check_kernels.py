"""Owns the consistency check of a map's table, for `Maps.check`.  Changes nothing."""

from __future__ import annotations

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.runtime.layout import (
    EMPTY,
    M_BASE,
    M_INDEX,
    M_INDICES,
    M_KEYS,
    M_LINKED,
    M_MASK,
    M_SHIFT,
    M_USED,
    M_VALUES,
    M_WORDS,
)
from dlog.m3.runtime.maps.change_kernels import first_link
from dlog.m3.runtime.maps.map_kernels import is_live, same_keys, shifted, slot_hash, sub_hash


@kernel
def check_table(arena_words: Words, map_words: Words, m: int) -> int:
    """0 if the table is consistent, else the number of the rule that it violates.

    1 used slots are counted correctly, 2 every key is found from its hash, 3 every live slot is in the chain
    of its keys, once.  O(slots * longest chain).
    """
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, mask, shift = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK], maps[m + M_SHIFT]
    keys, values = maps[m + M_KEYS], maps[m + M_VALUES]
    used = 0
    for slot in range(mask + 1 if keys > 0 else 0):
        at = base + slot * words
        if arena[at] == EMPTY:
            continue
        used += 1
        probe = shifted(slot_hash(arena, at, keys), shift)
        while probe != slot:
            if arena[base + probe * words] == EMPTY:
                return 2
            probe = (probe + 1) & mask
        places = maps[m + M_INDEX]
        for index in range(maps[m + M_INDICES] if maps[m + M_LINKED] != 0 else 0):
            if is_live(arena, at + keys, values) and times_in_chain(arena, maps, m, index, places, slot) != 1:
                return 3
            places += 1 + maps[places]
    return 0 if used == maps[m + M_USED] or keys == 0 else 1


@helper
def times_in_chain(arena, maps, m, index, places, wanted):
    base, words, mask = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK]
    at = base + wanted * words
    heads = base + (mask + 1) * (words + index)
    place = shifted(sub_hash(arena, at, maps, places), maps[m + M_SHIFT])
    while arena[heads + place] != 0 and not same_keys(
        arena, at, base + (arena[heads + place] - 1) * words, maps, places
    ):
        place = (place + 1) & mask
    slot = arena[heads + place] - 1
    times = 0
    while slot >= 0 and times < 2:
        if slot == wanted:
            times += 1
        slot = arena[base + slot * words + first_link(maps, m) + index]
    return times
