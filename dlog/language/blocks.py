"""Owns the grouping of a component's statements into one node, after the statements of a text are parsed.

Text -> statements is flat, so that each statement is read, reported and printed alone.  Braces that do not
fit stay as they are; `dlog.ir.expand.components` reports them.
"""

from __future__ import annotations

from collections.abc import Iterable

from dlog.language import ast


def grouped(statements: Iterable[ast.Node]) -> list[ast.Node]:
    """`.comp X {`, statements and `}` as one `Component`, nested ones inside.  O(statements)."""
    open_: list[list[ast.Node]] = [[]]
    for statement in statements:
        if isinstance(statement, ast.ComponentStart):
            open_.append([statement])
        elif isinstance(statement, ast.ComponentEnd) and len(open_) > 1:
            start, *inside = open_.pop()
            assert isinstance(start, ast.ComponentStart)
            span = start.span and start.span.to(statement.span)
            open_[-1].append(ast.Component(start, tuple(inside), span=span))
        else:
            open_[-1].append(statement)
    return [statement for level in open_ for statement in level]
