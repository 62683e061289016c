"""Owns safety: every variable is grounded, and forms are in an order in which they can be evaluated.

A form can run when the variables it needs are bound: a positive atom always can, a primitive when its inputs
are, a negation when all variables it shares with its surroundings are, a disjunction when each of its
branches binds all shared ones.  A form that can run stays able to, so the order in which forms are tried does
not matter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from dlog.errors import Diagnostics
from dlog.ir.lower.aggregates import is_domain
from dlog.ir.lower.alternatives import complete_alternatives
from dlog.ir.lower.grounding import possible_outputs
from dlog.ir.lower.quantify import quantify
from dlog.ir.record_forms import branch_of, field_name, is_constructor
from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Primitive, Rule, Var
from dlog.ir.types.typecheck import quote, text_of
from dlog.language.foreign import value_help
from dlog.language.source import Span


def make_safe(rule: Rule, diagnostics: Diagnostics) -> Rule:
    """The rule with its forms in a safe order and its quantifiers and keys set.

    O(forms^2) per conjunction; conjunctions are short.
    """
    errors = len(diagnostics.errors)
    results = {a.result.name for a in rule.aggregates}
    needed = [a for head in rule.heads for a in head.args if isinstance(a, Var) and a.name not in results]
    needed += [a.argument for a in rule.aggregates if isinstance(a.argument, Var)]
    body = _Body(rule, diagnostics)
    ordered, bound = body.order(rule.body, frozenset(), frozenset(v.name for v in needed))
    for var in needed:
        if var.name not in bound:
            body.report_needed(var)
    rule = replace(rule, body=ordered)
    if rule.aggregates and len(diagnostics.errors) == errors:
        rule = complete_alternatives(rule)
    return quantify(rule)


class _Body:
    """The body of one rule while it is brought into a safe order."""

    def __init__(self, rule: Rule, diagnostics: Diagnostics):
        self.rule = rule
        self.diagnostics = diagnostics
        self.names: dict[int, frozenset[str]] = {}  # by id of the form or conjunction
        self.memo: dict[tuple[int, frozenset[str]], frozenset[str]] = {}

    def variables(self, form: Form) -> frozenset[str]:
        if id(form) not in self.names:
            self.names[id(form)] = frozenset(Conj((), (form,)).variables())
        return self.names[id(form)]

    def shared(self, conj: Conj, outside: frozenset[str]) -> dict[int, frozenset[str]]:
        """For each form, those of its variables that occur around it."""
        uses = Counter(name for form in conj.forms for name in self.variables(form))
        return {
            id(form): frozenset(n for n in self.variables(form) if uses[n] > 1 or n in outside)
            for form in conj.forms
        }

    def order(
        self, conj: Conj, bound: frozenset[str], outside: frozenset[str]
    ) -> tuple[Conj, frozenset[str]]:
        """Forms in a safe order, and what is bound after them.  Reports what cannot be grounded.

        `outside` are the variables used around this conjunction.
        """
        waiting, ordered = list(conj.forms), []
        shared = self.shared(conj, outside | bound)
        while waiting:
            for form in waiting:
                after = self.after(form, bound, shared[id(form)])
                if after is not None:
                    break
            else:
                bound |= self.report_stuck(waiting, bound, shared)
                continue
            waiting.remove(form)
            if isinstance(form, Primitive) and is_constructor(form.name):
                ordered += directed(form, bound, shared[id(form)])
            else:
                ordered.append(self.order_inside(form, bound, shared[id(form)]))
            bound = after
        return replace(conj, forms=tuple(ordered)), bound

    def order_inside(self, form: Form, bound: frozenset[str], shared: frozenset[str]) -> Form:
        if isinstance(form, Negation):
            return replace(form, body=self.order(form.body, bound, shared)[0])
        if isinstance(form, Disjunction):
            return replace(form, branches=tuple(self.order(b, bound, shared)[0] for b in form.branches))
        return form

    # Forms that can run

    def after(self, form: Form, bound: frozenset[str], shared: frozenset[str]) -> frozenset[str] | None:
        """What is bound after a form, or None while it cannot run."""
        if isinstance(form, Atom):
            return bound | self.variables(form)
        if isinstance(form, Primitive):
            return bound | self.variables(form) if _inputs(form, bound) <= bound else None
        if isinstance(form, Negation):
            return bound if shared <= bound else None
        given = [self.closure(branch, bound, shared) for branch in form.branches]
        return bound | shared if all(shared <= g for g in given) else None

    def closure(self, conj: Conj, bound: frozenset[str], outside: frozenset[str]) -> frozenset[str]:
        """What is bound after all forms of a conjunction that can run have run."""
        if id(conj) not in self.names:
            self.names[id(conj)] = frozenset(conj.variables())
        key = (id(conj), bound & self.names[id(conj)])
        if key not in self.memo:
            self.memo[key] = self.run_all(conj, bound, outside)
        return self.memo[key] | bound

    def run_all(self, conj: Conj, bound: frozenset[str], outside: frozenset[str]) -> frozenset[str]:
        waiting = sorted(conj.forms, key=lambda form: not isinstance(form, Atom))
        shared = self.shared(conj, outside | bound)
        progress = True
        while progress:
            progress = False
            for form in list(waiting):
                after = self.after(form, bound, shared[id(form)])
                if after is not None:
                    waiting.remove(form)
                    progress, bound = True, after
        return bound

    # Forms that cannot

    def report_stuck(
        self, waiting: list[Form], bound: frozenset[str], shared: dict[int, frozenset[str]]
    ) -> frozenset[str]:
        """Reports the variables that prevent all these forms from running; they count as bound from then on.

        Only causes: a variable that another waiting form would bind, if it could run, is not one.
        """
        lacks = [(v, f) for f in waiting for v in self.lacking(f, bound, shared[id(f)])]
        offered = {name for form in waiting for name in self.offers(form)}
        causes = [(v, f) for v, f in lacks if v.name not in offered]
        if not causes:  # computed from itself: name one of the user's variables
            causes = [next((c for c in lacks if not _FRESH.fullmatch(c[0].name)), lacks[0])]
        for var, form in causes:
            self.report(var, *self.reason(var, form, bound, shared[id(form)]))
        return frozenset(var.name for var, _ in causes)

    def lacking(self, form: Form, bound: frozenset[str], shared: frozenset[str]) -> Iterator[Var]:
        """The variables that a form waits for, each once, where they are used."""
        names = shared - bound
        if isinstance(form, Primitive):
            names = _inputs(form, bound) - bound
        elif isinstance(form, Disjunction):
            given = [self.closure(branch, bound, shared) for branch in form.branches]
            names = shared - frozenset.intersection(*given)
        occurrences = {v.name: v for v in reversed(list(Conj((), (form,)).occurrences()))}
        for name in sorted(names, key=list(occurrences).index, reverse=True):
            yield occurrences[name]

    def offers(self, form: Form) -> frozenset[str]:
        """What a form would bind if it could run."""
        if isinstance(form, Primitive):
            return frozenset(a.name for a in possible_outputs(form) if isinstance(a, Var))
        if isinstance(form, Disjunction):
            offered = [frozenset().union(*map(self.offers, branch.forms)) for branch in form.branches]
            return frozenset.intersection(*offered) if offered else frozenset()
        return self.variables(form) if isinstance(form, Atom) else frozenset()

    def reason(
        self, var: Var, form: Form, bound: frozenset[str], shared: frozenset[str]
    ) -> tuple[Span | None, str]:
        """Where to point, and the advice for a variable that a form waits for."""
        ground = f"use {var.name} in a positive atom"
        if isinstance(form, Negation):
            return var.span, f"a negation tests values but binds none; {ground} as well"
        if isinstance(form, Primitive) and form.output is None:
            return (
                var.span,
                f"{text_of(form)} tests values but binds none; {ground}, or give it a value with =",
            )
        if isinstance(form, Primitive):
            return var.span, f"{text_of(form)} needs its value first; {ground}, or give it a value with ="
        assert isinstance(form, Disjunction)
        if form.exclusive:
            return (
                var.span,
                f"the aggregate has a value for every {var.name}, even over nothing; {ground} outside",
            )
        lacking = next(b for b in form.branches if var.name not in self.closure(b, bound, shared))
        help = f"every alternative must give {var.name} a value, and {_text(lacking)} does not"
        return self.outside_use(var, form) or var.span, help

    def outside_use(self, var: Var, form: Form) -> Span | None:
        """A use of a variable outside this form: in the head, or beside it."""
        uses = [a for head in self.rule.heads for a in head.args]
        beside = Conj((), tuple(f for f in self.rule.body.forms if f is not form))
        return next((a.span for a in (*uses, *beside.occurrences()) if a == var and a.span), None)

    def report_needed(self, var: Var) -> None:
        """A variable of the head or of an aggregate that the body does not bind."""
        help = f"the body does not use {var.name}; use it in a positive atom, or give it a value with ="
        if is_domain(self.rule.heads[0].predicate):
            help = f"nothing outside the aggregate gives {var.name} a value; use it there in a positive atom"
        elif not self.rule.body.forms:
            help = value_help(var.name)
        self.report(var, var.span, help)

    def report(self, var: Var, span: Span | None, help: str) -> None:
        """Once for each variable of a statement, although its aggregates are separate rules."""
        message = f"ungrounded variable {var.name}"
        if var.span is not None and var.span.text() == "_":
            message, help = (
                "_ has no value that can be used here",
                "a new record needs a value for each field",
            )
        whole = self.rule.span
        if not any(e.message == message and _inside(e.span, whole) for e in self.diagnostics.errors):
            self.diagnostics.error(message, span or whole, help)


def directed(form: Primitive, bound: frozenset[str], shared: frozenset[str]) -> list[Form]:
    """A constructor as it is, if it makes a record; one form for each field, if it takes one apart.

    A field that nothing reads is left out, unless it is the only one: that one says that there is a record.
    """
    assert form.output is not None
    if not form.inputs or (isinstance(form.output, Var) and form.output.name not in bound):
        return [form]
    branch = branch_of(form.name)
    read = [i for i, a in enumerate(form.inputs) if not isinstance(a, Var) or a.name in shared]
    repeated = [i for i, a in enumerate(form.inputs) if form.inputs.count(a) > 1]
    return [
        Primitive(field_name(branch, i), (form.output,), form.inputs[i], form.span)
        for i in sorted({*read, *repeated} or {0})
    ]


_FRESH = re.compile(r"_w?\d+")


def _inputs(form: Primitive, bound: frozenset[str]) -> frozenset[str]:
    """Variables that must be bound first.  An equality binds either side from the other."""
    names = frozenset(a.name for a in form.inputs if isinstance(a, Var))
    if form.name == "eq" and len(names - bound) == 1 and form.inputs[0] != form.inputs[1]:
        return names & bound
    if is_constructor(form.name) and (not isinstance(form.output, Var) or form.output.name in bound):
        return frozenset()  # taken apart
    return names


def _inside(span: object, whole: Span | None) -> bool:
    if not isinstance(span, Span) or whole is None or span.source is not whole.source:
        return False
    return whole.start <= span.start < whole.end


def _text(conj: Conj) -> str:
    """A branch as it was written."""
    spans = [form.span for form in conj.forms if form.span is not None]
    if not spans:
        return "`true`"
    return quote(spans[0].to(max(spans, key=lambda s: s.end)).text())
