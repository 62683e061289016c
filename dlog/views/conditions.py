"""Owns disjunctions of conditions, which M3 lacks: conditions are 1 or 0, so arithmetic expresses
them; and quotients that are compared.  Knows neither SQL nor rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlog.m3.syntax import ast


def either(parts: Sequence[ast.Node]) -> ast.Node:
    """1 if one of the conditions holds, else 0.  As large as the conditions together, or twice that for two.

    c + d - c * d for two; 1 - (1 - c) * (1 - d) * .. for more; a membership if one value is compared with
    constants.  REQUIRES: at least one, each 1 or 0.

    >>> x, one, two = ast.Variable("x"), ast.Constant("int", 1), ast.Constant("int", 2)
    >>> either([ast.Comparison("=", x, one), ast.Comparison("=", x, two)]) == ast.In(x, (one, two))
    True
    """
    if len(parts) == 1:
        return parts[0]
    member = _membership(parts)
    if member is not None:
        return member
    if len(parts) == 2:
        return ast.total([*parts, ast.product([_minus(), *parts])])
    none = ast.product([ast.total([_one(), ast.product([_minus(), part])]) for part in parts])
    return ast.total([_one(), ast.product([_minus(), none])])


def _membership(parts: Sequence[ast.Node]) -> ast.In | None:
    values: list[ast.Constant] = []
    operand: ast.Node | None = None
    for part in parts:
        if not isinstance(part, ast.Comparison) or part.op != "=" or not isinstance(part.right, ast.Constant):
            return None
        if operand is not None and part.left != operand:
            return None
        operand = part.left
        values.append(part.right)
    assert operand is not None
    return ast.In(operand, tuple(dict.fromkeys(values)), span=parts[0].span)


def divided(node: ast.Node) -> ast.Node:
    """x * (1 / y) as x / y, which is rounded once: 49 / 49 is 1, and 49 * (1 / 49) is not.

    >>> x, double = ast.Variable("x"), ast.TypeRef("double")
    >>> found = divided(ast.product([x, ast.Call("/", double, (ast.Constant("int", 49),))]))
    >>> found == ast.Call("/", double, (x, ast.Constant("int", 49)))
    True
    """
    if isinstance(node, ast.Sum):
        return ast.total([divided(term) for term in node.terms])
    if isinstance(node, ast.Call):
        return replace(node, arguments=tuple(map(divided, node.arguments)))
    if not isinstance(node, ast.Product):
        return node
    before: list[ast.Node] = []
    for factor in map(divided, node.factors):
        is_inverse = isinstance(factor, ast.Call) and factor.function == "/" and len(factor.arguments) == 1
        if before and is_inverse:
            assert isinstance(factor, ast.Call)
            before = [replace(factor, arguments=(ast.product(before), *factor.arguments))]
        else:
            before.append(factor)
    return ast.product(before)


def _one() -> ast.Node:
    return ast.Constant("int", 1)


def _minus() -> ast.Node:
    return ast.Constant("int", -1)
