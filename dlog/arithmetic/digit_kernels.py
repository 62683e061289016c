"""Owns long arithmetic on one value: an integer of 256 bits split into a sign and digits in base 2^30.

The lowest digit comes first.  A product of two digits and a carry then fits an int64, and nothing ever wraps.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.algebra import bit_length
from dlog.jit import Words, helper

BITS: Final = 30
BASE: Final = 1 << BITS
DIGIT: Final = BASE - 1
DIGITS: Final = 9  # 270 bits
ROOM: Final = 4 * DIGITS  # a product of two values and a power of ten, and a digit more for division
MAX_POWER: Final = 76

HALF_EVEN: Final = 0
FLOOR: Final = 1
CEIL: Final = 2
TRUNCATE: Final = 3


def _powers() -> Words:
    """The digits of 10^k, DIGITS for each k up to MAX_POWER."""
    table = np.zeros((MAX_POWER + 1) * DIGITS, np.int64)
    for k in range(MAX_POWER + 1):
        for j in range(DIGITS):
            table[k * DIGITS + j] = (10**k >> (BITS * j)) & DIGIT
    return table


POWERS: Final = _powers()


@helper
def sign_at(words: Words, i: int) -> int:
    return -1 if words[4 * i + 3] < 0 else 1


@helper
def load(words: Words, i: int, out: Words) -> int:
    """The digits of the absolute value; returns how many, without zeros on top."""
    negative = words[4 * i + 3] < 0
    carry = 1
    for j in range(DIGITS):
        place = BITS * j
        k = 4 * i + (place >> 6)
        shift = place & 63
        digit = (words[k] >> shift) & DIGIT
        if shift > 64 - BITS:  # the arithmetic shift brought in copies of the sign
            low = 64 - shift
            above = words[k + 1] if k < 4 * i + 3 else words[k] >> 63
            digit = (digit & ((1 << low) - 1)) | ((above << low) & DIGIT)
        if negative:
            digit = (digit ^ DIGIT) + carry
            carry = digit >> BITS
            digit &= DIGIT
        out[j] = digit
    return trimmed(out, DIGITS)


@helper
def store(digits: Words, size: int, sign: int, powers: Words, out: Words, i: int) -> int:
    """1, and the value in its words, if it has no more than 76 digits; else 0.  Changes the digits."""
    if not below_limit(digits, size, powers):
        return 0
    for k in range(4):
        out[4 * i + k] = 0
    for j in range(size, DIGITS):
        digits[j] = 0
    carry = 1
    for j in range(DIGITS):
        digit = digits[j]
        if sign < 0:
            digit = (digit ^ DIGIT) + carry
            carry = digit >> BITS
            digit &= DIGIT
        place = BITS * j
        k = place >> 6
        shift = place & 63
        out[4 * i + k] |= digit << shift
        if shift > 64 - BITS and k < 3:
            out[4 * i + k + 1] |= digit >> (64 - shift)
    return 1


@helper
def below_limit(digits: Words, size: int, powers: Words) -> bool:
    """Whether the value is below 10^76."""
    if size != DIGITS:
        return size < DIGITS
    for j in range(DIGITS - 1, -1, -1):
        limit = powers[MAX_POWER * DIGITS + j]
        if digits[j] != limit:
            return digits[j] < limit
    return False


@helper
def trimmed(digits: Words, size: int) -> int:
    """The size without zeros on top."""
    while size > 0 and digits[size - 1] == 0:
        size -= 1
    return size


@helper
def power_of_ten(power: int, powers: Words, out: Words) -> int:
    for j in range(DIGITS):
        out[j] = powers[power * DIGITS + j]
    return trimmed(out, DIGITS)


@helper
def scale_up(digits: Words, size: int, power: int, powers: Words, out: Words) -> int:
    """digits * 10^power."""
    if power == 0:
        for j in range(size):
            out[j] = digits[j]
        return size
    n = DIGITS
    while powers[power * DIGITS + n - 1] == 0:
        n -= 1
    for j in range(size + n):
        out[j] = 0
    for i in range(size):
        carry = 0
        for j in range(n):
            value = out[i + j] + digits[i] * powers[power * DIGITS + j] + carry
            out[i + j] = value & DIGIT
            carry = value >> BITS
        out[i + n] = carry
    return trimmed(out, size + n)


@helper
def multiply(a: Words, n_a: int, b: Words, n_b: int, out: Words) -> int:
    for j in range(n_a + n_b):
        out[j] = 0
    for i in range(n_a):
        carry = 0
        for j in range(n_b):
            value = out[i + j] + a[i] * b[j] + carry
            out[i + j] = value & DIGIT
            carry = value >> BITS
        out[i + n_b] = carry
    return trimmed(out, n_a + n_b)


@helper
def add_signed(a: Words, n_a: int, a_sign: int, b: Words, n_b: int, b_sign: int) -> int:
    """a becomes a + b, of at most max(n_a, n_b) + 1 digits; returns its sign."""
    n = max(n_a, n_b)
    for j in range(n_a, n + 1):
        a[j] = 0
    for j in range(n_b, n):
        b[j] = 0
    carry = 0
    for j in range(n):
        value = a[j] + carry + (b[j] if a_sign == b_sign else -b[j])
        a[j] = value & DIGIT
        carry = value >> BITS
    if carry >= 0:
        a[n] = carry
        return a_sign
    carry = 1  # b was larger: the digits are those of 2^k - (b - a)
    for j in range(n):
        value = (a[j] ^ DIGIT) + carry
        a[j] = value & DIGIT
        carry = value >> BITS
    return -a_sign


@helper
def round_quotient(top: Words, n_top: int, bottom: Words, n: int, sign: int, mode: int, out: Words) -> int:
    """top / bottom, rounded by `mode` as a number of that sign.  Changes both."""
    if n == 1 and bottom[0] == 1:
        for j in range(n_top):
            out[j] = top[j]
        return n_top
    size = divide(top, n_top, bottom, n, out)
    if trimmed(top, n) > 0:
        up = (mode == FLOOR and sign < 0) or (mode == CEIL and sign > 0)
        if mode == HALF_EVEN:
            order = against_half(top, bottom, n)
            up = order > 0 or (order == 0 and size > 0 and out[0] & 1 == 1)
        if up:
            out[size] = 0
            j = 0
            while out[j] == DIGIT:
                out[j] = 0
                j += 1
            out[j] += 1
            size += 1
    return trimmed(out, size)


@helper
def against_half(rest: Words, bottom: Words, n: int) -> int:
    """-1, 0 or 1 as 2 * rest is less than, equal to or greater than bottom, both of n digits."""
    for j in range(n - 1, -1, -1):
        doubled = ((rest[j] << 1) & DIGIT) | (rest[j - 1] >> (BITS - 1) if j > 0 else 0)
        if j == n - 1 and rest[j] >> (BITS - 1) != 0:
            return 1
        if doubled != bottom[j]:
            return 1 if doubled > bottom[j] else -1
    return 0


@helper
def divide(top: Words, n_top: int, bottom: Words, n: int, out: Words) -> int:
    """out = top // bottom; top becomes the rest, of n digits.  Long division by estimates of each digit.

    Both are shifted first, so that the highest digit of bottom has its highest bit set; then an estimate from
    the two highest digits is at most 2 too large.  The rest stays shifted, as bottom does: their ratio is
    what callers need.  REQUIRES: bottom[n - 1] != 0, n_top < ROOM.
    """
    for j in range(n_top, max(n_top, n) + 1):
        top[j] = 0
    if n_top < n:
        return 0
    shift = BITS - bit_length(bottom[n - 1])
    shift_left(bottom, n, shift)
    shift_left(top, n_top + 1, shift)
    highest = bottom[n - 1]
    for j in range(n_top - n, -1, -1):
        pair = (top[j + n] << BITS) | top[j + n - 1]
        digit = min(pair // highest, DIGIT)
        rest = pair - digit * highest
        while n > 1 and rest < BASE and digit * bottom[n - 2] > ((rest << BITS) | top[j + n - 2]):
            digit -= 1
            rest += highest
        carry = 0
        for k in range(n):
            value = top[j + k] - digit * bottom[k] + carry
            top[j + k] = value & DIGIT
            carry = value >> BITS
        value = top[j + n] + carry
        if value < 0:  # the estimate was one too large
            digit -= 1
            carry = 0
            for k in range(n):
                total = top[j + k] + bottom[k] + carry
                top[j + k] = total & DIGIT
                carry = total >> BITS
            value += carry
        top[j + n] = value
        out[j] = digit
    return n_top - n + 1


@helper
def shift_left(digits: Words, size: int, shift: int) -> None:
    """REQUIRES: the highest digit has room."""
    carry = 0
    for j in range(size):
        value = (digits[j] << shift) | carry
        digits[j] = value & DIGIT
        carry = value >> BITS
