"""Owns arithmetic on integers of 256 bits, the unscaled values of decimals.  Knows nothing of Arrow.

A value is four words, two's complement, the least significant first.  Every operation is a quotient of two
exact numbers, rounded once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.algebra import bit_length, round_bits
from dlog.arithmetic.digit_kernels import (
    BITS,
    DIGIT,
    ROOM,
    add_signed,
    below_limit,
    divide,
    load,
    multiply,
    power_of_ten,
    round_quotient,
    scale_up,
    sign_at,
    store,
    trimmed,
)
from dlog.jit import Floats, Words, helper, kernel

ADD: Final = 0
SUB: Final = 1
MUL: Final = 2
DIV: Final = 3
COPY: Final = 4  # b is not read


@kernel
def combine(
    op: int,
    a: Words,
    a_power: int,
    b: Words,
    b_power: int,
    divisor: int,
    mode: int,
    factor: int,
    n: int,
    powers: Words,
    out: Words,
    defined: Words,
) -> int:
    """Row by row, rounded once to a whole number by `mode`; returns the number of undefined rows.

    ADD, SUB, COPY: (a * 10^a_power +- b * 10^b_power) / 10^divisor; MUL: a * b * 10^a_power / 10^divisor;
    DIV: a * 10^a_power / (b * 10^b_power); the result * 10^factor.  Undefined: division by 0, more than 76
    digits.
    """
    x, y = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    top, bottom, quotient = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    undefined = 0
    for i in range(n):
        x_sign, y_sign = sign_at(a, i), 1
        n_top = load(a, i, x)
        if op == MUL:
            y_sign = sign_at(b, i)
            n_top = multiply(x, n_top, y, load(b, i, y), bottom)
            n_top = scale_up(bottom, n_top, a_power, powers, top)
        else:
            n_top = scale_up(x, n_top, a_power, powers, top)
        sign = x_sign * y_sign
        n_bottom = 1
        bottom[0] = 1
        if op in (ADD, SUB):
            y_sign = sign_at(b, i) if op == ADD else -sign_at(b, i)
            size = scale_up(y, load(b, i, y), b_power, powers, x)
            sign = add_signed(top, n_top, sign, x, size, y_sign)
            n_top = trimmed(top, max(n_top, size) + 1)
        if op == DIV:
            sign *= sign_at(b, i)
            n_bottom = scale_up(y, load(b, i, y), b_power, powers, bottom)
        elif divisor > 0:
            n_bottom = power_of_ten(divisor, powers, bottom)
        if n_bottom == 0:
            defined[i] = 0
            undefined += 1
            continue
        size = round_quotient(top, n_top, bottom, n_bottom, sign, mode, quotient)
        if factor > 0:
            size = scale_up(quotient, size, factor, powers, top)
            quotient, top = top, quotient
        fits = store(quotient, size, sign, powers, out, i)
        defined[i] = fits
        undefined += 1 - fits
    return undefined


@kernel
def compare(a: Words, a_power: int, b: Words, b_power: int, n: int, powers: Words, out: Words) -> None:
    """out[i] is -1, 0 or 1, as a * 10^a_power is less than, equal to or greater than b * 10^b_power."""
    x, y, z = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    for i in range(n):
        n_y = scale_up(x, load(a, i, x), a_power, powers, y)
        n_z = scale_up(x, load(b, i, x), b_power, powers, z)
        sign = add_signed(y, n_y, sign_at(a, i), z, n_z, -sign_at(b, i))
        out[i] = 0 if trimmed(y, max(n_y, n_z) + 1) == 0 else sign


@kernel
def quotients(a: Words, counts: Words, power: int, n: int, powers: Words, out: Floats) -> None:
    """The float nearest to a / (counts * 10^power).  REQUIRES: counts > 0."""
    x, top = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    bottom, quotient = np.zeros(ROOM, np.int64), np.zeros(ROOM, np.int64)
    for i in range(n):
        n_x = load(a, i, x)
        for k in range(3):
            quotient[k] = (counts[i] >> (BITS * k)) & DIGIT
        n_bottom = scale_up(quotient, trimmed(quotient, 3), power, powers, bottom)
        # Whole digits of zeros below, so that the quotient has more than 60 bits.
        zeros = max(n_bottom + 3 - n_x, 0)
        top[:zeros] = 0
        top[zeros : zeros + n_x] = x[:n_x]
        size = trimmed(quotient, divide(top, zeros + n_x, bottom, n_bottom, quotient))
        more = trimmed(top, n_bottom) > 0
        out[i] = sign_at(a, i) * nearest(quotient, size, -BITS * zeros, more) if n_x > 0 else 0.0


@helper
def nearest(digits: Words, size: int, exponent: int, more: bool) -> float:
    """The float nearest to digits * 2^exponent (and a fraction if `more`).  REQUIRES: 60 bits or more."""
    taken = digits[size - 1]
    missing = 62 - bit_length(taken)
    k, place = size - 1, 0
    while missing > 0:
        k -= 1
        width = min(missing, BITS)
        taken = (taken << width) | (digits[k] >> (BITS - width) if k >= 0 else 0)
        missing -= width
        if k >= 0 and digits[k] & ((1 << (BITS - width)) - 1) != 0:
            more = True
        place = BITS * (k + 1) - width
    more = more or trimmed(digits, max(k, 0)) > 0
    return round_bits(taken, exponent + place, more)


@kernel
def sums(words: Words, groups: Words, n: int, totals: Words) -> None:
    """Add the words of row i to the eight 32-bit limbs of group groups[i].  REQUIRES: n < 2^31."""
    for i in range(n):
        at = groups[i] * 8
        for k in range(4):
            word = words[4 * i + k]
            totals[at + 2 * k] += word & 0xFFFFFFFF
            totals[at + 2 * k + 1] += (word >> 32) & 0xFFFFFFFF if k < 3 else word >> 32


@kernel
def settle_sums(totals: Words, n: int, powers: Words, out: Words, defined: Words) -> int:
    """Sums of limbs to words; returns how many have more than 76 digits."""
    digits = np.zeros(ROOM, np.int64)
    overflows = 0
    for g in range(n):
        carry = 0
        for k in range(8):
            limb = totals[g * 8 + k] + carry
            if k < 7:
                carry = limb >> 32
                limb &= 0xFFFFFFFF
            totals[g * 8 + k] = limb
        for k in range(4):
            out[4 * g + k] = (totals[g * 8 + 2 * k + 1] << 32) | totals[g * 8 + 2 * k]
        wide = totals[g * 8 + 7] >> 31 != 0 and totals[g * 8 + 7] >> 31 != -1
        fits = 1 if not wide and below_limit(digits, load(out, g, digits), powers) else 0
        defined[g] = fits
        overflows += 1 - fits
    return overflows
