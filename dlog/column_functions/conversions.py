"""Owns conversions between types: to_string, to_number and others.

Texts of numbers are those of C's printf (`%f` for floats); texts that are read have no spaces around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.column_functions import decimals
from dlog.column_functions.arithmetic import compute_codes
from dlog.column_functions.columns import (
    DECIMAL_DIGITS,
    WORDS_PER_DECIMAL,
    Column,
    Dictionary,
    Mask,
    Result,
    at_places,
    decimal_column,
    decimal_words,
    distinct,
    float_codes,
    float_values,
    narrow_words,
    taken,
    text_result,
    texts_of,
    unless_all,
)
from dlog.io.text_cells import convert
from dlog.jit import Words
from dlog.storage.values import decode, encode
from dlog.values import FLOAT, STRING, UNSIGNED, Type
from dlog.values.heavy import pc

PRINTED_DIGITS = 6  # after the point, of a float's text
_EXACT = Context(prec=2 * DECIMAL_DIGITS, rounding=ROUND_HALF_EVEN)
_DECIMAL_LIMIT = 10**DECIMAL_DIGITS


def to_string(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Each distinct value once."""
    column = inputs[0]
    if column.type == STRING:
        return column, None
    if column.type.is_decimal:
        return text_result(_decimal_texts(column), None, dictionary)
    codes, places = distinct(column.codes)
    if column.type == FLOAT:
        return text_result(_float_texts(float_values(codes)), places, dictionary)
    return text_result(column.type.texts(decode(codes, column.type, dictionary)), places, dictionary)


