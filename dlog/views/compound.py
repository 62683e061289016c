"""Owns queries whose aggregates share one payload: count, sums and sums of products as one element of a ring,
for consumers of M3 that have such rings as types.  Knows no triggers.

    SELECT COUNT(*), SUM(x), SUM(x * x)      one RingCofactor:  (count, [sum of x], [[sum of x * x]])
    SELECT AVG(x), SUM(x)                    one RingAvg:       (count, sum of x)

F-IVM has both rings.  An element also says whether a group has any rows, so that no separate count is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dlog.errors import UnsupportedError
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.types.typing import Types
from dlog.views.orders.orders import find_order
from dlog.views.query import Aggregate, Query, Term, variables_of
from dlog.views.regression import lifted_values
from dlog.views.tree.tree import VariableOrder

AVERAGE = "RingAvg"
DEFINITION = ast.TypeDefinition(AVERAGE, "ring_avg.hpp")
Scaled = tuple[int | float, tuple[ast.Node, ...]]  # a constant, and the values that it multiplies


@dataclass(frozen=True)
class Compound:
    """`query` has one aggregate, an element; `parts` say where in it the aggregates of `given` are."""

    given: Query
    query: Query
    parts: Mapping[str, tuple[tuple[int | float, tuple[int, ...]], ...]]

    def value(self, name: str, element: Any) -> Any:
        """An aggregate, from an element as results show it."""
        total = sum(scale * _entry(element, places) for scale, places in self.parts[name])
        return int(total) if self._is_whole(name) else total

    def shown(self, aggregate: Aggregate, element: Any) -> Any:
        value = self.value(aggregate.name, element)
        if aggregate.divisor is None:
            return value
        divisor = self.value(aggregate.divisor, element)
        return value / divisor if divisor else 0.0

    def _is_whole(self, name: str) -> bool:
        return all(isinstance(scale, int) and not places for scale, places in self.parts[name])


def compound(query: Query, order: VariableOrder | None = None) -> Compound:
    """The query with all its aggregates as one.  Raises if they are not count, sums, and sums of products of
    two values, each of one relation.
    """
    terms = {a.name: [_scaled(term) for term in a.terms] for a in query.aggregates}
    products = list(dict.fromkeys(values for parts in terms.values() for _, values in parts if values))
    if not products:
        raise UnsupportedError("only counts need no ring", span=query.span, help="leave out --compound")
    _check_values(query, products)
    if len(products) == 1 and _in_one_relation(query, products[0]):
        made = _with(query, (_lift(AVERAGE, ast.product(list(products[0]))),), DEFINITION)
        places = {(): (), products[0]: (0,)}
    else:
        values = list(dict.fromkeys(value for product in products for value in product))
        made, names = lifted_values(query, values, order or find_order(query), "aggregates")
        at = {value: names.index(value) for value in values}
        places = {(): (), **{product: tuple(at[value] for value in product) for product in products}}
    parts = {name: tuple((scale, places[values]) for scale, values in found) for name, found in terms.items()}
    return Compound(query, made, parts)


def _scaled(term: Term) -> Scaled:
    scale: int | float = 1
    values: list[ast.Node] = []
    for factor in term.factors:
        if isinstance(factor, ast.Constant) and isinstance(factor.value, int | float):
            scale *= factor.value
        else:
            values.append(factor)
    return scale, tuple(sorted(values, key=str))


def _check_values(query: Query, products: Iterable[tuple[ast.Node, ...]]) -> None:
    types = Types(ast.DBTOASTER, query.types)
    alone = list(products)
    for product in alone:
        for value in product:
            if any(isinstance(n, ast.Call) and types.is_custom(n.type) for n in value.walk()):
                raise UnsupportedError("an aggregate is an element of a ring already", span=query.span)
        whole = len(alone) == 1 and _in_one_relation(query, product)
        if not whole and (len(product) > 2 or not all(_in_one_relation(query, (v,)) for v in product)):
            help = "COUNT(*), SUM(x), SUM(x * y) and AVG(x), where x and y are values of one relation each"
            raise UnsupportedError("the aggregates have no ring in common", span=query.span, help=help)


def _in_one_relation(query: Query, values: Iterable[ast.Node]) -> bool:
    used = {name for value in values for name in variables_of(value)}
    return any(used <= set(atom.variables) for atom in query.atoms)


def _lift(name: str, value: ast.Node) -> ast.Call:
    return ast.Call("lift", TypeRef(name), (value,))


def _with(query: Query, factors: tuple[ast.Node, ...], definition: ast.TypeDefinition) -> Query:
    types = (*(t for t in query.types if t.name != definition.name), definition)
    return replace(query, aggregates=(Aggregate("aggregates", (Term(factors),)),), types=types)


def _entry(element: Any, places: tuple[int, ...]) -> Any:
    """Of a count no place, of a sum one, of a product two; RingAvg has its one sum alone."""
    found = element[str(len(places) + 1)]
    for place in places:
        found = found[place] if isinstance(found, list) else found
    return found
