"""Owns polynomials: an expression as a sum of products (ML 3.2), and the parts of a product that share no
variables.
"""

from __future__ import annotations

from collections.abc import Iterable

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import NONE, ROWS, Names, inputs, is_value, outputs, visible
from dlog.multilevel.names import apart
from dlog.multilevel.nesting import connected

Monomial = tuple[Node, ...]
MONOMIALS = 4096


class TooManyMonomials(Exception):
    """An expression has too many products to be written as their sum."""


def expand(node: Node, scope: Names = NONE) -> list[Monomial]:
    """Products whose sum, summed over all variables that are not visible in the expression, it is.

    Hidden variables have names of their own.  What is inside lifts, Exists and conditions is not expanded,
    and sums of values only where no single relation binds all their variables.  Raises TooManyMonomials.

    >>> from dlog.multilevel.notation import read, text
    >>> [" ".join(map(text, m)) for m in expand(read("P(a) * (R(b) + S(c)) * (T(d) + O(e))"))]
    ['P(a) R(b) T(d)', 'P(a) R(b) O(e)', 'P(a) S(c) T(d)', 'P(a) S(c) O(e)']
    """
    return [m for found in _expand(apart(node, scope)) for m in _spread(found)]


def _expand(node: Node) -> list[Monomial]:
    if is_value(node):
        return [node.factors if isinstance(node, ast.Product) else (node,)]
    match node:
        case ast.Sum():
            return [m for term in node.terms for m in _expand(term)]
        case ast.AggSum():
            return _expand(node.body)
        case ast.Product():
            found: list[Monomial] = [()]
            for factor in node.factors:
                parts = _expand(factor)
                if len(found) * len(parts) > MONOMIALS:
                    raise TooManyMonomials
                found = [(*left, *right) for left in found for right in parts]
            return found
    return [(node,)]


def _spread(monomial: Monomial) -> list[Monomial]:
    """With sums of values distributed, whose variables come from several places."""
    for i, factor in enumerate(monomial):
        if isinstance(factor, ast.Sum) and is_value(factor) and not _covered(factor, monomial):
            parts = [t.factors if isinstance(t, ast.Product) else (t,) for t in factor.terms]
            spread = [(*monomial[:i], *part, *monomial[i + 1 :]) for part in parts]
            return [m for one in spread for m in _spread(one)]
    return [monomial]


def _covered(factor: Node, monomial: Monomial) -> bool:
    rows = [f for f in monomial if isinstance(f, ROWS)]
    return not rows or not inputs(factor) or any(inputs(factor) <= outputs(row) for row in rows)


def components(factors: Iterable[Node], scope: Names) -> list[Monomial]:
    """The factors in groups that share no variable outside the scope, each in its order.

    >>> from dlog.multilevel.notation import read, text
    >>> factors = read("(-1) * R(a, b) * S(b, c)").factors
    >>> [[" ".join(map(text, c)) for c in components(factors, frozenset(s))] for s in ("", "b")]
    [['-1', 'R(a, b) S(b, c)'], ['-1', 'R(a, b)', 'S(b, c)']]
    """
    factors = tuple(factors)
    joining = NONE.union(*map(visible, factors)) - scope
    return [tuple(f for _, f in group) for group in connected(factors, joining)]
