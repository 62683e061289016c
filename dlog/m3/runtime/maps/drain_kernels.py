"""Owns reading what has changed in some maps with the same keys: keys, values before and after.

Correct output: each key once for which the value of any of these maps is another than when they were last
drained, with the values of all of them.  O(changes).

A row of the output has the keys, then for each map the value before and the value after.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.lftj.primitives import add
from dlog.m3.runtime.layout import (
    D_FIRST,
    D_KEYS,
    D_MAPS,
    EMPTY,
    LAST,
    M_BASE,
    M_CHANGED,
    M_DRAINED,
    M_KEYS,
    M_MASK,
    M_SHIFT,
    M_WORDS,
)
from dlog.m3.runtime.maps.map_kernels import hash_more, hash_one, shifted


@kernel
def drain(arena_words: Words, map_words: Words, drained: Words, out: Words) -> int:
    """How many rows were written.  If these fill `out`, there may be more: call it again."""
    return int(drain_on(pointer(arena_words), pointer(map_words), pointer(drained), pointer(out), len(out)))


@helper
def drain_on(arena, maps, drained, out, size):
    """1 a listed slot leaves the list.  2 its key is looked up in all maps; where it is listed, too, its link
    becomes negative: the entry has been written when its turn comes."""
    n_maps, k = drained[D_MAPS], drained[D_KEYS]
    width, n = k + 2 * n_maps, np.int64(0)
    for r in range(n_maps):
        given = D_FIRST + r * (1 + k)
        m = drained[given]
        base, words, note = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_DRAINED]
        while maps[m + M_CHANGED] != LAST and (n + 1) * width <= size:
            at = base + (maps[m + M_CHANGED] - 2) * words
            following = arena[at + note]
            maps[m + M_CHANGED] = abs(following)
            if following > 0:
                to = n * width
                for j in range(k):
                    out[to + j] = arena[at + drained[given + 1 + j]]
                n += write_values(arena, maps, drained, out, to)
            arena[at + note] = 0
    return n


@helper
def write_values(arena, maps, drained, out, to):
    """Write the values of all maps for the keys of a row; 1 if any differs, else 0."""
    n_maps, k, differs = drained[D_MAPS], drained[D_KEYS], 0
    for r in range(n_maps):
        m, at = drained[D_FIRST + r * (1 + k)], to + k + 2 * r
        place = place_of_keys(arena, maps, m, drained, D_FIRST + r * (1 + k) + 1, out, to)
        if place < 0:
            out[at], out[at + 1] = 0, 0
            continue
        out[at + 1] = arena[place + maps[m + M_KEYS]]
        note = place + maps[m + M_DRAINED]
        if arena[note] > 0:
            out[at] = arena[note + 1]
            arena[note] = -arena[note]
        else:
            out[at] = out[at + 1]
        if out[at] != out[at + 1]:
            differs = 1
    return differs


@helper
def place_of_keys(arena, maps, m, drained, places, out, to):
    """Where the slot of the keys of a row is; -1: there is none."""
    base, words, k = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS]
    if k == 0:
        return base
    slot = shifted(hash_of_keys(drained, places, out, to, k), maps[m + M_SHIFT])
    place = base + slot * words
    while arena[place] != EMPTY:
        j = 0
        while j < k and arena[place + drained[places + j]] == out[to + j]:
            j += 1
        if j == k:
            return place
        slot = (slot + 1) & maps[m + M_MASK]
        place = base + slot * words
    return np.int64(-1)


@helper
def hash_of_keys(drained, places, out, to, k):
    """As of a slot: by its keys in their own order."""
    hash = np.int64(0)
    for place in range(k):
        j = 0
        while drained[places + j] != place:
            j += 1
        hash = hash_one(out[to + j]) if place == 0 else hash_more(hash, out[to + j])
    return hash


@kernel
def add_values(arena_words: Words, map_words: Words, drained: Words, r: int, rows: Words, n: int) -> bool:
    """Add what one of the maps has now to the values before and after of rows with some keys; False: a sum of
    values after does not fit."""
    arena, maps, given = pointer(arena_words), pointer(map_words), pointer(drained)
    out, k, fits = pointer(rows), given[D_KEYS], True
    width, first = k + 2 * given[D_MAPS], D_FIRST + r * (1 + k)
    for i in range(n):
        place = place_of_keys(arena, maps, given[first], given, first + 1, out, i * width)
        value = np.int64(0) if place < 0 else arena[place + maps[given[first] + M_KEYS]]
        at = i * width + k + 2 * r
        total = add(out[at + 1], value)
        if (out[at + 1] ^ total) & (value ^ total) < 0:
            fits = False
        out[at], out[at + 1] = add(out[at], value), total
    return fits
