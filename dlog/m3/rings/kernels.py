"""Owns arithmetic on payloads: elements of rings as runs of 64-bit words.  Knows nothing of maps or keys.

A ring is described to kernels by an array of PART numbers for each of its parts: its code, where its words
begin, how many they are, and a parameter.  Rings multiply part by part; a cofactor part multiplies as a
whole.

| code | words | element |
| --- | --- | --- |
| INTEGER | 1 | an int64; what does not fit is an error, never a wrong number |
| FLOAT | 2 | the sum of two floats, so that a value can be added and subtracted without a remainder |
| PLAIN_FLOAT | 1 | one float |
| DECIMAL | 1 | a multiple of 1 / parameter; a product that is not one is an error |
| COFACTOR | 1 + n + n (n + 1) / 2 | count, sums and the upper triangle of sums of products, as plain floats |

Floats are stored as their bits.  Functions that can fail return True on success.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dlog.jit import Bools, Words, helper, kernel

PART: Final = 4  # numbers that describe a part
INTEGER: Final = 0
FLOAT: Final = 1
PLAIN_FLOAT: Final = 2
DECIMAL: Final = 3
COFACTOR: Final = 4

MAX: Final = (1 << 63) - 1
MIN: Final = -(1 << 63)
SPLITTER: Final = 134217729.0  # 2^27 + 1: splits a float into halves of 26 bits
LARGE: Final = 1e290  # greater products are not split: the result would be infinite


# ---- elements: helpers for the kernels of maps


@helper
def add_element(ring: Words, x: Words, x_at: int, y: Words, y_at: int) -> bool:
    """x += y."""
    fine = True
    for part in range(0, len(ring), PART):
        code, at, words = ring[part], ring[part + 1], ring[part + 2]
        if code in (INTEGER, DECIMAL):
            a, b = x[x_at + at], y[y_at + at]
            fine = fine and add_fits(a, b)
            x[x_at + at] = a + b
        elif code == FLOAT:
            add_double(x, x_at + at, y, y_at + at)
        else:
            for k in range(at, at + words):
                x[x_at + k] = bits(real(x[x_at + k]) + real(y[y_at + k]))
    return fine


@helper
def multiply_element(ring: Words, x: Words, x_at: int, y: Words, y_at: int, out: Words, out_at: int) -> bool:
    """out = x * y.  REQUIRES: out is neither x nor y."""
    fine = True
    for part in range(0, len(ring), PART):
        code, at = ring[part], ring[part + 1]
        if code == INTEGER:
            a, b = x[x_at + at], y[y_at + at]
            fine = fine and multiply_fits(a, b)
            out[out_at + at] = a * b
        elif code == DECIMAL:
            fine = fine and multiply_decimal(x[x_at + at], y[y_at + at], ring[part + 3], out, out_at + at)
        elif code == FLOAT:
            multiply_double(x, x_at + at, y, y_at + at, out, out_at + at)
        elif code == PLAIN_FLOAT:
            out[out_at + at] = bits(real(x[x_at + at]) * real(y[y_at + at]))
        else:
            multiply_cofactor(ring[part + 3], x, x_at + at, y, y_at + at, out, out_at + at)
    return fine


@helper
def scale_element(ring: Words, x: Words, x_at: int, times: int) -> bool:
    """x = x + x + .., `times` times: a multiplicity.  Exact for integers, decimals and floats."""
    fine = True
    for part in range(0, len(ring), PART):
        code, at, words = ring[part], ring[part + 1], ring[part + 2]
        if code in (INTEGER, DECIMAL):
            fine = fine and multiply_fits(x[x_at + at], times)
            x[x_at + at] *= times
        elif code == FLOAT:
            scale_double(x, x_at + at, float(times))
        else:
            for k in range(at, at + words):
                x[x_at + k] = bits(real(x[x_at + k]) * times)
    return fine


@helper
def negate_element(ring: Words, x: Words, x_at: int) -> bool:
    """x = -x."""
    fine = True
    for part in range(0, len(ring), PART):
        code, at, words = ring[part], ring[part + 1], ring[part + 2]
        if code in (INTEGER, DECIMAL):
            fine = fine and x[x_at + at] != MIN
            x[x_at + at] = -x[x_at + at]
        else:
            for k in range(at, at + words):
                x[x_at + k] = bits(-real(x[x_at + k]))
    return fine


@helper
def is_zero_element(ring: Words, x: Words, x_at: int) -> bool:
    """Whether it is zero: for a float, 0 or -0."""
    for part in range(0, len(ring), PART):
        code, at, words = ring[part], ring[part + 1], ring[part + 2]
        for k in range(at, at + words):
            if code in (INTEGER, DECIMAL):
                if x[x_at + k] != 0:
                    return False
            elif real(x[x_at + k]) != 0.0:
                return False
    return True


@helper
def one_element(ring: Words, x: Words, x_at: int) -> None:
    """x = 1.  Zero is all words 0."""
    for part in range(0, len(ring), PART):
        code, at, words = ring[part], ring[part + 1], ring[part + 2]
        for k in range(at, at + words):
            x[x_at + k] = 0
        if code == INTEGER:
            x[x_at + at] = 1
        elif code == DECIMAL:
            x[x_at + at] = ring[part + 3]
        else:
            x[x_at + at] = bits(1.0)


# ---- whole columns of elements; the first row that failed, or -1


@kernel
def add_columns(ring: Words, words: int, x: Words, y: Words, n: int) -> int:
    """x[i] += y[i] for i < n."""
    failed = -1
    for i in range(n):
        if not add_element(ring, x, i * words, y, i * words) and failed < 0:
            failed = i
    return failed


@kernel
def multiply_columns(ring: Words, words: int, x: Words, y: Words, n: int, out: Words) -> int:
    failed = -1
    for i in range(n):
        if not multiply_element(ring, x, i * words, y, i * words, out, i * words) and failed < 0:
            failed = i
    return failed


@kernel
def scale_columns(ring: Words, words: int, x: Words, times: Words, n: int) -> int:
    failed = -1
    for i in range(n):
        if not scale_element(ring, x, i * words, times[i]) and failed < 0:
            failed = i
    return failed


@kernel
def negate_columns(ring: Words, words: int, x: Words, n: int) -> int:
    failed = -1
    for i in range(n):
        if not negate_element(ring, x, i * words) and failed < 0:
            failed = i
    return failed


@kernel
def zero_columns(ring: Words, words: int, x: Words, n: int, out: Bools) -> None:
    for i in range(n):
        out[i] = is_zero_element(ring, x, i * words)


@kernel
def one_columns(ring: Words, words: int, x: Words, n: int) -> None:
    for i in range(n):
        one_element(ring, x, i * words)


@kernel
def sum_segments(ring: Words, words: int, x: Words, bounds: Words, n: int, out: Words) -> int:
    """out[i] = the sum of x[bounds[i]:bounds[i + 1]]; out is zeros.  The first segment that failed, or -1."""
    failed = -1
    for segment in range(n):
        for i in range(bounds[segment], bounds[segment + 1]):
            if not add_element(ring, out, segment * words, x, i * words) and failed < 0:
                failed = segment
    return failed


# ---- integers and decimals


@helper
def add_fits(a: int, b: int) -> bool:
    """Checked without adding: the compiler may assume that a sum of two int64 does not wrap."""
    return a <= MAX - b if b > 0 else a >= MIN - b


@helper
def multiply_fits(a: int, b: int) -> bool:
    if -(1 << 31) <= a < (1 << 31) and -(1 << 31) <= b < (1 << 31):
        return True
    if a == 0 or b == 0:
        return True
    if a == MIN or b == MIN:
        return a == 1 or b == 1
    return abs(a) <= MAX // abs(b)


@helper
def multiply_decimal(a: int, b: int, unit: int, out: Words, at: int) -> bool:
    """a / unit * b / unit as a multiple of 1 / unit.  Cancels common factors first, so that no number
    is greater than the operands or the result."""
    d = divisor(a, unit)
    rest = unit // d
    e = divisor(b, rest)
    a, b = a // d, b // e
    out[at] = a * b
    return rest == e and multiply_fits(a, b)


@helper
def divisor(a: int, b: int) -> int:
    """The greatest common divisor.  REQUIRES: b > 0."""
    if a == MIN:
        a = a + b  # the same modulo b
    a = abs(a)
    while a != 0:
        a, b = b % a, a
    return b


# ---- floats


@helper
def real(word: int) -> float:
    return np.int64(word).view(np.float64)


@helper
def bits(value: float) -> int:
    word: Any = np.float64(value).view(np.int64)
    return word


@helper
def sum_of_doubled(a, b, c, d):
    """(a + b) + (c + d) of doubled floats, high words a and c: Knuth's sums of both, carried up twice."""
    high = a + c
    if not np.isfinite(high):
        return high, 0.0
    part = high - a
    low = (a - (high - part)) + (c - part)
    small = b + d
    part = small - b
    rest = (b - (small - part)) + (d - part)
    low += small
    total = high + low
    low = rest + (low - (total - high))
    high = total + low
    return high + 0.0, (low - (high - total)) + 0.0


