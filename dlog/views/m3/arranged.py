"""Owns the order of a product in M3 whose ring does not commute.  Knows no views.

An M3 product is read from left to right: what binds a variable stands before what needs it.  Elements keep
their order, and numbers may stand anywhere.  So first come the numbers that bind variables, then, where a
later element binds what an earlier one needs, `EXISTS` of the later one, then all other numbers, then the
elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlog.m3.syntax import ast
from dlog.views.tree.written_order import element_type

_BINDERS = (ast.MapAccess, ast.Relation, ast.DeltaRelation, ast.AggSum, ast.Exists)


def arranged(pieces: Sequence[Sequence[ast.Node]], bound: Sequence[str] = ()) -> list[ast.Node]:
    """The nodes of pieces, whose elements are in their order; `bound` are known already.

    >>> t = ast.TypeRef("T")
    >>> f = ast.Call("f", t, (ast.Variable("c"),))
    >>> v = ast.MapAccess("V", t, (), (ast.Variable("c"),))
    >>> [type(node).__name__ for node in arranged([[f], [v]])]
    ['Exists', 'Call', 'MapAccess']
    """
    nodes = [node for piece in pieces for node in piece]
    elements = [node for node in nodes if element_type(node) is not None]
    numbers = [node for node in nodes if element_type(node) is None]
    binders = [node for node in numbers if isinstance(node, _BINDERS)]
    values = [node for node in numbers if not isinstance(node, _BINDERS)]
    known = {*bound, *(name for node in binders for name in _binds(node))}
    needed = {
        name for node in (*values, *elements) if not isinstance(node, _BINDERS) for name in _names(node)
    }
    for node in elements:
        if _binds(node) & (needed - known):
            binders.append(ast.Exists(node))
            known |= _binds(node)
    return [*binders, *values, *elements]


def _binds(node: ast.Node) -> set[str]:
    match node:
        case ast.MapAccess() | ast.AggSum():
            return {key.name for key in node.keys}
        case ast.Relation() | ast.DeltaRelation():
            return {variable.name for variable in node.variables}
        case ast.Exists():
            return _binds(node.body)
    return set()


def _names(node: ast.Node) -> set[str]:
    return {inner.name for inner in node.walk() if isinstance(inner, ast.Variable)}
