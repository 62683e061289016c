"""Owns memory of a join graph inside kernels: records, blocks by size, and indices.  See `layout`.

Knows nothing of vertices and atoms.  Kernels never make an index larger: they ask Python for it.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words, helper, kernel, pointer
from dlog.joingraph.layout import (
    G_LARGEST,
    G_SLAB,
    G_SLAB_END,
    G_SLABS,
    G_USED,
    G_WASTE,
    I_BASE,
    I_MASK,
    I_USED,
    ID_BITS,
    ID_MASK,
)
from dlog.lftj.primitives import multiply
from dlog.storage.arena.arena_kernels import BUMP, LIMIT, LINE

SLAB = 4096  # words
MULTIPLIER = np.int64(-7046029254386353131)  # 2^64 / golden ratio, as a signed word
SEED = np.int64(4417276706812531889)


# ---- records


@helper
def has_room(A, need):
    """Whether so many words can be taken."""
    return A[BUMP] + need + SLAB + LINE < min(A[LIMIT], ID_MASK)


@helper
def take(A, words, free_at, count, kind):
    """A record of this size, from its list of free ones if that has any."""
    words[G_USED + kind] += count
    record = words[free_at]
    if record != 0:
        words[free_at] = A[record]
        return record
    if words[G_SLAB] + count > words[G_SLAB_END]:
        take_slab(A, words, count)
    record = words[G_SLAB]
    words[G_SLAB] = record + count
    words[G_LARGEST] = max(words[G_LARGEST], count)
    return record


@helper
def take_slab(A, words, count):
    more = (max(SLAB, count) + LINE - 1) // LINE * LINE
    if words[G_SLAB_END] != A[BUMP]:
        words[G_WASTE] += words[G_SLAB_END] - words[G_SLAB]
        words[G_SLAB] = A[BUMP]
    A[BUMP] += more
    words[G_SLAB_END] = A[BUMP]
    words[G_SLABS] += more


@helper
def give_back(A, words, free_at, record, count, kind):
    words[G_USED + kind] -= count
    A[record] = words[free_at]
    words[free_at] = record


# ---- indices


@helper
def mix(hash, word):
    hash = multiply(hash ^ word, MULTIPLIER)
    return hash ^ ((hash >> 32) & ID_MASK)


@helper
def find_from(A, words, index, hash, place):
    """The next place, from one on, whose entry has this hash, or that is empty."""
    base, mask = words[index + I_BASE], words[index + I_MASK]
    place &= mask
    while A[base + place] != 0 and (A[base + place] >> ID_BITS) & ID_MASK != hash & ID_MASK:
        place = (place + 1) & mask
    return place


@helper
def add_entry(A, words, index, hash, id):
    """REQUIRES: the index has an empty place."""
    base, mask = words[index + I_BASE], words[index + I_MASK]
    place = hash & mask
    while A[base + place] != 0:
        place = (place + 1) & mask
    A[base + place] = ((hash & ID_MASK) << ID_BITS) | id
    words[index + I_USED] += 1


@helper
def place_of(A, words, index, hash, id):
    """REQUIRES: the index has the entry."""
    base, mask = words[index + I_BASE], words[index + I_MASK]
    wanted = ((hash & ID_MASK) << ID_BITS) | id
    place = hash & mask
    while A[base + place] != wanted:
        place = (place + 1) & mask
    return place


@helper
def remove_entry(A, words, index, hash, id):
    """Close the gap, so that every entry is found from its hash on.  REQUIRES: the index has the entry."""
    base, mask = words[index + I_BASE], words[index + I_MASK]
    hole = place_of(A, words, index, hash, id)
    place = (hole + 1) & mask
    while A[base + place] != 0:
        home = (A[base + place] >> ID_BITS) & mask
        if ((place - home) & mask) >= ((place - hole) & mask):
            A[base + hole] = A[base + place]
            hole = place
        place = (place + 1) & mask
    A[base + hole] = 0
    words[index + I_USED] -= 1


@helper
def is_too_full(words, index, more):
    """Whether more than three quarters of an index would be used."""
    return 4 * (words[index + I_USED] + more) > 3 * (words[index + I_MASK] + 1)


@kernel
def move_index(A_words: Words, header: Words, index: int, old_base: int, old_size: int) -> None:
    """Clear an index and put the entries of another one into it.  O(size)."""
    A, words = pointer(A_words), pointer(header)
    base, mask = words[index + I_BASE], words[index + I_MASK]
    for place in range(mask + 1):
        A[base + place] = 0
    for old in range(old_base, old_base + old_size):
        if A[old] != 0:
            place = (A[old] >> ID_BITS) & mask
            while A[base + place] != 0:
                place = (place + 1) & mask
            A[base + place] = A[old]
