"""Owns `left -> right.` with types that the program declares on the right, as in `f[x] = l -> List(l).`

They declare types as built-in ones do, unless a predicate has the same name: then it is a condition.
"""

from __future__ import annotations

from collections.abc import Iterator

from dlog.errors import Diagnostics
from dlog.language import ast
from dlog.language.declare import declaration_and_constraint


def with_declared_types(program: ast.Program, diagnostics: Diagnostics) -> ast.Program:
    """O(statements)."""
    types = {s.name for s in program.statements if isinstance(s, ast.TypeDeclaration)}
    if not types:
        return program
    types -= {name for statement in program.statements for name in _predicates(statement)}
    statements: list[ast.Node] = []
    for statement in program.statements:
        if isinstance(statement, ast.Constraint) and any(_calls(statement.right, types)):
            statements += declaration_and_constraint(
                statement.left, statement.right, statement.span, diagnostics, types
            )
        else:
            statements.append(statement)
    return ast.Program(tuple(statements), span=program.span)


def _calls(right: ast.Node, types: set[str]) -> Iterator[ast.Node]:
    items = right.items if isinstance(right, ast.Conjunction) else (right,)
    return (item for item in items if isinstance(item, ast.Call) and item.name in types)


def _predicates(statement: ast.Node) -> Iterator[str]:
    """What a statement declares, derives or states."""
    if isinstance(statement, ast.Declaration):
        yield statement.name
    elif isinstance(statement, ast.Facts):
        yield statement.predicate
    elif isinstance(statement, ast.Rule):
        for head in statement.heads:
            node = head.left if isinstance(head, ast.Comparison) else head
            if isinstance(node, ast.Call | ast.Application):
                yield node.name
