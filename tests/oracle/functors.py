"""Owns functors for random programs: their declarations, terms that call them, and what they mean: a plain
function for each, which the naive evaluator calls for each row.  None means that there is no value.
`tests.engine.functors` has what the engine calls.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

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
