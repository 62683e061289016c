"""Owns functions under each consumer's own names.

A function that a consumer lacks is written with what it has, or refused with the consumer's name and the
position.  Functions of user-defined types, and those in the C++ of a program's types, are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dlog.errors import Diagnostics
from dlog.m3.syntax import ast
from dlog.m3.syntax.rewrite import rewritten
from dlog.m3.types.typing import BUILTIN

_EVERYWHERE = frozenset((
    "/", "date_part", "regexp_match", "substring", "pow", "radians", "vec_length", "vec_dot",
    "dihedral_angle",
))  # fmt: skip
_IN_CPP = _EVERYWHERE | frozenset(("cos", "sin", "degrees", "vector_angle"))
FUNCTIONS = {
    "a5": _EVERYWHERE | frozenset(("listmax", "listmin", "cast_int", "cast_float")),
    "dbtoaster": _IN_CPP,
    "fivm": _IN_CPP | frozenset(("sqrt",)),
}
_PARTS = {"year_part": "year", "month_part": "month", "day_part": "day"}
_EXTREMES = {"listmax": ">=", "max": ">=", "listmin": "<=", "min": "<="}
_ALL = 2**30  # characters: the rest of any text
_DEGREES = 57.29577951308232
_INT, _DOUBLE = "int", "double"
_MINUS, _ONE = ast.Constant(_INT, -1), ast.Constant(_DOUBLE, 1.0)


def with_functions(program: ast.Program, consumer: str) -> ast.Program:
    """The program with functions that the consumer has.  Raises an error for each that it lacks."""
    diagnostics, reported = Diagnostics(), set[ast.Node]()

    def change(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.Call) or node.type.name not in BUILTIN:
            return node
        found = _written(node, consumer)
        if found is None and not (program.types and node.function not in _REWRITTEN):
            if node not in reported:
                reported.add(node)
                help = _help(node, consumer)
                diagnostics.error(f"{consumer} has no function {node.function}", node.span, help)
            return node
        return found or node

    changed = rewritten(program, change)
    diagnostics.raise_if_any()
    return changed


def _written(node: ast.Call, consumer: str) -> ast.Node | None:
    """With what the consumer has; None if it cannot."""
    has = FUNCTIONS[consumer]
    rewrite = _REWRITTEN.get(node.function)
    if rewrite is not None and (node.function not in has or node.function in ("/", "substring")):
        return rewrite(node, has)
    return node if node.function in has else None


def _help(node: ast.Call, consumer: str) -> str | None:
    if node.function == "substring":
        return "write the number of characters, too"
    others = [other for other, has in FUNCTIONS.items() if other != consumer and node.function in has]
    return f"{' and '.join(others)} {'has' if len(others) == 1 else 'have'} it" if others else None


# How a function is written with others.  `has`: those of the consumer.

_Has = frozenset[str]


def _date_part(node: ast.Call, has: _Has) -> ast.Node:
    part = ast.Constant("string", _PARTS[node.function])
    return replace(node, function="date_part", arguments=(part, *node.arguments))


def _abs(node: ast.Call, has: _Has) -> ast.Node:
    """x * ({x >= 0} - {x < 0})"""
    (x,) = node.arguments
    negative = ast.product([_MINUS, x])
    if "listmax" in has:
        return replace(node, function="listmax", arguments=(x, negative))
    zero = ast.Constant(_INT, 0)
    sign = ast.total([ast.Comparison(">=", x, zero), ast.product([_MINUS, ast.Comparison("<", x, zero)])])
    return ast.product([x, sign])


def _extreme(node: ast.Call, has: _Has) -> ast.Node:
    """Of two: x * {x >= y} + y * {y > x}"""
    op = _EXTREMES[node.function]
    own = "listmax" if op == ">=" else "listmin"
    if own in has:
        return replace(node, function=own)
    first, *others = node.arguments
    for other in others:
        chosen = ast.product([first, ast.Comparison(op, first, other)])
        first = ast.total([chosen, ast.product([other, ast.Comparison(op[0], other, first)])])
    return first


def _quotient(node: ast.Call, has: _Has) -> ast.Node:
    """A product with the inverse."""
    *dividend, divisor = node.arguments
    return ast.product([*dividend, replace(node, function="/", arguments=(divisor,))])


def _sqrt(node: ast.Call, has: _Has) -> ast.Node:
    half = ast.Constant(_DOUBLE, 0.5)
    return replace(node, function="pow", arguments=(*node.arguments, half))


def _degrees(node: ast.Call, has: _Has) -> ast.Node:
    return ast.product([*node.arguments, ast.Constant(_DOUBLE, _DEGREES)])


def _cast_float(node: ast.Call, has: _Has) -> ast.Node:
    return ast.product([*node.arguments, _ONE])


def _substring(node: ast.Call, has: _Has) -> ast.Node | None:
    if len(node.arguments) == 3:
        return node
    if "listmax" in has:  # a5 fails beyond the end of a text
        return None
    return replace(node, arguments=(*node.arguments, ast.Constant(_INT, _ALL)))


_REWRITTEN: dict[str, Callable[[ast.Call, _Has], ast.Node | None]] = {
    **dict.fromkeys(_PARTS, _date_part),
    **dict.fromkeys(_EXTREMES, _extreme),
    "abs": _abs, "/": _quotient, "div": _quotient, "sqrt": _sqrt, "degrees": _degrees,
    "cast_float": _cast_float, "substring": _substring,
}  # fmt: skip
