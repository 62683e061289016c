"""Owns the place of a batch in products as generated C++ needs it: first.

The code for a batch reads it once, from its beginning to its end, so none of its variables can be bound
before.  `M[][b] * AggSum([], (DELTA R)(a, b))` becomes `AggSum([b], (DELTA R)(a, b)) * M[][b]`.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.m3.syntax import ast
from dlog.m3.syntax.rewrite import rewritten


def with_batches_first(program: ast.Program) -> ast.Program:
    """REQUIRES: products commute.

    >>> from dlog.m3.syntax.parse import parse
    >>> from dlog.m3.syntax.print import print_program
    >>> text = '''CREATE STREAM R(a long, b long); DECLARE MAP M(long)[][b: long] := 0;
    ... ON BATCH UPDATE OF R { M(long)[][b] += M(long)[][b] * AggSum([], (DELTA R)(a, b)); }'''
    >>> print(print_program(with_batches_first(parse(text))).splitlines()[5])
      M(long)[][b] += AggSum([b], (DELTA R)(a, b)) * M(long)[][b];
    """
    return program if program.types else rewritten(program, _node)


def _node(node: ast.Node) -> ast.Node:
    if not isinstance(node, ast.Product):
        return node
    bound: set[str] = set()
    first: list[ast.Node] = []
    others: list[ast.Node] = []
    for factor in node.factors:
        moved = _binding(factor, bound)
        if moved is not None and not first:
            first.append(moved)
        else:
            others.append(factor)
        bound |= _outputs(factor)
    return replace(node, factors=(*first, *others)) if first else node


def _binding(factor: ast.Node, bound: set[str]) -> ast.Node | None:
    """A factor that begins with a batch, some variables of which are bound: so that it binds them itself.
    None if there is nothing to do, or if it needs other variables that are bound before."""
    keys, body = (factor.keys, factor.body) if isinstance(factor, ast.AggSum) else (None, factor)
    rows = body.factors[0] if isinstance(body, ast.Product) else body
    if not isinstance(rows, ast.DeltaRelation):
        return None
    own = {variable.name: variable for variable in rows.variables}
    read = {n.name for n in body.walk() if isinstance(n, ast.Variable)} & bound
    if not read or not read <= own.keys():
        return None
    if keys is None:
        return factor
    have = {key.name for key in keys}
    more = tuple(own[name] for name in own if name in read and name not in have)
    assert isinstance(factor, ast.AggSum)
    return replace(factor, keys=(*keys, *more))


def _outputs(node: ast.Node) -> set[str]:
    """The variables that a node has values for."""
    match node:
        case ast.AggSum():
            return {key.name for key in node.keys}
        case ast.MapAccess():
            return {key.name for key in node.keys}
        case ast.Relation() | ast.DeltaRelation():
            return {variable.name for variable in node.variables}
        case ast.Lift():
            return {node.variable.name}
        case ast.Product() | ast.Sum():
            return {name for child in node.children() for name in _outputs(child)}
        case ast.Exists() | ast.Domain():
            return _outputs(node.body)
    return set()
