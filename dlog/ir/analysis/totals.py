"""Owns recursive sums and counts, *totals*: whether they only grow as the recursion proceeds.

A total grows if what it adds up is not negative and only gets more.  What is derived from it must stay
derivable: it may be compared with a lower bound, and go through order-preserving operations into another
total.  It may not be compared from above or for equality, become a key, or occur under a negation.

An assignment that a total adds up is identified by the values that do not grow; with them, those that grow
have one value at a time.  Alternatives that have growing values must therefore be told apart by the number
that lowering gives them (`dlog.ir.lower.alternatives`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from dlog.errors import Diagnostics
from dlog.ir.analysis.monotone import CONVERSIONS, MONOTONE, Flow, Misuse, bound_by, target
from dlog.ir.analysis.non_negative import NonNegative, alternatives, is_in
from dlog.ir.analysis.projection import outer_variables, stored_as
from dlog.ir.rules import (
    Aggregate,
    Atom,
    Conj,
    Const,
    Disjunction,
    Form,
    Negation,
    Predicate,
    Primitive,
    Rule,
    Var,
)
from dlog.ir.types.typecheck import called, text_of

_GROWS = -1  # the direction of max: greater is better
_USES = "a recursive {op} may be compared with a lower bound, as in s > 50, and go through + and * into a sum"
_POSITIVE = "add a condition such as {0} >= 0 to the rule, or a constraint such as p(x, {0}) -> {0} >= 0."


def totals_of(rules: Iterable[Rule]) -> dict[str, str]:
    """Predicates of a recursion whose values are sums or counts."""
    totals: dict[str, str] = {}
    for rule in rules:
        head = rule.heads[0]
        for aggregate in rule.aggregates:
            in_value = head.is_functional and head.args[-1] == aggregate.result
            if in_value and aggregate.function.grows and len(rule.aggregates) == 1:
                totals.setdefault(head.predicate, aggregate.op)
    return totals


def without_nothing(rule: Rule, totals: Mapping[str, str], known: NonNegative) -> Rule:
    """The rule without the 0 that an inline total has over nothing, where a lower bound excludes it."""

    def kept(form: Form) -> tuple[Form, ...]:
        if not isinstance(form, Disjunction) or not form.exclusive or len(form.branches) != 2:
            return (form,)
        atom, zero = _inline_total(form, totals), form.branches[1].forms[-1]
        bounded = isinstance(zero, Primitive) and _excludes_zero(rule, zero.inputs[0], positive)
        return (atom,) if atom is not None and bounded else (form,)

    positive = known.variables(rule, rule.body.forms)
    forms = tuple(one for form in rule.body.forms for one in kept(form))
    return rule if forms == rule.body.forms else replace(rule, body=replace(rule.body, forms=forms))


def _inline_total(form: Form, totals: Mapping[str, str]) -> Atom | None:
    """The total of an inline aggregate, which is 0 over nothing."""
    if not isinstance(form, Disjunction) or not form.exclusive or len(form.branches) != 2:
        return None
    atom = form.branches[0].forms[0] if len(form.branches[0].forms) == 1 else None
    return atom if isinstance(atom, Atom) and atom.predicate in totals else None


def _excludes_zero(rule: Rule, value: object, positive: set[str]) -> bool:
    for form in rule.body.forms:
        if isinstance(form, Primitive) and form.output is None and value in form.inputs:
            place = form.inputs.index(value)
            other = form.inputs[1 - place] if len(form.inputs) == 2 else None
            if other is None or (form.name, place) not in bound_by(_GROWS):
                continue
            above = isinstance(other, Const) and any(c in "123456789" for c in str(other.value))
            if is_in(other, positive) and (form.name in ("gt", "lt") or above):
                return True
    return False


def check_totals(
    rules: Sequence[Rule],
    totals: Mapping[str, str],
    predicates: Mapping[str, Predicate],
    known: NonNegative,
    diagnostics: Diagnostics,
) -> None:
    """Reports the first misuse in each rule of a recursion.  REQUIRES: forms are in a safe order."""
    derived: set[str] = set()
    for rule in rules:
        try:
            _check_rule(rule, totals, predicates, known, derived)
        except Misuse as misuse:
            message = f"the recursive {misuse.op} is not monotone: {misuse.what}"
            help = misuse.help or _USES.format(op=misuse.op)
            diagnostics.error(message, misuse.span or rule.span, help)


def _check_rule(
    rule: Rule,
    totals: Mapping[str, str],
    predicates: Mapping[str, Predicate],
    known: NonNegative,
    derived: set[str],
) -> None:
    for head in rule.heads:
        if head.predicate in totals:
            _check_head(rule, head, totals[head.predicate], predicates[head.predicate], derived)
    bodies = list(alternatives(tuple(_inline_total(f, totals) or f for f in rule.body.forms)))
    for forms in bodies:
        flow = _TotalFlow(rule, totals, known.variables(rule, forms))
        flow.run(Conj((), forms), set())
        flow.check_heads()
    for form in rule.body.forms:
        _check_nothing(form, totals)
    for one, other in combinations(bodies, 2):
        _check_apart(rule, one, other, totals)


def _check_head(rule: Rule, head: Atom, op: str, predicate: Predicate, derived: set[str]) -> None:
    """A total has one rule, whose keys are stored as they are: otherwise a key could have two values."""
    name = head.predicate
    if name in derived or not rule.aggregates:
        help = f"write the alternatives in one body: {name}[...] = s <- agg<<s = {op}(...)>> (... ; ...)."
        raise Misuse(op, f"{name} has more than one rule", rule.span, help)
    derived.add(name)
    types = [column.type for column in predicate.columns]
    for operand, type in zip(head.keys, types, strict=False):
        if isinstance(operand, Var) and not stored_as(rule, operand, type):
            help = f"declare the key of {name} with as many digits as {called(operand)} has"
            raise Misuse(op, f"the key {called(operand)} is rounded", operand.span or head.span, help)


def _check_nothing(form: Form, totals: Mapping[str, str]) -> None:
    """An inline total is 0 over nothing: that is a negation, which `without_nothing` has not removed."""
    total = _inline_total(form, totals)
    if total is not None:
        value, op = called(total.args[-1]), totals[total.predicate]
        help = f"exclude 0, as in {value} > 0, or give the aggregate its own rule: "
        help += f"f[...] = n <- agg<<n = {op}(...)>> ..."
        raise Misuse(op, f"{value} is 0 over nothing", form.span, help)


def growing_values(forms: Iterable[Form], totals: Mapping[str, str]) -> dict[str, frozenset[Atom]]:
    """The variables of a checked conjunction that grow, with the atoms of totals they are computed from."""
    found: dict[str, frozenset[Atom]] = {}
    bound: set[str] = set()
    for form in forms:
        if isinstance(form, Atom) and form.predicate in totals and isinstance(form.args[-1], Var):
            found[form.args[-1].name] = frozenset((form,))
        elif isinstance(form, Primitive):
            given = [found[a.name] for a in form.inputs if isinstance(a, Var) and a.name in found]
            result = target(form, bound)
            if given and result is not None:
                found[result] = frozenset().union(*given)
        if isinstance(form, Atom | Primitive):
            bound |= {a.name for a in form.args if isinstance(a, Var)}
    return found


def _check_apart(
    rule: Rule, one: tuple[Form, ...], other: tuple[Form, ...], totals: Mapping[str, str]
) -> None:
    """Whether no assignment satisfies two alternatives, where it has values that grow."""
    if not rule.aggregates or rule.heads[0].predicate not in totals:
        return
    outer = set(outer_variables(rule))
    if not outer & {*growing_values(one, totals), *growing_values(other, totals)}:
        return
    mine, others = _constants(one), _constants(other)
    if not any(mine[name] != others[name] for name in mine.keys() & others.keys()):
        op = totals[rule.heads[0].predicate]
        help = "give each alternative a variable with its own number, as in (kind = 1, ... ; kind = 2, ...)"
        what = "two alternatives with a value that grows may give the same assignment"
        raise Misuse(op, what, rule.aggregates[0].span, help)


def _constants(forms: Iterable[Form]) -> dict[str, object]:
    found: dict[str, object] = {}
    for form in forms:
        if isinstance(form, Primitive) and form.name == "eq":
            for a, b in (form.inputs, form.inputs[::-1]):
                if isinstance(a, Var) and isinstance(b, Const):
                    found[a.name] = b.value
    return found


class _TotalFlow(Flow):
    """Follows growing values through one alternative.  `positive` are variables that are not negative."""

    def __init__(self, rule: Rule, totals: Mapping[str, str], positive: set[str]):
        super().__init__(rule, dict(totals))
        self.positive = positive

    def negation(self, negation: Negation) -> None:
        for atom, _ in negation.body.atoms():
            if atom.predicate in self.combine:
                op = self.combine[atom.predicate]
                raise Misuse(op, f"{atom.predicate} is used under a negation", atom.span or negation.span)
        super().negation(negation)

    def comparison(self, form: Primitive, used: list[int]) -> None:
        for index in used:
            if (form.name, index) not in bound_by(_GROWS):
                name = called(form.inputs[index])
                what = f"{text_of(form)} may stop holding as {name} grows"
                raise Misuse(self.op_at(form, index), what, form.span)

    def function(self, form: Primitive, used: list[int], result: str | None) -> None:
        index = used[0]
        if result is None:
            raise Misuse(self.op_at(form, index), f"{text_of(form)} compares a value that grows", form.span)
        if form.name != "eq" and not self.keeps_order(form, used):
            what = f"{text_of(form)} may get smaller as {called(form.inputs[index])} grows"
            raise Misuse(self.op_at(form, index), what, form.span)
        self.values[result] = self.op_at(form, index)

    def keeps_order(self, form: Primitive, used: list[int]) -> bool:
        others = [a for i, a in enumerate(form.inputs) if i not in used]
        if form.name == "mul":
            return all(is_in(a, self.positive) for a in form.inputs)
        if form.name == "div":
            return used == [0] and all(is_in(a, self.positive) for a in others)
        if form.name in CONVERSIONS and not self.rule.types[self.name_at(form, 0)].is_numeric:
            return False
        return all(i in MONOTONE.get(form.name, ()) for i in used)

    def check_heads(self) -> None:
        for aggregate in self.rule.aggregates:
            self.check_argument(aggregate)
        for head in self.rule.heads:
            self.check_head(head)

    def check_argument(self, aggregate: Aggregate) -> None:
        argument = aggregate.argument
        if argument is None or self.rule.heads[0].predicate not in self.combine:
            return
        adds_up = aggregate.function.adds_up
        if isinstance(argument, Var) and argument.name in self.values and not adds_up:
            what = f"the value {called(argument)} goes into {aggregate.op}"
            raise Misuse(self.values[argument.name], what, aggregate.span)
        if adds_up and not is_in(argument, self.positive):
            name = argument.name if isinstance(argument, Var) and argument.name.isidentifier() else "x"
            help = _POSITIVE.format("x" if name.startswith("_") else name)
            raise Misuse(aggregate.op, f"{called(argument)} may be negative", aggregate.span, help)

    def check_head(self, head: Atom) -> None:
        for index, operand in enumerate(head.args):
            if isinstance(operand, Var) and operand.name in self.values:
                place = "a key" if index < head.n_keys else "the value"
                what = f"{called(operand)}, which grows, becomes {place} of {head.predicate}"
                raise Misuse(self.values[operand.name], what, operand.span or head.span)
