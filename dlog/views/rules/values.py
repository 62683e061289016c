"""Owns the values that a rule computes: operands, constants, arithmetic and comparisons as expressions of M3.

Decimals are floats, or integers in units of their last digit (`scaled`); then both sides of a comparison get
the same number of digits.  What has no such form is an UnsupportedError with its position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from dlog.errors import UnsupportedError
from dlog.ir import rules as ir
from dlog.ir.lower.literals import literal_value
from dlog.ir.types.decimals import literal_scale
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.values import BUILTIN_TYPES, FLOAT, Type
from dlog.views.conditions import divided

COMPARISONS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
INT_RANGE = range(-(2**31), 2**31)
ONE = ast.Constant("int", 1)


@dataclass
class Values:
    """Of one rule.  `known` gives what stands for a variable; `require` is called with each condition without
    which a value does not exist; `reader` is what messages say has no such form.  `more_digits`: of
    variables whose values have more digits than their types.
    """

    rule: ir.Rule
    scaled: bool
    known: Callable[[str], ast.Node]
    require: Callable[[ast.Node], None]
    reader: str
    more_digits: dict[str, int] = field(default_factory=dict)

    @property
    def types(self) -> Mapping[str, Type]:
        return self.rule.types

    def comparison(self, form: ir.Primitive) -> ast.Comparison:
        """Of a primitive without an output."""
        if form.name not in COMPARISONS:
            raise self.unsupported(f"{self.reader} do not support {form.name}", form.span)
        digits = max(map(self.digits, form.inputs))
        left, right = (divided(self.with_digits(side, digits, form.span)) for side in form.inputs)
        return ast.Comparison(COMPARISONS[form.name], left, right)

    def exact_digits(self, form: ir.Primitive) -> int:
        """How many digits the value of a primitive needs, or its output has, whichever are more."""
        assert form.output is not None
        given = list(map(self.digits, form.inputs))
        needed = sum(given) if form.name == "mul" else max(given, default=0)
        return max(needed, self.digits(form.output))

    def value(self, form: ir.Primitive, digits: int | None = None) -> ast.Node:
        """Of a primitive with an output: with so many digits, or as many as the rule gives it."""
        assert form.output is not None
        wanted = self.digits(form.output) if digits is None else digits
        given = list(map(self.digits, form.inputs))
        if form.name == "mul":
            values = [v for operand in form.inputs if (v := self.operand(operand)) != ONE]
            return self._scaled(ast.product(values or [ONE]), wanted - sum(given), form.span)
        if form.name == "div" and self._is_float(form.output):
            return self._quotient(*map(self.operand, form.inputs))
        values = [self.with_digits(operand, max(given), form.span) for operand in form.inputs]
        minus = ast.Constant("int", -1)
        match form.name:
            case "add":
                value = ast.total(values)
            case "sub":
                value = ast.total([values[0], ast.product([minus, values[1]])])
            case "neg":
                value = ast.product([minus, values[0]])
            case "to_float" if all(map(self._is_number, form.inputs)):
                value = ast.product([ast.Constant("double", 1.0), values[0]])
            case "year" | "month" | "day":
                value = ast.Call(f"{form.name}_part", TypeRef("int"), tuple(values))
            case _:
                raise self.unsupported(f"{self.reader} do not compute {form.name}", form.span)
        return self._scaled(value, wanted - max(given), form.span)

    def operand(self, operand: ir.Operand) -> ast.Node:
        return self.known(operand.name) if isinstance(operand, ir.Var) else self._constant(operand)

    def digits(self, operand: ir.Operand) -> int:
        """How many digits after the point a value has, if decimals are integers."""
        if not self.scaled:
            return 0
        if isinstance(operand, ir.Const):
            return literal_scale(operand) if operand.type is not None and operand.type.is_decimal else 0
        return self.more_digits.get(operand.name, self.type_digits(operand.name))

    def type_digits(self, variable: str) -> int:
        return self.types[variable].scale if self.scaled and variable in self.types else 0

    def with_digits(self, operand: ir.Operand, digits: int, span: Span | None) -> ast.Node:
        return self._scaled(self.operand(operand), digits - self.digits(operand), span)

    def in_column(self, operand: ir.Operand, column: ir.Column, span: Span | None) -> ast.Node:
        """A value with the digits of a column."""
        type = self.types.get(operand.name) if isinstance(operand, ir.Var) else None
        if type is not None and type.is_decimal and column.type.is_decimal and type.scale > column.type.scale:
            raise self.unsupported(f"{self.reader} do not round", span)
        return self.with_digits(operand, column.type.scale if self.scaled else 0, span)

    def unsupported(self, message: str, span: Span | None) -> UnsupportedError:
        return UnsupportedError(message, span=span or self.rule.span)

    def _is_float(self, operand: ir.Operand) -> bool:
        return isinstance(operand, ir.Var) and self.types[operand.name] == FLOAT

    def _is_number(self, operand: ir.Operand) -> bool:
        return isinstance(operand, ir.Const) or self.types[operand.name].is_numeric

    def _quotient(self, left: ast.Node, right: ast.Node) -> ast.Node:
        """If the divisor is 0 there is no value: the assignment does not count."""
        self.require(ast.Comparison("!=", right, ast.Constant("int", 0)))
        return ast.product([left, ast.Call("/", TypeRef("double"), (right,))])

    def _scaled(self, node: ast.Node, digits: int, span: Span | None) -> ast.Node:
        """A value with more digits after its point."""
        if digits < 0:
            raise self.unsupported(f"{self.reader} do not round", span)
        return self.scaled_by(node, digits)

    @staticmethod
    def scaled_by(node: ast.Node, digits: int) -> ast.Node:
        return ast.product([whole(10**digits), node]) if digits else node

    def _constant(self, constant: ir.Const) -> ast.Node:
        type_, value = constant.type or BUILTIN_TYPES.get(constant.kind), constant.value
        if type_ is not None and type_.is_decimal:
            exact = Decimal(str(value))
            if not self.scaled:
                return ast.Constant("double", float(exact))
            return whole(int(exact.scaleb(literal_scale(constant))))
        if type_ is not None and type_.m3 is not None:
            denoted = literal_value(constant.kind, value, type_)
            return whole(denoted) if type_.m3 == "long" else ast.Constant(type_.m3, denoted)  # type: ignore[arg-type]
        raise self.unsupported(f"{self.reader} have no constants of type {type_}", constant.span)


def whole(value: int) -> ast.Constant:
    return ast.Constant("int" if value in INT_RANGE else "long", value)
