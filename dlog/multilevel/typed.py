"""Owns types of definitions: of their values and of the variables they bind.  Asks the checker of M3."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.errors import Diagnostics
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.m3.types.expressions import Binding, Context, Expressions, Result
from dlog.m3.types.typing import FLOATS, INTEGERS, Types
from dlog.multilevel.binding import binding, reads_relations
from dlog.multilevel.decompose import expand
from dlog.multilevel.names import m3_form
from dlog.multilevel.values import times

LONG = ast.TypeRef("long")
Columns = Mapping[str, ast.TypeRef]


def checked(definition: Node, sources: Mapping[str, ast.Source], inputs: Columns | None = None) -> Result:
    """A definition with all its types.  Raises the errors of M3's checker."""
    known = {name: Binding((inputs or {}).get(name)) for name in binding(definition).inputs}
    diagnostics = Diagnostics()
    types = Types(ast.DBTOASTER)
    expressions = Expressions(ast.DBTOASTER, types, {}, dict(sources), diagnostics)
    found = expressions.visit(m3_form(definition), known, Context(definition=True))
    diagnostics.raise_if_any()
    return found


def value_type(definition: Node, sources: Mapping[str, ast.Source]) -> ast.TypeRef:
    """Of a map with this definition: whole numbers are longs, since rows are counted in longs."""
    return _wide(checked(definition, sources).type)


def column_types(definition: Node, sources: Mapping[str, ast.Source]) -> dict[str, ast.TypeRef]:
    """Of the variables that a definition binds.  All whole numbers are longs: a lift may bind one to a count
    where a column would bind it to an int.
    """
    found = checked(definition, sources)
    given = {name: _compared_with(name, found.node) for name in binding(definition).inputs}
    return {**given, **{name: _wide(bound.type) for name, bound in found.outputs.items()}}


def _compared_with(name: str, definition: Node) -> ast.TypeRef:
    """The type of a variable that is only compared."""
    for node in definition.walk():
        if isinstance(node, ast.Comparison):
            sides = (node.left, node.right)
            others = [v.type for side in sides for v in side.walk() if isinstance(v, ast.Variable)]
            if any(isinstance(s, ast.Variable) and s.name == name for s in sides) and any(others):
                return _wide(next(t for t in others if t is not None))
    return LONG


def _wide(type_: ast.TypeRef | None) -> ast.TypeRef:
    return LONG if type_ is None or type_.name in INTEGERS else type_


def sums_floats(definition: Node, sources: Mapping[str, ast.Source]) -> bool:
    """Whether values of rows, apart from constant factors, are added as floats."""
    for monomial in expand(definition):
        if any(map(reads_relations, monomial)):
            rest = [f for f in monomial if not isinstance(f, ast.Constant)]
            found = checked(times(rest), sources).type
            if found is None or found.name in FLOATS:
                return True
    return False
