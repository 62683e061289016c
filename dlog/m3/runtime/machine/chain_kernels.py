"""Owns expansion: each row to the entries of a map that agree with it, along chains or by a scan of all.

Knows no statements.  Works on one frame, as `column_kernels`.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper
from dlog.m3.runtime.layout import (
    CHUNK,
    EMPTY,
    END_OF_CHAIN,
    M_BASE,
    M_LINKED,
    M_MASK,
    M_SHIFT,
    M_USED,
    M_VALUES,
    M_WORDS,
)
from dlog.m3.runtime.maps.apart_kernels import value_at
from dlog.m3.runtime.maps.change_kernels import first_link
from dlog.m3.runtime.maps.map_kernels import is_live, link_all, live_from, places_of, shifted


@helper
def chain_head(arena, maps, m, index, places, cols, hash, i, code, at, count):
    """The head of row i's chain: 1 + a slot, or 0."""
    base, words, mask = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_MASK]
    heads = base + (mask + 1) * (words + index)
    place = shifted(cols[hash + i], maps[m + M_SHIFT])
    head = arena[heads + place]
    while head != 0:
        slot_at, j = base + (head - 1) * words, 0
        while j < count and arena[slot_at + maps[places + 1 + j]] == cols[code[at + j] + i]:
            j += 1
        if j == count:
            break
        place = (place + 1) & mask
        head = arena[heads + place]
    return head


@helper
def lacks_links(maps, m):
    """Whether a map has entries, but no memory for the chains that are about to be followed."""
    bare = first_link(maps, m)  # of a map with indices
    return maps[m + M_USED] > 0 and maps[m + M_WORDS] == bare


@helper
def has_chains(arena, maps, m):
    """Whether there is any entry; then the chains are made, if they do not exist.

    REQUIRES: slots have links, unless there is no entry (`lacks_links`).
    """
    if maps[m + M_USED] == 0:
        return False
    if maps[m + M_LINKED] == 0:
        link_all(arena, maps, m)
    return True


@helper
def chain_open(arena, maps, m, index, cols, n, hash, rows, slots, code, at, count):
    """The first live slot of each row's chain; rows without one are left out.  Returns how many are left."""
    if not has_chains(arena, maps, m):
        return np.int64(0)
    places = places_of(maps, m, index)
    link_at = first_link(maps, m) + index
    left = 0
    for i in range(n):
        head = chain_head(arena, maps, m, index, places, cols, hash, i, code, at, count)
        slot = live_from(arena, maps, m, link_at, head - 1, np.int64(-1))
        if slot >= 0:
            cols[rows + left] = i
            cols[slots + left] = slot
            left += 1
    return left


@helper
def chain_found(arena, maps, m, cols, n, hash, code, at, count):
    out, index = code[at + count], code[at + count + 1]
    if not has_chains(arena, maps, m):
        for i in range(n):
            cols[out + i] = 0
        return
    places, link_at = places_of(maps, m, index), first_link(maps, m) + index
    for i in range(n):
        head = chain_head(arena, maps, m, index, places, cols, hash, i, code, at, count)
        slot = live_from(arena, maps, m, link_at, head - 1, np.int64(-1))
        cols[out + i] = 1 if slot >= 0 else 0


@helper
def chain_next(arena, maps, m, index, cols, state, cursor, rows, slots, row_out, slot_out):
    """Up to CHUNK pairs of a row and a slot; 0 at the end.

    All chains advance together, one slot each: their memory accesses do not wait for each other.  The cursor
    is (chains left in this round, place in it, chains that continue in the next round).
    """
    link_at = first_link(maps, m) + index
    base, words = maps[m + M_BASE], maps[m + M_WORDS]
    active, at, kept = state[cursor], state[cursor + 1], state[cursor + 2]
    out = 0
    while True:
        if at == active:
            active, at, kept = kept, np.int64(0), np.int64(0)
            if active == 0:
                break
        if out == CHUNK:
            break
        row, slot = cols[rows + at], cols[slots + at]
        cols[row_out + out] = row
        cols[slot_out + out] = slot
        out += 1
        at += 1
        following = arena[base + slot * words + link_at]
        if following != END_OF_CHAIN:
            following = live_from(arena, maps, m, link_at, following, slot)
            if following >= 0:
                cols[rows + kept] = row
                cols[slots + kept] = following
                kept += 1
    state[cursor], state[cursor + 1], state[cursor + 2] = active, at, kept
    return out


@helper
def scan_next(arena, maps, m, cols, n, state, cursor, row_out, slot_out):
    """Up to CHUNK pairs of a row and a live slot, each row with every slot; 0 at the end."""
    base, words, values = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_VALUES]
    slots = maps[m + M_MASK] + 1
    row, slot = state[cursor], state[cursor + 1]
    out = 0
    while row < n and out < CHUNK:
        while slot < slots and out < CHUNK:
            at = base + slot * words
            if arena[at] != EMPTY and is_live(arena, value_at(arena, maps, m, at), values):
                cols[row_out + out] = row
                cols[slot_out + out] = slot
                out += 1
            slot += 1
        if slot == slots:
            row += 1
            slot = np.int64(0)
    state[cursor], state[cursor + 1] = row, slot
    return out


@helper
def load_slots(arena, maps, m, cols, n, slots, word, out):
    base, words = maps[m + M_BASE], maps[m + M_WORDS]
    for i in range(n):
        cols[out + i] = arena[base + cols[slots + i] * words + word]
