"""Owns directories: from a key of an atom's first level to its position, in one access.

A seek far away costs some twenty probes and as many cache misses; a directory brings that to two.  It is a
table of positions by key: word b is the first position whose key is at least least + (b << shift).  With
shift 0 it is exact, and says where the run of a key ends, too; else it names the rows among which to seek.

A directory costs one pass over the column, so it is made only for an atom of a running join whose far seeks
have already cost about as much: at worst the join takes twice the time it would have needed without.
It is at the end of the join's state, and is dropped with it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.jit import Words, helper, kernel
from dlog.lftj.opcodes import COLUMN, DIRECTORY, FAR, FLAT, HI, LO, RANGE, ROOT
from dlog.storage.arena.pointer import pointer
from dlog.storage.index.trie_kernels import (
    address_paged,
    advance_paged,
    end_position,
    key_at,
    last_position,
    leaf_rest,
    lub,
    seek_lub_paged,
)
from dlog.storage.layout import FLAT_BASE, N_ROWS

ROWS_PER_SEEK = 64  # a far seek costs about as much as passing this many rows of a column
LEAST_ROWS = 4096  # below, the column is in the cache anyway

# Words of a directory.
LEAST: Final = 0
GREATEST: Final = 1
SHIFT: Final = 2
BUCKETS: Final = 3


@helper
def look_up(arena, state, block, lo, hi, key):
    """The least upper bound of `key` within [lo, hi) of a level that has a directory.  O(1) if exact."""
    at = state[block + DIRECTORY]
    if key <= state[at + LEAST]:
        return lo
    if key > state[at + GREATEST]:
        return hi
    bucket = at + BUCKETS + ((key - state[at + LEAST]) >> state[at + SHIFT])
    lo = max(lo, state[bucket])
    if lo >= hi or state[at + SHIFT] == 0:
        return min(lo, hi)
    hi = min(hi, state[bucket + 1])
    base = state[block + FLAT]
    if base >= 0:
        return max(lo, lub(arena, base + lo, base + hi, key) - base)
    return max(lo, seek_lub_paged(arena, state[block + ROOT], state[block + COLUMN], lo, hi, key))


@helper
def is_exact(state, at):
    return state[at + SHIFT] == 0


@helper
def reach_exact(state, block, key):
    """As `leap.reach`, for a level with an exact directory.  O(1)."""
    at = state[block + DIRECTORY]
    cursor = block + RANGE + LO
    if key > state[at + GREATEST]:
        state[cursor] = state[block + HI]
        return key
    if key < state[at + LEAST]:
        state[cursor] = state[block + LO]
        return state[at + LEAST]
    bucket = at + BUCKETS + key - state[at + LEAST]
    state[cursor] = state[bucket]
    return key if state[bucket] < state[bucket + 1] else key + 1


@helper
def bucket_end(state, at, key):
    """The end of the run of a key.  REQUIRES: the directory is exact and the key is there."""
    return state[at + BUCKETS + key - state[at + LEAST] + 1]


@kernel
def fill(arena: Words, root: int, end: int, state: Words, at: int) -> None:
    """Fill the buckets of a directory whose first words are set.  O(rows + buckets)."""
    words, directory = pointer(arena), pointer(state)
    flat = words[root + FLAT_BASE]
    least = directory[at + LEAST]
    shift = directory[at + SHIFT]
    buckets = at + BUCKETS
    free = buckets  # the first bucket not yet filled
    position = np.int64(0)
    while position < end:
        rows = end - position if flat >= 0 else leaf_rest(words, root, position, end)
        start = flat + position if flat >= 0 else address_paged(words, root, np.int64(0), position)
        for i in range(rows):
            bucket = buckets + ((words[start + i] - least) >> shift)
            while free <= bucket:
                directory[free] = position + i
                free += 1
        position = position + rows if flat >= 0 else advance_paged(words, root, position, rows)
    while free <= buckets + ((directory[at + GREATEST] - least) >> shift) + 1:
        directory[free] = end
        free += 1


def add_directories(arena: Words, state: Words, ranges: tuple[int, ...]) -> Words:
    """The state, with a directory for each atom that has done enough far seeks.  O(rows of these atoms)."""
    for block in ranges:
        rows = int(arena[state[block + ROOT] + N_ROWS])
        worth_it = state[block + FAR] * ROWS_PER_SEEK > max(LEAST_ROWS, rows)
        if state[block + DIRECTORY] == 0 and worth_it and rows > 0:
            state = _add(arena, state, block)
            for other in ranges:
                if state[other + ROOT] == state[block + ROOT]:
                    state[other + DIRECTORY] = state[block + DIRECTORY]
    return state


def _add(arena: Words, state: Words, block: int) -> Words:
    root = int(state[block + ROOT])
    least = int(key_at(arena, root, 0, 0))
    greatest = int(key_at(arena, root, 0, last_position(arena, root)))
    if greatest - least >= 2**62:  # differences must not overflow
        state[block + DIRECTORY] = -1
        return state
    shift = ((greatest - least) // (2 * int(arena[root + N_ROWS]))).bit_length()
    at = len(state)
    grown = np.empty(at + BUCKETS + ((greatest - least) >> shift) + 2, np.int64)
    grown[:at] = state
    grown[at : at + BUCKETS] = least, greatest, shift
    grown[block + DIRECTORY] = at
    fill(arena, root, end_position(arena, root), grown, at)
    return grown
