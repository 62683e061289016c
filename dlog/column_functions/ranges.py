"""Owns `range`: start, start + step, ... as long as it is before `end` (after it, if the step is negative).

Without a step it is 1 or -1, whichever leads from start to end.  A step of zero gives `start` alone, unless
that equals `end`; so does a float step too small to change it.  A range that has NaN anywhere is empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.column_functions.columns import Column, Mask, float_codes, float_values
from dlog.column_functions.kernels import range_sizes, range_values
from dlog.errors import LimitError
from dlog.jit import Words
from dlog.values import FLOAT, UNSIGNED, Type


def ranges(inputs: Sequence[Column], output: Type, most: int) -> tuple[Words, Column]:
    """The row of each value, rising, and the values.  O(results).  Raises LimitError for more than `most`."""
    rows_and_values = _of_floats if output == FLOAT else _of_integers
    return rows_and_values(inputs, output, most)


def _of_integers(inputs: Sequence[Column], output: Type, most: int) -> tuple[Words, Column]:
    """Sizes by division.  All in 64 bits without a sign, where sums and products are right modulo 2^64."""
    start, end = _bits(inputs[0].codes), _bits(inputs[1].codes)
    rising = inputs[0].codes < inputs[1].codes
    forward, step = _step(inputs, output, rising)
    distance = np.where(rising, end - start, start - end)
    stride = np.maximum(np.where(forward, step, 0 - step), 1)
    sizes = np.where(forward == rising, (distance - 1) // stride + 1, 0)
    sizes = np.where(distance == 0, 0, np.where(step == 0, 1, sizes))
    _limit(sizes.astype(np.float64).sum(), most)
    counts = sizes.astype(np.int64)
    rows = np.repeat(np.arange(len(start)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    codes = start[rows] + step[rows] * _bits(within)
    return rows, Column(codes.view(np.int64), output)


def _step(inputs: Sequence[Column], output: Type, rising: Mask) -> tuple[Mask, np.ndarray]:
    """Whether each range goes forward, and the bits of its step."""
    if len(inputs) < 3:
        return rising, _bits(np.where(rising, 1, -1))
    step = inputs[2].codes
    if output == UNSIGNED:
        return np.ones(len(step), np.bool_), _bits(step ^ np.int64(-(2**63)))
    return step >= 0, _bits(step)


def _of_floats(inputs: Sequence[Column], output: Type, most: int) -> tuple[Words, Column]:
    start, end = (float_values(c.codes) for c in inputs[:2])
    step = np.where(start < end, 1.0, -1.0) if len(inputs) < 3 else float_values(inputs[2].codes)
    sizes = np.empty(len(start), np.int64)
    total = range_sizes(_own(start), _own(end), _own(step), len(start), most, sizes)
    if total < 0:
        _limit(most + 1, most)
    values = np.empty(total)
    range_values(_own(start), _own(step), len(start), sizes, values)
    return np.repeat(np.arange(len(start)), sizes), Column(float_codes(values), output)


def _own(values: np.ndarray) -> np.ndarray:
    """Kernels take arrays that may be written to, so that they have one signature."""
    return values if values.flags.writeable and values.flags.c_contiguous else values.copy()


def _bits(codes: Words) -> np.ndarray:
    return np.ascontiguousarray(codes).view(np.uint64)


def _limit(rows: float, most: int) -> None:
    if rows > most:
        raise LimitError(f"a range gives more than {most:,} rows")
