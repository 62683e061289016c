"""Owns grammar reductions -> syntax tree nodes of M3: one method per production of grammar.lark.

Here is what a text means in its dialect: how operators group, and how literals, types and variables are
spelled.  `dialect_support` has the constructs of each dialect.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

from lark import Token, Transformer

from dlog.errors import Diagnostics
from dlog.language.source import Source, Span
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5
from dlog.m3.syntax.dialects import TYPES
from dlog.m3.syntax.lexer import BadLiteral, number


class _Negated:
    """A minus whose operand is not decided yet: in a5 `-a * b` is `-(a * b)`."""

    def __init__(self, minus: Token, operand: Any):
        self.minus, self.operand = minus, operand


class Builder(Transformer):
    """REQUIRES: `source`, `dialect` and `diagnostics` are set before each statement."""

    source: Source
    dialect: str
    diagnostics: Diagnostics

    @property
    def in_a5(self) -> bool:
        return self.dialect == A5

    def span(self, *children: Any) -> Span:
        """From the first to the last position among children, which are in text order."""
        places = [place for child in children for place in _places(child)]
        return Span(self.source, min(p[0] for p in places), max(p[1] for p in places))

    def error(self, message: str, where: Any, help: str | None = None) -> None:
        self.diagnostics.error(message, self.span(where), help)

    # Statements

    def start(self, c: list[Any]) -> ast.Node:
        return c[0]

    def typedef(self, c: list[Any]) -> ast.Node:
        schema = tuple(str(x) for x in c[10:-2:2]) if c[6] is not None else ()
        return ast.TypeDefinition(str(c[2]), _unquoted(c[5]), schema, span=self.span(*c))

    def base_relation(self, c: list[Any]) -> ast.Node:
        columns = tuple(x for x in c if isinstance(x, ast.Column))
        self._distinct([x.name for x in columns], columns, "column")
        file, format, options = c[-2] if isinstance(c[-2], tuple) else (None, "csv", ())
        kind = ast.STREAM if c[1].type == "STREAM" else ast.TABLE
        return ast.Source(kind, str(c[2]), columns, file, format, options, span=self.span(*c))

    def column(self, c: list[Any]) -> ast.Node:
        return ast.Column(self._variable(c[0]), c[1], span=self.span(*c))

    def origin(self, c: list[Any]) -> tuple[Any, ...]:
        options = tuple(x for x in c if isinstance(x, tuple))
        return _unquoted(c[1]), str(c[4]).lower(), options

    def option(self, c: list[Any]) -> tuple[str, str]:
        return str(c[0]).lower(), _unquoted(c[2])

    def map_declaration(self, c: list[Any]) -> ast.Node:
        name, type_, inputs, keys = c[2]
        return ast.MapDeclaration(str(name), type_, inputs, keys, c[4], span=self.span(name))

    def map_name(self, c: list[Any]) -> tuple[Any, ...]:
        name, type_, inputs, keys = c[0], c[2], c[5], c[8]
        if type_ is None and self.in_a5:
            type_ = ast.TypeRef("float", span=self.span(name))
        self._distinct([x.name for x in inputs + keys], inputs + keys, "key")
        return name, type_, inputs, keys

    def keys(self, c: list[Any]) -> tuple[ast.Column, ...]:
        return tuple(x for x in c if isinstance(x, ast.Column))

    def key(self, c: list[Any]) -> ast.Node:
        type_ = c[2]
        if type_ is None:
            type_ = ast.TypeRef("float", span=self.span(c[0]))
            if not self.in_a5:
                self.error(f"key {c[0]} has no type", c[0], f"write {c[0]}: int, or another type")
        return ast.Column(self._variable(c[0]), type_, span=self.span(*c))

    def query(self, c: list[Any]) -> ast.Node:
        return ast.Query(str(c[2]), c[4], span=self.span(c[2]))

    def row_trigger(self, c: list[Any]) -> ast.Node:
        event = ast.INSERT if c[1].type == "PLUS" else ast.DELETE
        self._distinct([x.name for x in c[4]], c[4], "parameter")
        return ast.Trigger(event, str(c[2]), c[4], c[6], span=self.span(*c[:6]))

    def batch_trigger(self, c: list[Any]) -> ast.Node:
        return ast.Trigger(ast.BATCH, str(c[4]), (), c[5], span=self.span(*c[:5]))

    def ready_trigger(self, c: list[Any]) -> ast.Node:
        return ast.Trigger(ast.READY, None, (), c[3], span=self.span(*c[:3]))

    def block(self, c: list[Any]) -> tuple[ast.Node, ...]:
        return tuple(x for x in c if isinstance(x, ast.Node))

    def assign(self, c: list[Any]) -> ast.Node:
        return ast.Assign(c[0], str(c[1]), c[2], span=self.span(*c))

    def target(self, c: list[Any]) -> ast.Node:
        return self._map_access(c[0], c[2], c[5], c[8], c[13], c)

    def if_statement(self, c: list[Any]) -> ast.Node:
        condition = ast.Comparison(c[3], c[2], c[4], span=self.span(c[2], c[4]))
        return ast.If(condition, c[6], c[8] or (), span=self.span(*c[:6]))

    # Types

    def type(self, c: list[Any]) -> ast.TypeRef:
        return c[0]

    def simple_type(self, c: list[Any]) -> ast.TypeRef:
        return self._type(c[0])

    def sized_type(self, c: list[Any]) -> ast.TypeRef:
        if c[0].lower() in ("char", "varchar"):
            return ast.TypeRef("string", span=self.span(*c))
        self.error(f"type {c[0]} has no size", c[2], f"write {c[0]}")
        return self._type(c[0])

    def custom_type(self, c: list[Any]) -> ast.TypeRef:
        params = tuple(x for x in c[1:] if not isinstance(x, Token))
        return ast.TypeRef(str(c[0]), params, span=self.span(*c))

    def type_parameter(self, c: list[Any]) -> ast.TypeParameter:
        if not isinstance(c[0], Token):
            return c[0]
        return self._whole(c[0])

    def type_list(self, c: list[Any]) -> ast.TypeParameter:
        return tuple(x for x in c if not isinstance(x, Token))

    def _type(self, word: Token) -> ast.TypeRef:
        span = self.span(word)
        known = TYPES[self.dialect].get(word.lower())
        return ast.TypeRef(known or str(word), span=span)

    # Variables and names

    def name(self, c: list[Any]) -> Token:
        return c[0]

    def variable_name(self, c: list[Any]) -> Token:
        return c[0]

    def variables(self, c: list[Any]) -> tuple[ast.Variable, ...]:
        return tuple(x for x in c if isinstance(x, ast.Variable))

    def variable(self, c: list[Any]) -> ast.Node:
        if self.in_a5 and c[0].upper() in ("TRUE", "FALSE") and c[2] is None:
            return ast.Constant("int", int(c[0].upper() == "TRUE"), span=self.span(*c))
        if c[2] is not None and not self.in_a5:
            self.error("dbtoaster has no types at variables", c, f"write {c[0]}")
            return ast.Variable(self._variable(c[0]), span=self.span(*c))
        return ast.Variable(self._variable(c[0]), c[2], span=self.span(*c))

    def argument(self, c: list[Any]) -> list[Any]:
        """A variable of a relation, or the type of a map: what follows decides."""
        return c

    def argument_type(self, c: list[Any]) -> ast.TypeRef:
        return self.custom_type(c)

    def argument_sized(self, c: list[Any]) -> ast.TypeRef:
        return self.sized_type(c)

    def _variable(self, word: Token) -> str:
        return str(word) if self.in_a5 else str(word).lower()

    def _distinct(self, names: Sequence[str], nodes: Sequence[ast.Node], what: str) -> None:
        for index, name in enumerate(names):
            if name in names[:index]:
                self.error(f"{what} {name} occurs twice here", nodes[index])

    # Operators

    def expression(self, c: list[Any]) -> ast.Node:
        return self._a5_chain(c) if self.in_a5 else self._usual_chain(c)

    def operator(self, c: list[Any]) -> Token:
        return c[0]

    def negated(self, c: list[Any]) -> _Negated:
        return _Negated(c[0], c[1])

    def _a5_chain(self, c: Sequence[Any]) -> ast.Node:
        """All operators have the same precedence and bind to the right; a minus takes all that follows."""
        result: ast.Node | None = None
        for index in range(len(c) - 1, -1, -2):
            operand, minuses = c[index], []
            while isinstance(operand, _Negated):
                minuses.append(operand.minus)
                operand = operand.operand
            result = operand if result is None else self._combine(operand, c[index + 1], result)
            for minus in reversed(minuses):
                result = self._negative(minus, result)
        assert result is not None
        return result

    def _usual_chain(self, c: Sequence[Any]) -> ast.Node:
        """`*` binds tighter than `+`; a minus belongs to a number."""
        terms: list[list[ast.Node]] = [[self._signed(c[0])]]
        for op, operand in zip(c[1::2], c[2::2], strict=True):
            if op.type == "MINUS":
                self.error("dbtoaster has no minus", op, "write + (-1 * b) for - b")
            factor = self._signed(operand)
            if op.type == "STAR":
                terms[-1].append(factor)
            else:
                terms.append([factor])
        return ast.total([ast.product(factors) for factors in terms])

    def _signed(self, operand: Any) -> ast.Node:
        if not isinstance(operand, _Negated):
            return operand
        inner = operand.operand
        plain = isinstance(inner, ast.Constant) and isinstance(inner.value, int | float)
        if not plain or inner.span.text().startswith("("):
            self.error("dbtoaster has no minus", operand.minus, "write (-1 * b) for -b")
            return self._signed(inner)
        return self._negative(operand.minus, inner)

    def _combine(self, left: ast.Node, op: Token, right: ast.Node) -> ast.Node:
        if op.type == "STAR":
            return ast.product([left, right])
        return ast.total([left, right if op.type == "PLUS" else self._negative(op, right)])

    def _negative(self, minus: Token, node: ast.Node) -> ast.Node:
        span = self.span(minus, node)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return ast.Constant(node.type, -node.value, span=span)
        if isinstance(node, ast.Product):
            first, *rest = node.factors
            if isinstance(first, ast.Constant) and isinstance(first.value, int | float):
                return ast.Product(
                    (ast.Constant(first.type, -first.value, span=first.span), *rest), span=span
                )
        return ast.product([ast.Constant("int", -1, span=span), node])

    # Operands

    def number(self, c: list[Any]) -> ast.Node:
        try:
            type_, value = number(str(c[0]), self.dialect)
        except BadLiteral as bad:
            self.error(bad.message, c[0], bad.help)
            type_, value = "int", 0
        return ast.Constant(type_, value, span=self.span(*c))

    def string(self, c: list[Any]) -> ast.Node:
        if self.in_a5 and c[0].startswith('"'):
            self.error("a5 writes strings with '", c[0], f"write '{_unquoted(c[0])}'")
        return ast.Constant("string", _unquoted(c[0]), span=self.span(*c))

    def date(self, c: list[Any]) -> ast.Node:
        return self._date(_unquoted(c[2]), c[2], self.span(*c))

    def _date(self, text: str, where: Any, span: Span) -> ast.Node:
        match = re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})", text)
        value = datetime.date(1, 1, 1)
        try:
            if match is None:
                raise ValueError
            value = datetime.date(*map(int, match.groups()))
        except ValueError:
            self.error(f"'{text}' is not a date", where, "write DATE('1995-03-15')")
        return ast.Constant("date", value, span=span)

    def relation(self, c: list[Any]) -> ast.Node:
        variables: list[ast.Variable] = []
        for argument in c[2:-1]:
            node = self.variable(argument) if isinstance(argument, list) else argument
            if isinstance(node, ast.Variable):
                variables.append(node)
            elif isinstance(node, ast.Node):
                self.error("a relation is read with variables", node, "bind one first: (x ^= 1) * R(x)")
        return ast.Relation(str(c[0]), tuple(variables), span=self.span(*c))

    def delta_relation(self, c: list[Any]) -> ast.Node:
        return ast.DeltaRelation(str(c[2]), c[5], span=self.span(*c))

    def typed_access(self, c: list[Any]) -> ast.Node:
        inputs, keys, initial = c[4]
        return self._map_access(c[0], self._argument_type(c[2]), inputs, keys, initial, c[:4])

    def access(self, c: list[Any]) -> ast.Node:
        inputs, keys, initial = c[1]
        return self._map_access(c[0], None, inputs, keys, initial, c[:1])

    def brackets(self, c: list[Any]) -> tuple[Any, ...]:
        return c[1], c[4], c[9]

    def _map_access(
        self,
        name: Token,
        type_: ast.TypeRef | None,
        inputs: tuple[ast.Variable, ...],
        keys: tuple[ast.Variable, ...],
        initial: ast.Node | None,
        parts: list[Any],
    ) -> ast.Node:
        span = self.span(*parts, *inputs, *keys)
        return ast.MapAccess(str(name), type_, inputs, keys, initial, span=span)

    def _argument_type(self, argument: Any) -> ast.TypeRef:
        """`M(int)[][]` was read like a relation of a variable `int`."""
        if isinstance(argument, ast.TypeRef):
            return argument
        if argument[2] is not None:
            self.error("a map has a type here, not a variable", argument, f"write {argument[2]}")
            return argument[2]
        return self._type(argument[0])

    def aggsum(self, c: list[Any]) -> ast.Node:
        return ast.AggSum(c[3], c[6], span=self.span(*c))

    def exists(self, c: list[Any]) -> ast.Node:
        return ast.Exists(c[2], span=self.span(*c))

    def domain(self, c: list[Any]) -> ast.Node:
        return ast.Domain(c[2], span=self.span(*c))

    def lift(self, c: list[Any]) -> ast.Node:
        if not isinstance(c[1], ast.Variable):
            self.error("only a variable can be bound", c[1])
            return c[3]
        return ast.Lift(c[1], c[3], span=self.span(*c))

    def group(self, c: list[Any]) -> ast.Node:
        return c[1]

    def comparison(self, c: list[Any]) -> ast.Node:
        return ast.Comparison(c[2], c[1], c[3], span=self.span(*c))

    def membership(self, c: list[Any]) -> ast.Node:
        values = tuple(x for x in c[4:] if isinstance(x, ast.Node))
        for value in values:
            if not isinstance(value, ast.Constant):
                self.error("IN is followed by constants", value, "compare with = instead")
        constants = tuple(x for x in values if isinstance(x, ast.Constant))
        return ast.In(c[1], constants, span=self.span(*c))

    def call(self, c: list[Any]) -> ast.Node:
        name, parameters = c[1]
        if name.lower() == "date" and isinstance(c[6], ast.Constant) and isinstance(c[6].value, str):
            return self._date(c[6].value, c[6], self.span(*c))  # [date: date]('1995-03-15')
        arguments = tuple(x for x in c[6:-1] if isinstance(x, ast.Node))
        return ast.Call(name, c[3], arguments, parameters, span=self.span(*c))

    def function(self, c: list[Any]) -> tuple[Any, ...]:
        if c[0].type == "SLASH":
            return "/", ()
        numbers = [x for x in c[1:] if isinstance(x, Token) and x.type == "NUMBER"]
        return str(c[0]), tuple(self._whole(x) for x in numbers)

    def compare(self, c: list[Any]) -> str:
        return "!=" if c[0] == "<>" else str(c[0])

    def _whole(self, token: Token) -> int:
        if not token.isdigit():
            self.error(f"{token} is not an integer", token)
            return 0
        return int(token)


def _unquoted(token: Token) -> str:
    return str(token)[1:-1]


def _places(child: Any) -> list[tuple[int, int]]:
    """The position of a token, a node or a list of them."""
    if isinstance(child, Token):
        return [(child.start_pos or 0, child.end_pos or 0)]
    if isinstance(child, ast.Node):
        return [(child.span.start, child.span.end)] if child.span is not None else []
    if isinstance(child, _Negated):
        return _places(child.minus) + _places(child.operand)
    if isinstance(child, list | tuple):
        return [place for item in child for place in _places(item)]
    return []
