"""Owns syntax tree -> text of M3, in the program's dialect.  Knows nothing of types or meaning.

Correct output: a text that the dialect's readers accept and `parse` reads back as the same tree.  Every sum
or product within another is in parentheses, so that no reader's precedence matters.
"""

from __future__ import annotations

import datetime
import math

from dlog.errors import Diagnostics, SourceError
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5
from dlog.m3.syntax.dialect_support import check_dialect_support
from dlog.m3.syntax.lexer import plain_float

WIDTH = 100


def print_program(program: ast.Program) -> str:
    """The text of a program.  Raises if its dialect cannot express it.

    >>> from dlog.m3.syntax.parse import parse
    >>> print(print_program(parse("declare query Q := 1+2 * x - 1;", dialect="a5")), end="")
    DECLARE QUERY Q := 1 + (2 * (x + (-1)));
    """
    diagnostics = Diagnostics()
    check_dialect_support(program, diagnostics)
    diagnostics.raise_if_any()
    printer = _Printer(program.dialect)
    groups = [
        "\n\n".join(map(printer.type_definition, program.types)),
        "\n\n".join(map(printer.source, program.sources)),
        "\n\n".join(map(printer.map, program.maps)),
        "\n".join(map(printer.query, program.queries)),
        "\n\n".join(map(printer.trigger, program.triggers)),
    ]
    return "\n\n".join(group for group in groups if group) + "\n"


def print_expression(node: ast.Node, dialect: str = ast.DBTOASTER) -> str:
    """The text of an expression, in one line."""
    return _Printer(dialect).flat(node)


