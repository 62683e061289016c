"""Owns the analysis of an expression before code is written: what it binds and reads, and its type.

REQUIRES everywhere: a program that `typecheck.check` returned, so that every variable has its type.
"""

from __future__ import annotations

from collections.abc import Iterator

from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.syntax.dialects import CONDITION, MULTIPLICITY
from dlog.m3.types.typing import Types

Names = frozenset[str]


def outputs(node: ast.Node, bound: Names) -> dict[str, TypeRef]:
    """The variables that an expression binds, in order, with their types."""
    match node:
        case ast.Product():
            found: dict[str, TypeRef] = {}
            for factor in node.factors:
                found |= outputs(factor, bound | found.keys())
            return found
        case ast.Sum():
            return outputs(node.terms[0], bound)
        case ast.AggSum():
            inner = outputs(node.body, bound)
            return {key.name: inner[key.name] for key in node.keys if key.name in inner}
        case ast.MapAccess():
            return _variables(node.keys, bound)
        case ast.Relation() | ast.DeltaRelation():
            return _variables(node.variables, bound)
        case ast.Lift():
            return _variables((node.variable,), bound)
        case ast.Exists() | ast.Domain():
            return outputs(node.body, bound)
    return {}


def _variables(variables: tuple[ast.Variable, ...], bound: Names) -> dict[str, TypeRef]:
    found: dict[str, TypeRef] = {}
    for variable in variables:
        if variable.name not in bound and variable.name not in found:
            assert variable.type is not None
            found[variable.name] = variable.type
    return found


def mentioned(node: ast.Node) -> Names:
    return frozenset(n.name for n in node.walk() if isinstance(n, ast.Variable))


def maps_read(node: ast.Node) -> Names:
    return frozenset(n.name for n in node.walk() if isinstance(n, ast.MapAccess))


def maps_read_by_triggers(program: ast.Program) -> Names:
    """Also those that are replaced: all that a trigger uses for more than adding to it."""
    found: set[str] = set()
    for trigger in program.triggers:
        for node in trigger.walk():
            if isinstance(node, ast.Assign):
                found |= maps_read(node.expression)
                if node.op != "+=" or node.target.initial is not None:
                    found |= maps_read(node.target)
            elif isinstance(node, ast.If):
                found |= maps_read(node.condition)
    return frozenset(found)


def has_initial(node: ast.Node) -> bool:
    return any(isinstance(n, ast.MapAccess) and n.initial is not None for n in node.walk())


def expands(node: ast.Node, bound: Names) -> bool:
    """Whether rows may multiply: something is read whose variables are not all bound."""
    if isinstance(node, ast.Lift):
        return False
    return bool(outputs(node, bound)) and any(
        isinstance(n, ast.MapAccess | ast.Relation | ast.DeltaRelation) for n in node.walk()
    )


def assignments(statements: tuple[ast.Assign | ast.If, ...]) -> Iterator[ast.Assign]:
    for statement in statements:
        if isinstance(statement, ast.If):
            yield from assignments(statement.then)
            yield from assignments(statement.otherwise)
        else:
            yield statement


class Typing:
    """The types of expressions of one program."""

    def __init__(self, program: ast.Program):
        self.types = Types(program.dialect, program.types)
        self.multiplicity = TypeRef(MULTIPLICITY[program.dialect])
        self.condition = TypeRef(CONDITION[program.dialect])

    def of(self, node: ast.Node) -> TypeRef:
        match node:
            case ast.Constant():
                return TypeRef(node.type)
            case ast.Variable() | ast.MapAccess() | ast.Call():
                assert node.type is not None
                return node.type
            case ast.Product():
                return self._fold(self.types.product, node.factors)
            case ast.Sum():
                return self._fold(self.types.sum, node.terms)
            case ast.AggSum():
                return self.of(node.body)
            case ast.Relation() | ast.DeltaRelation():
                return self.multiplicity
        return self.condition

    def _fold(self, combine, nodes: tuple[ast.Node, ...]) -> TypeRef:
        type_ = self.of(nodes[0])
        for node in nodes[1:]:
            type_ = combine(type_, self.of(node))
        return type_
