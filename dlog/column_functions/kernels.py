"""Owns loops over columns: arithmetic on codes, which `dlog.lftj.primitives` knows, and ranges of floats."""

from __future__ import annotations

import numpy as np

from dlog.jit import Bools, Floats, Words, helper, kernel
from dlog.lftj.opcodes import UNDEFINED
from dlog.lftj.primitives import compute


@kernel
def compute_column(
    op: int, kind: int, a: Words, b: Words, n: int, ranks: Words, out: Words, defined: Bools
) -> int:
    """out[i] = a[i] op b[i]; returns the number of undefined rows."""
    state = np.zeros(UNDEFINED + 1, np.int64)
    for i in range(n):
        before = state[UNDEFINED]
        out[i] = compute(op, kind, a[i], b[i], state, ranks)
        defined[i] = state[UNDEFINED] == before
    return state[UNDEFINED]


@kernel
def range_sizes(start: Floats, end: Floats, step: Floats, n: int, most: int, out: Words) -> int:
    """The number of values of each range of floats; returns their sum, or -1 where it is over `most`.

    One step for each value: the next one is known only from the one before.
    """
    total = 0
    for i in range(n):
        size, value = 0, start[i]
        while total + size <= most and before(value, end[i], step[i]):
            size += 1
            if value + step[i] == value:
                break
            value += step[i]
        if size == 0 and step[i] == 0.0 and start[i] > end[i]:
            size = 1
        out[i] = size
        total += size
        if total > most:
            return -1
    return total


@helper
def before(value: float, end: float, step: float) -> bool:
    """Whether a range continues from here.  No comparison with NaN holds."""
    return (step >= 0.0 and value < end) or (step < 0.0 and value > end)


@kernel
def range_values(start: Floats, step: Floats, n: int, sizes: Words, out: Floats) -> None:
    """The values of all ranges, one after the other."""
    at = 0
    for i in range(n):
        value = start[i]
        for _ in range(sizes[i]):
            out[at] = value
            value += step[i]
            at += 1
