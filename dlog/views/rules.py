"""Owns aggregation rule -> the neutral form of a query.  Knows no files and no variable orders.

    # total[c] = s, lines[c] = n <- agg<<s = sum(q * p), n = count()>> line(o, i, q), price[i] = p, of(o, c).

The body is a conjunction of atoms, comparisons and arithmetic; computed values are substituted where they are
used.  The value of a sum is split into products of factors: a sum of terms over different relations becomes a
sum of several products.  Relations are sets, so that every assignment counts once.  What has no such form is
an UnsupportedError with its position.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from dlog.errors import UnsupportedError
from dlog.ir import rules as ir
from dlog.ir.lower.literals import literal_value
from dlog.ir.types.decimals import literal_scale
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.values import BUILTIN_TYPES, FLOAT
from dlog.views.conditions import either
from dlog.views.query import Aggregate, Atom, Query, Term, count, smallest_factors, variables_of

COMPARISONS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
MOST_TERMS = 16  # of an aggregate, after its sums were multiplied out
INT_RANGE = range(-(2**31), 2**31)
_ONE = ast.Constant("int", 1)

Describe = Callable[[str], ast.Source]


def query_of(
    rule: ir.Rule, predicates: Mapping[str, ir.Predicate], describe: Describe | None = None
) -> Query:
    """The query of a rule with aggregates.  Aggregates are named as their results.

    `describe` gives the relation of a predicate, and decimals are floats, since M3 has no other.  Without it
    all are streams, and decimals are integers in units of their last digit, as in the engine: sums of them
    have the digits that the rule gives its result.
    """
    digits = "long" if describe is None else "double"
    found = describe or (lambda name: source_of(predicates[name], decimals=digits))
    return _Reader(rule, found, predicates, describe is None).query()


def source_of(
    predicate: ir.Predicate,
    kind: str = ast.STREAM,
    file: str | None = None,
    options: tuple[tuple[str, str], ...] = (),
    decimals: str = "double",
) -> ast.Source:
    """A predicate as a relation of M3.  Raises if M3 has no type for a column."""
    columns = []
    for column in predicate.columns:
        type_ = decimals if column.type.is_decimal else column.type.m3
        if type_ is None:
            message = f"{predicate.name}: view trees have no columns of type {column.type}"
            raise UnsupportedError(message, span=predicate.span)
        columns.append(ast.Column(column.name, TypeRef(type_)))
    return ast.Source(kind, source_name(predicate.name), tuple(columns), file=file, options=options)


class _Reader:
    def __init__(
        self, rule: ir.Rule, describe: Describe, predicates: Mapping[str, ir.Predicate], scaled: bool
    ):
        """`scaled`: decimals are integers in units of their last digit."""
        self.rule, self.describe, self.predicates, self.scaled = rule, describe, predicates, scaled
        self.sources: dict[str, ast.Source] = {}
        self.atoms: list[Atom] = []
        self.conditions: list[ast.Node] = []
        self.computed: dict[str, ast.Node] = {}
        self.bound: set[str] = set()
        self.fresh = (f"same{i}" for i in itertools.count(1))

    def query(self) -> Query:
        forms = self.rule.body.forms
        for form in forms:
            if isinstance(form, ir.Atom):
                self._atom(form)
        for form in forms:
            if not isinstance(form, ir.Atom):
                self._form(form)
        for group in self.rule.groups:
            if group.name not in self.bound:
                raise self._unsupported(f"{group} is computed: view trees group by columns", self.rule.span)
        return Query(
            tuple(self.sources.values()),
            tuple(self.atoms),
            self._aggregates(),
            tuple(group.name for group in self.rule.groups),
            tuple(self.conditions),
            name=source_name(self.rule.heads[0].predicate),
            span=self.rule.span,
        )

    # ---- body

    def _atom(self, atom: ir.Atom) -> None:
        source = self.sources.setdefault(atom.predicate, self.describe(atom.predicate))
        variables: list[str] = []
        for argument, column in zip(atom.args, self.predicates[atom.predicate].columns, strict=True):
            if isinstance(argument, ir.Var) and argument.name not in variables:
                variables.append(argument.name)
                continue
            name = next(n for n in self.fresh if n not in self.rule.types)
            digits = column.type.scale if self.scaled else 0
            self._condition("=", ast.Variable(name), self._with_digits(argument, digits, atom.span))
            variables.append(name)
        self.bound.update(variables)
        same = sum(other.relation == source.name for other in self.atoms)
        alias = f"{source.name}_{same + 1}" if same else ""
        self.atoms.append(Atom(source.name, tuple(variables), alias, span=atom.span))

    def _form(self, form: ir.Form) -> None:
        if isinstance(form, ir.Primitive):
            self._primitive(form)
        elif isinstance(form, ir.Disjunction):
            self._disjunction(form)
        else:
            what = "negation" if isinstance(form, ir.Negation) else "disjunction of atoms"
            raise self._unsupported(f"view trees have no {what}", form.span)

    def _disjunction(self, form: ir.Disjunction) -> None:
        """The values computed in a branch belong to it."""
        around, computed, parts = self.conditions, self.computed, list[ast.Node]()
        for branch in form.branches:
            self.conditions, self.computed = [], dict(computed)
            for inner in branch.forms:
                self._form(inner)
            parts.append(ast.product(self.conditions) if self.conditions else ast.Constant("int", 1))
        self.conditions, self.computed = around, computed
        self.conditions.append(either(parts))

    def _primitive(self, form: ir.Primitive) -> None:
        if form.output is None:
            if form.name not in COMPARISONS:
                raise self._unsupported(f"view trees do not support {form.name}", form.span)
            left, right = form.inputs
            if form.name == "eq" and self._defines(right, left):
                left, right = right, left
            if form.name == "eq" and self._defines(left, right):
                assert isinstance(left, ir.Var)
                self.computed[left.name] = self._with_digits(right, self._digits(left), form.span)
                return
            digits = max(self._digits(left), self._digits(right))
            sides = [self._with_digits(side, digits, form.span) for side in (left, right)]
            self._condition(COMPARISONS[form.name], sides[0], sides[1])
            return
        value = self._value(form)
        output = form.output
        if isinstance(output, ir.Var) and output.name not in self.bound and output.name not in self.computed:
            self.computed[output.name] = value
        else:
            self._condition("=", self._operand(output), value)

    def _defines(self, left: ir.Operand, right: ir.Operand) -> bool:
        """Whether an equality binds a variable."""
        known = isinstance(right, ir.Const) or right.name in self.bound or right.name in self.computed
        return (
            isinstance(left, ir.Var)
            and known
            and left.name not in self.bound
            and left.name not in self.computed
        )

    def _condition(self, op: str, left: ast.Node, right: ast.Node) -> None:
        self.conditions.append(ast.Comparison(op, left, right))

    def _value(self, form: ir.Primitive) -> ast.Node:
        """With as many digits as the rule gives its output."""
        assert form.output is not None
        wanted, given = self._digits(form.output), list(map(self._digits, form.inputs))
        if form.name == "mul":
            values = [v for operand in form.inputs if (v := self._operand(operand)) != _ONE]
            return self._scaled(ast.product(values or [_ONE]), wanted - sum(given), form.span)
        if form.name == "div" and self._is_float(form.output):
            return self._quotient(*map(self._operand, form.inputs))
        values = [self._with_digits(operand, max(given), form.span) for operand in form.inputs]
        minus = ast.Constant("int", -1)
        match form.name:
            case "add":
                value = ast.total(values)
            case "sub":
                value = ast.total([values[0], ast.product([minus, values[1]])])
            case "neg":
                value = ast.product([minus, values[0]])
            case "to_float":
                value = ast.product([ast.Constant("double", 1.0), values[0]])
            case "year" | "month" | "day":
                value = ast.Call(f"{form.name}_part", TypeRef("int"), tuple(values))
            case _:
                raise self._unsupported(f"view trees do not compute {form.name}", form.span)
        return self._scaled(value, wanted - max(given), form.span)

    def _is_float(self, operand: ir.Operand) -> bool:
        return isinstance(operand, ir.Var) and self.rule.types[operand.name] == FLOAT

    def _quotient(self, left: ast.Node, right: ast.Node) -> ast.Node:
        """If the divisor is 0 there is no value: the assignment does not count."""
        self._condition("!=", right, ast.Constant("int", 0))
        return ast.product([left, ast.Call("/", TypeRef("double"), (right,))])

    def _operand(self, operand: ir.Operand) -> ast.Node:
        if isinstance(operand, ir.Var):
            return self.computed.get(operand.name) or ast.Variable(operand.name)
        return self._constant(operand)

    # ---- digits of decimals

    def _digits(self, operand: ir.Operand) -> int:
        """How many digits after the point a value has, if decimals are integers."""
        if not self.scaled:
            return 0
        if isinstance(operand, ir.Const):
            return literal_scale(operand) if operand.type is not None and operand.type.is_decimal else 0
        return self.rule.types[operand.name].scale if operand.name in self.rule.types else 0

    def _with_digits(self, operand: ir.Operand, digits: int, span: Span | None) -> ast.Node:
        return self._scaled(self._operand(operand), digits - self._digits(operand), span)

    def _scaled(self, node: ast.Node, digits: int, span: Span | None) -> ast.Node:
        """A value with more digits after its point."""
        if digits < 0:
            raise self._unsupported("view trees do not round", span)
        return ast.product([_whole(10**digits), node]) if digits else node

    def _constant(self, constant: ir.Const) -> ast.Node:
        type_, value = constant.type or BUILTIN_TYPES.get(constant.kind), constant.value
        if type_ is not None and type_.is_decimal:
            exact = Decimal(str(value))
            if not self.scaled:
                return ast.Constant("double", float(exact))
            return _whole(int(exact.scaleb(literal_scale(constant))))
        if type_ is not None and type_.m3 is not None:
            denoted = literal_value(constant.kind, value, type_)
            return _whole(denoted) if type_.m3 == "long" else ast.Constant(type_.m3, denoted)  # type: ignore[arg-type]
        raise self._unsupported(f"view trees have no constants of type {type_}", constant.span)

    # ---- aggregates

    def _aggregates(self) -> tuple[Aggregate, ...]:
        found: list[Aggregate] = []
        for aggregate in self.rule.aggregates:
            if not (aggregate.function.in_ring or aggregate.function.is_quotient):
                message = f"view trees maintain sums, counts and means, not {aggregate.op}"
                raise self._unsupported(message, aggregate.span)
            found.append(self._aggregate(aggregate))
        if any(a.divisor for a in found):
            return (*found, Aggregate(COUNT_OF_MEAN, count().terms, hidden=True))
        return tuple(found)

    def _aggregate(self, aggregate: ir.Aggregate) -> Aggregate:
        if aggregate.argument is None:
            return count(aggregate.result.name)
        terms = self._terms(self._operand(aggregate.argument))
        if len(terms) > MOST_TERMS:
            raise self._unsupported(f"{aggregate} is a sum of {len(terms)} products", aggregate.span)
        divisor = COUNT_OF_MEAN if aggregate.function.is_quotient else None
        plain = (tuple(factor for factor in term if factor != _ONE) for term in terms)
        return Aggregate(aggregate.result.name, tuple(map(Term, plain)), divisor)

    def _terms(self, node: ast.Node) -> list[tuple[ast.Node, ...]]:
        """A value as a sum of products; a sum within one relation stays one factor."""
        if isinstance(node, ast.Sum) and not self._in_one_atom(node):
            return [term for part in node.terms for term in self._terms(part)]
        if isinstance(node, ast.Product):
            parts = [self._terms(factor) for factor in smallest_factors(node.factors)]
            return [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*parts)]
        return [(node,)]

    def _in_one_atom(self, node: ast.Node) -> bool:
        used = set(variables_of(node))
        return any(used <= set(atom.variables) for atom in self.atoms)

    def _unsupported(self, message: str, span: Span | None) -> UnsupportedError:
        return UnsupportedError(message, span=span or self.rule.span)


def _whole(value: int) -> ast.Constant:
    return ast.Constant("int" if value in INT_RANGE else "long", value)


COUNT_OF_MEAN = "number of rows"


def source_name(predicate: str) -> str:
    """The name of a predicate as a relation of M3."""
    return re.sub(r"[^A-Za-z0-9_]", "_", predicate)


def aggregation_rules(program: ir.Program, head: str | None = None) -> Sequence[ir.Rule]:
    """The rules with aggregates, or those of one head."""
    return [r for r in program.rules if r.aggregates and head in (None, *(h.predicate for h in r.heads))]
