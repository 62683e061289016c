"""Owns arithmetic on decimals: exact, and rounded once where a result has fewer digits after the point.

A decimal is an integer of 256 bits at its type's scale; operands may be integers too (scale 0).  Where all
numbers are small, as most are, numpy does the work on one word each; otherwise `wide_kernels` do.  A result
of more than 76 digits is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dlog.arithmetic import wide_kernels
from dlog.arithmetic.digit_kernels import CEIL, FLOOR, HALF_EVEN, MAX_POWER, POWERS, TRUNCATE
from dlog.arithmetic.wide_kernels import ADD, COPY, DIV, MUL, SUB
from dlog.column_functions.arithmetic import NO_WORDS
from dlog.column_functions.columns import (
    WORDS_PER_DECIMAL,
    Column,
    Dictionary,
    Mask,
    Result,
    all_of,
    decimal_column,
    decimal_words,
    narrow_words,
    unless_all,
)
from dlog.column_functions.kernels import compute_column
from dlog.jit import Words
from dlog.lftj.opcodes import KIND
from dlog.lftj.primitives import OPERATION
from dlog.storage.index.sort import as_words
from dlog.values import INT, Type

LIMIT = 2**63
_EXACT_INT = 2**53  # integers up to here, and powers of ten up to 10^22, are floats
_EXACT_POWER = 22


class Scaling(NamedTuple):
    """Powers of ten that scale operands to a result's scale: see `wide_kernels.combine`."""

    a: int = 0
    b: int = 0
    divisor: int = 0
    mode: int = HALF_EVEN
    factor: int = 0


# ---- from and to stored codes


def widen(codes: Words, type: Type) -> Column:
    """The column of stored codes: decimals become exact ones."""
    column = Column(as_words(codes), type)
    return decimal_column(decimal_words(column), type) if type.is_decimal else column


def narrow(column: Column, type: Type) -> tuple[Words, Mask]:
    """Codes of a stored column, decimals rounded half to even, and which rows fit there.

    REQUIRES: a column of a type of that name, or integers for decimals.
    """
    if not type.is_decimal:
        assert column.type.name == type.name, f"a column of {column.type} for {type}"
        return column.codes, np.ones(len(column), np.bool_)
    rounded, defined = rescaled(column, type)
    words = decimal_words(rounded).reshape(-1, WORDS_PER_DECIMAL)
    low = words[:, 0].copy()
    limit = 10**type.precision
    fits = _one_word(words) & (low > -limit) & (low < limit)
    if defined is not None:
        fits &= defined
    low[~fits] = 0
    return low, fits


def _one_word(rows: np.ndarray) -> Mask:
    return (rows[:, 1:] == (rows[:, 0] >> 63)[:, None]).all(axis=1)


# ---- arithmetic


def add(inputs: Sequence[Column], output: Type, _: Dictionary) -> Result:
    return _sum(ADD, inputs, output)


def subtract(inputs: Sequence[Column], output: Type, _: Dictionary) -> Result:
    return _sum(SUB, inputs, output)


def _sum(op: int, inputs: Sequence[Column], output: Type) -> Result:
    a, b = inputs
    common = max(a.type.scale, b.type.scale)
    up, down = max(output.scale - common, 0), max(common - output.scale, 0)
    return _combine(op, a, b, Scaling(common - a.type.scale + up, common - b.type.scale + up, down), output)


def multiply(inputs: Sequence[Column], output: Type, _: Dictionary) -> Result:
    a, b = inputs
    step = output.scale - a.type.scale - b.type.scale
    return _combine(MUL, a, b, Scaling(a=max(step, 0), divisor=max(-step, 0)), output)


def divide(inputs: Sequence[Column], output: Type, _: Dictionary) -> Result:
    a, b = inputs
    step = output.scale - a.type.scale + b.type.scale
    return _combine(DIV, a, b, Scaling(a=max(step, 0), b=max(-step, 0)), output)


def negate(inputs: Sequence[Column], output: Type, _: Dictionary) -> Result:
    zero = Column(np.zeros(len(inputs[0]), np.int64), INT)
    return _sum(SUB, [zero, inputs[0]], output)


