"""Owns primitives on whole columns: those that make strings, exact decimals or rows and run between joins.

Correct output: for each row what the primitive means on its values (`dlog.ir.primitives` has the table), or
undefined.  Nothing here knows rules or relations: columns come in, columns go out.  A column of one row is a
constant.

    compute    a value for each row         c = a * b
    test       which rows hold              contains("x", s)
    generate   several values for a row     range(1, n) = i
    widen, narrow    between stored codes and columns that rules compute with
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.column_functions import arithmetic, conversions, dates, decimals, records, texts
from dlog.column_functions.columns import Column, Dictionary, Mask, Result, aligned
from dlog.column_functions.decimals import narrow, widen
from dlog.column_functions.functions import call
from dlog.column_functions.ranges import ranges
from dlog.ir.functors import functor_of, is_call
from dlog.ir.record_forms import is_record_form
from dlog.jit import Words
from dlog.values import OPERATIONS, Type

__all__ = ["Column", "Mask", "Result", "compute", "generate", "narrow", "test", "undefined", "widen"]

MAX_GENERATED = 1 << 31  # rows of one call


def compute(name: str, inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """The value of a primitive for each row, and which rows have one (None: all).

    Decimals are exact and then rounded half to even to the scale of `output`.  O(n).
    """
    inputs = aligned(inputs)
    if name == "cat":  # of any number of texts
        return texts.cat(inputs, output, dictionary)
    if is_call(name):
        return call(functor_of(name), inputs, output, dictionary)
    if is_record_form(name):
        return records.compute(name, inputs, output, dictionary)
    own = OPERATIONS.get((name, *(column.type.name for column in inputs)))
    if own is not None:  # an operation of a type
        codes, defined = own.calculate([column.codes for column in inputs], output)
        return Column(codes if defined is None else np.where(defined, codes, 0), output), defined
    if (name, len(inputs)) in texts.FUNCTIONS:
        return texts.FUNCTIONS[name, len(inputs)](inputs, output, dictionary)
    if name in conversions.FUNCTIONS:
        return conversions.FUNCTIONS[name](inputs, output, dictionary)
    if name.startswith("to_"):
        return conversions.of_text(inputs, output, dictionary)
    if name == f"as_{inputs[0].type.name}":  # only asserts the type
        return decimals.rescaled(inputs[0], output) if output.is_decimal else (inputs[0], None)
    if output.is_decimal:
        return decimals.FUNCTIONS[name](inputs, output, dictionary)
    for table in (dates.FUNCTIONS, arithmetic.FUNCTIONS):
        if name in table:
            return table[name](inputs, output, dictionary)
    return arithmetic.compute_codes(name, inputs, output, dictionary)


def test(name: str, inputs: Sequence[Column], dictionary: Dictionary) -> Mask:
    """Which rows a relation or comparison holds for; not where it is undefined.  O(n)."""
    inputs = aligned(inputs)
    if name in texts.RELATIONS:
        return texts.RELATIONS[name](inputs, dictionary)
    a, b = _comparable(name, inputs, dictionary)
    return _COMPARISONS[name](a, b)


def undefined(name: str, inputs: Sequence[Column], dictionary: Dictionary) -> int:
    """In how many rows a relation has no truth value.  O(n)."""
    return texts.UNDEFINED[name](aligned(inputs), dictionary) if name in texts.UNDEFINED else 0


def generate(
    name: str, inputs: Sequence[Column], output: Type, dictionary: Dictionary
) -> tuple[Words, Column]:
    """All values of a generator for each row: the number of the row, rising, and the value.  O(results).

    Raises LimitError where there would be more than MAX_GENERATED.
    """
    inputs = aligned(inputs)
    if name == "split":
        return texts.parts(inputs, output, dictionary)
    assert name == "range", f"no generator: {name}"
    return ranges(inputs, output, MAX_GENERATED)


_COMPARISONS: dict[str, Callable[..., Mask]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _comparable(name: str, inputs: Sequence[Column], dictionary: Dictionary) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays that compare like the values."""
    a, b = inputs
    if a.type.is_decimal or b.type.is_decimal:
        return decimals.comparable(a, b)
    if not a.type.ordered_codes and name not in ("eq", "ne"):
        first, second = dictionary.ranks(a.codes, b.codes)
        return first, second
    return a.codes, b.codes
