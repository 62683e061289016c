"""Owns arithmetic on columns: sums, products, comparisons and conversions.  Knows nothing of maps.

Integers are checked: a result outside -(2^63 - 1) .. 2^63 - 1 is noted in state[OVERFLOW] and the run ends in
an error.  Floats in values are bits, and doubled in the values of maps (see `layout`).
"""

from __future__ import annotations

import numpy as np

from dlog.jit import helper
from dlog.lftj.primitives import add, code_of, compare, float_of, multiply
from dlog.m3.rings.kernels import multiply_decimal, product_rest, sum_of_doubled
from dlog.m3.runtime.layout import (
    BITS_TO_CODE,
    BITS_TO_INT,
    CODE_TO_BITS,
    CODE_TO_INT,
    EMPTY,
    FLOAT,
    INT,
    INT_TO_BITS,
    INT_TO_CODE,
    OVERFLOW,
)

SMALL = np.int64(1) << np.int64(30)
TWO63 = 2.0**63
NEAR = 2.0**62


@helper
def to_float(word):
    return np.int64(word).view(np.float64)


@helper
def to_bits(value):
    return np.float64(value).view(np.int64)


@helper
def add_ints(a, b, state, pc):
    result = add(a, b)
    if ((a ^ result) & (b ^ result)) < 0 or result == EMPTY:
        state[OVERFLOW] = pc + 1
    return result


@helper
def multiply_ints(a, b, state, pc):
    result = multiply(a, b)
    if (add(a, SMALL) | add(b, SMALL)) >> 31 != 0:  # one of them is not in [-SMALL, SMALL)
        size = abs(float(a) * float(b))
        if size >= NEAR and (size > 1.5 * TWO63 or result == EMPTY or b == 0 or result // b != a):
            state[OVERFLOW] = pc + 1
    return result


@helper
def product_of_doubled(a, b, c, d):
    """(a + b) * (c + d) of doubled floats: Dekker's product of the high words, and the mixed ones."""
    if (a == 0.0 and b == 0.0) or (c == 0.0 and d == 0.0):
        return 0.0, 0.0
    high = a * c
    if not np.isfinite(high):
        return high, 0.0
    low = product_rest(a, c, high) + (a * d + b * c)
    total = high + low
    return total, low - (total - high)


@helper
def add_columns(cols, n, kind, a, b, out, code, lows, state, pc):
    """Low columns of doubled floats are listed at `lows`."""
    if kind == INT:
        for i in range(n):
            cols[out + i] = add_ints(cols[a + i], cols[b + i], state, pc)
    elif kind == FLOAT:
        for i in range(n):
            cols[out + i] = to_bits(to_float(cols[a + i]) + to_float(cols[b + i]))
    else:
        combine_doubled(cols, n, False, a, b, out, code, lows)


@helper
def multiply_columns(cols, n, kind, a, b, out, code, lows, state, pc):
    """0 times anything is 0, also times NaN."""
    if kind == INT:
        for i in range(n):
            cols[out + i] = multiply_ints(cols[a + i], cols[b + i], state, pc)
    elif kind == FLOAT:
        for i in range(n):
            x, y = to_float(cols[a + i]), to_float(cols[b + i])
            cols[out + i] = to_bits(x * y) if x != 0.0 and y != 0.0 else np.int64(0)
    else:
        combine_doubled(cols, n, True, a, b, out, code, lows)


@helper
def combine_doubled(cols, n, is_product, a, b, out, code, lows):
    """Products or sums of doubled floats."""
    a_low, b_low, out_low = code[lows], code[lows + 1], code[lows + 2]
    for i in range(n):
        x, x_low = to_float(cols[a + i]), to_float(cols[a_low + i])
        y, y_low = to_float(cols[b + i]), to_float(cols[b_low + i])
        if is_product:
            high, low = product_of_doubled(x, x_low, y, y_low)
        else:
            high, low = sum_of_doubled(x, x_low, y, y_low)
        cols[out + i] = to_bits(high)
        cols[out_low + i] = to_bits(low)


@helper
def multiply_decimals(cols, n, unit, a, b, out, state, pc):
    for i in range(n):
        if not multiply_decimal(cols[a + i], cols[b + i], unit, cols, out + i):
            state[OVERFLOW] = pc + 1


@helper
def divide_columns(cols, n, a, b, out):
    for i in range(n):
        divisor = to_float(cols[b + i])
        cols[out + i] = to_bits(to_float(cols[a + i]) / divisor) if divisor != 0.0 else np.int64(0)


@helper
def convert_column(cols, n, how, a, out, state, pc):
    if how == INT_TO_BITS:
        for i in range(n):
            cols[out + i] = to_bits(float(cols[a + i]))
    elif how == BITS_TO_CODE:
        for i in range(n):
            cols[out + i] = code_of(to_float(cols[a + i]))
    elif how == CODE_TO_BITS:
        for i in range(n):
            cols[out + i] = to_bits(float_of(cols[a + i]))
    elif how == INT_TO_CODE:
        for i in range(n):
            cols[out + i] = code_of(float(cols[a + i]))
    elif how == CODE_TO_INT:
        for i in range(n):
            cols[out + i] = whole(float_of(cols[a + i]))
    elif how == BITS_TO_INT:
        for i in range(n):
            value = np.trunc(to_float(cols[a + i]))
            if not (-TWO63 < value < TWO63):
                state[OVERFLOW] = pc + 1
                value = 0.0
            cols[out + i] = np.int64(value)


@helper
def whole(value):
    """A float as an integer; EMPTY, which no key is, if it is not whole."""
    if value == np.floor(value) and -TWO63 < value < TWO63:
        return np.int64(value)
    return np.int64(EMPTY)


@helper
def compare_columns(cols, n, op, a, b, out):
    """Of integers and codes."""
    for i in range(n):
        cols[out + i] = np.int64(1) if compare(op, cols[a + i], cols[b + i]) else np.int64(0)


@helper
def sum_by_row(cols, n, kind, a, rows, out, code, lows, state, pc):
    """Add each value to the row that it belongs to."""
    if kind == INT:
        for i in range(n):
            at = out + cols[rows + i]
            cols[at] = add_ints(cols[at], cols[a + i], state, pc)
    elif kind == FLOAT:
        for i in range(n):
            at = out + cols[rows + i]
            cols[at] = to_bits(to_float(cols[at]) + to_float(cols[a + i]))
    else:
        a_low, out_low = code[lows], code[lows + 1]
        for i in range(n):
            row = cols[rows + i]
            high, low = sum_of_doubled(
                to_float(cols[out + row]), to_float(cols[out_low + row]),
                to_float(cols[a + i]), to_float(cols[a_low + i]),
            )  # fmt: skip
            cols[out + row] = to_bits(high)
            cols[out_low + row] = to_bits(low)
