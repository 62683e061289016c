"""Owns the invariants of a checked rule, stated a second time.

Shares no code with `safety` and `quantify`, which establish them, so that a defect there is found here.
"""

from __future__ import annotations

from dlog.ir.functors import is_call
from dlog.ir.primitives import SIGNATURES, signature_of
from dlog.ir.record_forms import is_record_form
from dlog.ir.rules import Atom, Conj, Const, Disjunction, Form, Negation, Operand, Primitive, Rule, Var


def check(rule: Rule) -> None:
    """Assert that a rule is in the normal form that `dlog.ir.rules` describes.  O(size * depth)."""
    results = {a.result.name for a in rule.aggregates}
    heads = dict.fromkeys(a.name for head in rule.heads for a in head.args if isinstance(a, Var))
    assert rule.heads, "a rule has a head"
    assert [v.name for v in rule.universals] == list(heads), "universals are the variables of the heads"
    assert not results & rule.body.variables(), "a body does not use the results of its aggregates"
    assert results <= set(heads), "every result is used in a head"
    _check_types(rule)
    bound = _run(rule.body, set(heads) - results, set(), top=True)
    assert set(heads) - results <= bound, f"unbound head variables {set(heads) - results - bound}"
    for aggregate in rule.aggregates:
        assert isinstance(aggregate.argument, Const | None) or aggregate.argument.name in bound
    _check_quantifiers(rule.body)
    if rule.aggregates:
        _check_flat(rule.body, rule.computed)
    _check_keys(rule)


def _check_types(rule: Rule) -> None:
    operands: list[Operand] = [a for head in rule.heads for a in head.args]
    operands += [a.argument for a in rule.aggregates if a.argument is not None]
    operands += [a.result for a in rule.aggregates]
    for form in rule.body.walk():
        if isinstance(form, Primitive):
            known = (form.name, len(form.inputs)) in SIGNATURES or is_record_form(form.name)
            known |= is_call(form.name)
            assert known, f"unknown primitive {form}"
        if isinstance(form, Atom | Primitive):
            operands += form.args
    for operand in operands:
        typed = operand.name in rule.types if isinstance(operand, Var) else operand.type is not None
        assert typed, f"{operand} has no type"


# Order and scopes: what each form finds bound, and which variables it may use.


def _run(conj: Conj, visible: set[str], bound: set[str], top: bool = False) -> set[str]:
    """What is bound after a conjunction that runs from left to right."""
    own = {v.name for v in conj.exists}
    assert len(own) == len(conj.exists), "a variable is quantified twice"
    assert not own & visible, f"{own & visible} would hide a variable outside"
    for form in conj.forms:
        used = _variables(form) & (visible | own)
        bound = bound | _run_form(form, visible | own, bound, used, top)
    return bound


def _run_form(form: Form, visible: set[str], bound: set[str], used: set[str], top: bool) -> set[str]:
    """What a form adds to what is bound."""
    if isinstance(form, Negation):
        assert used <= bound, f"{used - bound} unbound in {form}"
        _run(form.body, visible, bound)
        return set()
    if isinstance(form, Disjunction):
        assert form.branches or top, "false occurs only in the outermost conjunction"
        for branch in form.branches:
            missing = used - _run(branch, visible, bound)
            assert not missing, f"{missing} unbound in {branch}"
        return used
    assert _variables(form) <= visible, f"{_variables(form) - visible} is not quantified in {form}"
    if isinstance(form, Primitive):
        unbound = {a.name for a in form.inputs if isinstance(a, Var)} - bound
        solvable = form.name == "eq" and len(unbound) == 1 and form.inputs[0] != form.inputs[1]
        assert not unbound or solvable, f"{unbound} unbound in {form}"
    return used


def _variables(form: Form) -> set[str]:
    return Conj((), (form,)).variables()


# Quantifiers: as far inside as the uses allow.


def _check_quantifiers(conj: Conj) -> None:
    children = list(_children(conj))
    direct = {
        a.name for f in conj.forms if isinstance(f, Atom | Primitive) for a in f.args if isinstance(a, Var)
    }
    for var in conj.exists:
        users = [child for child in children if var.name in child.variables()]
        assert var.name in direct or len(users) > 1, f"{var} belongs further inside"
    for form in conj.forms:
        if isinstance(form, Disjunction) and form.branches:
            everywhere = set.intersection(*({v.name for v in b.exists} for b in form.branches))
            assert not everywhere, f"{everywhere} belongs outside {form}"
    for child in children:
        _check_quantifiers(child)


def _children(conj: Conj) -> list[Conj]:
    out: list[Conj] = []
    for form in conj.forms:
        if isinstance(form, Negation):
            out.append(form.body)
        elif isinstance(form, Disjunction):
            out += form.branches
    return out


def _check_flat(conj: Conj, computed: frozenset[str]) -> None:
    """Under an aggregate no branch has its own variables, but for computed values, outside negations."""
    for form in conj.forms:
        if isinstance(form, Disjunction):
            for branch in form.branches:
                hidden = {v.name for v in branch.exists} - computed
                assert not hidden, f"{branch} hides {hidden} from the aggregate"
                _check_flat(branch, computed)


# Keys: where they are, and that they determine the rest.


def _check_keys(rule: Rule) -> None:
    assert rule.keys <= rule.body.variables(), "keys are variables of the body"
    for atom, _ in rule.body.atoms():
        assert {a.name for a in atom.keys if isinstance(a, Var)} <= rule.keys, f"missing key of {atom}"
    results = {a.result.name for a in rule.aggregates}
    wanted = {v.name for v in (*rule.universals, *rule.body.exists)} - results
    missing = wanted - _determined(rule.body, set(rule.keys))
    assert not missing, f"{missing} is not determined by the keys"


def _determined(conj: Conj, known: set[str]) -> set[str]:
    """Everything that has one value once `known` does, by functions, primitives and exclusive branches."""
    while True:
        new = set().union(*(_determined_by(form, known) for form in conj.forms)) - known
        if not new:
            return known
        known = known | new


def _determined_by(form: Form, known: set[str]) -> set[str]:
    if isinstance(form, Atom):
        keys = {a.name for a in form.keys if isinstance(a, Var)}
        return _variables(form) if keys <= known else set()
    if isinstance(form, Primitive):
        inputs = {a.name for a in form.inputs if isinstance(a, Var)}
        if form.name == "eq":
            return inputs if len(inputs - known) < 2 else set()
        several = signature_of(form.name, len(form.inputs)).generator
        return _variables(form) if inputs <= known and not several else set()
    if isinstance(form, Disjunction) and form.exclusive:
        return set.intersection(*(_determined(branch, known) for branch in form.branches))
    return set()
