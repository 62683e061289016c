"""Owns products and sums of expressions with 0 and 1 in mind, and the laws of arithmetic: constants are
folded, terms that cancel disappear.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import Names, binding, hidden, is_value, outputs, visible
from dlog.multilevel.names import canonical

ZERO = ast.Constant("int", 0)
ONE = ast.Constant("int", 1)
MINUS_ONE = ast.Constant("int", -1)
LARGEST = 2**31 - 1  # of an int of M3


def whole(value: int) -> Node:
    """A whole number: an int if it is small enough, else a long."""
    return ast.Constant("int" if abs(value) <= LARGEST else "long", value)


def is_zero(node: Node) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value == 0


def times(factors: Iterable[Node]) -> Node:
    """The product; 0 if a factor is 0."""
    left = [f for f in factors if f != ONE]
    if any(map(is_zero, left)):
        return ZERO
    return ast.product(left) if left else ONE


def plus(terms: Iterable[Node]) -> Node:
    """The sum, without terms that are 0."""
    left = [t for t in terms if not is_zero(t)]
    return ast.total(left) if left else ZERO


def minus(node: Node) -> Node:
    return times([MINUS_ONE, node])


def sum_over(body: Node, kept: Names) -> Node:
    """The body with all variables summed out that it binds, but those to be kept."""
    bound = binding(body).outputs
    keys = tuple(ast.Variable(name) for name in bound if name in kept)
    return body if is_zero(body) or len(keys) == len(bound) else ast.AggSum(keys, body)


def with_children(node: Node, scope: Names, change: Callable[[Node, Names], Node]) -> Node:
    """The node with each subexpression replaced.  `scope` has the variables bound outside; `change` also
    gets those bound where the subexpression stands.

    What is visible remains so, even where a change leaves out the place that needed a variable.  A node in
    which nothing changes is returned itself.
    """
    match node:
        case ast.Product():
            factors, bound = [], scope
            for factor in node.factors:
                factors.append(change(factor, bound))
                bound |= outputs(factor)
            return node if _is_same(factors, node.factors, ast.Product) else times(factors)
        case ast.Sum():
            terms = [change(term, scope) for term in node.terms]
            return node if _is_same(terms, node.terms, ast.Sum) else plus(terms)
        case ast.AggSum():
            body = change(node.body, scope - hidden(node))
            return node if body == node.body else sum_over(body, visible(node))
        case ast.Exists() | ast.Domain():
            body = change(node.body, scope)
            if body is node.body and not is_zero(body):
                return node
            return ZERO if is_zero(body) else replace(node, body=body)
        case ast.Lift():
            body = change(node.body, scope)
            return node if body is node.body else replace(node, body=body)
        case ast.Comparison():
            left, right = change(node.left, scope), change(node.right, scope)
            same = left is node.left and right is node.right
            return node if same else replace(node, left=left, right=right)
        case ast.In():
            operand = change(node.operand, scope)
            return node if operand is node.operand else replace(node, operand=operand)
        case ast.Call():
            arguments = tuple(change(a, scope) for a in node.arguments)
            same = all(map(operator.is_, arguments, node.arguments))
            return node if same else replace(node, arguments=arguments)
    return node


def _is_same(now: Sequence[Node], before: Sequence[Node], kind: type[Node]) -> bool:
    """Whether nothing changed in a product or a sum that is written as `times` or `plus` would write it."""
    return all(map(operator.is_, now, before)) and not any(isinstance(n, ast.Constant | kind) for n in now)


def factors_of(node: Node) -> tuple[Node, ...]:
    return node.factors if isinstance(node, ast.Product) else (node,)


def terms_of(node: Node) -> tuple[Node, ...]:
    return node.terms if isinstance(node, ast.Sum) else (node,)


def coefficient(node: Node) -> tuple[int, tuple[Node, ...]]:
    """An integer and the other factors, whose product with it is the expression."""
    number, rest = 1, []
    for factor in factors_of(node):
        if _is_whole(factor) and abs(number * factor.value) <= LARGEST:  # type: ignore[attr-defined]
            number *= factor.value  # type: ignore[attr-defined]
        else:
            rest.append(factor)
    return number, tuple(rest)


def _is_whole(node: Node) -> bool:
    return isinstance(node, ast.Constant) and node.type == "int" and isinstance(node.value, int)


def _scaled(number: int, rest: Iterable[Node]) -> Node:
    return times([ast.Constant("int", number), *rest])


# ---- laws


def fold(node: Node, scope: Names) -> Node:
    """Constants: 1 * e = e, 0 * e = 0, e + 0 = e, 2 * 3 = 6, a condition on constants, sums over nothing.
    Whole numbers only, and only if the result is one.
    """
    match node:
        case ast.Product():
            number, rest = coefficient(node)
            return _scaled(number, rest)
        case ast.Sum():
            return _folded_sum(node)
        case ast.AggSum() | ast.Exists() | ast.Domain() if is_zero(node.body):
            return ZERO
        case ast.AggSum() if not outputs(node.body):
            return node.body
        case ast.Exists() | ast.Domain() if isinstance(node.body, ast.Constant):
            return ONE
        case ast.Comparison():
            return _folded_comparison(node)
        case ast.Lift() if node.body == node.variable:
            return ONE
    return node


def _folded_sum(node: ast.Sum) -> Node:
    whole = [t for t in node.terms if _is_whole(t)]
    number = sum(t.value for t in whole)  # type: ignore[attr-defined]
    if len(whole) < 2 or abs(number) > LARGEST:
        return plus(node.terms)
    return plus([*(t for t in node.terms if not _is_whole(t)), ast.Constant("int", number)])


_HOLDS = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _folded_comparison(node: ast.Comparison) -> Node:
    """NaN is no value of the calculus: `{x = x}` is 1."""
    if _is_whole(node.left) and _is_whole(node.right):
        return ONE if _HOLDS[node.op](node.left.value, node.right.value) else ZERO  # type: ignore[attr-defined]
    if node.left == node.right and is_value(node.left):
        return ONE if node.op in ("=", "<=", ">=") else ZERO
    return node


def cancel(node: Node, scope: Names) -> Node:
    """Terms that differ in a whole coefficient only become one: t + (-1) * t = 0."""
    if not isinstance(node, ast.Sum):
        return node
    found: dict[Node, tuple[int, Node]] = {}
    for term in node.terms:
        number, rest = coefficient(term)
        body = times(rest)
        other, known = found.get(canonical(body), (0, body))
        if abs(other + number) > LARGEST:
            return node
        found[canonical(body)] = (other + number, known)
    if len(found) == len(node.terms):
        return node
    return plus([_scaled(number, [body]) for number, body in found.values()])
