"""Owns the storing of calls of functors: auxiliary predicates with the values that functions returned.

    # p(x, z) <- a(x, s), z = @f(s).                    becomes
    # p(x, z) <- a(x, s), p'@f2(s, z).                  where
    # p'@args1(s) <- a(_, s).
    # p'@f2(s, z) <- p'@args1(s), z = @f(s).

So a function is called once for each distinct row of arguments, and what a deletion removes is what the
insertion added, even if a second call would give another value.  The arguments are those of rows that fulfil
all conditions of the body that do not depend on the value: a call may fail for others.

A call stays where it is if the functor is stateful, if its arguments depend on a recursion of the rule, or
if one is a decimal with more digits than a column holds.  Strata with such calls are evaluated from scratch
(`why_not_stored`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dlog.errors import Diagnostics
from dlog.ir.analysis.safety import make_safe
from dlog.ir.functors import calls, functor_of, is_call
from dlog.ir.lower.grounding import ground
from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Primitive, Program, Rule, Stratum, Var
from dlog.planning.pipeline import form_variables
from dlog.values import MAX_PRECISION

# (rule, what the predicate stores, its body, its variables) -> the atom over it; None if it is not possible.
Store = Callable[[Rule, str, Sequence[Form], Sequence[str]], Atom | None]


def with_calls_stored(program: Program, rule: Rule, store: Store) -> Rule:
    """The rule itself, if it calls no functor whose values can be stored.  O(size of the rule ^ 2)."""
    if next(calls(rule.body), None) is None:
        return rule
    body = _Body(program, rule, store)
    forms = body.conj(rule.body, ()).forms
    if forms == rule.body.forms:
        return rule
    diagnostics = Diagnostics()
    made = make_safe(replace(rule, body=Conj((), forms)), diagnostics)
    return rule if diagnostics.errors else made


def stored_call(rule: Rule) -> tuple[Atom | None, Primitive] | None:
    """(The atom with the arguments, the call) of a rule that stores values; None for others."""
    forms = rule.body.forms
    if rule.aggregates or len(rule.heads) != 1 or not 1 <= len(forms) <= 2:
        return None
    *before, call = forms
    atom = before[0] if before else None
    if not isinstance(call, Primitive) or not is_call(call.name) or not isinstance(call.output, Var):
        return None
    if not (atom is None or isinstance(atom, Atom)) or (atom is not None and call.output in atom.args):
        return None
    given = () if atom is None else atom.args
    stored = "'" in rule.heads[0].predicate and rule.heads[0].args == (*given, call.output)
    return (atom, call) if stored else None


def why_not_stored(program: Program, stratum: Stratum) -> str | None:
    """Why a stratum must be evaluated from scratch, if it must: it calls a functor itself."""
    for rule in (*stratum.rules, *stratum.subsumptions):
        for form in calls(rule.body):
            name = functor_of(form.name)
            if name in program.functors and program.functors[name].stateful:
                return f"@{name} is stateful"
            if stratum.recursive:
                return f"@{name} is called in a recursion"
            if stored_call(rule) is None:
                return f"the arguments of @{name} cannot be stored"
    return None


class _Body:
    """One rule whose calls are being replaced by atoms."""

    def __init__(self, program: Program, rule: Rule, store: Store):
        self.program, self.rule, self.store = program, rule, store
        strata = [program.stratum_of.get(head.predicate) for head in rule.heads]
        self.recursion = {p for s in strata if s is not None and s.recursive for p in s.predicates}

    def conj(self, conj: Conj, outside: tuple[Form, ...]) -> Conj:
        """`outside` are the forms around it that hold, too.  Nested calls come first, so that they are not
        among the conditions of others; those that need the value of another one come last."""
        forms = self.all_nested(list(conj.forms), outside)
        for form in list(forms):
            if isinstance(form, Primitive) and is_call(form.name):
                others = [f for f in forms if f is not form]
                atom = self.atom(form, (*outside, *others))
                if atom is not None:
                    forms = [atom if f is form else f for f in forms]
        return replace(conj, forms=tuple(self.all_nested(forms, outside)))

    def all_nested(self, forms: list[Form], outside: tuple[Form, ...]) -> list[Form]:
        for index, form in enumerate(forms):
            around = (*outside, *(f for f in forms if f is not form))
            forms[index] = self.nested(form, around)
        return forms

    def nested(self, form: Form, around: tuple[Form, ...]) -> Form:
        if isinstance(form, Negation):
            return replace(form, body=self.conj(form.body, around))
        if isinstance(form, Disjunction):
            return replace(form, branches=tuple(self.conj(branch, around) for branch in form.branches))
        return form

    def atom(self, call: Primitive, others: tuple[Form, ...]) -> Atom | None:
        """The atom that stands for a call."""
        names = list(dict.fromkeys(a.name for a in call.inputs if isinstance(a, Var)))
        if self.program.functors[functor_of(call.name)].stateful or not all(map(self._is_stored, names)):
            return None
        fresh = next(n for n in _names("_value") if n not in self.rule.types)
        output = call.output if isinstance(call.output, Var) else Var(fresh)
        if not isinstance(call.output, Var):
            assert call.output is not None and call.output.type is not None
            types = {**self.rule.types, fresh: call.output.type}
            self.rule = replace(self.rule, types=types)
        if not self._is_stored(output.name) or output.name in names:
            return None
        forms = _independent(others, call)
        if not set(names) <= ground(forms):
            return None
        if any(atom.predicate in self.recursion for atom, _ in Conj((), tuple(forms)).atoms()):
            return None
        body: list[Form] = []
        if names:
            arguments = self.store(self.rule, "@args", forms, names)
            if arguments is None:
                return None
            body = [arguments]
        own = replace(call, output=output)
        found = self.store(self.rule, call.name, (*body, own), [*names, output.name])
        assert call.output is not None
        return None if found is None else replace(found, args=(*found.args[:-1], call.output))

    def _is_stored(self, name: str) -> bool:
        """Whether a column holds the variable's values."""
        type = self.rule.types[name]
        return not type.is_decimal or type.precision <= MAX_PRECISION


