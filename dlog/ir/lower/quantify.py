"""Owns quantifiers and keys: what is universal, where other variables exist, what determines the rest."""

from __future__ import annotations

from dataclasses import replace

from dlog.ir.primitives import signature_of
from dlog.ir.rules import Aggregate, Atom, Conj, Disjunction, Form, Negation, Primitive, Rule, Var


def quantify(rule: Rule) -> Rule:
    """REQUIRES: forms are in a safe order.  O(size * depth)."""
    names = dict.fromkeys(a.name for head in rule.heads for a in head.args if isinstance(a, Var))
    body = _quantified(rule.body, frozenset(names))
    universals = tuple(map(Var, names))
    return replace(rule, body=body, universals=universals, keys=frozenset(_keys(body)))


def with_heads(rule: Rule, heads: tuple[Atom, ...], aggregates: tuple[Aggregate, ...]) -> Rule:
    """A quantified rule with only some of its heads and aggregates."""
    if heads == rule.heads and aggregates == rule.aggregates:
        return rule
    return quantify(replace(rule, heads=heads, aggregates=aggregates))


def bindings(conj: Conj) -> frozenset[str]:
    """Variables that a safe conjunction binds, or finds bound: all outside negations that every
    branch has."""
    return frozenset().union(*map(form_bindings, conj.forms))


def form_bindings(form: Form) -> frozenset[str]:
    if isinstance(form, Atom | Primitive):
        return frozenset(a.name for a in form.args if isinstance(a, Var))
    if isinstance(form, Disjunction) and form.branches:
        return frozenset.intersection(*map(bindings, form.branches))
    return frozenset()


def _quantified(conj: Conj, visible: frozenset[str]) -> Conj:
    order = dict.fromkeys(v.name for v in conj.occurrences())
    users: dict[str, list[Form]] = {name: [] for name in order}
    for form in conj.forms:
        for name in Conj((), (form,)).variables():
            users[name].append(form)
    own = frozenset(name for name in order if name not in visible and _belongs(name, users[name]))
    forms = tuple(_quantified_inside(form, visible | own) for form in conj.forms)
    return Conj(tuple(Var(n) for n in order if n in own), forms)


def _belongs(name: str, users: list[Form]) -> bool:
    """Whether a variable is quantified in the conjunction of its users itself, not in one below it."""
    if len(users) > 1 or isinstance(users[0], Atom | Primitive):
        return True
    if isinstance(users[0], Negation):
        return False
    branches = [b for b in users[0].branches if name in b.variables()]
    return len(branches) > 1 and name in form_bindings(users[0])


def _quantified_inside(form: Form, visible: frozenset[str]) -> Form:
    if isinstance(form, Negation):
        return replace(form, body=_quantified(form.body, visible))
    if isinstance(form, Disjunction):
        return replace(form, branches=tuple(_quantified(b, visible) for b in form.branches))
    return form


# Keys (1.3.1)


def _keys(body: Conj) -> set[str]:
    """Variables in key position of a materialised predicate anywhere in the body, those that generators bind,
    and those that a disjunction may bind to several values."""
    keys = {a.name for atom, _ in body.atoms() for a in atom.keys if isinstance(a, Var)}
    for form in body.walk():
        if isinstance(form, Primitive) and signature_of(form.name, len(form.inputs)).generator:
            keys |= {form.output.name} if isinstance(form.output, Var) else set()
    while new := _undetermined(body, keys):
        keys |= new
    return keys


def _undetermined(conj: Conj, known: set[str]) -> set[str]:
    """What disjunctions bind and `known` does not determine."""
    known = determined(conj, known)
    found: set[str] = set()
    for form in conj.forms:
        if isinstance(form, Disjunction):
            if not form.exclusive:
                found |= form_bindings(form) - known
            found |= set().union(*(_undetermined(branch, known) for branch in form.branches))
        elif isinstance(form, Negation):
            found |= _undetermined(form.body, known)
    return found


def determined(conj: Conj, known: set[str]) -> set[str]:
    """Variables that have one value when those of `known` have, by functions, primitives and exclusive
    branches."""
    known = set(known)
    before = -1
    while len(known) > before:
        before = len(known)
        for form in conj.forms:
            if isinstance(form, Atom) and {a.name for a in form.keys if isinstance(a, Var)} <= known:
                known |= form_bindings(form)
            elif isinstance(form, Primitive):
                known |= _determined_by(form, known)
            elif isinstance(form, Disjunction) and form.exclusive:
                known |= set.intersection(*(determined(branch, known) for branch in form.branches))
    return known


def _determined_by(form: Primitive, known: set[str]) -> frozenset[str]:
    inputs = {a.name for a in form.inputs if isinstance(a, Var)}
    if form.name == "eq":
        return form_bindings(form) if len(inputs - known) < 2 else frozenset()
    single = not signature_of(form.name, len(form.inputs)).generator
    return form_bindings(form) if single and inputs <= known else frozenset()
