"""Owns functors for random programs: their declarations, terms that call them, and functions in Python.

Each function is written twice: as an implementation that the engine calls, on arrays where that is possible,
and as a plain function that the naive evaluator calls for each row.  None means that there is no value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.implementations import ARROW, NUMPY, AggregateClass, Function, Implementation

DECLARED = (
    ".functor half(x: int): int",
    ".functor mix(int, int): int",
    ".functor size(x: string): int",
    ".functor twice(x: string): string",
    ".functor joined(a: string, b: string): string",
    ".functor third(x: float): float",
    ".functor tax(x: decimal): decimal(14, 2)",
    ".functor next(x: date): date",
    ".functor flip(x: bool): bool",
    ".functor odd(x: int): bool stateful",
    ".functor largest(x: int): int aggregate",
    ".functor spread(x: int): int aggregate",
    ".functor longest(x: string): string aggregate",
    ".functor middle(x: float): float aggregate",
)
# (type of the argument, type of the value, term)
TERMS = (
    *(("int", "int", "@half({a})"), ("int", "int", "@half(@mix({a}, 3))"), ("string", "int", "@size({a})")),
    *(("string", "string", "@twice({a})"), ("string", "string", 'upper(@joined({a}, "a"))')),
    *(("float", "float", "@third({a})"), ("decimal", "decimal", "@tax({a})")),
    *(("date", "date", "@next({a})"), ("bool", "bool", "@flip({a})"), ("int", "bool", "@odd({a})")),
    ("int", "int", "@half({a} + 1)"),
)
EXPRESSIONS = {
    "int": ("@mix({a}, {b})", "@half({a})", "@mix({a} + 1, 2)"),
    "string": ("@joined({a}, {b})", "@twice({a})"),
    "float": ("@third({a} + {b})",),
    "decimal": ("@tax({a})", "@tax({a} * 2)"),
}
# (name, type of the argument, type of the result)
AGGREGATES = (
    *(("@largest", "int", "int"), ("@spread", "int", "int")),
    *(("@longest", "string", "string"), ("@middle", "float", "float")),
)


def _mix(a: int, b: int) -> int:
    return (a & 0xFF) * 3 - (b & 0xF)


def _tax(x: Decimal) -> Decimal | None:
    return None if abs(x) > 10**9 else (x / 4).quantize(Decimal("0.01"))


def _next(day: dt.date) -> dt.date | None:
    return day + dt.timedelta(days=1) if day < dt.date.max else None


PLAIN: dict[str, Callable[..., Any]] = {
    "half": lambda x: x // 2 if x % 2 == 0 else None,
    "mix": _mix,
    "size": lambda x: len(x) + 1,
    "twice": lambda x: x + x if len(x) < 20 else None,
    "joined": lambda a, b: f"{a[:5]}-{b[:5]}",
    "third": lambda x: x * 0.25 + 1.0,
    "tax": _tax,
    "next": _next,
    "flip": lambda x: not x,
    "odd": lambda x: x % 2 == 1,
}


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


def value(name: str, args: Sequence[Any]) -> Any:
    """What a functor means; None: there is no value."""
    return PLAIN[name](*args)


def aggregate(name: str, values: Sequence[Any]) -> Any:
    """What an aggregate means, without its class."""
    if name == "largest":
        return max(values)
    if name == "spread":
        return sum((x & 0xFF) + 1 for x in values)
    if name == "longest":
        return max(values, key=lambda x: (len(x), x))
    assert name == "middle"
    return sorted(values, key=lambda x: (x != x, x))[len(values) // 2]