def _independent(others: Sequence[Form], call: Primitive) -> list[Form]:
    """The forms that limit the arguments of a call: those that do not depend on its value, directly or by
    what only it determines, and that share variables with the arguments, directly or by others."""
    given = {a.name for a in call.inputs if isinstance(a, Var)}
    unknown = ({call.output.name} if isinstance(call.output, Var) else set()) - given
    kept = list(others)
    while True:
        kept = [f for f in kept if not _free(f) & unknown and next(calls(Conj((), (f,))), None) is None]
        missing = {v for f in kept for v in _free(f)} - ground(kept)
        if not missing:
            return _near(kept, given)
        unknown |= missing


def _near(forms: Sequence[Form], names: set[str]) -> list[Form]:
    """The forms that names are linked to, and those without variables, in their order."""
    found = [f for f in forms if not _free(f)]
    reached, before = set(names), -1
    while len(found) > before:
        before = len(found)
        for form in forms:
            if not any(form is f for f in found) and _free(form) & reached:
                found.append(form)
                reached |= _free(form)
    return [f for f in forms if any(f is g for g in found)]


def _free(form: Form) -> set[str]:
    """The variables of a form that are not its own."""
    own: set[str] = set()
    for inner in Conj((), (form,)).walk():
        for conj in _inside(inner):
            own |= {v.name for v in conj.exists}
    return form_variables(form) - own


def _inside(form: Form) -> tuple[Conj, ...]:
    if isinstance(form, Negation):
        return (form.body,)
    return form.branches if isinstance(form, Disjunction) else ()


def _names(stem: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"{stem}{number}"
