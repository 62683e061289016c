"""The functions of prices.dl."""

from __future__ import annotations

import bisect
import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

import dlog


@dlog.function
def slug(title: str) -> str:
    """`Green Tea, 50 g` as `green-tea-50-g`."""
    return "-".join(re.findall(r"[a-z0-9]+", title.lower()))


@dlog.function
def with_tax(price: Decimal, rate: float) -> Decimal | None:
    """None for a rate that makes no sense: then the rule derives nothing."""
    if rate < 0:
        return None
    return (price * (1 + Decimal(str(rate)))).quantize(Decimal("0.01"), ROUND_HALF_UP)


@dlog.function(vectorized=True)
def distance(x: Any, y: Any) -> Any:
    """Of arrays: the square root of x^2 + y^2 for all rows at once."""
    return np.hypot(x, y)


@dlog.aggregate
class median:  # noqa: N801
    """The lower of the two in the middle, if there are two."""

    def __init__(self) -> None:
        self.values: list[Decimal] = []

    def insert(self, value: Decimal) -> None:
        bisect.insort(self.values, value)

    def erase(self, value: Decimal) -> None:
        del self.values[bisect.bisect_left(self.values, value)]

    def result(self) -> Decimal:
        return self.values[(len(self.values) - 1) // 2]