@helper
def add_double(x: Words, at: int, y: Words, y_at: int) -> None:
    """x += y of pairs."""
    high, low = sum_of_doubled(real(x[at]), real(x[at + 1]), real(y[y_at]), real(y[y_at + 1]))
    x[at] = bits(high)
    x[at + 1] = bits(low)


@helper
def multiply_double(x: Words, x_at: int, y: Words, y_at: int, out: Words, at: int) -> None:
    """Dekker's product of the high words, and the two mixed products."""
    a, b = real(x[x_at]), real(y[y_at])
    high = a * b
    if not np.isfinite(high):
        out[at], out[at + 1] = bits(high), bits(0.0)
        return
    low = product_rest(a, b, high) + (a * real(y[y_at + 1]) + real(x[x_at + 1]) * b)
    total = high + low
    out[at] = bits(total)
    out[at + 1] = bits(low - (total - high))


@helper
def scale_double(x: Words, at: int, times: float) -> None:
    a, b = real(x[at]), real(x[at + 1])
    high = a * times
    if not np.isfinite(high):
        x[at], x[at + 1] = bits(high), bits(0.0)
        return
    low = product_rest(a, times, high) + b * times
    total = high + low
    x[at] = bits(total)
    x[at + 1] = bits(low - (total - high))


@helper
def product_rest(a: float, b: float, product: float) -> float:
    """a * b - product, exactly; 0 if it would be too large or too small."""
    if not (abs(product) < LARGE and abs(a) < LARGE and abs(b) < LARGE):
        return 0.0
    part = SPLITTER * a
    a_high = part - (part - a)
    a_low = a - a_high
    part = SPLITTER * b
    b_high = part - (part - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


# ---- cofactors


@helper
def multiply_cofactor(size: int, x: Words, x_at: int, y: Words, y_at: int, out: Words, at: int) -> None:
    """(c, s, Q) * (d, t, R) = (c d, d s + c t, d Q + c R + s t' + t s')."""
    c, d = real(x[x_at]), real(y[y_at])
    out[at] = bits(c * d)
    for i in range(size):
        out[at + 1 + i] = bits(d * real(x[x_at + 1 + i]) + c * real(y[y_at + 1 + i]))
    k = 1 + size
    for i in range(size):
        s_i, t_i = real(x[x_at + 1 + i]), real(y[y_at + 1 + i])
        for j in range(i, size):
            s_j, t_j = real(x[x_at + 1 + j]), real(y[y_at + 1 + j])
            squares = d * real(x[x_at + k]) + c * real(y[y_at + k])
            out[at + k] = bits(squares + (s_i * t_j + t_i * s_j))
            k += 1
