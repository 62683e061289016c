"""Owns the body of a rule -> factors of the calculus: their product is 1 for each assignment that satisfies
the body, and 0 for all others.  Knows neither heads nor what predicates are made of.

    # r(x, y), !s(y), z = x + y, n = count : {t(y, _)}, n > z
    # R(x, y) * {AggSum([], S(c) * {c = y}) = 0} * {AggSum([], T(d, e) * {d = y}) > (x + y)}

A variable that rows bind is one of M3, by which rows of the same conjunction are joined.  What is computed,
also an inline aggregate, is put wherever it is used.  A negation, an aggregate and a branch of a disjunction
have variables of their own: a variable from outside is compared with one of theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from dlog.ir import rules as ir
from dlog.ir.lower.quantify import form_bindings
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import NONE, outputs
from dlog.multilevel.values import ONE, ZERO, plus, sum_over, times
from dlog.views.conditions import either
from dlog.views.names import Names
from dlog.views.rules.sources import LEVELS
from dlog.views.rules.values import Values

Known = Mapping[str, Node]


class Predicates(Protocol):
    """What atoms stand for."""

    names: Names
    scaled: bool

    def columns(self, predicate: str) -> tuple[ir.Column, ...]: ...

    def rows(self, atom: ir.Atom, variables: tuple[str, ...]) -> Node:
        """1 for the rows of a predicate, in variables that it binds."""

    def inline_aggregate(self, form: ir.Disjunction) -> ir.Atom | None:
        """The atom of the auxiliary predicate that a disjunction asks for an aggregate or its value over
        nothing.
        """

    def aggregate(self, atom: ir.Atom, groups: tuple[Node, ...]) -> Node:
        """The value of such an aggregate."""

    def is_implied(self, atom: ir.Atom, known: Known) -> bool:
        """Whether it holds wherever the value is asked for."""


class Body:
    """One conjunction with what it binds.  `known`: what stands for each variable; `bound`: the names that
    rows of this conjunction bind; `wanted`: the names that variables are to have.
    """

    def __init__(
        self,
        predicates: Predicates,
        rule: ir.Rule,
        known: Known | None = None,
        wanted: Mapping[str, str] | None = None,
    ):
        self.predicates, self.rule = predicates, rule
        self.known: dict[str, Node] = dict(known or {})
        self.wanted = wanted or {}
        self.bound: set[str] = set()
        self.factors: list[Node] = []
        self.values = Values(rule, predicates.scaled, self._value, self.factors.append, LEVELS)

    def read(self, conj: ir.Conj) -> Body:
        """Atoms first, so that rows are joined by what they bind."""
        for form in conj.forms:
            if isinstance(form, ir.Atom):
                self._atom(form)
        for form in conj.forms:
            match form:
                case ir.Primitive():
                    self._primitive(form)
                case ir.Negation():
                    self._negation(form)
                case ir.Disjunction():
                    self._disjunction(form)
        return self

    def bind(self, name: str, value: Node) -> None:
        """A variable of M3 that each assignment binds to a value."""
        if value != ast.Variable(name):
            self.factors.append(ast.Lift(ast.Variable(name), value))

    def typed(self, variable: str) -> Node:
        """What stands for a variable, with the digits of its type."""
        return self.values.with_digits(ir.Var(variable), self.values.type_digits(variable), None)

    def total(self, kept: Iterable[str], *values: Node) -> Node:
        """The sum of the values over all assignments, by the variables that are kept."""
        return sum_over(times([*self.factors, *values]), frozenset(kept))

    def _value(self, name: str) -> Node:
        return self.known[name]

    # ---- atoms

    def _atom(self, atom: ir.Atom) -> None:
        if self.predicates.is_implied(atom, self.known):
            return
        variables: list[str] = []
        conditions: list[Node] = []
        for argument, column in zip(atom.args, self.predicates.columns(atom.predicate), strict=True):
            name = self._joined(argument, column, variables)
            if name is None:
                name = self.predicates.names.fresh(column.name)
                value = self.values.in_column(argument, column, atom.span)
                conditions.append(ast.Comparison("=", ast.Variable(name), value))
            variables.append(name)
        self.factors += [self.predicates.rows(atom, tuple(variables)), *conditions]

    def _joined(self, argument: ir.Operand, column: ir.Column, used: list[str]) -> str | None:
        """The variable that a column binds or is joined by; None: it is compared."""
        if isinstance(argument, ir.Const):
            return None
        if argument.name not in self.known:
            name = self.wanted.get(argument.name) or self.fresh(argument.name, column.name)
            self._now_bound(argument.name, name)
            return name
        known = self.known[argument.name]
        is_bound = isinstance(known, ast.Variable) and known.name in self.bound and known.name not in used
        return known.name if is_bound else None  # type: ignore[attr-defined]

    def fresh(self, variable: str, otherwise: str = "value") -> str:
        """A name in M3; wildcards have names of columns."""
        return self.predicates.names.fresh(otherwise if variable.startswith("_") else variable)

    def _now_bound(self, variable: str, name: str) -> None:
        self.known[variable] = ast.Variable(name)
        self.bound.add(name)

    # ---- conditions and computed values

    def _primitive(self, form: ir.Primitive) -> None:
        if form.output is not None:
            digits = self.values.exact_digits(form)
            self._give(form.output, self.values.value(form, digits), digits)
            return
        left, right = form.inputs if form.name == "eq" else (None, None)
        for variable, value in ((left, right), (right, left)):
            if isinstance(variable, ir.Var) and value is not None and variable.name not in self.known:
                digits = self.values.digits(value)
                self._give(variable, self.values.operand(value), digits)
                return
        self.factors.append(self.values.comparison(form))

    def _inside(self, known: Known, wanted: Mapping[str, str] | None = None) -> Body:
        """For a conjunction in this one."""
        body = Body(self.predicates, self.rule, known, wanted)
        body.values.more_digits = self.values.more_digits
        return body

    def _give(self, output: ir.Operand, value: Node, digits: int) -> None:
        """A value with so many digits becomes that of a variable, or is compared.  No digits are lost."""
        most = max(digits, self.values.digits(output))
        if isinstance(output, ir.Var) and output.name not in self.known:
            if digits > self.values.digits(output):
                self.values.more_digits[output.name] = digits
            self.known[output.name] = self.values.scaled_by(value, most - digits)
            return
        left = self.values.with_digits(output, most, None)
        self.factors.append(ast.Comparison("=", left, self.values.scaled_by(value, most - digits)))

    def _negation(self, form: ir.Negation) -> None:
        """No assignment; of a disjunction, none in any branch."""
        for branch in self._alternatives(form.body):
            count = self._inside(self.known).read(branch).total(NONE)
            self.factors.append(ast.Comparison("=", count, ZERO))

    def _alternatives(self, conj: ir.Conj) -> tuple[ir.Conj, ...]:
        """The branches, if it is nothing but a disjunction."""
        form = conj.forms[0] if len(conj.forms) == 1 else None
        if not isinstance(form, ir.Disjunction) or self.predicates.inline_aggregate(form) is not None:
            return (conj,)
        return form.branches

    # ---- disjunctions

    def _disjunction(self, form: ir.Disjunction) -> None:
        atom = self.predicates.inline_aggregate(form)
        if atom is not None:
            *groups, result = atom.args
            columns = self.predicates.columns(atom.predicate)
            asked = (self.values.in_column(g, c, form.span) for g, c in zip(groups, columns, strict=False))
            digits = columns[-1].type.scale if self.predicates.scaled else 0
            self._give(result, self.predicates.aggregate(atom, tuple(asked)), digits)
            return
        if not form.branches:
            self.factors.append(ast.Comparison("=", ONE, ZERO))
            return
        given = self._joined_by(form)
        new = sorted(form_bindings(form) - self.known.keys())
        names = {**given, **{v: self.wanted.get(v) or self.fresh(v) for v in new}}
        outside = {v: node for v, node in self.known.items() if v not in given}
        branches = [self._inside(outside, names).read(branch) for branch in form.branches]
        if form.exclusive or _differ(branches, new):
            self._exclusive(form, branches, names, new)
            return
        for branch in branches:
            for variable in new:
                branch.bind(names[variable], branch.typed(variable))
        if not names and not any(outputs(times(branch.factors)) for branch in branches):
            self.factors.append(either([times(branch.factors) for branch in branches]))
        else:
            self.factors.append(ast.Exists(plus(b.total(names.values()) for b in branches)))
        for variable in new:
            self._now_bound(variable, names[variable])

    def _exclusive(
        self, form: ir.Disjunction, branches: list[Body], names: dict[str, str], new: list[str]
    ) -> None:
        """No assignment is in two branches: they are added.  What only tells them apart is left out."""
        kept = [v for v in new if self._is_used_outside(v, form)]
        terms = []
        for branch in branches:
            for variable in new:
                known = branch.typed(variable)
                is_row = isinstance(known, ast.Variable) and known.name in branch.bound
                if variable in kept or is_row:
                    branch.bind(names[variable], known)
            rows = branch.total(names.values())
            is_several = bool(branch.bound - set(names.values()))
            left = frozenset(names.values()) - {names[v] for v in new if v not in kept}
            terms.append(sum_over(ast.Exists(rows) if is_several else rows, left))
        self.factors.append(plus(terms))
        self.bound.update(names[v] for v in new)
        self.known.update((v, ast.Variable(names[v])) for v in kept)

    def _joined_by(self, form: ir.Disjunction) -> dict[str, str]:
        """Variables that rows bind here and in each branch, by name."""
        found = {
            v: n.name for v, n in self.known.items() if isinstance(n, ast.Variable) and n.name in self.bound
        }
        for branch in form.branches:
            atoms = (a for a in branch.forms if isinstance(a, ir.Atom))
            there = {arg.name for atom in atoms for arg in atom.args if isinstance(arg, ir.Var)}
            found = {v: name for v, name in found.items() if v in there}
        return found

    def _is_used_outside(self, variable: str, form: ir.Disjunction) -> bool:
        rule = self.rule
        arguments = [a.argument for a in rule.aggregates if isinstance(a.argument, ir.Var)]
        heads = [a for head in rule.heads for a in head.args if isinstance(a, ir.Var)]
        everywhere = Counter(v.name for v in (*rule.body.occurrences(), *arguments, *heads))
        return everywhere[variable] > Counter(v.name for v in ir.Conj((), (form,)).occurrences())[variable]


def _differ(branches: list[Body], variables: Iterable[str]) -> bool:
    """Whether some variable is another constant in each branch."""
    for variable in variables:
        values = [branch.known[variable] for branch in branches]
        if all(isinstance(v, ast.Constant) for v in values) and len(set(values)) == len(values):
            return True
    return False
