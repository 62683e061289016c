"""Owns aggregation rule -> the neutral form of a query.  Knows no files and no variable orders.

    # total[c] = s, lines[c] = n <- agg<<s = sum(q * p), n = count()>> line(o, i, q), price[i] = p, of(o, c).

The body is a conjunction of atoms, comparisons and arithmetic; computed values are substituted where they are
used.  The value of a sum is split into products of factors: a sum of terms over different relations becomes a
sum of several products.  Relations are sets, so that every assignment counts once.  What has no such form is
an UnsupportedError with its position.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from dlog.errors import UnsupportedError
from dlog.ir import rules as ir
from dlog.ir.lower.quantify import form_bindings
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.views.conditions import either
from dlog.views.query import Aggregate, Atom, Query, Term, count, smallest_factors, variables_of
from dlog.views.rules.sources import VIEW_TREES, Describe, source_name, source_of
from dlog.views.rules.values import ONE, Values

MOST_TERMS = 16  # of an aggregate, after its sums were multiplied out
COUNT_OF_MEAN = "number of rows"


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


class _Reader:
    def __init__(
        self, rule: ir.Rule, describe: Describe, predicates: Mapping[str, ir.Predicate], scaled: bool
    ):
        """`scaled`: decimals are integers in units of their last digit."""
        self.rule, self.describe, self.predicates = rule, describe, predicates
        self.values = Values(rule, scaled, self._known, self._require, VIEW_TREES)
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
                self.bound.add(argument.name)
                continue
            name = next(n for n in self.fresh if n not in self.rule.types)
            value = self.values.in_column(argument, column, atom.span)
            self._require(ast.Comparison("=", ast.Variable(name), value))
            variables.append(name)
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
        """Alternatives that give a variable of the body other values are other assignments, and are added."""
        around, computed = self.conditions, self.computed
        new = sorted(form_bindings(form) - self.bound - computed.keys())
        parts: dict[tuple[ast.Node | None, ...], list[ast.Node]] = {}
        for branch in form.branches:
            self.conditions, self.computed = [], dict(computed)
            for inner in branch.forms:
                self._form(inner)
            values = tuple(map(self.computed.get, new))
            parts.setdefault(values, []).append(ast.product(self.conditions or [ONE]))
        self.conditions, self.computed = around, computed
        if not _are_told_apart(parts):
            raise self._unsupported("view trees have no alternatives that compute a variable each", form.span)
        self.conditions.append(ast.total([either(same) for same in parts.values()]))

    def _primitive(self, form: ir.Primitive) -> None:
        if form.output is None:
            sides = form.inputs if form.name == "eq" else ()
            for left, right in (sides, sides[::-1]) if sides else ():
                if self._defines(left, right):
                    assert isinstance(left, ir.Var)
                    digits = self.values.digits(left)
                    self.computed[left.name] = self.values.with_digits(right, digits, form.span)
                    return
            self._require(self.values.comparison(form))
            return
        value, output = self.values.value(form), form.output
        if isinstance(output, ir.Var) and output.name not in self.bound and output.name not in self.computed:
            self.computed[output.name] = value
        else:
            self._require(ast.Comparison("=", self.values.operand(output), value))

    def _defines(self, left: ir.Operand, right: ir.Operand) -> bool:
        """Whether an equality binds a variable."""
        known = isinstance(right, ir.Const) or right.name in self.bound or right.name in self.computed
        return (
            isinstance(left, ir.Var)
            and known
            and left.name not in self.bound
            and left.name not in self.computed
        )

    def _require(self, condition: ast.Node) -> None:
        self.conditions.append(condition)

    def _known(self, name: str) -> ast.Node:
        if name not in self.bound and name not in self.computed:
            raise self._unsupported(f"view trees have no value that alternatives compute: {name}", None)
        return self.computed.get(name) or ast.Variable(name)

    # ---- aggregates

    def _aggregates(self) -> tuple[Aggregate, ...]:
        found: list[Aggregate] = []
        for aggregate in self.rule.aggregates:
            if not (aggregate.function.in_ring or aggregate.function.is_quotient):
                message = f"view trees maintain sums, counts and means, not {aggregate.function}"
                raise self._unsupported(message, aggregate.span)
            found.append(self._aggregate(aggregate))
        if any(a.divisor for a in found):
            return (*found, Aggregate(COUNT_OF_MEAN, count().terms, hidden=True))
        return tuple(found)

    def _aggregate(self, aggregate: ir.Aggregate) -> Aggregate:
        if aggregate.argument is None:
            return count(aggregate.result.name)
        terms = self._terms(self.values.operand(aggregate.argument))
        if len(terms) > MOST_TERMS:
            raise self._unsupported(f"{aggregate} is a sum of {len(terms)} products", aggregate.span)
        divisor = COUNT_OF_MEAN if aggregate.function.is_quotient else None
        plain = (tuple(factor for factor in term if factor != ONE) for term in terms)
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


def _are_told_apart(parts: Mapping[tuple[ast.Node | None, ...], Sequence[ast.Node]]) -> bool:
    """Whether no assignment satisfies conditions under different values: some value is another constant.
    Those under the same values are one alternative, if it is known what the values are."""
    if any(len(same) > 1 and None in values for values, same in parts.items()):
        return False
    return all(
        any(
            isinstance(v, ast.Constant) and isinstance(w, ast.Constant) and v != w
            for v, w in zip(a, b, strict=True)
        )
        for a, b in itertools.combinations(parts, 2)
    )
