"""Aggregates that a program declares and that are implemented in Python, as in
`.functor median(x: float): float aggregate`.

A rule names one by its types, too: `@median(float):float`.  What computes it is known to the database, not
here: two databases may have different implementations of one name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from dlog.aggregates.aggregate import Aggregate
from dlog.aggregates.references import USER_STATE
from dlog.values import BUILTIN_TYPES, Type, decimal

USER = "@"  # what the name of a functor begins with in a rule

_NAME = re.compile(r"@([^(]*)\((.*)\):(.*)")
_SIZES = re.compile(r"decimal\((\d+),(\d+)\)")


def user_name(name: str, argument: Type, result: Type) -> str:
    """The name of the aggregate in a rule.

    >>> user_name("median", BUILTIN_TYPES["int"], decimal(10, 2))
    '@median(int):decimal(10,2)'
    """
    return f"{USER}{name}({argument.name}):{_spelt(result)}"


@dataclass(frozen=True, kw_only=True)
class UserAggregate(Aggregate):
    """`type` is that of the result, with its sizes."""

    called: str
    type: Type

    def __str__(self) -> str:
        return USER + self.called

    def result_type(self, argument: Type | None) -> Type:
        return self.type


@cache
def user_aggregate(name: str) -> UserAggregate:
    """REQUIRES: a name that `user_name` gave."""
    found = _NAME.fullmatch(name)
    assert found is not None, f"not an aggregate: {name}"
    called, argument, result = found.groups()
    type = _type(result)
    return UserAggregate(
        name=name,
        called=called,
        type=type,
        over=f"values of type {argument}",
        gives=f"a value of type {type}",
        argument=(argument,),
        result=type.name,
        in_python=True,
        fold="dlog.engine.head.user_state:fold_user",
        state=USER_STATE,
    )


def _spelt(type: Type) -> str:
    return f"decimal({type.precision},{type.scale})" if type.is_decimal else type.name


def _type(text: str) -> Type:
    sizes = _SIZES.fullmatch(text)
    return decimal(*map(int, sizes.groups())) if sizes else BUILTIN_TYPES[text]
