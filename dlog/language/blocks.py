"""Owns the grouping of the statements of a component, or of a block, into one node.

Text -> statements is flat, so that each statement is read, reported and printed alone.  Braces that do not
fit stay as they are; `dlog.ir.expand.components` reports them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dlog.language import ast


def grouped(statements: Iterable[ast.Node]) -> list[ast.Node]:
    """`.comp X {`, statements and `}` as one `Component`, nested ones inside; the same for blocks.
    O(statements)."""
    open_: list[list[ast.Node]] = [[]]
    for statement in statements:
        if isinstance(statement, ast.ComponentStart | ast.BlockStart):
            open_.append([statement])
        elif isinstance(statement, ast.ComponentEnd) and len(open_) > 1:
            start, *inside = open_.pop()
            span = start.span and start.span.to(statement.span)
            open_[-1].append(_group(start, tuple(inside), span))
        else:
            open_[-1].append(statement)
    return [statement for level in open_ for statement in level]


def _group(start: ast.Node, inside: tuple[ast.Node, ...], span: Any) -> ast.Node:
    if isinstance(start, ast.BlockStart):
        return ast.Block(start, inside, span=span)
    assert isinstance(start, ast.ComponentStart)
    return ast.Component(start, inside, span=span)
