"""Owns where the columns of a head are in a row of changes that is drained from maps.  Knows no strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlog.engine.state.store import Store
from dlog.heads.group_kernels import GROUP, LITERAL, RESULT_OF
from dlog.heads.map_kernels import PLACES, SUM_OF, P
from dlog.ir.analysis.projection import stored_as
from dlog.ir.rules import Atom, Const, Rule, Var
from dlog.jit import Words
from dlog.values import INT, Type
from dlog.views.run.groups import Results


@dataclass(frozen=True)
class Place:
    """Of a column: see `dlog.heads.map_kernels`.  `places`: a literal's code, a key, or the places of the
    values that add up to it."""

    kind: int
    places: tuple[int, ...]
    factor: int = 1
    limit: int = 0


@dataclass(frozen=True)
class HeadPlaces:
    """For each column of a head its place; each row of the head is a group."""

    columns: Sequence[Place]
    results: Results

    def layout(self, orders: Sequence[Sequence[int]]) -> Words:
        """The words of a head with these column orders."""
        places, lists = list[int](), list[int]()
        starts = PLACES + P * len(self.columns) + sum(map(len, orders))
        for column in self.columns:
            (first, *more) = column.places
            if more:
                first = starts + len(lists)
                lists += [len(column.places), *column.places]
            places += [SUM_OF if more else column.kind, first, column.factor, column.limit]
        results = self.results
        shape = [len(self.columns), len(orders), results.width, results.count, starts]
        return np.array([*shape, *places, *(c for order in orders for c in order), *lists], np.int64)


def places_of(
    store: Store, rule: Rule, head: Atom, results: Results, named: Mapping[str, str] | None = None
) -> HeadPlaces | None:
    """None: a column is not a literal, or a key or a sum that needs no rounding there.
    `named`: what the maps call the variables of the rule, if not the same.
    """
    columns: list[Place] = []
    for operand, type in zip(head.args, store.column_types(head.predicate), strict=True):
        if isinstance(operand, Const):
            code = store.encode(operand, type)
            if code is None:
                return None
            columns.append(Place(LITERAL, (code,)))
            continue
        name = operand.name if named is None else named.get(operand.name, "")
        found = None
        if name in results.keys:
            found = _key(results.keys.index(name), rule, operand, type)
        elif name in results.values:
            found = _value(results.values[name], rule.types[operand.name], type)
        if found is None:
            return None
        columns.append(found)
    return HeadPlaces(columns, results)


def _key(number: int, rule: Rule, operand: Var, column: Type) -> Place | None:
    """A key in a column of a type."""
    if stored_as(rule, operand, column):
        return Place(GROUP, (number,))
    return _decimal(GROUP, (number,), rule.types[operand.name], column)


def _value(places: tuple[int, ...], type: Type, column: Type) -> Place | None:
    """A sum, of ints or of decimals in units of their last digit, in a column of a type."""
    if type == column == INT:
        return Place(RESULT_OF, places)
    return _decimal(RESULT_OF, places, type, column) if type.is_decimal else None


def _decimal(kind: int, places: tuple[int, ...], type: Type, column: Type) -> Place | None:
    """A decimal in a column that has as many digits after the point, or more."""
    if not column.is_decimal or column.scale < type.scale:
        return None
    more = column.scale - type.scale
    return Place(kind, places, 10**more, _limit(column.precision - more))


def key_place(number: int, type: Type) -> Place:
    """A key that is stored as it is, if it fits."""
    return Place(GROUP, (number,), limit=_limit(type.precision) if type.is_decimal else 0)


def _limit(digits: int) -> int:
    return 10 ** max(digits, 0)
