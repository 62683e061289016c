"""Owns the kernels of power sums: exact sums of squares, and the mean square deviation, or its root, that
follows from the number of values, their sum and the sum of their squares.  Knows nothing of rules or types.

Correct output: with n values, sum s and sum of squares q, the float nearest to (n q - s^2) / (n (n - f)), or
to the root of it, ties to even.  Numerator and denominator are exact, so nothing cancels, and only the result
is rounded.  f, the `freedom`, is 1 for a sample and 0 for a population.

A float sum is a number in base 2^32 (`dlog.algebra`).  The squares of floats are summed at three scales,
because they have twice the range of floats: `dlog.engine.head.power_sums` says which.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.algebra import (
    LIMB_BITS,
    LIMBS,
    LOOSE_ADDITIONS,
    LOWEST,
    MASK,
    NANS,
    NEGATIVE_INFINITIES,
    POSITIVE_INFINITIES,
    WORDS_PER_SUM,
    add_loosely,
    bit_length,
    highest_limb,
    mean_of_sum,
    round_bits,
    round_sum,
    settle,
)
from dlog.arithmetic.digit_kernels import (
    BITS,
    DIGIT,
    ROOM,
    add_signed,
    divide,
    load,
    multiply,
    scale_up,
    shift_left,
    trimmed,
)
from dlog.arithmetic.wide_kernels import nearest
from dlog.jit import Floats, Words, helper, kernel

SQUARE_PARTS: Final = 6  # words of a slot in `sum_squares`
LOW: Final = (1 << 32) - 1
SIGN: Final = 1 << 31

# The digits of a spread, n q - s^2 of floats, begin where those of s^2 do, at 2^(2 LOWEST).  Digit k of the
# sum of squares at scale c is its digit k + FIRST_SCALE + c * SCALE_STEP.
SCALES: Final = 3
SCALE_STEP: Final = 44
FIRST_SCALE: Final = -10
SPREAD_LIMBS: Final = FIRST_SCALE + 2 * SCALE_STEP + LIMBS + 2
SPREAD_DIGITS: Final = 8  # 240 bits of it are divided by at most 62; what is below them only rounds
COUNT_DIGITS: Final = 3  # of a number of values
ROOT_BITS: Final = 58


# ---- sums of squares


@kernel
def sum_squares(ids: Words, base: int, values: Words, n: int, out: Words) -> None:
    """Values are h 2^32 + l with |h|, |l| <= 2^31.  The halves of l^2, h l and h^2 are summed separately.

    No sum of fewer than 2^31 values wraps.  REQUIRES: out is zero, SQUARE_PARTS words a slot.
    """
    for i in range(n):
        low = ((values[i] & LOW) ^ SIGN) - SIGN
        high = (values[i] >> 32) + (1 if low < 0 else 0)
        slot = SQUARE_PARTS * (ids[i] - base)
        for part in range(3):
            product = low * low if part == 0 else high * low if part == 1 else high * high
            out[slot + 2 * part] += product & LOW
            out[slot + 2 * part + 1] += product >> 32


@kernel
def settle_squares(parts: Words, n: int, out: Words) -> None:
    """Convert the result of `sum_squares` to 256 bits, the least significant word first."""
    for g in range(n):
        at, carry = SQUARE_PARTS * g, 0
        for k in range(8):
            limb = carry
            for part in range(SQUARE_PARTS):
                place = (part + 1) >> 1  # 0 1 | 1 2 | 2 3
                times = 2 if part == 2 or part == 3 else 1
                if k == place:
                    limb += times * (parts[at + part] & LOW)
                elif k == place + 1:
                    limb += times * (parts[at + part] >> 32)
            carry = limb >> 32
            if k & 1 == 0:
                out[4 * g + (k >> 1)] = limb & LOW
            else:
                out[4 * g + (k >> 1)] |= (limb & LOW) << 32


@kernel
def segment_words(bits: Words, bounds: Words, n: int, out: Words) -> None:
    """The words of the exact sum of each segment of floats.  REQUIRES: out is zero, WORDS_PER_SUM each."""
    for segment in range(n):
        start, end = bounds[segment], bounds[segment + 1]
        at = segment * WORDS_PER_SUM
        for block in range(start, end, LOOSE_ADDITIONS):
            first, last = LIMBS, 0
            for i in range(block, min(block + LOOSE_ADDITIONS, end)):
                limb = add_loosely(out, at, bits[i], 1)
                first = min(first, limb)
                last = max(last, limb)
            settle(out, at, first, min(last + 2, LIMBS))


# ---- results


@kernel
def round_sums(words: Words, divisors: Words, n: int, out: Floats) -> None:
    """The floats nearest to n sums of floats, or to their quotients by divisors that are not 0."""
    quotient = np.zeros(LIMBS, np.int64)
    for i in range(n):
        if divisors[i] == 0:
            out[i] = round_sum(words, i * WORDS_PER_SUM, LIMBS)
        else:
            out[i] = mean_of_sum(words, i * WORDS_PER_SUM, LIMBS, divisors[i], quotient)


@kernel
def exact_deviations(
    sums: Words,
    squares: Words,
    counts: Words,
    scale: int,
    freedom: int,
    root: int,
    n: int,
    powers: Words,
    out: Floats,
) -> None:
    """Of numbers of 256 bits with `scale` digits after the point.  NaN where n - f is not positive."""
    x, y, top = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    bottom, quotient = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    for i in range(n):
        n_bottom = divisor(counts[i], freedom, x, y, quotient)
        if n_bottom == 0:
            out[i] = np.nan
            continue
        n_x = scale_up(quotient, n_bottom, scale, powers, x)
        n_bottom = scale_up(x, n_x, scale, powers, bottom)
        n_y = put_count(counts[i], y)
        n_top = multiply(x, load(squares, i, x), y, n_y, top)
        n_y = load(sums, i, y)
        n_x = multiply(y, n_y, y, n_y, x)
        add_signed(top, n_top, 1, x, n_x, -1)
        n_top = trimmed(top, max(n_top, n_x) + 1)
        out[i] = rounded(top, n_top, 0, False, bottom, n_bottom, root, x, quotient)


@kernel
def float_deviations(
    sums: Words, squares: Words, counts: Words, freedom: int, root: int, n: int, out: Floats
) -> None:
    """Of floats, from the words of their sums and of the three sums of their squares.  NaN where n - f is not
    positive, and where a value is not finite."""
    spread = np.zeros(SPREAD_LIMBS, np.int64)
    x, top = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    bottom, quotient = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    for i in range(n):
        at = i * WORDS_PER_SUM
        special = sums[at + NANS] + sums[at + POSITIVE_INFINITIES] + sums[at + NEGATIVE_INFINITIES]
        n_bottom = divisor(counts[i], freedom, x, top, bottom)
        if special > 0 or n_bottom == 0:
            out[i] = np.nan
            continue
        end = put_spread(sums, at, squares, SCALES * at, counts[i], spread)
        start = max(end - SPREAD_DIGITS * BITS, 0)
        n_top = take_digits(spread, start, end, top)
        more = has_bits(spread, start)
        exponent = 2 * LOWEST + start
        out[i] = rounded(top, n_top, exponent, more, bottom, n_bottom, root, x, quotient)
        for k in range(SPREAD_LIMBS):
            spread[k] = 0


@helper
def put_count(count: int, out: Words) -> int:
    for k in range(COUNT_DIGITS):
        out[k] = (count >> (BITS * k)) & DIGIT
    return trimmed(out, COUNT_DIGITS)


@helper
def divisor(count: int, freedom: int, x: Words, y: Words, out: Words) -> int:
    """The digits of n (n - f); 0 of them where n - f is not positive."""
    if count <= freedom:
        return 0
    n_x = put_count(count, x)
    n_y = put_count(count - freedom, y)
    return multiply(x, n_x, y, n_y, out)


@helper
def put_spread(sums: Words, at: int, squares: Words, squares_at: int, count: int, out: Words) -> int:
    """n q - s^2 in digits of 32 bits; returns how many bits it has.  REQUIRES: out is zero."""
    for scale in range(SCALES):
        first = FIRST_SCALE + scale * SCALE_STEP
        for k in range(LIMBS):
            limb = squares[squares_at + scale * WORDS_PER_SUM + k]
            if limb != 0:
                product = limb * count
                out[first + k] += product & MASK
                out[first + k + 1] += product >> LIMB_BITS
    top = highest_limb(sums, at, LIMBS) + 1
    for k in range(top):
        limb = sums[at + k]
        if limb != 0:
            for j in range(top):
                product = limb * sums[at + j]
                out[k + j] -= product & MASK
                out[k + j + 1] -= product >> LIMB_BITS
    carry = 0
    for k in range(SPREAD_LIMBS):
        limb = out[k] + carry
        out[k] = limb & MASK
        carry = limb >> LIMB_BITS
    top = highest_limb(out, 0, SPREAD_LIMBS)
    return 0 if top < 0 else LIMB_BITS * top + bit_length(out[top])


@helper
def take_digits(limbs: Words, start: int, end: int, out: Words) -> int:
    """The bits from `start` to `end` as digits; returns how many."""
    size = 0
    for place in range(start, end, BITS):
        k, shift = place >> 5, place & 31
        above = limbs[k + 1] if k + 1 < SPREAD_LIMBS else 0
        out[size] = ((limbs[k] >> shift) | (above << (LIMB_BITS - shift))) & DIGIT
        size += 1
    return trimmed(out, size)


@helper
def has_bits(limbs: Words, end: int) -> bool:
    """Whether a bit below `end` is set."""
    return highest_limb(limbs, 0, end >> 5) >= 0 or limbs[end >> 5] & ((1 << (end & 31)) - 1) != 0


@helper
def rounded(
    top: Words,
    n_top: int,
    exponent: int,
    more: bool,
    bottom: Words,
    n_bottom: int,
    root: int,
    room: Words,
    out: Words,
) -> float:
    """The float nearest to top * 2^exponent / bottom, or to its root.  `more`: top and a fraction.

    Whole digits of zeros go below top, so that the quotient has more than 60 bits, for a root more than 120.
    REQUIRES: with `more`, top already has this many digits.
    """
    if n_top == 0:
        return 0.0
    zeros = max(n_bottom + (5 if root == 1 else 3) - n_top, 0)
    for k in range(zeros):
        room[k] = 0
    for k in range(n_top):
        room[zeros + k] = top[k]
    size = trimmed(out, divide(room, zeros + n_top, bottom, n_bottom, out))
    more = more or trimmed(room, n_bottom) > 0
    if root == 1:
        return rounded_root(out, size, exponent - BITS * zeros, more)
    return nearest(out, size, exponent - BITS * zeros, more)


@helper
def rounded_root(digits: Words, size: int, exponent: int, more: bool) -> float:
    """The float nearest to the root of digits * 2^exponent, and a fraction if `more`.  Changes the digits.

    The root is found bit by bit from the highest pair of bits on; the rest stays below twice the root.
    REQUIRES: 2 * ROOT_BITS bits or more.
    """
    if exponent & 1 == 1:
        digits[size] = 0
        shift_left(digits, size + 1, 1)
        size = trimmed(digits, size + 1)
        exponent -= 1
    half = BITS >> 1
    pairs = half * (size - 1) + ((bit_length(digits[size - 1]) + 1) >> 1)
    last = pairs - ROOT_BITS
    root, rest = 0, 0
    for pair in range(pairs - 1, last - 1, -1):
        rest = (rest << 2) | ((digits[pair // half] >> (2 * (pair % half))) & 3)
        trial = (root << 2) | 1
        root <<= 1
        if rest >= trial:
            rest -= trial
            root |= 1
    below = digits[last // half] & ((1 << (2 * (last % half))) - 1)
    more = more or rest != 0 or below != 0 or trimmed(digits, last // half) > 0
    return round_bits(root, (exponent >> 1) + last, more)
