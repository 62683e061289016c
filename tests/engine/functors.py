"""Owns the implementations of `tests.oracle.functors` that the engine calls, on arrays if possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.implementations import ARROW, NUMPY, AggregateClass, Function, Implementation
from tests.oracle.functors import PLAIN


def _half(x: Any) -> Any:
    return np.ma.masked_array(x // 2, mask=x % 2 == 1)


def _mixed(a: Any, b: Any) -> Any:
    return (a & 0xFF) * 3 - (b & 0xF)


def _joined(a: pa.Array, b: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*(pc.utf8_slice_codeunits(x, 0, 5) for x in (a, b)), "-")


def _twice(x: pa.Array) -> pa.Array:
    return pc.if_else(pc.less(pc.utf8_length(x), 20), pc.binary_join_element_wise(x, x, ""), None)


class Largest:
    """The greatest value; without `erase`."""

    def __init__(self) -> None:
        self.value: int | None = None

    def insert(self, x: int) -> None:
        self.value = x if self.value is None else max(self.value, x)

    def result(self) -> int | None:
        return self.value


class Spread:
    """How many values are there, and a sum of them; on arrays."""

    def __init__(self) -> None:
        self.total = 0

    def insert(self, values: Any) -> None:
        self.total += int(np.sum(values & 0xFF)) + len(values)

    def erase(self, values: Any) -> None:
        self.total -= int(np.sum(values & 0xFF)) + len(values)

    def result(self) -> int:
        return self.total


class Longest:
    def __init__(self) -> None:
        self.values: list[str] = []

    def insert(self, x: str) -> None:
        self.values.append(x)

    def erase(self, x: str) -> None:
        self.values.remove(x)

    def result(self) -> str:
        return max(self.values, key=lambda x: (len(x), x))


class Middle:
    def __init__(self) -> None:
        self.values: list[float] = []

    def insert(self, x: float) -> None:
        self.values.append(x)

    def erase(self, x: float) -> None:
        self.values.pop(next(i for i, y in enumerate(self.values) if y == x or (x != x and y != y)))

    def result(self) -> float:
        return sorted(self.values, key=lambda x: (x != x, x))[len(self.values) // 2]


IMPLEMENTATIONS: dict[str, Implementation] = {
    **{name: Function(name, code) for name, code in PLAIN.items()},
    "half": Function("half", _half, NUMPY),
    "mix": Function("mix", _mixed, NUMPY),
    "third": Function("third", lambda x: x * 0.25 + 1.0, NUMPY),
    "joined": Function("joined", _joined, ARROW),
    "twice": Function("twice", _twice, ARROW),
    "largest": AggregateClass("largest", Largest),
    "spread": AggregateClass("spread", Spread, vectorized=True),
    "longest": AggregateClass("longest", Longest),
    "middle": AggregateClass("middle", Middle),
}
