"""Owns the text of a value in output: how each type is printed.  Knows nothing of lines and files.

Numbers print as Soufflé prints them, so a float has 9 significant digits (`%.9g`) unless the full, shortest
text that reads back as the same float is asked for.  All work is done on whole columns.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.io.columns import unscaled
from dlog.types import DATETIME, DECIMAL, FLOAT, STRING, Type

FLOAT_DIGITS = 9  # max_digits10 of the 32-bit float of Soufflé

# These are exact floats, so one product or quotient with them is correctly rounded.
_POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(FLOAT_DIGITS - 1 + 5)])


def texts(column: pa.Array, type: Type, full_precision: bool = False) -> pa.Array:
    """The column as text, a string array.  Strings are returned as they are."""
    if type == STRING:
        return column
    if type == FLOAT:
        return shortest_float_texts(column) if full_precision else float_texts(column)
    if type == DATETIME:
        return _datetime_texts(column)
    if type.is_decimal:
        return _decimal_texts(column, type)
    return column.cast(pa.string())


def shortest_float_texts(column: pa.Array) -> pa.Array:
    """The shortest texts that read back as the same floats: up to 17 digits.

    >>> shortest_float_texts(pa.array([0.1 + 0.2, 3.0, 1e20])).to_pylist()
    ['0.30000000000000004', '3', '1e+20']
    """
    return pc.add(column, 0.0).cast(pa.string())  # adding 0.0 makes -0.0 print as 0


def float_texts(column: pa.Array) -> pa.Array:
    """The texts of C's `%.9g`.

    The number nearest to a value among those of 9 digits, printed by Arrow in its shortest text, is that
    text: 0.1 microseconds a value, where one Python format call takes 0.4.  Values too near the middle
    between two such numbers to be rounded by one multiplication, or printed with an exponent, or not
    finite, are formatted one by one.

    >>> float_texts(pa.array([1.5, 3.0, 1e20, 1 / 3, 1e-7])).to_pylist()
    ['1.5', '3', '1e+20', '0.333333333', '1e-07']
    """
    with np.errstate(invalid="ignore"):  # a signalling NaN
        values = column.to_numpy(zero_copy_only=False) + 0.0
    rounded, sure = _rounded(values)
    result = pa.array(rounded).cast(pa.string())
    if sure.all():
        return result
    unsure = pa.array([format(v, ".9g") for v in values[~sure].tolist()], pa.string())
    return pc.replace_with_mask(result, pa.array(~sure), unsure)


def _rounded(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each value rounded to 9 digits, and whether that is sure and printed without an exponent."""
    size = np.abs(values)
    sure = (size >= 1e-4) & (size < 1e9)  # outside, `%.9g` writes an exponent
    safe = np.where(sure, values, 1.0)
    power = FLOAT_DIGITS - 1 - np.floor(np.log10(np.abs(safe))).astype(np.int64)
    scale = _POWERS_OF_TEN[power]
    scaled = safe * scale
    digits = np.rint(scaled)
    # The product is off by at most 1e10 * 2^-53, about 1e-6; log10 may be off by one digit near a power.
    sure &= np.abs(np.abs(scaled - digits) - 0.5) > 1e-5
    sure &= (np.abs(digits) >= 10 ** (FLOAT_DIGITS - 1)) & (np.abs(digits) < 10**FLOAT_DIGITS)
    return np.where(values == 0.0, 0.0, digits / scale), sure | (values == 0.0)


def _datetime_texts(column: pa.Array) -> pa.Array:
    """ISO 8601 with a T; six digits of a second's fraction, or none."""
    printed = pc.replace_substring(column.cast(pa.string()), " ", "T")
    return pc.replace_substring_regex(printed, r"\.000000$", "")


def _decimal_texts(column: pa.Array, type: Type) -> pa.Array:
    """All digits of a declared scale; of the default one, no zeros at the end but the first.

    Arrow's own texts have exponents for small values.
    """
    numbers = unscaled(column)
    size, unit = np.abs(numbers), 10**type.scale
    sign = pc.if_else(pa.array(numbers < 0), "-", "")
    whole = pa.array(size // unit).cast(pa.string())
    if not type.scale:
        return pc.binary_join_element_wise(sign, whole, "")
    fraction = pc.utf8_lpad(pa.array(size % unit).cast(pa.string()), type.scale, "0")
    if type == DECIMAL:
        fraction = pc.replace_substring_regex(fraction, "([0-9])0*$", r"\1")
    return pc.binary_join_element_wise(sign, whole, ".", fraction, "")
