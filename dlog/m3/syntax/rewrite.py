"""Owns the rewriting of syntax trees from the leaves up.  Knows no construct."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

from dlog.m3.syntax import ast

N = TypeVar("N", bound=ast.Node)


def rewritten(node: N, change: Callable[[ast.Node], ast.Node]) -> N:
    """The tree with every node replaced by what `change` makes of it, its parts first.  O(nodes).

    >>> tree = ast.Sum((ast.Variable("a"), ast.Product((ast.Variable("a"), ast.Variable("b")))))
    >>> found = rewritten(tree, lambda n: ast.Variable("c") if n == ast.Variable("a") else n)
    >>> [n.name for n in found.walk() if isinstance(n, ast.Variable)]
    ['c', 'c', 'b']
    """
    changes = {}
    for f in fields(node):
        value = getattr(node, f.name)
        if f.name != "span" and isinstance(value, ast.Node | tuple):
            changes[f.name] = _part(value, change)
    return change(replace(node, **changes))  # type: ignore[return-value]


def flat(node: ast.Node) -> ast.Node:
    """A product of products, or a sum of sums, as one; for `rewritten`."""
    if isinstance(node, ast.Product):
        return replace(ast.product(node.factors), span=node.span)
    return replace(ast.total(node.terms), span=node.span) if isinstance(node, ast.Sum) else node


def _part(value: Any, change: Callable[[ast.Node], ast.Node]) -> Any:
    if isinstance(value, tuple):
        return tuple(_part(item, change) for item in value)
    return rewritten(value, change) if isinstance(value, ast.Node) else value
