"""Owns WHERE and ON: which equations make one variable of two columns, and the remaining conditions.

A condition of a query is a comparison or a membership, or, for OR, arithmetic on those.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

from sqlglot import expressions as exp

from dlog.errors import SourceError
from dlog.m3.syntax import ast
from dlog.views.conditions import divided, either
from dlog.views.query import variables_of
from dlog.views.sql.expressions import DATE, STRING, Expressions, Scalar
from dlog.views.sql.scope import is_mixed

OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_COMPARE = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The operands of AND."""
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    return operands(inner) if isinstance(inner, exp.And) else [node]


def operands(node: exp.Connector) -> list[exp.Expr]:
    """The operands of a chain of AND, or of OR, from left to right."""
    found: list[exp.Expr] = []
    waiting: list[exp.Expr] = [node]
    while waiting:
        part = waiting.pop()
        inner = part.unnest() if isinstance(part, exp.Paren) else part
        if type(inner) is type(node) and isinstance(inner, exp.Connector):
            waiting += [inner.right, inner.left]
        else:
            found.append(part)
    return found


class Conditions:
    """Reads conditions of one scope.  `other`, if it is set, reads those on queries, which hold or must not:
    None for any other condition.  `keeps_types`: no equation lets a whole number and a float be one variable.
    """

    keeps_types = False

    def __init__(self, expressions: Expressions):
        self.expressions, self.places = expressions, expressions.places
        self.other: Callable[[exp.Expr, bool], list[ast.Node] | None] = lambda node, holds: None
        expressions.condition = self.whole

    def unite(self, node: exp.Expr) -> bool:
        """Treat an equation of two columns as a join; False if the node is not one."""
        plain = node.unnest() if isinstance(node, exp.Paren) else node
        if not isinstance(plain, exp.EQ):
            return False
        left, right = plain.left.unnest(), plain.right.unnest()
        if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
            return False
        scope = self.expressions.scope
        if not (scope.owns(left) and scope.owns(right)):
            return False
        return scope.unite(scope.resolve(left), scope.resolve(right), plain)

    def conditions(self, node: exp.Expr) -> list[ast.Node]:
        """One conjunct as conditions that all hold; none if it always holds.  Raises if it never does."""
        found: list[ast.Node] = []
        for condition in self._read(node, True):
            if variables_of(condition):
                found.append(condition)
                continue
            if any(isinstance(n, ast.Call) for n in condition.walk()):
                raise self.places.outside("the condition has no column", node, "leave it out")
            if not _value(condition):
                message = "the condition never holds, so the result is always empty"
                raise SourceError(message, span=self.places.span(node))
        return found

    def whole(self, node: exp.Expr) -> ast.Node:
        """A condition as one scalar, 1 or 0."""
        found = self._read(node, True)
        return ast.product(found) if found else ast.Constant("int", 1)

    def _read(self, node: exp.Expr, holds: bool) -> list[ast.Node]:
        """Conditions whose conjunction means that the node holds, or that it does not."""
        other = self.other(node, holds)
        if other is not None:
            return other
        if isinstance(node, exp.Paren):
            return self._read(node.this, holds)
        if isinstance(node, exp.Not):
            return self._read(node.this, not holds)
        if isinstance(node, exp.Boolean):
            return [] if bool(node.this) == holds else [_never()]
        if isinstance(node, exp.And | exp.Or):
            return self._connected(node, holds)
        if isinstance(node, exp.Between):
            return self._between(node, holds)
        if isinstance(node, exp.In):
            return self._member(node, holds)
        if isinstance(node, exp.Like):
            return [self._like(node, holds != bool(node.args.get("negate")))]
        for kind, op in OPERATORS.items():
            if isinstance(node, exp.Binary) and type(node) is kind:
                return [self._comparison(node, op if holds else OPPOSITE[op])]
        raise self._outside(node)

    def _outside(self, node: exp.Expr) -> Exception:
        if isinstance(node, exp.Is):
            return self.places.outside("there is no NULL", node, "use a special value instead")
        if isinstance(node, exp.Column | exp.Literal):
            return self.places.outside(
                "a condition compares two values", node, f"write {self.places.text(node)} = 1"
            )
        return self.places.outside(f"the condition `{self.places.text(node)}` is not supported", node)

    def _connected(self, node: exp.Connector, holds: bool) -> list[ast.Node]:
        parts = [self._read(part, holds) for part in operands(node)]
        if isinstance(node, exp.And) == holds:
            return [condition for part in parts for condition in part]
        if not all(parts):
            return []  # one of them always holds
        return [either([ast.product(part) for part in parts])]

    def _between(self, node: exp.Between, holds: bool) -> list[ast.Node]:
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        return self._connected(exp.And(this=low, expression=high), holds)

    def _member(self, node: exp.In, holds: bool) -> list[ast.Node]:
        if not node.expressions:
            raise self.places.outside("IN takes a list of constants", node, "join with the relation instead")
        operand = self.expressions.scalar(node.this)
        values = [self._constant(value, operand) for value in node.expressions]
        if holds:
            return [ast.In(operand.node, tuple(values), span=self.places.span(node))]
        return [ast.Comparison("!=", operand.node, value, span=self.places.span(node)) for value in values]

    def _constant(self, node: exp.Expr, operand: Scalar) -> ast.Constant:
        found = self._like_typed(self.expressions.scalar(node), node, operand)
        if not isinstance(found.node, ast.Constant):
            raise self.places.outside("IN takes a list of constants", node)
        self._check_types(operand, found, node)
        return found.node

    def _comparison(self, node: exp.Binary, op: str) -> ast.Node:
        left, right = self.expressions.scalar(node.left), self.expressions.scalar(node.right)
        left = self._like_typed(left, node.left, right)
        right = self._like_typed(right, node.right, left)
        return self.compared(left, right, op, node)

    def compared(self, left: Scalar, right: Scalar, op: str, node: exp.Expr) -> ast.Node:
        self._check_types(left, right, node)
        ops = [op]
        if op == "=" and self.keeps_types and is_mixed(left.type, right.type):
            ops = ["<=", ">="] if variables_of(left.node) and variables_of(right.node) else ops
        sides = divided(left.node), divided(right.node)
        return ast.product([ast.Comparison(op, *sides, span=self.places.span(node)) for op in ops])

    def _like_typed(self, found: Scalar, node: exp.Expr, other: Scalar) -> Scalar:
        """Text compared with a date is read as a date."""
        literal = node.unnest() if isinstance(node, exp.Paren) else node
        if found.type == STRING and other.type == DATE and isinstance(literal, exp.Literal):
            return self.expressions.date(literal)
        return found

    def _check_types(self, left: Scalar, right: Scalar, node: exp.Expr) -> None:
        types = self.expressions.types
        custom = types.is_custom(left.type) or types.is_custom(right.type)
        if custom or not types.compares(left.type, right.type):
            message = f"{left.type} and {right.type} do not compare"
            raise SourceError(message, span=self.places.span(node), help="compare values of the same type")

    def _like(self, node: exp.Like, holds: bool) -> ast.Node:
        text, pattern = self.expressions.scalar(node.this), node.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise self.places.outside("LIKE takes a text with % and _", node, "write the pattern itself")
        if text.type.name not in ("string", "char"):
            raise SourceError(f"LIKE compares texts, not {text.type}", span=self.places.span(node.this))
        written = ast.Constant("string", _regular(pattern.name), span=self.places.span(pattern))
        call = ast.Call("regexp_match", ast.TypeRef("int"), (written, text.node), span=self.places.span(node))
        return ast.Comparison("=", call, ast.Constant("int", int(holds)), span=self.places.span(node))


def _regular(pattern: str) -> str:
    """The regular expression of a pattern of LIKE.

    >>> _regular("a%b_.")
    '^a.*b.\\\\.$'
    """
    signs = {"%": ".*", "_": "."}
    return "^" + "".join(signs.get(c) or re.escape(c) for c in pattern) + "$"


def _never() -> ast.Node:
    return ast.Comparison("=", ast.Constant("int", 0), ast.Constant("int", 1))


def _value(node: ast.Node) -> Any:
    """The value of a scalar without variables and calls; conditions are True or False."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Comparison):
        return _COMPARE[node.op](_value(node.left), _value(node.right))
    if isinstance(node, ast.In):
        return _value(node.operand) in [value.value for value in node.values]
    if isinstance(node, ast.Sum):
        return sum(_value(term) for term in node.terms)
    assert isinstance(node, ast.Product)
    return math.prod(_value(factor) for factor in node.factors)