def absolute(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    negative, _ = negate(inputs, output, dictionary)
    return greater([inputs[0], negative], output, dictionary)


def less(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    return _choice(inputs, output, np.less_equal)


def greater(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    return _choice(inputs, output, np.greater_equal)


def _choice(inputs: Sequence[Column], output: Type, first: Callable[..., Mask]) -> Result:
    (a, a_defined), (b, b_defined) = (rescaled(c, output) for c in inputs)
    take_first = first(*comparable(a, b))
    words = [decimal_words(c).reshape(-1, WORDS_PER_DECIMAL) for c in (a, b)]
    chosen = np.where(take_first[:, None], words[0], words[1])
    return decimal_column(chosen.reshape(-1), output), all_of([a_defined, b_defined])


def rescaled(column: Column, type: Type) -> Result:
    """The same numbers at the type's scale, rounded half to even."""
    step = type.scale - column.type.scale
    if step == 0 and not isinstance(column.values, np.ndarray):
        return Column(column.values, type), None
    return _combine(COPY, column, column, Scaling(a=max(step, 0), divisor=max(-step, 0)), type)


def to_whole(mode: int) -> Callable[..., Result]:
    """Rounding to whole numbers, at the result's scale."""

    def calculate(inputs: Sequence[Column], output: Type, _: Dictionary) -> Result:
        scaling = Scaling(divisor=inputs[0].type.scale, mode=mode, factor=output.scale)
        return _combine(COPY, inputs[0], inputs[0], scaling, output)

    return calculate


# ---- other kinds of numbers


def to_int(column: Column) -> tuple[Words, Mask | None]:
    """Truncated towards zero; undefined where that is not an int64."""
    whole, _ = to_whole(TRUNCATE)([column], Type("decimal", 0), None)
    rows = decimal_words(whole).reshape(-1, WORDS_PER_DECIMAL)
    return rows[:, 0].copy(), unless_all(_one_word(rows))


def to_floats(column: Column) -> np.ndarray:
    """The nearest floats."""
    words, scale = decimal_words(column), column.type.scale
    small = narrow_words(words)
    if small is not None and scale <= _EXACT_POWER and _reach(small) <= _EXACT_INT:
        return small / 10.0**scale
    return quotients(words, np.ones(len(column), np.int64), scale)


def quotients(words: Words, counts: Words, scale: int) -> np.ndarray:
    """The floats nearest to words / (counts * 10^scale)."""
    out = np.empty(len(counts))
    wide_kernels.quotients(words, counts, scale, len(counts), POWERS, out)
    return out


def comparable(a: Column, b: Column) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays that compare as the numbers of two columns do, row by row."""
    common = max(a.type.scale, b.type.scale)
    powers = (common - a.type.scale, common - b.type.scale)
    words = (decimal_words(a), decimal_words(b))
    small = [_scaled(w, p) for w, p in zip(words, powers, strict=True)]
    if small[0] is not None and small[1] is not None:
        return small[0], small[1]
    order = np.empty(len(a), np.int64)
    wide_kernels.compare(words[0], powers[0], words[1], powers[1], len(a), POWERS, order)
    return order, np.zeros(len(a), np.int64)


# ---- one word each, or four


def _combine(op: int, a: Column, b: Column, scaling: Scaling, output: Type) -> Result:
    assert max(scaling) <= MAX_POWER
    words = (decimal_words(a), decimal_words(a) if b is a else decimal_words(b))
    small = _combine_small(op, *words, scaling)
    if small is not None:
        return widen(small, output), None
    n = len(a)
    out, defined = np.empty(n * WORDS_PER_DECIMAL, np.int64), np.empty(n, np.int64)
    undefined = wide_kernels.combine(
        op,
        words[0],
        scaling.a,
        words[1],
        scaling.b,
        scaling.divisor,
        scaling.mode,
        scaling.factor,
        n,
        POWERS,
        out,
        defined,
    )
    if not undefined:
        return decimal_column(out, output), None
    out.reshape(-1, WORDS_PER_DECIMAL)[defined == 0] = 0
    return decimal_column(out, output), defined == 1


def _combine_small(op: int, a: Words, b: Words, scaling: Scaling) -> Words | None:
    """The result if every intermediate number fits one word; division is left to the kernel."""
    if op == DIV or scaling.divisor > 18 or scaling.factor > 18:
        return None
    x = _scaled(a, scaling.a)
    y = x if op == COPY else _scaled(b, scaling.b)
    if x is None or y is None:
        return None
    result: Words | None = x
    if op in (ADD, SUB):
        fits = _reach(x) + _reach(y) < LIMIT
        result = (x + y if op == ADD else x - y) if fits else None
    elif op == MUL:
        result = x * y if _reach(x) * _reach(y) < LIMIT else None
    if result is not None and scaling.divisor:
        result = _divided(result, 10**scaling.divisor, scaling.mode)
    if result is not None and scaling.factor:
        fits = _reach(result) * 10**scaling.factor < LIMIT
        result = result * 10**scaling.factor if fits else None
    return result


def _divided(x: Words, divisor: int, mode: int) -> Words:
    if mode == FLOOR:
        return x // divisor
    if mode == CEIL:
        return -(-x // divisor)
    op = OPERATION["div" if mode == TRUNCATE else "div_half_even"]
    out, defined = np.empty(len(x), np.int64), np.empty(len(x), np.bool_)
    compute_column(op, KIND["int"], x, np.full(len(x), divisor), len(x), NO_WORDS, out, defined)
    return out


def _scaled(words: Words, power: int) -> Words | None:
    """One word a row, times a power of ten, if that fits."""
    small = narrow_words(words)
    if small is None or power == 0:
        return small
    return small * 10**power if power <= 18 and _reach(small) * 10**power < LIMIT else None


def _reach(values: Words) -> int:
    """The greatest absolute value, without wrapping."""
    return max(int(values.max()), -int(values.min())) if len(values) else 0


FUNCTIONS: dict[str, Callable[..., Result]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "div": divide,
    "neg": negate,
    "abs": absolute,
    "min": less,
    "max": greater,
    "floor": to_whole(FLOOR),
    "ceil": to_whole(CEIL),
    "round": to_whole(HALF_EVEN),
}