class _Printer:
    def __init__(self, dialect: str):
        self.in_a5 = dialect == A5
        self.flats: dict[int, str] = {}

    # Statements

    def type_definition(self, node: ast.TypeDefinition) -> str:
        schema = f"\n  WITH PARAMETER SCHEMA ({', '.join(node.schema)})" if node.schema else ""
        return f"CREATE TYPE {node.name}\n  FROM FILE {self.string(node.file, node)}{schema};"

    def source(self, node: ast.Source) -> str:
        columns = ", ".join(f"{c.name} {c.type}" for c in node.columns)
        head = f"CREATE {node.kind.upper()} {node.name}({columns})"
        if node.file is None:
            return f"{head};"
        options = ", ".join(f"{name} := {self.string(value, node)}" for name, value in node.options)
        form = f"{node.format.upper()} ({options})" if options else node.format.upper()
        return f"{head}\n  FROM FILE {self.string(node.file, node)} LINE DELIMITED {form};"

    def map(self, node: ast.MapDeclaration) -> str:
        inputs, keys = (", ".join(f"{c.name}: {c.type}" for c in cs) for cs in (node.inputs, node.keys))
        type_ = f"({node.type})" if node.type is not None else ""
        head = f"DECLARE MAP {node.name}{type_}[{inputs}][{keys}]"
        return self._defined(head, node.definition) if node.definition is not None else f"{head};"

    def query(self, node: ast.Query) -> str:
        return self._defined(f"DECLARE QUERY {node.name}", node.expression)

    def _defined(self, head: str, expression: ast.Node) -> str:
        if len(head) + len(self.flat(expression)) + 5 <= WIDTH:
            return f"{head} := {self.flat(expression)};"
        return f"{head} :=\n  {self.layout(expression, 2)};"

    def trigger(self, node: ast.Trigger) -> str:
        parameters = ", ".join(map(self.flat, node.parameters))
        head = {
            ast.INSERT: f"+ {node.relation}({parameters})",
            ast.DELETE: f"- {node.relation}({parameters})",
            ast.BATCH: f"BATCH UPDATE OF {node.relation}",
            ast.READY: "SYSTEM READY",
        }[node.event]
        return f"ON {head} {self.block(node.statements, 0)}"

    def block(self, statements: tuple[ast.Assign | ast.If, ...], indent: int) -> str:
        margin = " " * (indent + 2)
        lines = "".join(f"{margin}{self.statement(s, indent + 2)}\n" for s in statements)
        return f"{{\n{lines}{' ' * indent}}}"

    def statement(self, node: ast.Assign | ast.If, indent: int) -> str:
        if isinstance(node, ast.Assign):
            head = f"{self.flat(node.target)} {node.op} "
            if indent + len(head) + len(self.flat(node.expression)) < WIDTH:
                return f"{head}{self.flat(node.expression)};"
            return f"{head}\n{' ' * (indent + 2)}{self.layout(node.expression, indent + 2)};".replace(
                " \n", "\n"
            )
        condition = self.flat(node.condition)[1:-1]
        text = f"if ({condition}) {self.block(node.then, indent)}"
        return f"{text} else {self.block(node.otherwise, indent)}" if node.otherwise else text

    # Expressions in one line

    def flat(self, node: ast.Node) -> str:
        """O(nodes) for all of a tree: each text is made once."""
        if id(node) not in self.flats:
            self.flats[id(node)] = getattr(self, f"_{type(node).__name__.lower()}")(node)
        return self.flats[id(node)]

    def operand(self, node: ast.Node) -> str:
        """The text of an operand, in parentheses if it needs them."""
        return f"({self.flat(node)})" if self._needs_parentheses(node) else self.flat(node)

    def _needs_parentheses(self, node: ast.Node) -> bool:
        if isinstance(node, ast.Sum | ast.Product):
            return True
        # In a5 a minus takes all that follows.
        negative = isinstance(node, ast.Constant) and self.flat(node).startswith("-")
        return self.in_a5 and negative

    def _product(self, node: ast.Product) -> str:
        return " * ".join(map(self.operand, node.factors))

    def _sum(self, node: ast.Sum) -> str:
        return " + ".join(map(self.operand, node.terms))

    def _aggsum(self, node: ast.AggSum) -> str:
        return f"AggSum([{self.names(node.keys)}], {self.flat(node.body)})"

    def _exists(self, node: ast.Exists) -> str:
        return f"EXISTS({self.flat(node.body)})"

    def _domain(self, node: ast.Domain) -> str:
        return f"DOMAIN({self.flat(node.body)})"

    def _lift(self, node: ast.Lift) -> str:
        return f"({self.flat(node.variable)} ^= {self.flat(node.body)})"

    def _comparison(self, node: ast.Comparison) -> str:
        return f"{{{self.operand(node.left)} {node.op} {self.operand(node.right)}}}"

    def _in(self, node: ast.In) -> str:
        return f"{{{self.operand(node.operand)} IN [{', '.join(map(self.flat, node.values))}]}}"

    def _call(self, node: ast.Call) -> str:
        parameters = f"<{', '.join(map(str, node.parameters))}>" if node.parameters else ""
        arguments = ", ".join(map(self.flat, node.arguments))
        return f"[{node.function}{parameters}: {node.type}]({arguments})"

    def _mapaccess(self, node: ast.MapAccess) -> str:
        type_ = f"({node.type})" if node.type is not None else ""
        initial = f":({self.flat(node.initial)})" if node.initial is not None else ""
        return f"{node.name}{type_}[{self.names(node.inputs)}][{self.names(node.keys)}]{initial}"

    def _relation(self, node: ast.Relation) -> str:
        return f"{node.name}({self.names(node.variables)})"

    def _deltarelation(self, node: ast.DeltaRelation) -> str:
        return f"(DELTA {node.name})({self.names(node.variables)})"

    def _variable(self, node: ast.Variable) -> str:
        return f"{node.name}:{node.type}" if self.in_a5 and node.type is not None else node.name

    def names(self, variables: tuple[ast.Variable, ...]) -> str:
        return ", ".join(map(self.flat, variables))

    def _constant(self, node: ast.Constant) -> str:
        value = node.value
        if isinstance(value, datetime.date):
            return f"DATE('{value.isoformat()}')"
        if isinstance(value, str):
            return self.string(value, node)
        if isinstance(value, float):
            return self.float(value, node)
        return f"{value}L" if node.type == "long" else str(value)

    def float(self, value: float, node: ast.Constant) -> str:
        if not math.isfinite(value):
            raise SourceError(f"M3 has no word for {value}", span=node.span)
        if self.in_a5 and not 1e-5 < abs(value) < 1e16 and value:
            return repr(value).upper()
        return plain_float(value) + ("f" if node.type == "float" and not self.in_a5 else "")

    def string(self, text: str, node: ast.Node) -> str:
        quote = '"' if "'" in text and not self.in_a5 else "'"
        if quote in text or "\n" in text:
            help = "M3 has no escapes in strings"
            raise SourceError(f"{text!r} cannot be written as a string", span=node.span, help=help)
        return f"{quote}{text}{quote}"

    # Expressions in several lines

    def layout(self, node: ast.Node, indent: int) -> str:
        """In one line where that fits; else broken at the operators, or after the bracket that opens."""
        if indent + len(self.flat(node)) < WIDTH:
            return self.flat(node)
        margin = "\n" + " " * indent
        if isinstance(node, ast.Product):
            return f" *{margin}".join(self._placed(f, indent) for f in node.factors)
        if isinstance(node, ast.Sum):
            return f" +{margin}".join(self._placed(t, indent) for t in node.terms)
        opening = self._opening(node)
        if opening is None:
            return self.flat(node)
        assert isinstance(node, ast.AggSum | ast.Lift | ast.Exists | ast.Domain)
        body = self.layout(node.body, indent + 2)
        return f"{opening}{margin}  {body}{margin})"

    def _placed(self, node: ast.Node, indent: int) -> str:
        if self._needs_parentheses(node):
            return f"({self.layout(node, indent + 1)})"
        return self.layout(node, indent)

    def _opening(self, node: ast.Node) -> str | None:
        if isinstance(node, ast.AggSum):
            return f"AggSum([{self.names(node.keys)}],"
        if isinstance(node, ast.Lift):
            return f"({self.flat(node.variable)} ^="
        if isinstance(node, ast.Exists | ast.Domain):
            return "EXISTS(" if isinstance(node, ast.Exists) else "DOMAIN("
        return None
