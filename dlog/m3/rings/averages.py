"""Owns the ring of count and sum, F-IVM's `RingAvg`: what an average needs, as one element.

(c, s) * (d, t) = (c d, s d + t c): where rows join, each value of one side counts once for each row of the
other.  This differs from `product_ring`, whose parts multiply separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from dlog.errors import DataError
from dlog.jit import Words
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, Ring, product_ring


@cache
def average_ring() -> Ring:
    """Elements are (count, sum); `lift(x)` is (1, x).

    >>> ring = average_ring()
    >>> ring.values(ring.multiply(ring.column([(2, 30.0)]), ring.column([(3, 0.5)])))
    [(6, 91.0)]
    """
    parts = product_ring(INTEGER_RING, FLOAT_RING)

    def times(x: Words, y: Words) -> Words:
        (c, s), (d, t) = _parts(x), _parts(y)
        sums = FLOAT_RING.add(FLOAT_RING.multiply(s, _float(d)), FLOAT_RING.multiply(t, _float(c)))
        return np.hstack([INTEGER_RING.multiply(c, d), sums])

    def lift(_: tuple[int, ...], values: Sequence[np.ndarray]) -> Words:
        if len(values) != 1:
            raise DataError(f"lift of RingAvg takes one value, not {len(values)}")
        return parts.elements(1, values[0], 0)

    return Ring(
        "average", parts.layout, parts.encode, parts.decode, plus=parts.add, times=times, minus=parts.negate,
        one=(1, 0.0), lift=lift, is_exact=False, sample=parts.sample,
    )  # fmt: skip


def _parts(x: Words) -> tuple[Words, Words]:
    return x[:, :1], x[:, 1:]


def _float(counts: Words) -> Words:
    """Counts as sums of two floats: 64 bits are more than one float holds."""
    low = counts[:, 0] & 0xFFFFFFFF
    high = (counts[:, 0] - low).astype(np.float64)
    total = high + low
    return FLOAT_RING.elements(total, low - (total - high))
