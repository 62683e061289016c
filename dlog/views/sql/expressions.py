"""Owns expressions of SQL: syntax trees -> scalars of M3 with their types.

Types are promoted as in M3's dialect dbtoaster: byte, short, int, long, float, double, each part of those
after it; values of user-defined types (rings) multiply with each other and with integers.  Conditions are
the business of `conditions`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlglot import expressions as exp

from dlog.errors import SourceError, did_you_mean
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.types import functions
from dlog.views.sql.places import Places
from dlog.views.sql.scope import Scope
from dlog.views.sql.tokens import External

INT, LONG, DOUBLE = TypeRef("int"), TypeRef("long"), TypeRef("double")
STRING, DATE = TypeRef("string"), TypeRef("date")
_INT_BITS = 31

# Outside the fragment: the name, and what to do instead.
_OUTSIDE: dict[type[exp.Expr], tuple[str, str | None]] = {
    exp.Window: ("window functions are not supported", "use GROUP BY"),
    exp.Filter: ("FILTER is not supported", "put the condition into CASE WHEN ... THEN ... ELSE 0 END"),
    exp.Mod: ("there is no remainder in M3", "store it in a separate column"),
    exp.IntDiv: ("there is no integer division in M3", "use / and an external function"),
    exp.DPipe: ("texts cannot be concatenated", "group by both columns"),
    exp.Interval: ("intervals are not supported", "compute the date and write DATE '...'"),
    exp.Null: ("there is no NULL", "use a special value instead"),
    exp.Cast: ("CAST is not supported", "numbers are promoted where they have to be; or [cast_int: int](x)"),
    exp.If: ("IF is not supported", "write CASE WHEN ... THEN ... ELSE ... END"),
    exp.Boolean: ("TRUE and FALSE are not values", "use 1 and 0"),
    exp.Placeholder: ("parameters are not supported", "write the value"),
    exp.Parameter: ("parameters are not supported", "write the value"),
}  # fmt: skip

_FUNCTIONS: dict[type[exp.Expr], tuple[str, TypeRef | None]] = {
    exp.Abs: ("abs", None),
    exp.Sqrt: ("sqrt", DOUBLE),
    exp.Pow: ("pow", DOUBLE),
    exp.Cos: ("cos", DOUBLE),
    exp.Sin: ("sin", DOUBLE),
    exp.Tan: ("tan", DOUBLE),
    exp.Radians: ("radians", DOUBLE),
    exp.Degrees: ("degrees", DOUBLE),
    exp.Greatest: ("listmax", None),
    exp.Least: ("listmin", None),
    exp.Year: ("year_part", INT),
    exp.Month: ("month_part", INT),
    exp.Day: ("day_part", INT),
}
_PARTS = {"YEAR": "year_part", "MONTH": "month_part", "DAY": "day_part"}


@dataclass(frozen=True)
class Scalar:
    """A scalar of M3 and its type."""

    node: ast.Node
    type: TypeRef


class Expressions:
    """Reads expressions in one scope.  `condition` reads the conditions of CASE; `other`, if it is set, what
    is a value only there, as a query or an aggregate: None for anything else.
    """

    def __init__(self, scope: Scope, externals: dict[int, External], places: Places):
        self.scope, self.externals, self.places = scope, externals, places
        self.types = scope.types
        self.condition: Callable[[exp.Expr], ast.Node]  # set by the reader of conditions
        self.other: Callable[[exp.Expr], Scalar | None] = lambda node: None

    def scalar(self, node: exp.Expr) -> Scalar:
        """REQUIRES: the scope's variables have names."""
        other = self.other(node)
        if other is not None:
            return other
        for kind, read in _READERS.items():
            if isinstance(node, kind):
                return read(self, node)
        for kind, (function, type_) in _FUNCTIONS.items():
            if isinstance(node, kind):
                return self._function(function, type_, node, _arguments(node))
        for kind, (message, help) in _OUTSIDE.items():
            if isinstance(node, kind):
                raise self.places.outside(message, node, help)
        if isinstance(node, exp.AggFunc):
            raise self.places.outside("an aggregate belongs in SELECT, not within another", node)
        if isinstance(node, (exp.Predicate, exp.Connector, exp.Not)):
            help = "CASE WHEN ... THEN 1 ELSE 0 END makes it a number"
            raise self.places.outside("a condition is not a number", node, help)
        help = "external functions are written [f: type](x)"
        raise self.places.outside(f"`{self.places.text(node)}` is not supported", node, help)

    def number(self, node: exp.Expr) -> Scalar:
        """A scalar that can be added and multiplied."""
        found = self.scalar(node)
        if not self.types.is_ring(found.type):
            message = f"`{self.places.text(node)}` is {_article(found.type)}, not a number"
            raise SourceError(message, span=self.places.span(node), help="only numbers can be added")
        return found

    # Names and constants

    def _column(self, node: exp.Column) -> Scalar:
        name, type_ = self.scope.named(node)
        return Scalar(ast.Variable(name, span=self.places.span(node)), type_)

    def _literal(self, node: exp.Literal) -> Scalar:
        span = self.places.span(node)
        if node.is_string:
            return Scalar(ast.Constant("string", node.this, span=span), STRING)
        text = node.this
        if text.isdigit():
            value = int(text)
            if value >= 2**63:
                raise SourceError(f"{text} is greater than every long", span=span, help=f"write {text}.0")
            type_ = INT if value < 2**_INT_BITS else LONG
            return Scalar(ast.Constant(type_.name, value, span=span), type_)
        if float(text) == float("inf"):
            raise SourceError(f"{text} is greater than every double", span=span)
        return Scalar(ast.Constant("double", float(text), span=span), DOUBLE)

    def date(self, node: exp.Expr) -> Scalar:
        """REQUIRES: the node is a string."""
        span = self.places.span(node)
        try:
            day = datetime.date.fromisoformat(node.name)
        except ValueError:
            message = f"'{node.name}' is not a date"
            raise SourceError(message, span=span, help="a date is written DATE '1995-03-15'") from None
        return Scalar(ast.Constant("date", day, span=span), DATE)

    def _cast(self, node: exp.Expr) -> Scalar:
        to = node.args.get("to")
        is_date = isinstance(node, exp.Date) or (to is not None and to.is_type("date"))
        if is_date and isinstance(node.this, exp.Literal) and node.this.is_string:
            return self.date(node.this)
        message, help = _OUTSIDE[exp.Cast]
        raise self.places.outside(message, node, help)

    # Arithmetic

    def _paren(self, node: exp.Paren) -> Scalar:
        return self.scalar(node.this)

    def _negated(self, node: exp.Neg) -> Scalar:
        operand = self.number(node.this)
        if isinstance(operand.node, ast.Constant) and isinstance(operand.node.value, int | float):
            constant = ast.Constant(operand.node.type, -operand.node.value, span=operand.node.span)
            return Scalar(constant, operand.type)
        return Scalar(ast.product([_minus_one(), operand.node]), operand.type)

    def _sum(self, node: exp.Binary) -> Scalar:
        left, right = self.number(node.left), self.number(node.right)
        if not self.types.adds(left.type, right.type):
            raise self._mismatch("added", left, right, node)
        second = ast.product([_minus_one(), right.node]) if isinstance(node, exp.Sub) else right.node
        type_ = self.types.sum(left.type, right.type)
        assert type_ is not None
        return Scalar(ast.total([left.node, second]), type_)

    def _product(self, node: exp.Binary) -> Scalar:
        left, right = self.number(node.left), self.number(node.right)
        if not self.types.multiplies(left.type, right.type):
            raise self._mismatch("multiplied", left, right, node)
        type_ = self.types.product(left.type, right.type)
        assert type_ is not None
        return Scalar(ast.product([left.node, right.node]), type_)

    def _quotient(self, node: exp.Binary) -> Scalar:
        left, right = self.number(node.left), self.number(node.right)
        if self.types.is_custom(left.type) or self.types.is_custom(right.type):
            raise self._mismatch("divided", left, right, node)
        inverse = ast.Call("/", DOUBLE, (right.node,), span=self.places.span(node.right))
        return Scalar(ast.product([left.node, inverse]), DOUBLE)

    def _mismatch(self, what: str, left: Scalar, right: Scalar, node: exp.Expr) -> SourceError:
        message = f"{left.type} and {right.type} cannot be {what}"
        help = "lift the number into the ring with a function: [f: type](x)"
        return SourceError(message, span=self.places.span(node), help=help)

    # Functions

    def _external(self, node: exp.Anonymous) -> Scalar:
        external = self.externals.get(node.meta.get("start", -1))
        if external is None:
            return self._named(node)
        arguments = tuple(self.scalar(a).node for a in node.expressions)
        if not self.types.is_custom(external.type) and functions.lookup(external.name) is None:
            help = did_you_mean(external.name, functions.known(), "add it with dlog.m3.register_function")
            raise SourceError(f"unknown function {external.name}", span=external.span, help=help)
        call = ast.Call(
            external.name, external.type, arguments, external.parameters, span=self.places.span(node)
        )
        return Scalar(call, external.type)

    def _named(self, node: exp.Anonymous) -> Scalar:
        """A function of M3 under its own name."""
        name = node.this.lower()
        function = functions.lookup(name)
        if function is None or name == "lift":
            help = did_you_mean(name, functions.known(), f"an external function: [{node.this}: type](x)")
            raise SourceError(f"unknown function {node.this}", span=self.places.span(node), help=help)
        kinds = {functions.STRING: STRING, functions.DATE: DATE}
        return self._function(name, kinds.get(function.gives, DOUBLE), node, node.expressions)

    def _function(
        self, name: str, type_: TypeRef | None, node: exp.Expr, arguments: list[exp.Expr]
    ) -> Scalar:
        """A call of a function of M3; without a type, that of its arguments."""
        function = functions.lookup(name)
        assert function is not None
        found = [self.scalar(a) for a in arguments]
        if len(found) < function.least or function.kind_of(len(found) - 1) is None:
            message = f"{name} does not take {len(found)} argument{'' if len(found) == 1 else 's'}"
            raise SourceError(message, span=self.places.span(node))
        for index, (argument, written) in enumerate(zip(found, arguments, strict=True)):
            kind = function.kind_of(index)
            if _kind(argument.type) != kind:
                message = f"{name} takes a {kind} here, not {_article(argument.type)}"
                raise SourceError(message, span=self.places.span(written))
        if type_ is None:
            type_ = max((f.type for f in found), key=lambda t: self.types.order.index(t.name))
        nodes = tuple(f.node for f in found)
        return Scalar(ast.Call(function.name, type_, nodes, span=self.places.span(node)), type_)

    def _extract(self, node: exp.Extract) -> Scalar:
        part = node.this.name.upper()
        if part not in _PARTS:
            raise self.places.outside(f"EXTRACT has YEAR, MONTH and DAY, not {part}", node)
        return self._function(_PARTS[part], INT, node, [node.expression])

    def _substring(self, node: exp.Substring) -> Scalar:
        """SQL counts characters from 1, M3 from 0."""
        text, start, length = node.this, node.args.get("start"), node.args.get("length")
        if not isinstance(start, exp.Literal) or not start.name.isdigit() or int(start.name) < 1:
            raise self.places.outside("SUBSTRING begins at a number from 1 on", node)
        value = self.scalar(text)
        found = [value.node, ast.Constant("int", int(start.name) - 1)]
        if length is not None:
            found.append(self.scalar(length).node)
        if _kind(value.type) != functions.STRING:
            raise SourceError("SUBSTRING takes a string", span=self.places.span(text))
        return Scalar(ast.Call("substring", STRING, tuple(found), span=self.places.span(node)), STRING)

    def _coalesce(self, node: exp.Coalesce) -> Scalar:
        return self.scalar(self.unless_null(node))

    def unless_null(self, node: exp.Coalesce) -> exp.Expr:
        """COALESCE(x, 0) is x: there is no NULL, and aggregates of nothing are 0."""
        if [value.sql() for value in node.expressions] != ["0"]:
            help = "write COALESCE(x, 0): aggregates of nothing are 0"
            raise self.places.outside("there is no NULL", node, help)
        return node.this

    def _case(self, node: exp.Case) -> Scalar:
        """CASE WHEN c THEN a ELSE b END is c * a + (1 - c) * b."""
        default = node.args.get("default")
        if default is None:
            raise self.places.outside("CASE without ELSE may be NULL", node, "add ELSE 0")
        found = self.number(default)
        for branch in reversed(node.args["ifs"]):
            test = branch.this
            if node.this is not None:
                test = exp.EQ(this=node.this.copy(), expression=branch.this.copy())
            condition, then = self.condition(test), self.number(branch.args["true"])
            found = self._either(condition, then, found, node)
        return found

    def _either(self, condition: ast.Node, then: Scalar, otherwise: Scalar, node: exp.Expr) -> Scalar:
        type_ = self.types.sum(then.type, otherwise.type)
        if not self.types.adds(then.type, otherwise.type) or type_ is None:
            raise self._mismatch("added", then, otherwise, node)
        chosen = [] if _is_zero(then.node) else [ast.product([condition, then.node])]
        if not _is_zero(otherwise.node):
            chosen += [otherwise.node, ast.product([_minus_one(), condition, otherwise.node])]
        return Scalar(ast.total(chosen) if chosen else ast.Constant("int", 0), type_)


