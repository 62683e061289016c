"""Owns the exact sum of floats.

Knows nothing of codes, rules or groups of rows: values come as plain numbers, in segments or one by one.

The exact float sum (section 2.3.4 of the maintenance paper).  Correct output: the float nearest to the real
sum of the summands, ties to even, whatever the order and grouping of additions and subtractions; infinities
and NaN as floats carry them.  A sum is a number in base 2^32 with LIMBS digits, wide enough for every float
and 2^77 summands, then three counters: how many +inf, -inf and NaN it holds, so that these can be subtracted.

The digits are balanced, in [-2^31, 2^31).  They are unique, so equal sums are equal words; and like the
paper's 1000 1000 ... pattern they stop borrows: 2^500 - 1 has two digits that are not 0, where digits in
[0, 2^32) would hold a run of hundreds of ones.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dlog.jit import Floats, Words, helper, kernel

LIMBS: Final = 69
LIMB_BITS: Final = 32
POSITIVE_INFINITIES: Final = LIMBS
NEGATIVE_INFINITIES: Final = LIMBS + 1
NANS: Final = LIMBS + 2
WORDS_PER_SUM: Final = LIMBS + 3

LOWEST: Final = -1106  # the weight of bit 0 is 2^LOWEST: 32 bits below the least float, for quotients
SUBNORMAL: Final = -1074
HALF: Final = 1 << 31
QUOTIENT_LIMBS: Final = 5  # a quotient by less than 2^31 then has at least 96 bits, and 62 are read
MASK: Final = (1 << 32) - 1
FRACTION: Final = (1 << 52) - 1
LOOSE_ADDITIONS: Final = 512  # each adds less than 2^53 to a limb, so the limb stays below 2^63


# ---- sums of whole segments


def float_sums(values: Floats, bounds: Words) -> Floats:
    """The exact sum of values[bounds[i]:bounds[i + 1]] for each i.  About 3 ns a value and 40 a segment.

    >>> float_sums(np.array([1e16, 1.0, -1e16, 0.5]), np.array([0, 3, 3, 4])).tolist()
    [1.0, 0.0, 0.5]
    """
    out = np.empty(max(len(bounds) - 1, 0))
    segment_float_sums(_bits(values), bounds, len(out), out, 0)
    return out


def float_means(values: Floats, bounds: Words) -> Floats:
    """The exact mean of each segment, rounded once.  REQUIRES: fewer than 2^31 values in each; NaN for none.

    >>> float_means(np.array([1e308, 1e308, 1e308]), np.array([0, 3])).tolist()
    [1e+308]
    """
    assert len(values) < HALF
    out = np.empty(max(len(bounds) - 1, 0))
    segment_float_sums(_bits(values), bounds, len(out), out, 1)
    return out


def _bits(values: Floats) -> Words:
    """The bits of floats, writable so that kernels see one type of array."""
    array = np.ascontiguousarray(values, np.float64)
    return (array if array.flags.writeable else array.copy()).view(np.int64)


@kernel
def segment_float_sums(bits: Words, bounds: Words, n: int, out: Floats, mean: int) -> None:
    """One accumulator serves all segments: only the limbs a segment touched are settled, read and cleaned."""
    words = np.zeros(WORDS_PER_SUM, np.int64)
    work = np.zeros(LIMBS, np.int64)
    for segment in range(n):
        start, end = bounds[segment], bounds[segment + 1]
        first, last = LIMBS, 0
        for block in range(start, end, LOOSE_ADDITIONS):
            for i in range(block, min(block + LOOSE_ADDITIONS, end)):
                limb = add_loosely(words, 0, bits[i], 1)
                first = min(first, limb)
                last = max(last, limb)
            last = settle(words, 0, first, last + 2) - 2
        used = min(last + 2, LIMBS)
        if mean == 1:
            out[segment] = mean_of_sum(words, 0, used, end - start, work)
        else:
            out[segment] = round_sum(words, 0, used)
        for k in range(first, used):
            words[k] = 0
        for k in range(LIMBS, WORDS_PER_SUM):
            words[k] = 0


# ---- persistent sums: WORDS_PER_SUM words from `at` on; all zeros is the empty sum


def exact_float(value: float = 0.0) -> Words:
    """A new sum that holds one value."""
    words = np.zeros(WORDS_PER_SUM, np.int64)
    add_to_sum(words, 0, float(value), 1)
    return words


@kernel
def add_to_sum(words: Words, at: int, value: float, sign: int) -> None:
    """Add (sign 1) or subtract (sign -1) one float.  O(1) almost always: a carry rarely propagates."""
    bits: Any = np.float64(value).view(np.int64)
    first = add_loosely(words, at, bits, sign)
    settle(words, at, first, first + 2)


@kernel
def merge_sum(words: Words, at: int, other: Words, other_at: int, sign: int) -> None:
    """Add or subtract another sum.  O(LIMBS).  REQUIRES: both settled."""
    for k in range(WORDS_PER_SUM):
        words[at + k] += sign * other[other_at + k]
    settle(words, at, 0, LIMBS)


@kernel
def round_sum(words: Words, at: int, used: int) -> float:
    """The float nearest to the sum.  O(used).  REQUIRES: settled; limbs from `used` on (<= LIMBS) are 0."""
    if words[at + NANS] > 0 or (words[at + POSITIVE_INFINITIES] > 0 and words[at + NEGATIVE_INFINITIES] > 0):
        return np.nan
    if words[at + POSITIVE_INFINITIES] > 0:
        return np.inf
    if words[at + NEGATIVE_INFINITIES] > 0:
        return -np.inf
    return round_limbs(words, at, 0, used, 0)


@kernel
def mean_of_sum(words: Words, at: int, used: int, count: int, quotient: Words) -> float:
    """The float nearest to sum / count.  O(used).  REQUIRES: as round_sum; 0 <= count < 2^31.

    `quotient` is work space of LIMBS zeros.
    """
    if count == 0:
        return np.nan
    if words[at + NANS] + words[at + POSITIVE_INFINITIES] + words[at + NEGATIVE_INFINITIES] > 0:
        return round_sum(words, at, used)
    top = highest_limb(words, at, used)
    if top < 0:
        return 0.0
    sign = -1 if words[at + top] < 0 else 1
    last = max(top - QUOTIENT_LIMBS + 1, 0)
    below = sign * sign_of(words, at, last)
    carry = -1 if below < 0 else 0
    for k in range(last, top + 1):  # digits of the absolute value, in [0, 2^32)
        digit = sign * words[at + k] + carry
        quotient[k] = digit & MASK
        carry = digit >> 32
    rest = 0
    for k in range(top, last - 1, -1):
        digit = (rest << 32) | quotient[k]
        quotient[k] = digit // count
        rest = digit - quotient[k] * count
    result = round_limbs(quotient, 0, 0, top + 1, rest + abs(below))
    for k in range(last, top + 1):
        quotient[k] = 0
    return sign * result


@helper
def add_loosely(words: Words, at: int, bits: int, sign: int) -> int:
    """Add to two limbs without settling them; the first one touched, or LIMBS.  O(1)."""
    exponent = (bits >> 52) & 2047
    mantissa = bits & FRACTION
    if exponent == 2047:
        kind = NANS if mantissa != 0 else (NEGATIVE_INFINITIES if bits < 0 else POSITIVE_INFINITIES)
        words[at + kind] += sign
        return LIMBS
    if exponent > 0:
        mantissa |= FRACTION + 1
        exponent -= 1
    place = exponent + (SUBNORMAL - LOWEST)
    limb = place >> 5
    shift = place & 31
    if bits < 0:
        sign = -sign
    words[at + limb] += sign * ((mantissa << shift) & MASK)
    words[at + limb + 1] += sign * (mantissa >> (32 - shift))
    return limb


@helper
def settle(words: Words, at: int, first: int, end: int) -> int:
    """Bring limbs first .. end - 1 into [-2^31, 2^31) and carry on; returns the end of what was touched.

    O(end - first), almost always.  REQUIRES: all other limbs are settled.
    """
    carry = 0
    k = first
    while k < LIMBS and (k < end or carry != 0):
        value = words[at + k] + carry
        carry = (value + HALF) >> 32
        words[at + k] = value - (carry << 32)
        k += 1
    return max(k, end)


@helper
def highest_limb(words: Words, at: int, n: int) -> int:
    """The highest limb of n that is not 0, or -1."""
    top = n - 1
    while top >= 0 and words[at + top] == 0:
        top -= 1
    return top


@helper
def round_limbs(words: Words, at: int, first: int, n: int, rest: int) -> float:
    """The nearest float, ties to even.  `rest` > 0: a little more than the limbs say, in absolute value.

    Limbs below `first` are 0 and not read, unless all from there on are 0.  1 take 62 bits from the highest
    limb down, 2 what lies below them only matters by its sign, 3 round.
    """
    top = highest_limb(words, at, n)
    if top < 0:
        return 0.0  # REQUIRES: rest is 0 then, or below half of the least float
    sign = -1 if words[at + top] < 0 else 1
    taken = sign * words[at + top]
    missing = 62 - bit_length(taken)
    low, k, exponent = 0, top, 0
    while missing > 0:
        k -= 1
        limb = sign * words[at + k] if k >= first else 0
        width = min(missing, LIMB_BITS)
        taken = (taken << width) + (limb >> (LIMB_BITS - width))
        low = limb & ((1 << (LIMB_BITS - width)) - 1)
        missing -= width
        exponent = LOWEST + LIMB_BITS * k + LIMB_BITS - width
    below = 1 if low != 0 else sign * sign_of(words, at + first, k - first)
    if below < 0:
        taken -= 1
    return sign * round_bits(taken, exponent, below != 0 or rest > 0)


@helper
def sign_of(words: Words, at: int, n: int) -> int:
    """-1, 0 or 1: the sign of the number that the n lowest limbs are."""
    top = highest_limb(words, at, n)
    if top < 0:
        return 0
    return -1 if words[at + top] < 0 else 1


@helper
def round_bits(taken: int, exponent: int, more: bool) -> float:
    """(taken + a fraction if `more`) * 2^exponent as the nearest float.  REQUIRES: 2^55 <= taken < 2^62."""
    drop = max(bit_length(taken) - 53, SUBNORMAL - exponent)
    if drop > 62:
        return 0.0
    kept = taken >> drop
    lost = taken & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    if lost > half or (lost == half and (more or kept & 1 == 1)):
        kept += 1
    field = exponent + drop - SUBNORMAL
    if field > 2045:
        return np.inf
    # In the least binade the bits of a float are its mantissa; above it, each step of the exponent doubles,
    # and the mantissa's highest bit adds the last one.  A mantissa rounded up to 2^53 carries rightly.
    return np.int64((field << 52) + kept).view(np.float64)


@helper
def bit_length(value: int) -> int:
    """REQUIRES: value >= 0."""
    length = 0
    step = 32
    while step > 0:
        if value >> step != 0:
            value >>= step
            length += step
        step >>= 1
    return length + value
