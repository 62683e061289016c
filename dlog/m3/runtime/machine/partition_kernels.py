"""Owns which rows go to which of several machines, and the sum of what machines have.  Knows no programs.

The hash of its key says to which machine a row goes.  It has another multiplier than the hashes that choose
slots, so that the keys of one machine are spread over its tables.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.lftj.primitives import multiply
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

PART_MULTIPLIER = np.int64(-2643881736870682267)
ROW_BITS = 32  # of a hash


@helper
def part_of(key, parts):
    hash = multiply(key ^ shifted(key, 29), PART_MULTIPLIER)
    return (shifted(hash, 64 - ROW_BITS) * parts) >> ROW_BITS


@kernel
def list_part(words: Words, first: int, n: int, part: int, parts: int, rows: Words) -> int:
    """The numbers of the rows of one part, of n whose keys begin at a place; returns how many.  O(n)."""
    given, own, found = pointer(words), pointer(rows), 0
    for i in range(n):
        own[found] = i
        found += 1 if part_of(given[first + i], parts) == part else 0
    return found


@kernel
def take_part(
    words: Words,
    stride: int,
    n: int,
    key: int,
    part: int,
    parts: int,
    columns: Words,
    rows: Words,
    marks: Words,
    first_mark: int,
    out: Words,
    to: int,
) -> int:
    """The rows of one part, of n: those columns, from `to` on, one after the other at a distance of n.

    Returns how many rows.  A column of `words` is `stride` after the one before it.  marks[first_mark + i]
    becomes 1 for a row of the part, else 0, unless `marks` is empty.  `rows` is room for n.  O(n * columns).
    """
    given, taken, own, marked = pointer(words), pointer(out), pointer(rows), pointer(marks)
    found, at = 0, key * stride
    for i in range(n):
        own[found] = i
        found += 1 if part_of(given[at + i], parts) == part else 0
    for c in range(len(columns)):
        at, start = columns[c] * stride, to + columns[c] * n
        for i in range(found):
            taken[start + i] = given[at + own[i]]
    if len(marks) > 0:
        for i in range(n):
            marked[first_mark + i] = 0
        for i in range(found):
            marked[first_mark + own[i]] = 1
    return found


@kernel
def order_part(
    which: Words, batch: Words, marks: Words, following: Words, out_which: Words, out_batch: Words, n: int
) -> int:
    """The steps and batches of those of n rows, in order, that are marked; returns how many.

    following[s] is the place in `marks` of the next row of step s; it is changed.
    """
    found = 0
    for i in range(n):
        step = which[i]
        out_which[found], out_batch[found] = step, batch[i]
        found += marks[following[step]]
        following[step] += 1
    return found


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
