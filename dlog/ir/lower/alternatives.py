"""Owns alternatives under an aggregate: it ranges over assignments of *all* variables of its body.

A variable that only some branches of a disjunction have is undefined in the others; assignments that differ
in what is defined are different.  To make that explicit for evaluation, every branch gives
a value to every variable, a fixed one if it is undefined, and a number tells which are defined.

    # agg<<n = count()>> (a(x, y) ; b(x))     becomes
    # agg<<n = count()>> (a(x, y), t = 0 ; b(x), y = 0, t = 1)

Where disjunctions are nested, each variable that is not always defined has a number instead, 1 or 0: the same
one wherever the variable is, so that alternatives count once however they are nested.

    # agg<<n = count()>> (a(x, y) ; b(x), (x > 1 ; c(x, y)))
    # agg<<n = count()>> (a(x, y), t = 1 ; b(x), (x > 1, y = 0, t = 0 ; c(x, y), t = 1))

A variable that was made for the value of a term is none of the body's: it stays inside its branch.  Where it
is defined, the others determine it, so an assignment of these that satisfies two branches counts once.

    # agg<<n = count()>> t(x), (a(x) ; x + 1 > 2)     stays
    # agg<<n = count()>> t(x), (a(x) ; exists v . v = x + 1, v > 2)
"""

from __future__ import annotations

from dataclasses import replace

from dlog.ir.lower.quantify import bindings
from dlog.ir.primitives import signature_of
from dlog.ir.rules import Atom, Conj, Const, Disjunction, Form, Negation, Operand, Primitive, Rule, Var
from dlog.values import INT, Type


def complete_alternatives(rule: Rule) -> Rule:
    """REQUIRES: forms are in a safe order.  O(size * depth)."""
    outside = {a.name for head in rule.heads for a in head.args if isinstance(a, Var)}
    outside |= {a.argument.name for a in rule.aggregates if isinstance(a.argument, Var)}
    types = dict(rule.types)
    own = _Alternatives(types)
    body = own.completed(rule.body, outside | (rule.computed - _generated(rule.body)), False)
    return replace(rule, body=body, types=types)


def _generated(body: Conj) -> set[str]:
    """What generators bind: they give several values, which count apart."""
    return {
        form.output.name
        for form in body.walk()
        if isinstance(form, Primitive) and isinstance(form.output, Var) and _is_generator(form)
    }


def _is_generator(form: Primitive) -> bool:
    return signature_of(form.name, len(form.inputs)).generator


class _Alternatives:
    """The disjunctions of one rule.  `flags`: which number tells whether a variable is defined."""

    def __init__(self, types: dict[str, Type]):
        self.types = types
        self.flags: dict[str, str] = {}

    def completed(self, conj: Conj, outside: set[str], is_nested: bool) -> Conj:
        forms: list[Form] = []
        for form in conj.forms:
            if isinstance(form, Disjunction) and form.branches:
                around = outside | {v.name for v in _beside(conj, form).occurrences()}
                form = self.disjunction(form, around, is_nested)
            forms.append(form)
        return replace(conj, forms=tuple(forms))

    def disjunction(self, form: Disjunction, around: set[str], is_nested: bool) -> Disjunction:
        branches = [self.completed(branch, around, True) for branch in form.branches]
        defined = [bindings(branch) - around for branch in branches]
        everything = dict.fromkeys(v.name for b in branches for v in _positive(b) if v.name not in around)
        flags = set(self.flags.values())
        own = [name for name in everything if name not in flags]
        if is_nested or not flags.isdisjoint(everything):
            told = self.flagged(own, defined)
        else:
            told = self.numbered(defined)
        for index, branch in enumerate(branches):
            missing = [name for name in own if name not in defined[index]]
            added = [_equal(name, self.types[name]) for name in missing]
            hidden = branch.variables().intersection(missing)
            kept = renamed(branch, {name: self.fresh(self.types[name]) for name in sorted(hidden)})
            branches[index] = replace(branch, forms=(*kept.forms, *added, *told[index]))
        return replace(form, branches=tuple(branches))

    def numbered(self, defined: list[frozenset[str]]) -> list[list[Primitive]]:
        """For each branch, which of the kinds of assignments it has, if there are several."""
        kinds = list(dict.fromkeys(defined))
        if len(kinds) == 1:
            return [[] for _ in defined]
        tag = self.fresh(INT)
        return [[_is(tag, kinds.index(names))] for names in defined]

    def flagged(self, own: list[str], defined: list[frozenset[str]]) -> list[list[Primitive]]:
        """For each branch, whether variables are defined that are not so always."""
        everywhere = frozenset.intersection(*defined)
        several = [
            v for v in own if v not in everywhere or any(self.flags.get(v) in names for names in defined)
        ]
        for name in several:
            self.flags[name] = self.flags.get(name) or self.fresh(INT)
        return [
            [_is(flag, name in names) for name in several if (flag := self.flags[name]) not in names]
            for names in defined
        ]

    def fresh(self, type: Type) -> str:
        number = 0
        while f"_t{number}" in self.types:
            number += 1
        self.types[f"_t{number}"] = type
        return f"_t{number}"


def _beside(conj: Conj, form: Form) -> Conj:
    return Conj((), tuple(f for f in conj.forms if f is not form))


def _positive(conj: Conj) -> list[Var]:
    """Occurrences of variables outside negations."""
    out: list[Var] = []
    for form in conj.forms:
        if isinstance(form, Atom | Primitive):
            out += [a for a in form.args if isinstance(a, Var)]
        elif isinstance(form, Disjunction):
            out += [v for branch in form.branches for v in _positive(branch)]
        else:
            assert isinstance(form, Negation)
    return out


def renamed(conj: Conj, names: dict[str, str]) -> Conj:
    """A conjunction with other names for some variables; those in `exists` stay."""
    forms: list[Form] = []
    for form in conj.forms:
        if isinstance(form, Atom):
            form = replace(form, args=tuple(_other(a, names) for a in form.args))
        elif isinstance(form, Primitive):
            inputs = tuple(_other(a, names) for a in form.inputs)
            output = None if form.output is None else _other(form.output, names)
            form = replace(form, inputs=inputs, output=output)
        elif isinstance(form, Negation):
            form = replace(form, body=renamed(form.body, names))
        else:
            form = replace(form, branches=tuple(renamed(b, names) for b in form.branches))
        forms.append(form)
    return replace(conj, forms=tuple(forms))


def _other(operand: Operand, names: dict[str, str]) -> Operand:
    return (
        replace(operand, name=names.get(operand.name, operand.name)) if isinstance(operand, Var) else operand
    )


def _equal(name: str, type: Type) -> Primitive:
    kind, value = type.some_literal
    return Primitive("eq", (Var(name), Const(kind, value, type)))


def _is(name: str, number: int) -> Primitive:
    return Primitive("eq", (Var(name), Const("int", int(number), INT)))
