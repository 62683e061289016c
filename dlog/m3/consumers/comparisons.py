"""Owns comparisons as generated C++ can compute them: of variables, constants and functions of these.

What is read from maps or summed is bound to a variable first: `{M[][k] < AggSum([], R(x) * x)}` becomes
`AggSum([], (compared1 ^= M[][k]) * (compared2 ^= AggSum([], R(x) * x)) * {compared1 < compared2})`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from dlog.m3.syntax import ast
from dlog.m3.syntax.rewrite import rewritten

NAME = "compared"
_READ = (ast.MapAccess, ast.Relation, ast.DeltaRelation, ast.AggSum, ast.Exists, ast.Domain)


def with_compared_values(program: ast.Program) -> ast.Program:
    """
    >>> from dlog.m3.syntax.parse import parse
    >>> from dlog.m3.syntax.print import print_program
    >>> text = "DECLARE MAP M(long)[][] := 0; DECLARE MAP Q(long)[][] := {M(long)[][] < 2};"
    >>> print(print_program(with_compared_values(parse(text))).splitlines()[2])
    DECLARE MAP Q(long)[][] := AggSum([], (compared1 ^= M(long)[][]) * {compared1 < 2});
    """
    used = {n.name for n in program.walk() if isinstance(n, ast.Variable | ast.Column)}
    names = (name for name in (f"{NAME}{number}" for number in count(1)) if name not in used)
    return rewritten(program, lambda node: _node(node, names))


def _node(node: ast.Node, names: Iterator[str]) -> ast.Node:
    lifts: list[ast.Node] = []

    def value(operand: ast.Node) -> ast.Node:
        if not any(isinstance(inner, _READ) for inner in operand.walk()):
            return operand
        variable = ast.Variable(next(names), span=operand.span)
        lifts.append(ast.Lift(variable, operand, span=operand.span))
        return variable

    if isinstance(node, ast.Comparison):
        node = replace(node, left=value(node.left), right=value(node.right))
    elif isinstance(node, ast.In):
        node = replace(node, operand=value(node.operand))
    if not lifts:
        return node
    return ast.AggSum((), ast.Product((*lifts, node), span=node.span), span=node.span)
