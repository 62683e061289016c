"""Owns the exact mean of floats whose sum comes in parts, as a kernel."""

from __future__ import annotations

import numpy as np

from dlog.algebra import LIMBS, WORDS_PER_SUM, add_to_sum, mean_of_sum
from dlog.jit import Floats, Words, kernel


@kernel
def means_of_parts(values: Floats, bounds: Words, counts: Words, n: int, out: Floats) -> None:
    """The sum of values[bounds[i]:bounds[i + 1]], divided by counts[i] and rounded once.  O(values)."""
    words = np.zeros(WORDS_PER_SUM, np.int64)
    quotient = np.zeros(LIMBS, np.int64)
    for segment in range(n):
        words[:] = 0
        for i in range(bounds[segment], bounds[segment + 1]):
            add_to_sum(words, 0, values[i], 1)
        out[segment] = mean_of_sum(words, 0, LIMBS, counts[segment], quotient)
