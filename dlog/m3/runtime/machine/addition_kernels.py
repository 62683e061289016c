"""Owns the sum of what several machines have.  Knows no programs."""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.rings.kernels import sum_of_doubled
from dlog.m3.runtime.layout import (
    DOUBLED,
    EMPTY,
    EXACT,
    FLOAT,
    INT,
    M_APART,
    M_BASE,
    M_KEYS,
    M_KINDS,
    M_LINKED,
    M_MASK,
    M_SHIFT,
    M_SPARE,
    M_UPDATES,
    M_USED,
    M_VALUES,
    M_WORDS,
)
from dlog.m3.runtime.machine.arithmetic_kernels import add_ints, to_bits, to_float
from dlog.m3.runtime.machine.exact_kernels import add_sum
from dlog.m3.runtime.maps.apart_kernels import value_at
from dlog.m3.runtime.maps.map_kernels import is_live, link, make_zero, shifted, slot_hash, take_slot
from dlog.m3.runtime.maps.order_kernels import note


@kernel
def add_map(
    arena_words: Words, map_words: Words, m: int, from_words: Words, s: int, first: int, state_words: Words
) -> int:
    """Add all entries of a map of another machine, from a slot on.  Returns -1, or the slot at which a wide
    sum is needed first.  REQUIRES: maps of the same shape, room for as many more entries.  O(slots).
    """
    arena, maps, others, state = (
        pointer(arena_words), pointer(map_words), pointer(from_words), pointer(state_words),
    )  # fmt: skip
    base, words, keys = others[s + M_BASE], others[s + M_WORDS], others[s + M_KEYS]
    is_exact = maps[maps[m + M_KINDS]] == EXACT
    for slot in range(first, others[s + M_MASK] + 1):
        at = base + slot * words
        if keys > 0 and arena[at] == EMPTY:
            continue
        value = value_at(arena, others, s, at)
        if not is_live(arena, value, others[s + M_VALUES]):
            continue
        if is_exact and maps[m + M_SPARE] == 0:
            return slot
        target = value_at(arena, maps, m, entry_of(arena, maps, m, at, keys))
        if is_exact:
            add_sum(arena, maps, m, target, value, np.int64(1), state, np.int64(0))
        else:
            add_words(arena, maps, m, target, value, state)
    return -1


@helper
def entry_of(arena, maps, m, key_at, keys):
    """Where the slot of some keys is, made if there is none."""
    base, words, mask = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK]
    if keys == 0:
        maps[m + M_USED] = 1
        return base
    slot = shifted(slot_hash(arena, key_at, keys), maps[m + M_SHIFT])
    at = base + slot * words
    while arena[at] != EMPTY and not same_words(arena, at, key_at, keys):
        slot = (slot + 1) & mask
        at = base + slot * words
    maps[m + M_UPDATES] += 1
    if arena[at] == EMPTY:
        make_zero(arena, maps, m, at)
        for j in range(keys):
            arena[at + j] = arena[key_at + j]
        take_slot(arena, maps, m, slot)
    elif maps[m + M_LINKED] != 0 and maps[m + M_APART] == 0:
        link(arena, maps, m, slot)
    note(arena, maps, m, slot)
    return at


@helper
def same_words(arena, one, other, n):
    j = 0
    while j < n and arena[one + j] == arena[other + j]:
        j += 1
    return j == n


@helper
def add_words(arena, maps, m, to, value, state):
    kinds = maps[m + M_KINDS]
    for v in range(maps[m + M_VALUES]):
        kind = maps[kinds + v]
        if kind == INT:
            arena[to + v] = add_ints(arena[to + v], arena[value + v], state, np.int64(0))
        elif kind == FLOAT:
            arena[to + v] = to_bits(to_float(arena[to + v]) + to_float(arena[value + v]) + 0.0)
        elif kind == DOUBLED:
            high, low = sum_of_doubled(
                to_float(arena[to + v]), to_float(arena[to + v + 1]),
                to_float(arena[value + v]), to_float(arena[value + v + 1]),
            )  # fmt: skip
            arena[to + v] = to_bits(high)
            arena[to + v + 1] = to_bits(low)
