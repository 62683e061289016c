"""Owns the interface of aggregates: everything the rest of dlog may ask about one.

An aggregate is one object in one file of this package.  Every other module asks the object and never tests
its name.  Must not import numpy, kernels or Arrow: what computes is named as `module:object` and loaded when
it is first needed, so that `check` and `format` stay light.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from dlog.values import BUILTIN_TYPES, Type

ANY_TYPE = tuple(dict.fromkeys(type.name for type in BUILTIN_TYPES.values()))
NUMBERS = tuple(name for name in ANY_TYPE if BUILTIN_TYPES[name].is_numeric)
SUMMED = tuple(name for name in ANY_TYPE if BUILTIN_TYPES[name].adds_up)

# What a row with a weight, which represents several equal assignments, means to an aggregate.
IGNORED, ADDED, MULTIPLIED = "ignored", "added", "multiplied"


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One aggregate.

    `argument` has the names of the types that it takes, () for an aggregate without an argument; `result` is
    the name of its result's type, None for the type of the argument or, of a quotient, the one that this type
    has for means.

    `fold` names the function (rows in groups, argument) -> (a value for each group), from scratch; None: its
    `moments` are summed and finished.
    `state` names the class that maintains it under insertion and deletion, `merge` the class that makes and
    merges partial values of shards; None: it has no partial values.
    `moments` are the powers whose exact sums, with the number of assignments, determine the result; these
    sums form an Abelian group, so deletions are exact.  None: it is not computed from sums.  `finish`
    then names the function (type of the argument, counts, sums) -> results (`dlog.engine.head.power_sums`).
    """

    name: str
    over: str  # the types of its argument, for the documentation
    gives: str  # its value, for the documentation
    argument: tuple[str, ...] = ()
    result: str | None = None
    aliases: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()  # what other languages call it, for messages
    over_nothing: int | None = None  # the inline form over nothing, a sum: the zero of its type; None: fails
    least_count: int = 1  # a group of fewer assignments has no value, and its head no row
    fold: str | None = None
    state: str
    merge: str | None = None
    merged_by: str | None = None  # the aggregate that merges finished values of the shards of a stream
    moments: tuple[int, ...] | None = None
    finish: str | None = None
    weights: str | None = None  # None: rows with weights are repeated
    direction: int = 0  # 1: the least value, -1: the greatest; such an aggregate may be recursive
    grows: bool = False  # whether more assignments, of values that are not negative, never make it smaller
    in_order: bool = False  # whether the order of assignments matters
    makes_texts: bool = False
    in_ring: bool = False  # whether the payload of a view holds the result itself
    in_python: bool = False  # whether the program's user has written it: `fold` takes it first
    is_distinct: bool = False  # whether it counts the distinct values of its argument
    is_quotient: bool = False  # of a sum, which a view holds, by the number of assignments

    def __str__(self) -> str:
        return self.name

    @property
    def takes_argument(self) -> bool:
        return bool(self.argument)

    @property
    def is_recursive(self) -> bool:
        """Whether a recursion may use it: its value only improves as the recursion proceeds."""
        return self.direction != 0

    @property
    def has_witnesses(self) -> bool:
        """Whether single assignments have the result as their argument, so that they can be named."""
        return self.direction != 0

    @property
    def is_exact_under_deletion(self) -> bool:
        """Whether its own state, without the values of the group, supports deletion."""
        return self.moments is not None

    @property
    def may_be_undefined(self) -> bool:
        return self.least_count > 1

    @property
    def adds_up(self) -> bool:
        """Whether the result is the sum of the arguments, of their own type."""
        return self.in_ring and self.takes_argument

    def result_types(self) -> tuple[str, ...] | None:
        """The names of the types that the result can have; None: that of the argument."""
        if self.is_quotient:
            return tuple(dict.fromkeys(map(self.result_name, self.argument)))
        return None if self.result is None else (self.result,)

    def result_name(self, argument: str) -> str:
        """The name of the result's type for an argument of the type of this name."""
        return BUILTIN_TYPES[argument].mean if self.is_quotient else self.result or argument

    def result_type(self, argument: Type | None) -> Type:
        """The type of the result for an argument of a type; for decimals, before a head rounds it."""
        if self.result is not None:
            return BUILTIN_TYPES[self.result]
        assert argument is not None
        if self.is_quotient:
            return BUILTIN_TYPES[argument.mean]
        return Type("decimal", argument.scale, 38) if argument.is_decimal else argument

    def usage(self, argument: str = "x", name: str = "") -> str:
        """How it is written after `=` in `agg<<...>>`, by its name or an alias."""
        return f"{name or self.name}({argument if self.takes_argument else ''})"

    def inline_usage(self, argument: str = "x", name: str = "") -> str:
        """How the inline form is written."""
        return f"{name or self.name} {argument + ' ' if self.takes_argument else ''}: {{ ... }}"


@cache
def load(reference: str) -> Any:
    """The object that `module:object` names."""
    module, name = reference.split(":")
    return getattr(import_module(module), name)
