"""Owns the order of factors in rings whose products depend on it.  Knows no views and no statements.

A view stores the product of the factors at or below it.  If the ring does not commute, that product must be a
contiguous part of the product that the view above it needs: f(a) * g(c) * h(b) cannot be made from a view
that has f(a) * h(b).  Where a view would not be, some of its factors are applied further up; their variables
stay keys until then, as those of a factor of several variables do.

A type without a registered ring is taken to commute, as the paper's compiler takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from dlog.m3.rings.registry import commutes
from dlog.m3.syntax import ast
from dlog.m3.types.typing import BUILTIN
from dlog.views.query import Query

Home = str | None  # the variable at whose view a factor is applied; None: above all roots


def element_type(node: ast.Node) -> ast.TypeRef | None:
    """The user-defined type of an expression's values; None for numbers."""
    match node:
        case ast.Call() | ast.MapAccess():
            return node.type if node.type is not None and node.type.name not in BUILTIN else None
        case ast.Product() | ast.Sum():
            parts = node.factors if isinstance(node, ast.Product) else node.terms
            return next((found for part in parts if (found := element_type(part)) is not None), None)
        case ast.AggSum():
            return element_type(node.body)
    return None


def depends_on_order(node: ast.Node) -> bool:
    """Whether it is an element of a ring that does not commute."""
    found = element_type(node)
    return found is not None and not commutes(found)


def ordered_products(query: Query) -> tuple[tuple[ast.Node, ...], ...]:
    """Of each term, the factors whose order matters, if there are several."""
    known = cache(depends_on_order)
    terms = (term for aggregate in query.aggregates for term in aggregate.terms)
    found = (tuple(filter(known, term.factors)) for term in terms)
    return tuple(dict.fromkeys(product for product in found if len(product) > 1))


def contiguous_homes(
    query: Query, homes: Mapping[ast.Node, Home], parents: Mapping[str, Home]
) -> dict[ast.Node, Home]:
    """Homes at or above those given, such that each view has a contiguous part of every product.
    O(products * variables^2).
    """
    found, products = dict(homes), ordered_products(query)
    depth = {variable: len(_above(variable, parents)) for variable in parents}
    deepest_first = sorted(parents, key=lambda variable: -depth[variable])
    changed = bool(products)
    while changed:
        changed = False
        for variable in deepest_first:
            for product in products:
                for factor in _outside(product, variable, found, parents):
                    found[factor] = parents[variable]
                    changed = True
    return found


def _outside(
    product: tuple[ast.Node, ...], variable: str, homes: Mapping[ast.Node, Home], parents: Mapping[str, Home]
) -> set[ast.Node]:
    """The factors below a variable that are not in its longest run of the product below its parent."""
    parent = parents[variable]
    inside = [f for f in product if parent is None or parent in _above(homes[f], parents)]
    runs: list[list[ast.Node]] = [[]]
    for factor in inside:
        if variable in _above(homes[factor], parents):
            runs[-1].append(factor)
        elif runs[-1]:
            runs.append([])
    longest = max(runs, key=len)
    return {factor for run in runs if run is not longest for factor in run}


def _above(home: Home, parents: Mapping[str, Home]) -> tuple[str, ...]:
    """The variable itself and those above it."""
    path: list[str] = []
    while home is not None:
        path.append(home)
        home = parents[home]
    return tuple(path)


def in_written_order(numbers: Iterable[int], elements: frozenset[int]) -> tuple[int, ...]:
    """Factors of a product by their numbers: sorted, unless several of them are elements whose order
    matters; then these come last, as they were written.

    >>> in_written_order((3, 1, 2, 0), frozenset({1, 3})), in_written_order((3, 1, 2, 0), frozenset({1}))
    ((0, 2, 3, 1), (0, 1, 2, 3))
    """
    numbers = tuple(numbers)
    ordered = [n for n in numbers if n in elements]
    if len(ordered) < 2:
        return tuple(sorted(numbers))
    return (*sorted(n for n in numbers if n not in elements), *ordered)
