"""Owns integers as generated C++ needs them: of 64 bits, so that products do not overflow 32.

Generated code computes a product from the right, each partial product in the larger type of its two
factors. So every factor and term is a long, but 0, 1 and -1, whose products and short sums fit any type:
columns, keys and functions are declared as longs, constants are written as longs, and a part of a date,
which is an unsigned int in generated code, is multiplied by a long on its right.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.syntax.rewrite import rewritten
from dlog.m3.types.typing import BUILTIN, INTEGERS

LONG = "long"
_UNSIGNED = "date_part"  # the function whose result is an unsigned int there


def with_long_integers(program: ast.Program) -> ast.Program:
    """
    >>> from dlog.m3.syntax.parse import parse
    >>> from dlog.m3.syntax.print import print_program
    >>> text = "CREATE STREAM R(x int); DECLARE QUERY Q := AggSum([], R(x) * x * 3);"
    >>> print(print_program(with_long_integers(parse(text))), end="")
    CREATE STREAM R(x long);
    <BLANKLINE>
    DECLARE QUERY Q := AggSum([], R(x) * x * 3L);
    """
    return rewritten(program, _node)


def _node(node: ast.Node) -> ast.Node:
    if isinstance(node, ast.Column):
        return replace(node, type=_long(node.type))
    if isinstance(node, ast.MapDeclaration | ast.MapAccess | ast.Call):
        return replace(node, type=_long(node.type)) if node.type is not None else node
    if isinstance(node, ast.Product):
        return ast.product(part for factor in node.factors for part in _value(factor))
    if isinstance(node, ast.Sum):
        return ast.total(ast.product(_value(term)) for term in node.terms)
    return node


def _long(type_: TypeRef) -> TypeRef:
    return replace(type_, name=LONG) if type_.name in INTEGERS and type_.name in BUILTIN else type_


def _value(node: ast.Node) -> list[ast.Node]:
    """The factors of a value that is added or multiplied; a long has no sign."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) > 1:
        size = replace(node, type=LONG, value=abs(node.value))
        return [size] if node.value > 0 else [ast.Constant("int", -1), size]
    if isinstance(node, ast.Call) and node.function == _UNSIGNED:
        return [node, ast.Constant(LONG, 1)]
    return [node]
