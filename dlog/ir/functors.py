"""Owns functors: functions and aggregates that a program declares and that are implemented in Python.

    y = @f(x)        the primitive of a functor

A functor is declared with the types of its arguments and of its result.  What computes it is known to the
database alone: see `dlog.column_functions.functions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlog.aggregates.user import USER, user_aggregate
from dlog.values import Type

if TYPE_CHECKING:
    from dlog.ir.rules import Conj, Primitive, Rule
    from dlog.language.source import Span

STATEFUL, AGGREGATE = "stateful", "aggregate"


@dataclass(frozen=True)
class Functor:
    """`.functor name(inputs): result`."""

    name: str
    inputs: tuple[Type, ...]
    result: Type
    stateful: bool = False  # its results may depend on more than its arguments
    aggregate: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        word = f" {AGGREGATE}" * self.aggregate + f" {STATEFUL}" * self.stateful
        return f"{self.name}({', '.join(map(str, self.inputs))}): {self.result}{word}"


def primitive_name(functor: str) -> str:
    """The name of the primitive that calls a functor."""
    return USER + functor


def is_call(name: str) -> bool:
    return name.startswith(USER)


def functor_of(name: str) -> str:
    """The functor that a primitive calls.  REQUIRES: is_call."""
    return name[len(USER) :]


def calls(conj: Conj) -> Iterator[Primitive]:
    """The calls of functors in a body, at any depth."""
    from dlog.ir.rules import Primitive

    return (f for f in conj.walk() if isinstance(f, Primitive) and is_call(f.name))


def used_functors(rules: Iterable[Rule]) -> dict[str, Span | None]:
    """The functors that rules use, functions and aggregates, with the place of a use."""
    found: dict[str, Span | None] = {}
    for rule in rules:
        for form in calls(rule.body):
            found.setdefault(functor_of(form.name), form.span)
        for aggregate in rule.aggregates:
            if is_call(aggregate.op):
                found.setdefault(user_aggregate(aggregate.op).called, aggregate.span)
    return found
