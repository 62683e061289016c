"""Owns which predicates levels of maps can maintain in transactions, and their programs.  Knows no costs."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.errors import DlogError, UnsupportedError
from dlog.ir.rules import Program
from dlog.m3.syntax import ast
from dlog.m3.types.typing import INTEGERS
from dlog.views.levels.program import Levels, levels
from dlog.views.nested import NestedQuery
from dlog.views.rules.nested import nested_query

WHOLE = "long"
_ORDERS = ("<", "<=", ">", ">=")
_NOT_WHOLE = "it computes with values that are not integers, or compares their order"


def level_program(program: Program, predicate: str) -> Levels:
    """The maps of one predicate, with the answers of any other strategy.  What its rules read are relations,
    except auxiliary predicates, which are replaced by what they are derived from.

    Raises UnsupportedError, which says why there are none.
    """
    streams = [name for name in program.stratum_of if not program.predicates[name].auxiliary]
    try:
        query = nested_query(program, predicate, streams=streams)
        _check_values(query)
        found = levels(query)
    except DlogError as error:
        raise UnsupportedError(error.message) from None
    types = {m.type.name for m in found.program.m3.maps if m.type is not None}
    if not types <= {*INTEGERS}:
        raise UnsupportedError("sums of floats are rounded, and depend on the order in which they are added")
    return found


def _check_values(query: NestedQuery) -> None:
    """Only whole numbers are computed with, or compared by their order: the engine has its own way to do this
    with other values.
    """
    nodes = [node for result in query.results.values() for node in result.walk()]
    types = _types(query, nodes)
    if not all(_is_exact(node, types) for node in nodes):
        raise UnsupportedError(_NOT_WHOLE)


def _types(query: NestedQuery, nodes: list[ast.Node]) -> dict[str, str]:
    """Of variables that do not hold whole numbers."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Relation):
            columns = query.source(node.name).columns
            found.update({v.name: c.type.name for v, c in zip(node.variables, columns, strict=True)})
    lifts = [node for node in nodes if isinstance(node, ast.Lift)]
    for _ in lifts:  # at most so many renamings after one another
        found.update({n.variable.name: _type(n.body, found) for n in lifts})
    return {name: type for name, type in found.items() if type != WHOLE}


def _type(node: ast.Node, types: Mapping[str, str]) -> str:
    """Of a variable or constant; whatever is computed is a whole number, or refused."""
    if isinstance(node, ast.Variable):
        return types.get(node.name, WHOLE)
    is_other = isinstance(node, ast.Constant) and node.type not in INTEGERS
    return node.type if is_other else WHOLE  # type: ignore[attr-defined]


def _is_exact(node: ast.Node, types: Mapping[str, str]) -> bool:
    if isinstance(node, ast.Call):
        return False
    if isinstance(node, ast.Comparison) and node.op not in _ORDERS:
        return all(_type(side, types) != "double" for side in node.children())
    if isinstance(node, ast.Comparison | ast.Product | ast.Sum):
        return all(_type(child, types) == WHOLE for child in node.children())
    return True