def to_integer(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """to_number and to_unsigned: fractions are cut off; what does not fit is undefined."""
    column = inputs[0]
    if column.type.is_decimal:
        codes, defined = decimals.to_int(column)
        return Column(codes, output), defined
    if column.type == STRING:
        return _parsed(column, output, dictionary)
    if column.type == output:
        return column, None
    return compute_codes("to_unsigned" if output == UNSIGNED else "to_number", inputs, output, dictionary)


def to_float(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    column = inputs[0]
    if column.type == FLOAT:
        return column, None
    if column.type.is_decimal:
        return Column(float_codes(decimals.to_floats(column)), FLOAT), None
    if column.type != STRING:
        return compute_codes("to_float", inputs, output, dictionary)
    cells, places = texts_of(column, dictionary)
    values = pc.if_else(_numerals(cells, output), cells, None).cast(pa.float64())  # too large is infinite
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    codes = float_codes(pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False))
    return at_places(codes, valid, FLOAT, places)


def to_decimal(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """Rounded half to even to the result's scale; a float is converted exactly."""
    column = inputs[0]
    if column.type == FLOAT:
        return _decimals_of_floats(float_values(column.codes), output)
    if column.type != STRING:
        return decimals.rescaled(column, output)
    cells, places = texts_of(column, dictionary)
    good = _numerals(cells, output).to_numpy(zero_copy_only=False)
    numbers = [
        _unscaled(t, output.scale) if ok else None for t, ok in zip(cells.to_pylist(), good, strict=True)
    ]
    distinct_column, defined = _decimals_of_ints(numbers, output)
    return taken(distinct_column, places), None if defined is None else unless_all(defined[places])


def of_text(inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """What a text denotes in any other type."""
    return _parsed(inputs[0], output, dictionary)


# ---- reading texts


def _parsed(column: Column, output: Type, dictionary: Dictionary) -> Result:
    """Each distinct text as the cell of a file would be read, but without spaces."""
    cells, places = texts_of(column, dictionary)
    values, _ = convert(pc.if_else(_numerals(cells, output), cells, ""), output)
    valid = pc.is_valid(values).to_numpy(zero_copy_only=False)
    codes = np.zeros(len(values), np.int64)
    codes[valid] = encode(values.drop_null(), output, dictionary)
    return at_places(codes, valid, output, places)


def _numerals(cells: pa.Array, type: Type) -> pa.Array:
    return pc.match_substring_regex(cells, type.readable)


def _unscaled(text: str, scale: int) -> int | None:
    """The decimal's integer at a scale.  REQUIRES: a text that `readable` has for decimals."""
    number = Decimal(text)
    if number and number.adjusted() + scale >= DECIMAL_DIGITS:
        return None
    return int(number.quantize(Decimal(1).scaleb(-scale), context=_EXACT).scaleb(scale, _EXACT))


# ---- writing texts


def _float_texts(values: np.ndarray) -> pa.Array:
    """C's `%f`: six digits after the point, by one multiplication wherever that is certain to be right."""
    scaled, sure = _scaled_floats(values, PRINTED_DIGITS)
    result = _fixed_texts(scaled, PRINTED_DIGITS)
    sure &= ~((scaled == 0) & (values < 0))  # "-0.000000"
    if sure.all():
        return result
    unsure = pa.array([f"{v:f}" for v in values[~sure].tolist()], pa.string())
    return pc.replace_with_mask(result, pa.array(~sure), unsure)


def _decimal_texts(column: Column) -> pa.Array:
    """All digits that matter, at least one after the point."""
    small, scale = narrow_words(decimal_words(column)), column.type.scale
    if small is not None and (small > -(2**63)).all() and scale <= 18:
        printed = (
            _fixed_texts(small, scale)
            if scale
            else pc.binary_join_element_wise(pa.array(small).cast(pa.string()), "0", ".")
        )
        return pc.replace_substring_regex(printed, r"(\.[0-9]+?)0+$", r"\1")
    values: Any = decimal_column(decimal_words(column), column.type).values
    return pa.array(list(map(_decimal_text, values.to_pylist())), pa.string())


def _decimal_text(value: Decimal) -> str:
    whole, _, digits = f"{value:f}".partition(".")
    return f"{whole}.{digits.rstrip('0') or '0'}"


def _fixed_texts(numbers: Words, scale: int) -> pa.Array:
    """Integers as decimals with `scale` > 0 digits after the point.  REQUIRES: none is the least int64."""
    size, unit = np.abs(numbers), 10**scale
    sign = pc.if_else(pa.array(numbers < 0), "-", "")
    whole = pa.array(size // unit).cast(pa.string())
    fraction = pc.utf8_lpad(pa.array(size % unit).cast(pa.string()), scale, "0")
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, whole, ""), fraction, ".")


# ---- floats to decimals


def _scaled_floats(values: np.ndarray, scale: int) -> tuple[Words, Mask]:
    """values * 10^scale rounded to integers, and where that is certain: the product has an error of half a
    last place, so it must not be that close to the middle of two integers.  REQUIRES: scale <= 22."""
    with np.errstate(all="ignore"):
        product = values * 10.0**scale
        whole = np.rint(product)
        sure = np.abs(product) < 2.0**50
        sure &= np.abs(np.abs(product - whole) - 0.5) > np.abs(product) * 2.0**-51
        return np.where(sure, whole, 0.0).astype(np.int64), sure


def _decimals_of_floats(values: np.ndarray, output: Type) -> Result:
    if output.scale > 22:
        return _decimals_of_ints([_exact_unscaled(v, output.scale) for v in values.tolist()], output)
    whole, sure = _scaled_floats(values, output.scale)
    column = decimals.widen(whole, output)
    if sure.all():
        return column, None
    rows = np.flatnonzero(~sure)
    others, defined = _decimals_of_ints(
        [_exact_unscaled(v, output.scale) for v in values[rows].tolist()], output
    )
    words = decimal_words(column).reshape(-1, WORDS_PER_DECIMAL).copy()
    words[rows] = decimal_words(others).reshape(-1, WORDS_PER_DECIMAL)
    mask = np.ones(len(values), np.bool_)
    mask[rows] = True if defined is None else defined
    return decimal_column(words.reshape(-1), output), unless_all(mask)


def _exact_unscaled(value: float, scale: int) -> int | None:
    return round(Fraction(value) * 10**scale) if math.isfinite(value) else None


def _decimals_of_ints(numbers: Sequence[int | None], output: Type) -> Result:
    """None and what has more than 76 digits is undefined."""
    defined = np.array([v is not None and abs(v) < _DECIMAL_LIMIT for v in numbers], np.bool_)
    kept = [v if ok and v is not None else 0 for v, ok in zip(numbers, defined, strict=True)]
    data = b"".join(v.to_bytes(8 * WORDS_PER_DECIMAL, "little", signed=True) for v in kept)
    return decimal_column(np.frombuffer(data, np.int64).copy(), output), unless_all(defined)


FUNCTIONS: dict[str, Callable[..., Result]] = {
    "to_string": to_string,
    "to_number": to_integer,
    "to_unsigned": to_integer,
    "to_float": to_float,
    "to_decimal": to_decimal,
}
