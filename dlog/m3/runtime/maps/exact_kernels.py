"""Owns exact sums of floats in the slots of maps: reading and rounding them, and memory for wide ones.

See `layout` for their words.  `machine.exact_kernels` adds to them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.algebra import LIMBS, WORDS_PER_SUM, add_loosely, round_limbs, round_sum, settle
from dlog.jit import Floats, Words, helper, kernel, pointer
from dlog.m3.runtime.layout import (
    EMPTY,
    EXACT,
    M_BASE,
    M_KEYS,
    M_KINDS,
    M_MASK,
    M_SPARE,
    M_USED,
    M_VALUES,
    M_WORDS,
    WINDOW,
)

HALF = 1 << 31


@helper
def is_exact(maps, m):
    """Whether a value is an exact sum."""
    return maps[m + M_VALUES] > 0 and maps[maps[m + M_KINDS]] == EXACT


@helper
def take_wide(arena, maps, m):
    """A wide sum, 0.  REQUIRES: there is a spare one."""
    wide = maps[m + M_SPARE]
    maps[m + M_SPARE] = arena[wide]
    for w in range(wide, wide + WORDS_PER_SUM):
        arena[w] = 0
    return wide


@helper
def free_wide(arena, maps, m, wide):
    arena[wide] = maps[m + M_SPARE]
    maps[m + M_SPARE] = wide


@helper
def make_exact_zero(arena, maps, m, at):
    """The sum at a place 0."""
    if arena[at] < 0:
        free_wide(arena, maps, m, -arena[at])
    for w in range(at, at + WINDOW + 1):
        arena[w] = 0


@helper
def free_all_wide(arena, maps, m):
    """The wide sums of all slots can be used again.  O(slots), if there are any."""
    if maps[m + M_USED] == 0:
        return
    base, words, keys = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS]
    for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
        if (keys == 0 or arena[at] != EMPTY) and arena[at + keys] < 0:
            free_wide(arena, maps, m, -arena[at + keys])


@helper
def rounded(arena, at):
    """The float nearest to the sum at a place."""
    head = arena[at]
    if head > 0:
        return round_limbs(arena, at + 2 - head, head - 1, head - 1 + WINDOW, 0)
    if head < 0:
        return round_sum(arena, -head, LIMBS)
    return 0.0


@helper
def rest_of(arena, at, high, work, work_at):
    """The float nearest to the sum less `high`, which is the float nearest to the sum.

    REQUIRES: WORDS_PER_SUM words of work.
    """
    head = arena[at]
    if head == 0 or not np.isfinite(high):
        return 0.0
    for w in range(LIMBS):
        work[work_at + w] = arena[w - head] if head < 0 else 0
    for w in range(WINDOW if head > 0 else 0):
        work[work_at + head - 1 + w] = arena[at + 1 + w]
    bits: Any = np.float64(high).view(np.int64)
    first = add_loosely(work, work_at, bits, -1)
    settle(work, work_at, first, first + 2)
    return round_limbs(work, work_at, 0, LIMBS, 0)


@helper
def narrow_if_possible(arena, maps, m, at):
    """A wide sum whose digits fit into the slot returns there."""
    wide = -arena[at]
    first, top = 0, WORDS_PER_SUM - 1
    while first < WORDS_PER_SUM and arena[wide + first] == 0:
        first += 1
    if first == WORDS_PER_SUM:
        make_exact_zero(arena, maps, m, at)
        return
    while arena[wide + top] == 0:
        top -= 1
    if top >= LIMBS or top - first >= WINDOW:
        return
    place = min(first, LIMBS - WINDOW)
    for w in range(WINDOW):
        arena[at + 1 + w] = arena[wide + place + w]
    arena[at] = place + 1
    free_wide(arena, maps, m, wide)


# ---- kernels for `maps.exact`


@kernel
def add_spare(arena_words: Words, map_words: Words, m: int, base: int, n: int) -> None:
    """Make n wide sums, one after the other from a place on, available."""
    arena, maps = pointer(arena_words), pointer(map_words)
    for i in range(n - 1, -1, -1):
        free_wide(arena, maps, m, base + i * WORDS_PER_SUM)


@kernel
def read_sums(
    arena_words: Words, map_words: Words, m: int, keys_out: Words, out: Floats, capacity: int
) -> int:
    """The keys of all entries that are not 0, key j of entry i to keys_out[j * capacity + i], and their sums.

    Returns their number.  O(slots).
    """
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, keys = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS]
    n = 0
    for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
        if (keys > 0 and arena[at] == EMPTY) or arena[at + keys] == 0:
            continue
        for w in range(keys):
            keys_out[w * capacity + n] = arena[at + w]
        out[n] = rounded(arena, at + keys)
        n += 1
    return n


@kernel
def check_sums(arena_words: Words, map_words: Words, m: int) -> int:
    """0 if all sums are sound, else 1: a digit is not balanced, or a sum of 0 has words that are not 0, or a
    wide one would fit into its slot.  O(slots).
    """
    arena, maps = pointer(arena_words), pointer(map_words)
    base, words, keys = maps[m + M_BASE], maps[m + M_WORDS], maps[m + M_KEYS]
    for at in range(base, base + (maps[m + M_MASK] + 1) * words, words):
        if (keys == 0 or arena[at] != EMPTY) and not is_sound(arena, at + keys):
            return 1
    return 0


@helper
def is_sound(arena, at):
    head = arena[at]
    first = at + 1 if head >= 0 else -head
    n = WINDOW if head >= 0 else LIMBS
    found, low, high = False, n, 0
    for k in range(n):
        digit = arena[first + k]
        if digit < -HALF or digit >= HALF:
            return False
        if digit != 0:
            found = True
            low, high = min(low, k), k
    if head >= 0:
        return found == (head > 0) and head <= LIMBS - WINDOW + 1
    for k in range(LIMBS, WORDS_PER_SUM):
        if arena[first + k] != 0:
            return True
    return high - low >= WINDOW
