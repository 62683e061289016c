"""Owns the widths of types: `int[32]` is an `int` with a constraint on its range.

    # p(x) -> int[32](x).      becomes
    # p(x) -> int(x), x >= -2147483648, x <= 2147483647.

64 is the width that types have; `float[32]` is a `float`, since a narrower one would only lose digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dlog.errors import Diagnostics
from dlog.language import ast

_BITS = {"int": (8, 16, 32, 64), "unsigned": (8, 16, 32, 64), "float": (32, 64)}


def with_ranges(program: ast.Program, diagnostics: Diagnostics) -> ast.Program:
    """O(statements)."""
    if not any(_has_width(s) for s in program.statements):
        return program
    statements = [part for s in program.statements for part in _parts(s, diagnostics)]
    return ast.Program(tuple(statements), span=program.span)


def _has_width(statement: ast.Node) -> bool:
    return isinstance(statement, ast.Declaration) and any(map(_width, _parameters(statement)))


def _parameters(node: ast.Declaration) -> tuple[ast.Parameter, ...]:
    return (*node.keys, *((node.value,) if node.value is not None else ()))


def _width(parameter: ast.Parameter) -> bool:
    type = parameter.type
    return type is not None and type.name in _BITS and bool(type.params)


def _parts(statement: ast.Node, diagnostics: Diagnostics) -> Iterator[ast.Node]:
    if not isinstance(statement, ast.Declaration) or not _has_width(statement):
        yield statement
        return
    ranges: list[ast.Node] = []
    names = [parameter.name for parameter in _parameters(statement)]
    for parameter in _parameters(statement):
        if _width(parameter) and _is_known(parameter, diagnostics):
            ranges += _range(parameter)
    keys = tuple(map(_plain, statement.keys))
    yield replace(statement, keys=keys, value=statement.value and _plain(statement.value))
    if ranges and len(set(names)) == len(names):
        variables = tuple(ast.Variable(name, span=statement.span) for name in names)
        right = ranges[0] if len(ranges) == 1 else ast.Conjunction(tuple(ranges), span=statement.span)
        yield ast.Constraint(_atom(statement, variables), right, span=statement.span)


def _is_known(parameter: ast.Parameter, diagnostics: Diagnostics) -> bool:
    assert parameter.type is not None
    name, sizes = parameter.type.name, parameter.type.params
    known = _BITS[name]
    if len(sizes) == 1 and sizes[0] in known:
        return True
    shown = f"{name}[{', '.join(map(str, sizes))}]"
    widths = ", ".join(f"{name}[{bits}]" for bits in known)
    diagnostics.error(f"there is no type {shown}", parameter.type.span, f"the widths are {widths}")
    return False


def _range(parameter: ast.Parameter) -> Iterator[ast.Node]:
    assert parameter.type is not None
    name, (bits,), span = parameter.type.name, parameter.type.params, parameter.type.span
    variable = ast.Variable(parameter.name, span=span)
    if name == "float" or bits == 64:
        return
    least, greatest = (-(1 << bits - 1), (1 << bits - 1) - 1) if name == "int" else (0, (1 << bits) - 1)
    if name == "int":
        yield ast.Comparison(">=", variable, ast.Constant("int", least, span=span), span=span)
    yield ast.Comparison("<=", variable, ast.Constant(name, greatest, span=span), span=span)


def _plain(parameter: ast.Parameter) -> ast.Parameter:
    if not _width(parameter):
        return parameter
    assert parameter.type is not None
    return replace(parameter, type=replace(parameter.type, params=()))


def _atom(node: ast.Declaration, variables: tuple[ast.Variable, ...]) -> ast.Node:
    if node.value is None:
        return ast.Call(node.name, variables, span=node.span)
    function = ast.Application(node.name, variables[:-1], span=node.span)
    return ast.Comparison("=", function, variables[-1], span=node.span)
