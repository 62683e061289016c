"""Owns comparisons as bounds of a key: {k - p > 10} is {k > p + 10}, so that entries of a map can be read
as a range of k.

Whole numbers only: with floats the sum on the other side would be rounded differently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import Names, outputs, visible
from dlog.multilevel.values import ZERO, minus, plus, times, whole, with_children

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
IsWhole = Callable[[Node], bool]


def bounds(node: Node, scope: Names, is_whole: IsWhole) -> Node:
    """Each comparison of an expression solved for the key of a map that is being read, if it has just one.

    `is_whole` says whether the values of a variable or a map are whole numbers.

    >>> from dlog.multilevel.notation import read, text
    >>> text(bounds(read("AggSum([], M[][k] * {k + (-1 * p) > 10})"), frozenset("p"), lambda node: True))
    'AggSum([], M[][k] * {k > (10 + p)})'
    """
    if isinstance(node, ast.Product):
        return _product(node, scope, is_whole)
    return with_children(node, scope, lambda child, bound: bounds(child, bound, is_whole))


def _product(node: ast.Product, scope: Names, is_whole: IsWhole) -> Node:
    factors, read, bound = [], set[str](), scope
    for factor in node.factors:
        if isinstance(factor, ast.MapAccess):
            read |= outputs(factor) - bound
        changed = _over(factor, frozenset(read), is_whole)
        factors.append(with_children(changed, bound, lambda child, names: bounds(child, names, is_whole)))
        bound |= outputs(factor)
    return times(factors)


def _over(node: Node, keys: Names, is_whole: IsWhole) -> Node:
    """Conditions, and sums and products of them."""
    if isinstance(node, ast.Comparison):
        return solved(node, keys, is_whole)
    if isinstance(node, ast.Sum):
        return plus(_over(term, keys, is_whole) for term in node.terms)
    return times(_over(f, keys, is_whole) for f in node.factors) if isinstance(node, ast.Product) else node


def solved(node: ast.Comparison, keys: Names, is_whole: IsWhole) -> Node:
    """The comparison as {k op e}, for the one key k that occurs in it; itself, if it has no such form."""
    found = visible(node) & keys
    if len(found) != 1 or _is_solved(node, found):
        return node
    linear = _linear(plus([node.left, minus(node.right)]), is_whole)
    key = _key(linear, found) if linear is not None else None
    if linear is None or key is None:
        return node
    number = linear.terms.pop(key)
    op = node.op if number == 1 else FLIPPED[node.op]
    return replace(node, op=op, left=key, right=linear.scaled(-number))


def _is_solved(node: ast.Comparison, found: Names) -> bool:
    sides = ((node.left, node.right), (node.right, node.left))
    return any(isinstance(a, ast.Variable) and a.name in found and not visible(b) & found for a, b in sides)


def _key(linear: _Linear, found: Names) -> Node | None:
    """The variable, if it occurs by itself, once."""
    terms = [(atom, number) for atom, number in linear.terms.items() if visible(atom) & found]
    if len(terms) == 1 and isinstance(terms[0][0], ast.Variable) and terms[0][1] in (1, -1):
        return terms[0][0]
    return None


@dataclass
class _Linear:
    """A number and multiples of variables and maps."""

    number: int = 0
    terms: dict[Node, int] = field(default_factory=dict)

    def add(self, other: _Linear, factor: int = 1) -> None:
        self.number += factor * other.number
        for atom, count in other.terms.items():
            self.terms[atom] = self.terms.get(atom, 0) + factor * count

    def scaled(self, factor: int) -> Node:
        parts = [whole(factor * self.number)] if self.number else []
        counts = ((atom, factor * count) for atom, count in self.terms.items() if count)
        parts += [times([whole(count), atom]) for atom, count in counts]
        return plus(parts) if parts else ZERO


def _linear(node: Node, is_whole: IsWhole) -> _Linear | None:
    match node:
        case ast.Constant():
            return _Linear(node.value) if isinstance(node.value, int) else None
        case ast.Variable() | ast.MapAccess():
            return _Linear(0, {node: 1}) if is_whole(node) else None
        case ast.Sum():
            return _linear_sum(node, is_whole)
        case ast.Product():
            return _linear_product(node, is_whole)
    return None


def _linear_sum(node: ast.Sum, is_whole: IsWhole) -> _Linear | None:
    result = _Linear()
    for term in node.terms:
        part = _linear(term, is_whole)
        if part is None:
            return None
        result.add(part)
    return result


def _linear_product(node: ast.Product, is_whole: IsWhole) -> _Linear | None:
    """All factors but one are constants; else it is one term, if all factors are whole."""
    number, rest = 1, []
    for factor in node.factors:
        if isinstance(factor, ast.Constant) and isinstance(factor.value, int):
            number *= factor.value
        else:
            rest.append(factor)
    parts = [_linear(factor, is_whole) for factor in rest]
    if any(part is None for part in parts):
        return None
    inner = parts[0] if len(parts) == 1 else _Linear(0, {times(rest): 1}) if parts else _Linear(1)
    result = _Linear()
    result.add(inner, number)  # type: ignore[arg-type]
    return result
