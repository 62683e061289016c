"""Owns which constructs and names each dialect has.  Works on syntax trees, not on text.

The parser checks after reading, the printer before writing, so both apply the same rules to a program.
"""

from __future__ import annotations

import re

from dlog.errors import Diagnostics
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, DBTOASTER
from dlog.m3.syntax.dialects import RANGES, TYPES, is_reserved

VALUES_ONLY = (ast.MapAccess, ast.Relation, ast.DeltaRelation, ast.AggSum, ast.Lift, ast.Comparison, ast.In,
               ast.Exists, ast.Domain)  # fmt: skip
_NAME = {True: r"[A-Za-z_][A-Za-z0-9_-]*", False: r"[A-Za-z_][A-Za-z0-9_]*"}
_INTEGERS = ("long", "short", "byte")


def check_dialect_support(program: ast.Program, diagnostics: Diagnostics) -> None:
    """Reports each construct, type or name that the program's dialect does not have."""
    rules = _A5_RULES if program.dialect == A5 else _DBTOASTER_RULES
    names = _Names(program.dialect, diagnostics)
    # A map that is written to may have an initial value; one that is read may not, in dbtoaster.
    targets = {id(node.target) for node in program.walk() if isinstance(node, ast.Assign)}
    for node in program.walk():
        names.check(node)
        if isinstance(node, ast.MapAccess) and id(node) in targets:
            continue
        for kind, rule in rules:
            if isinstance(node, kind) and (found := rule(node)) is not None:
                where, message, help = found
                diagnostics.error(message, where.span, help)


_Found = tuple[ast.Node, str, str | None] | None


def _constant(node: ast.Constant, dialect: str, types: tuple[str, ...]) -> _Found:
    if node.type not in types:
        return node, f"{dialect} has no constants of type {node.type}", None
    if not isinstance(node.value, int):
        return None
    low, high = RANGES[dialect].get(node.type, (node.value, node.value))
    if not low <= node.value <= high:
        wider = node.type == "int" and dialect == DBTOASTER and -(2**63) <= node.value < 2**63
        message = f"{node.value} does not fit {node.type} in {dialect}, which ends at {high}"
        return node, message, f"write {node.value}L" if wider else None
    return None


# a5


def _type_definition(node: ast.TypeDefinition) -> _Found:
    return node, "a5 has no CREATE TYPE", "use the dialect dbtoaster"


def _a5_type(node: ast.TypeRef) -> _Found:
    if node.params:
        return node, "a5 has no user-defined types", "use the dialect dbtoaster"
    if node.name in TYPES[A5]:
        return None
    help = "write int" if node.name in _INTEGERS else "it has int, float, string and date"
    return node, f"a5 has no type {node.name}", help


def _a5_map(node: ast.MapDeclaration) -> _Found:
    if node.definition is not None:
        return None
    return node, f"a5 needs a definition of map {node.name}", "write `:= 0` before the `;`"


def _a5_trigger(node: ast.Trigger) -> _Found:
    if node.event != ast.BATCH:
        return None
    return node, "a5 has no batch triggers", "write ON + and ON - triggers"


def _a5_if(node: ast.If) -> _Found:
    return node, "a5 has no `if`", "multiply by a condition in braces"


def _a5_delta(node: ast.DeltaRelation) -> _Found:
    return node, "a5 has no (DELTA R)", "use ON + and ON - triggers"


def _a5_comparison(node: ast.Comparison) -> _Found:
    return _value(node.left, "a comparison") or _value(node.right, "a comparison")


def _a5_in(node: ast.In) -> _Found:
    return _value(node.operand, "IN")


def _a5_call(node: ast.Call) -> _Found:
    if node.parameters:
        return node, "a5 has no functions with parameters", None
    return next((found for a in node.arguments if (found := _value(a, "a function"))), None)


def _value(node: ast.Node, what: str) -> _Found:
    """In a5 values are variables, constants, functions, sums and products; an aggregate is lifted first."""
    for inner in node.walk():
        if isinstance(inner, VALUES_ONLY):
            help = "bind it first: (x:float ^= ...) * {x > 1}"
            return inner, f"a5 cannot read maps, relations or conditions within {what}", help
    return None


def _a5_constant(node: ast.Constant) -> _Found:
    return _constant(node, A5, ("int", "float", "string", "date"))


# dbtoaster


def _dbtoaster_constant(node: ast.Constant) -> _Found:
    return _constant(node, DBTOASTER, ("int", "long", "float", "double", "string", "date"))


def _inputs(node: ast.MapDeclaration | ast.MapAccess) -> _Found:
    if not node.inputs:
        return None
    help = "leave the first brackets empty: M[][k]"
    return node.inputs[0], "dbtoaster has no input variables", help


def _initial_of_read(node: ast.MapAccess) -> _Found:
    if node.initial is None:
        return None
    help = "only the target of a statement has an initial value"
    return node.initial, "dbtoaster does not read an initial value here", help


_A5_RULES: tuple = (
    (ast.TypeDefinition, _type_definition),
    (ast.TypeRef, _a5_type),
    (ast.MapDeclaration, _a5_map),
    (ast.Trigger, _a5_trigger),
    (ast.If, _a5_if),
    (ast.DeltaRelation, _a5_delta),
    (ast.Comparison, _a5_comparison),
    (ast.In, _a5_in),
    (ast.Call, _a5_call),
    (ast.Constant, _a5_constant),
)
_DBTOASTER_RULES: tuple = (
    (ast.MapDeclaration, _inputs),
    (ast.MapAccess, _inputs),
    (ast.MapAccess, _initial_of_read),
    (ast.Constant, _dbtoaster_constant),
)


# Names


class _Names:
    """Checks that each name is not reserved and has the case the dialect requires."""

    def __init__(self, dialect: str, diagnostics: Diagnostics):
        self.dialect, self.diagnostics = dialect, diagnostics

    def check(self, node: ast.Node) -> None:
        if isinstance(node, (ast.Variable, ast.Column)):
            self._variable(node.name, node)
        elif isinstance(node, ast.Source | ast.Relation | ast.DeltaRelation):
            self._relation(node.name, node)
        elif isinstance(node, ast.Trigger) and node.relation is not None:
            self._relation(node.relation, node)
        elif isinstance(node, ast.MapDeclaration | ast.MapAccess | ast.Query | ast.TypeDefinition):
            self._name(node.name, node)

    def _variable(self, name: str, node: ast.Node) -> None:
        if self.dialect != A5 and name != name.lower():
            self.diagnostics.error(f"variable {name} is not in lower case, as dbtoaster reads it", node.span)
        self._name(name, node)

    def _relation(self, name: str, node: ast.Node) -> None:
        if self.dialect == A5 and name != name.upper():
            help = f"write {name.upper()}"
            self.diagnostics.error("relation names are in upper case in a5", node.span, help)
        self._name(name, node)

    def _name(self, name: str, node: ast.Node) -> None:
        if is_reserved(name, self.dialect):
            message = f"{name.upper()} is reserved in {self.dialect}"
            self.diagnostics.error(message, node.span, "choose another name")
        elif not re.fullmatch(_NAME[self.dialect == A5], name):
            self.diagnostics.error(f"{name!r} is not a name in {self.dialect}", node.span)