_READERS: dict[type[exp.Expr], Callable[[Expressions, Any], Scalar]] = {
    exp.Column: Expressions._column,
    exp.Literal: Expressions._literal,
    exp.Date: Expressions._cast,
    exp.Cast: Expressions._cast,
    exp.Paren: Expressions._paren,
    exp.Neg: Expressions._negated,
    exp.Add: Expressions._sum,
    exp.Sub: Expressions._sum,
    exp.Mul: Expressions._product,
    exp.Div: Expressions._quotient,
    exp.Anonymous: Expressions._external,
    exp.Extract: Expressions._extract,
    exp.Substring: Expressions._substring,
    exp.Case: Expressions._case,
    exp.Coalesce: Expressions._coalesce,
}


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    listed = [node.this, node.args.get("expression"), *(node.args.get("expressions") or ())]
    return [argument for argument in listed if isinstance(argument, exp.Expr)]


def _kind(type_: TypeRef) -> str:
    if type_.name in ("string", "char"):
        return functions.STRING
    return functions.DATE if type_.name == "date" else functions.NUMBER


def _article(type_: TypeRef) -> str:
    return f"an {type_}" if str(type_)[0] in "aeiou" else f"a {type_}"


def _minus_one() -> ast.Node:
    return ast.Constant("int", -1)


def _is_zero(node: ast.Node) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, str)
