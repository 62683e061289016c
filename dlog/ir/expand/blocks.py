"""Owns blocks: ``block(`name) { .. }`` stands for its statements.

Facts in a block belong to it, as its rules do: they are rules without a body, which go with the block.  So a
transaction cannot erase them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dlog.errors import Diagnostics, place
from dlog.language import ast

_ALLOWED = (
    ast.Rule,
    ast.SequenceRule,
    ast.DeltaRule,
    ast.Constraint,
    ast.Declaration,
    ast.TypeDeclaration,
    ast.Entity,
    ast.Property,
    ast.Facts,
    ast.Plan,
)
_INSTEAD = {
    ast.Query: "write it outside of the block",
    ast.DeltaStatement: "insert facts by a transaction; plain facts in a block come and go with it",
    ast.Block: "write one block after the other",
}


def without_blocks(program: ast.Program, diagnostics: Diagnostics) -> ast.Program:
    """O(statements of blocks), if there are any."""
    if not any(isinstance(s, ast.Block | ast.BlockStart) for s in program.statements):
        return program
    blocks = [s for s in program.statements if isinstance(s, ast.Block)]
    _check_names(blocks, diagnostics)
    statements = [inner for s in program.statements for inner in _statements(s, diagnostics)]
    return ast.Program(tuple(statements), span=program.span)


def inside_blocks(statements: Iterable[ast.Node]) -> Iterator[ast.Node]:
    """Statements, those of blocks in their place."""
    for statement in statements:
        if isinstance(statement, ast.Block):
            yield from statement.statements
        else:
            yield statement


def _check_names(blocks: list[ast.Block], diagnostics: Diagnostics) -> None:
    first: dict[str, ast.Block] = {}
    for block in blocks:
        if first.setdefault(block.name, block) is not block:
            other = first[block.name]
            message = f"there is already a block {block.name}"
            where = f"the first is at {place(other.span, block.span)}" if other.span else None
            diagnostics.error(message, block.start.span, where or "remove it first")


def _statements(statement: ast.Node, diagnostics: Diagnostics) -> Iterator[ast.Node]:
    if isinstance(statement, ast.BlockStart):
        diagnostics.error(f"block {statement.name} is not closed", statement.span, "close it with }")
        return
    if not isinstance(statement, ast.Block):
        yield statement
        return
    for inner in statement.statements:
        if isinstance(inner, ast.Facts):
            yield from _as_rules(inner)
        elif isinstance(inner, _ALLOWED):
            yield inner
        else:
            help = _INSTEAD.get(type(inner), "a block has declarations, rules, constraints and facts")
            diagnostics.error("this cannot be in a block", inner.span, help)


def _as_rules(facts: ast.Facts) -> Iterator[ast.Node]:
    span: Any = facts.span
    for row in facts.rows:
        args = tuple(ast.Constant(kind, value, span=span) for kind, value in row)
        if facts.functional:
            function = ast.Application(facts.predicate, args[:-1], span=span)
            yield ast.Rule((ast.Comparison("=", function, args[-1], span=span),), span=span)
        else:
            yield ast.Rule((ast.Call(facts.predicate, args, span=span),), span=span)
