"""Owns additions to exact sums of floats in maps: integers times floats, and integers times other sums.

Correct output: the sum of all that was added, not rounded; so neither order nor grouping matters, and what is
deleted leaves nothing behind.  A product by an integer is exact, too: digits are multiplied by 32 bits of it
at a time.  Almost always three digits of the slot change; a sum becomes wide where its window does not
suffice.

Knows no statements.  See `layout` for the words of a sum.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.algebra import (
    FRACTION,
    LIMBS,
    LOWEST,
    MASK,
    NANS,
    NEGATIVE_INFINITIES,
    POSITIVE_INFINITIES,
    SUBNORMAL,
    WORDS_PER_SUM,
)
from dlog.jit import helper, prefetch
from dlog.m3.runtime.layout import (
    ASKED,
    EXACT_ADD,
    EXACT_LOAD,
    EXACT_MERGE,
    M_BASE,
    M_KEYS,
    M_SPARE,
    M_USED,
    M_WORDS,
    OVERFLOW,
    RESUME,
    ROOM,
    WIDE,
    WINDOW,
)
from dlog.m3.runtime.machine.arithmetic_kernels import add_ints, multiply_ints, to_bits
from dlog.m3.runtime.maps.exact_kernels import narrow_if_possible, rest_of, rounded, take_wide

EXACT_STEPS: Final = (EXACT_ADD, EXACT_MERGE, EXACT_LOAD)

HALF: Final = 1 << 31
INFINITE: Final = 2047  # the exponent of infinities and NaN
AHEAD: Final = 16  # rows: this far before it is needed a sum is prefetched


@helper
def exact_step(arena, maps, code, pc, state, cols):
    """An instruction on exact sums; False: it needs memory first, and continues where it was."""
    op, a = code[pc], pc + 2
    n, m, slots = state[code[a]], code[a + 1], code[a + 2]
    if op == EXACT_ADD:
        return add_floats(arena, maps, m, cols, n, slots, code[a + 3], code[a + 4], code[a + 5], state, pc)
    if op == EXACT_MERGE:
        return add_sums(arena, maps, m, cols, n, slots, code[a + 3], code[a + 4], code[a + 5], state, pc)
    load_sums(arena, maps, m, cols, n, slots, code[a + 3], code[a + 4], state, code[a + 5])
    return True


@helper
def is_short(maps, m, state, i):
    """Whether row i has to wait for memory: an addition may make its sum wide."""
    if maps[m + M_SPARE] != 0:
        return False
    state[ASKED], state[ROOM], state[RESUME] = m, WIDE, i
    return True


@helper
def add_floats(arena, maps, m, cols, n, slots, weights, high, low, state, pc):
    """To the sum of each row its weight times a doubled float."""
    first, words = maps[m + M_BASE] + maps[m + M_KEYS], maps[m + M_WORDS]
    if maps[m + M_KEYS] == 0 and n > 0:
        maps[m + M_USED] = 1
    for i in range(state[RESUME], n):
        if is_short(maps, m, state, i):
            return False
        at, weight = first + cols[slots + i] * words, cols[weights + i]
        if weight != 0:
            add_float(arena, maps, m, at, cols[high + i], weight, state, pc)
            if cols[low + i] != 0:
                add_float(arena, maps, m, at, cols[low + i], weight, state, pc)
    state[RESUME] = 0
    return True


@helper
def add_sums(arena, maps, m, cols, n, slots, weights, s, sources, state, pc):
    """To the sum of each row its weight times a sum in a slot of map s; a negative slot is 0."""
    first, words = maps[m + M_BASE] + maps[m + M_KEYS], maps[m + M_WORDS]
    source_first, source_words = maps[s + M_BASE] + maps[s + M_KEYS], maps[s + M_WORDS]
    if maps[m + M_KEYS] == 0 and n > 0:
        maps[m + M_USED] = 1
    for i in range(state[RESUME], n):
        if is_short(maps, m, state, i):
            return False
        if i + AHEAD < n:
            prefetch(arena, source_first + max(cols[sources + i + AHEAD], 0) * source_words)
        weight = cols[weights + i] if cols[sources + i] >= 0 else np.int64(0)
        if weight != 0:
            at = first + cols[slots + i] * words
            add_sum(arena, maps, m, at, source_first + cols[sources + i] * source_words, weight, state, pc)
    state[RESUME] = 0
    return True


@helper
def load_sums(arena, maps, m, cols, n, slots, high, low, state, work):
    """The sums in slots as doubled floats: the nearest float, and the one nearest to the rest."""
    first, words = maps[m + M_BASE] + maps[m + M_KEYS], maps[m + M_WORDS]
    for i in range(n):
        cols[high + i], cols[low + i] = 0, 0
        if cols[slots + i] >= 0:
            at = first + cols[slots + i] * words
            value = rounded(arena, at)
            cols[high + i] = to_bits(value)
            cols[low + i] = to_bits(rest_of(arena, at, value, state, work))


# ---- one sum


@helper
def lower_half(weight):
    """A weight is lower_half + 2^32 * upper_half, both in [-2^31, 2^31]."""
    return ((weight & MASK) ^ HALF) - HALF


@helper
def upper_half(weight):
    return (weight >> 32) + ((weight >> 31) & 1)


@helper
def add_float(arena, maps, m, at, bits, weight, state, pc):
    """Add an integer times a float to the sum at a place.  REQUIRES: a spare wide sum, or a wide one
    there.
    """
    exponent, mantissa = (bits >> 52) & INFINITE, bits & FRACTION
    if exponent == INFINITE:
        add_infinite(arena, maps, m, at, bits, weight, state, pc)
        return
    if exponent > 0:
        mantissa |= FRACTION + 1
        exponent -= 1
    if mantissa == 0:
        return
    place = exponent + (SUBNORMAL - LOWEST)
    limb, shift = place >> 5, place & 31
    low, rest = (mantissa << shift) & MASK, mantissa >> (32 - shift)
    a = (low ^ HALF) - HALF
    middle = (rest & MASK) + (low >> 31)
    b = middle - ((middle >> 31) << 32)
    c = (rest >> 32) + (middle >> 31)
    weight = -weight if bits < 0 else weight
    add_three(arena, maps, m, at, limb, a, b, c, lower_half(weight), state, pc)
    if upper_half(weight) != 0:
        add_three(arena, maps, m, at, limb + 1, a, b, c, upper_half(weight), state, pc)
    if arena[at] < 0:
        narrow_if_possible(arena, maps, m, at)


@helper
def add_three(arena, maps, m, at, limb, a, b, c, weight, state, pc):
    """Add three balanced digits, from a limb on, times a weight of 32 bits."""
    if arena[at] == 0:
        arena[at] = 1 + min(max(limb - 1, 0), LIMBS - WINDOW)
    if arena[at] > 0 and not reaches(arena, at, limb, limb + 3):
        widen(arena, maps, m, at)
    k = at + 2 + limb - arena[at] if arena[at] > 0 else limb - arena[at]
    value = arena[k] + weight * a
    carry = (value + HALF) >> 32
    arena[k] = value - (carry << 32)
    value = arena[k + 1] + weight * b + carry
    carry = (value + HALF) >> 32
    arena[k + 1] = value - (carry << 32)
    value = arena[k + 2] + weight * c + carry
    carry = (value + HALF) >> 32
    arena[k + 2] = value - (carry << 32)
    finish(arena, maps, m, at, limb + 3, carry, state, pc)


@helper
def add_sum(arena, maps, m, at, source, weight, state, pc):
    """Add an integer times another sum.  REQUIRES: as add_float."""
    head = arena[source]
    if head == 0:
        return
    digits, first, end = source + 1, 0, WINDOW
    if head < 0:
        digits, end = -head, LIMBS
    while first < end and arena[digits + first] == 0:
        first += 1
    while first < end and arena[digits + end - 1] == 0:
        end -= 1
    place = head - 1 if head > 0 else np.int64(0)
    if first < end:
        low, high = lower_half(weight), upper_half(weight)
        add_digits(arena, maps, m, at, place + first, digits + first, end - first, low, state, pc)
        if high != 0:
            add_digits(arena, maps, m, at, place + first + 1, digits + first, end - first, high, state, pc)
    if head < 0:
        for k in range(LIMBS, WORDS_PER_SUM):
            if arena[digits + k] != 0:
                count = multiply_ints(arena[digits + k], weight, state, pc)
                add_counted(arena, maps, m, at, k, count, state, pc)
    if arena[at] < 0:
        narrow_if_possible(arena, maps, m, at)


@helper
def add_digits(arena, maps, m, at, limb, digits, n, weight, state, pc):
    """Add n digits that are elsewhere, from a limb on, times a weight of 32 bits."""
    if arena[at] == 0:
        arena[at] = 1 + min(max(limb - max((WINDOW - n) >> 1, 0), 0), LIMBS - WINDOW)
    if arena[at] > 0 and not reaches(arena, at, limb, limb + n):
        widen(arena, maps, m, at)
    k = at + 2 + limb - arena[at] if arena[at] > 0 else limb - arena[at]
    if limb + n > LIMBS:
        state[OVERFLOW] = pc + 1
        n = LIMBS - limb
    carry = np.int64(0)
    for j in range(n):
        value = arena[k + j] + weight * arena[digits + j] + carry
        carry = (value + HALF) >> 32
        arena[k + j] = value - (carry << 32)
    finish(arena, maps, m, at, limb + n, carry, state, pc)


@helper
def finish(arena, maps, m, at, limb, carry, state, pc):
    """Add a carry to a limb and those above; a sum that became 0 has no head."""
    head = arena[at]
    if head > 0:
        k = limb - head + 1
        while carry != 0 and k < WINDOW:
            value = arena[at + 1 + k] + carry
            carry = (value + HALF) >> 32
            arena[at + 1 + k] = value - (carry << 32)
            k += 1
        if carry == 0:
            if is_cleared(arena, at):
                arena[at] = 0
            return
        limb = head - 1 + WINDOW
        if reaches(arena, at, limb, limb + 1):
            arena[at + 2 + limb - arena[at]] = carry
            return
        widen(arena, maps, m, at)
    while carry != 0 and limb < LIMBS:
        value = arena[limb - arena[at]] + carry
        carry = (value + HALF) >> 32
        arena[limb - arena[at]] = value - (carry << 32)
        limb += 1
    if carry != 0:
        state[OVERFLOW] = pc + 1


@helper
def is_cleared(arena, at):
    found = arena[at + 1]
    for w in range(2, WINDOW + 1):
        found |= arena[at + w]
    return found == 0


@helper
def reaches(arena, at, first, end):
    """Whether the window of a sum has these limbs, perhaps after it was moved; its other digits stay in
    it.
    """
    place = arena[at] - 1
    if place <= first and end <= place + WINDOW:
        return True
    low, high = WINDOW, 0
    for k in range(WINDOW):
        if arena[at + 1 + k] != 0:
            low, high = min(low, k), k + 1
    if high > 0:
        first, end = min(first, place + low), max(end, place + high)
    free = WINDOW - (end - first)
    if free < 0 or end > LIMBS:
        return False
    move(arena, at, min(max(first - (free >> 1), 0), LIMBS - WINDOW) - place)
    return True


@helper
def move(arena, at, by):
    """Let the window begin some limbs higher, or lower.  REQUIRES: digits outside the new one are 0."""
    if by > 0:
        for k in range(WINDOW):
            arena[at + 1 + k] = arena[at + 1 + k + by] if k + by < WINDOW else 0
    else:
        for k in range(WINDOW - 1, -1, -1):
            arena[at + 1 + k] = arena[at + 1 + k + by] if k + by >= 0 else 0
    arena[at] += by


@helper
def widen(arena, maps, m, at):
    """Make a sum that is not wide wide."""
    wide, place = take_wide(arena, maps, m), arena[at] - 1
    for k in range(WINDOW):
        arena[wide + place + k] = arena[at + 1 + k]
        arena[at + 1 + k] = 0
    arena[at] = -wide


@helper
def add_infinite(arena, maps, m, at, bits, weight, state, pc):
    """Infinities and NaN are counted."""
    kind = NANS if bits & FRACTION != 0 else (NEGATIVE_INFINITIES if bits < 0 else POSITIVE_INFINITIES)
    add_counted(arena, maps, m, at, kind, weight, state, pc)
    narrow_if_possible(arena, maps, m, at)


@helper
def add_counted(arena, maps, m, at, kind, count, state, pc):
    if arena[at] == 0:
        arena[at] = 1
    if arena[at] > 0:
        widen(arena, maps, m, at)
    arena[kind - arena[at]] = add_ints(arena[kind - arena[at]], count, state, pc)
