"""Owns predicate -> declaration: the statement that gives another program the same predicate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dlog.ir.expand.blocks import inside_blocks
from dlog.ir.rules import Column, Predicate, Program
from dlog.language import ast
from dlog.values import DECIMAL, Type


def declaration(predicate: Predicate) -> ast.Declaration:
    """With all its types and qualifiers."""
    parameters = [_parameter(c, predicate) for c in predicate.columns]
    value = parameters.pop() if predicate.is_functional else None
    qualifiers = tuple(sorted(predicate.qualifiers))
    span: Any = predicate.span
    return ast.Declaration(predicate.name, tuple(parameters), value, qualifiers, span=span)


def types_of(program: Program) -> list[ast.Node]:
    """The types that a program declares.  O(its statements)."""
    return types_in(program.source.statements)


def functors_of(program: Program) -> list[ast.Node]:
    """The functors that a program declares."""
    return [s for s in inside_blocks(program.source.statements) if isinstance(s, ast.FunctorDeclaration)]


def types_in(statements: Iterable[ast.Node]) -> list[ast.Node]:
    return [s for s in inside_blocks(statements) if isinstance(s, ast.TypeDeclaration)]


def _parameter(column: Column, predicate: Predicate) -> ast.Parameter:
    span: Any = predicate.span
    return ast.Parameter(column.name, _reference(column.type, span), span=span)


def _reference(type: Type, span: Any) -> ast.TypeRef:
    sized = type.is_decimal and type != DECIMAL
    return ast.TypeRef(type.name, (type.precision, type.scale) if sized else (), span=span)
