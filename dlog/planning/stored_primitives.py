"""Owns stored primitives: auxiliary predicates with the values of primitives that run between joins.

A change of `b` cannot be followed backwards through `upper`.  A predicate that stores its values can be: it
is maintained as any other, and the body that reads it is one join, whatever strategy maintains it.

    # p(x, z) <- a(x, s), t = upper(s), b(t, z).        becomes
    # p(x, z) <- a(x, s), p'upper1(s, t), b(t, z).      where
    # p'upper1(s, t) <- a(_, s), t = upper(s).

A primitive is stored if a join needs its result, or if it is inside a negation or a disjunction; what only
follows the join stays where it is.  A decimal with more digits than a column holds is computed again in each
predicate that stores what reads it.  The stored inputs are those of some atoms of the body, its *domain*:
more than the body needs, never fewer.  In a recursion the domain is outside it if possible; otherwise the
predicate belongs to the recursion.  A primitive stays where it is if its domain would be a product of atoms
that share no variable, or would need a recursion while it is in a negation, disjunction or aggregation.

`x = range(a, b)` with an x that an atom has, too, is no generator but a comparison of x with a and b.

A function from program to program: what evaluates a program once needs none of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dlog.errors import Diagnostics
from dlog.ir.analysis.safety import make_safe
from dlog.ir.analysis.stratify import stratify
from dlog.ir.functors import is_call
from dlog.ir.lower.alternatives import renamed
from dlog.ir.lower.grounding import ground, providers
from dlog.ir.lower.quantify import form_bindings
from dlog.ir.primitives import signature_of
from dlog.ir.rules import (
    Atom,
    Column,
    Conj,
    Disjunction,
    Form,
    Negation,
    Predicate,
    Primitive,
    Program,
    Rule,
    Stratum,
    Var,
    concat_keys,
)
from dlog.planning.pipeline import form_variables, in_kernel
from dlog.planning.range_tests import with_range_tests
from dlog.planning.stored_calls import with_calls_stored
from dlog.values import MAX_PRECISION, Type


def with_stored_primitives(program: Program) -> Program:
    """The program itself, if no primitive of it is to be stored.  O(size of its rules), once."""
    if program.maintained is None:
        program.maintained = _with_stored_primitives(program)
    return program.maintained


def stored_primitives(program: Program) -> tuple[str, ...]:
    """The predicates that a program has in addition when it is maintained, each after those it reads."""
    own = program.predicates
    return tuple(name for name in with_stored_primitives(program).predicates if name not in own)


def _with_stored_primitives(program: Program) -> Program:
    store = _Stored(program)
    rules = [store.rewritten(rule) for rule in program.rules]
    store.finish()
    if all(new is old for new, old in zip(rules, program.rules, strict=True)):
        return program
    predicates = {**program.predicates, **store.predicates}
    rules = [*rules, *store.rules.values()]
    diagnostics = Diagnostics()
    strata = stratify(predicates, [*rules, *program.subsumptions], diagnostics, program.constraint_rules)
    assert not diagnostics.errors, "a recursion stays one of the kinds that are allowed"
    made = replace(program, predicates=predicates, rules=tuple(rules), strata=strata)
    made.maintained, made.written = made, program
    return made


def _order(rule: Rule) -> tuple[str, ...] | None:
    """The order of the rule's `concat`, if it has one: other forms may use its keys in another order."""
    if not any(a.function.in_order for a in rule.aggregates):
        return None
    return tuple(concat_keys(rule))


@dataclass
class _Stored:
    """The predicates made so far; equal ones are made once."""

    program: Program
    predicates: dict[str, Predicate] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)  # by the name of their predicate
    names: dict[str, str] = field(default_factory=dict)  # by text

    def rewritten(self, rule: Rule) -> Rule:
        plain = with_range_tests(with_calls_stored(self.program, rule, self.atom))
        body = _Body(self, plain, self._recursions(rule))
        forms = body.conj(plain.body, (), True).forms
        if plain is rule and forms == rule.body.forms:
            return rule
        diagnostics = Diagnostics()
        made = make_safe(replace(plain, body=Conj((), forms), order=_order(rule)), diagnostics)
        return rule if diagnostics.errors else made

    def finish(self) -> None:
        """The bodies that find arguments of calls are rules as others are."""
        for name, rule in list(self.rules.items()):
            if "'@args" in name:
                self.rules[name] = self.rewritten(rule)

    def _recursions(self, rule: Rule) -> list[Stratum]:
        """The recursive strata of a rule's heads: it may depend on their predicates."""
        strata = (self.program.stratum_of.get(head.predicate) for head in rule.heads)
        return [stratum for stratum in strata if stratum is not None and stratum.recursive]

    def atom(self, rule: Rule, what: str, forms: Sequence[Form], names: Sequence[str]) -> Atom | None:
        """The atom over these variables that stands for some forms; None if they are not safe."""
        places = {name: f"v{i}" for i, name in enumerate(dict.fromkeys(_in_order(forms, names)))}
        types = [(place, rule.types[name]) for name, place in places.items()]
        body, args = Conj((), tuple(forms)), tuple(map(Var, names))
        text = f"{len(names)} {renamed(body, places)} {[(n, str(t), t.precision) for n, t in types]}"
        if text not in self.names:
            owner = rule.heads[0].predicate.partition("'")[0]
            name = f"{owner}'{what}{len(self.rules) + 1}"
            head = Atom(name, args, len(args), rule.span)
            number = len(self.program.rules) + len(self.rules)
            diagnostics = Diagnostics()
            made = make_safe(Rule(number, (head,), body, types=rule.types, span=rule.span), diagnostics)
            if diagnostics.errors:
                return None
            columns = tuple(Column(n, rule.types[n]) for n in names)
            self.predicates[name] = Predicate(name, columns, len(columns), auxiliary=True, span=rule.span)
            self.rules[name], self.names[text] = made, name
        return Atom(self.names[text], args, len(names), rule.span)


@dataclass
class _Body:
    """One rule whose primitives are being replaced by atoms."""

    stored: _Stored
    rule: Rule
    recursions: list[Stratum]

    @property
    def may_recur(self) -> bool:
        """Whether the predicate of a primitive may be part of the rule's recursion."""
        strata = (self.stored.program.stratum_of[head.predicate] for head in self.rule.heads)
        return not self.rule.aggregates and not any(stratum.combine or stratum.totals for stratum in strata)

    @cached_property
    def uses(self) -> Counter[str]:
        """How often each variable occurs."""
        occurrences = [v.name for v in self.rule.body.occurrences()]
        return Counter([*occurrences, *self._in_heads()])

    def conj(self, conj: Conj, outside: tuple[Form, ...], is_top: bool) -> Conj:
        """`outside` are the forms around it that hold, too."""
        forms = [f for f in conj.forms if not self.is_idle(f)]
        beside = (*outside, *(f for f in forms if not isinstance(f, Negation)))
        forms = [self.nested(form, tuple(f for f in beside if f is not form)) for form in forms]
        for form in list(forms):
            if isinstance(form, Primitive) and form in self.to_store(forms, is_top):
                forms = self.replaced(form, forms, outside, is_top)
        return conj if tuple(forms) == conj.forms else replace(conj, forms=tuple(forms))

    def nested(self, form: Form, around: tuple[Form, ...]) -> Form:
        if isinstance(form, Negation):
            body = self.conj(form.body, around, False)
            return form if body is form.body else replace(form, body=body)
        if isinstance(form, Disjunction):
            branches = tuple(self.conj(branch, around, False) for branch in form.branches)
            return form if branches == form.branches else replace(form, branches=branches)
        return form

    def is_idle(self, form: Form) -> bool:
        """An equality that gives a value to a variable that nothing reads: a column that a `_` stands for."""
        if not isinstance(form, Primitive) or form.name != "eq":
            return False
        types = self.rule.types
        names = [a.name for a in form.inputs if isinstance(a, Var)]
        unread = [n for n in names if self.uses[n] == 1 and not _is_narrow(types[n])]
        return len(names) == 2 and any(types[n].scale >= max(types[m].scale for m in names) for n in unread)

    # Which ones

    def to_store(self, forms: Sequence[Form], is_top: bool) -> list[Primitive]:
        """The primitives of a conjunction that a join needs, and cannot do itself."""
        primitives = [f for f in forms if isinstance(f, Primitive)]
        others = [f for f in primitives if not in_kernel(f, self.rule.types) or _generates(f)]
        others = [f for f in others if not is_call(f.name)]
        if not is_top:
            return others
        joined = {v for f in forms if not isinstance(f, Primitive) for v in form_variables(f)}
        joined |= self.computed_twice(forms, primitives)
        before = -1
        while len(joined) > before:
            before = len(joined)
            for form in primitives:
                if form not in others and _results(form) & joined:
                    joined |= form_variables(form)
        return [f for f in others if any(_is_narrow(self.rule.types[v]) for v in _results(f) & joined)]

    def computed_twice(self, forms: Sequence[Form], primitives: Sequence[Primitive]) -> set[str]:
        """Variables by whose equal values primitives join atoms that share no variable."""
        atoms = [f for f in forms if isinstance(f, Atom)]
        if _linked(list(atoms), []) is not None:
            return set()
        results = Counter(v for f in primitives if f.output is not None for v in _results(f))
        return {v for v, times in results.items() if times > 1 and _is_narrow(self.rule.types[v])}

    def replaced(
        self, form: Primitive, forms: list[Form], outside: tuple[Form, ...], is_top: bool
    ) -> list[Form]:
        """The conjunction with an atom in place of a primitive and of what only this one needs."""
        found = self.domain(form, [f for f in (*outside, *forms) if f is not form], is_top)
        if found is None:
            return forms
        domain, own = found
        elsewhere = [f for f in (*outside, *forms) if not any(f is g for g in own)]
        used = {v for f in elsewhere for v in form_variables(f)} | self._in_heads()
        given = {v for f in domain for v in form_bindings(f)}
        made = {v for f in own for v in form_variables(f)} - given
        kept = {v for v in made if v in used and _is_narrow(self.rule.types[v])}
        kept |= {v for f in own if _generates(f) for v in _results(f)}
        others = {v for f in own if f is not form for v in _results(f)}
        if _results(form) & (made - kept - others) & used:
            return forms  # a wide result: it is stored together with what reads it
        inputs = {v for f in own for v in form_variables(f)} & given
        names = [v for v in _in_order(own, ()) if v in inputs | kept]
        atom = self.stored.atom(self.rule, form.name, (*domain, *own), names)
        if atom is None:
            return forms
        wide = {v for v in made - kept if v in used}
        gone = [f for f in own if f is form or not wide or _results(f) & kept]
        at = next(i for i, f in enumerate(forms) if f is form)
        left = [f for i, f in enumerate(forms) if i == at or not any(f is g for g in gone)]
        return [atom if f is form else f for f in left]

    def _in_heads(self) -> set[str]:
        args = [a for head in self.rule.heads for a in head.args]
        args += [a.argument for a in self.rule.aggregates if a.argument is not None]
        return {a.name for a in args if isinstance(a, Var)}

    # Where its inputs come from

    def domain(
        self, form: Primitive, around: Sequence[Form], is_top: bool
    ) -> tuple[list[Form], list[Primitive]] | None:
        """(What binds the inputs, the primitives that follow); None if it cannot be stored."""
        available: list[Form] = [f for f in around if not isinstance(f, Negation)]
        outside: list[Form] = [f for f in available if not self._is_recursive(f)]
        found = self._domain(form, outside)
        return self._domain(form, available) if found is None and is_top and self.may_recur else found

    def _domain(self, form: Primitive, available: list[Form]) -> tuple[list[Form], list[Primitive]] | None:
        available.sort(key=lambda f: len(f.args) if isinstance(f, Atom) else 99)  # stable
        wanted = self._inputs(form, available)
        chosen = providers(available, sorted(wanted))
        own = [f for f in chosen if isinstance(f, Primitive)]
        domain: list[Form] = [f for f in chosen if isinstance(f, Atom | Disjunction)]
        bound = {v for f in (*domain, *own) for v in form_bindings(f)}
        if not wanted <= bound:
            return None
        linked = _linked(domain, [f for f in available if isinstance(f, Atom)])
        if linked is None:
            return None
        bound = {v for f in linked for v in form_bindings(f)}
        tests = [f for f in available if isinstance(f, Primitive) and f not in own]
        domain = [*linked, *(f for f in tests if self._is_test(f) and form_variables(f) <= bound)]
        return domain, [*own, form]

    def _inputs(self, form: Primitive, available: Sequence[Form]) -> set[str]:
        """Of an equality the side that something else gives a value, rather a primitive than an atom."""
        names = [a.name for a in form.inputs if isinstance(a, Var)]
        if form.name != "eq":
            return set(names)
        if len(names) < 2:
            return set()
        known = ground(available, frozenset(), frozenset(names))
        stored = {v for f in available if isinstance(f, Atom) for v in form_variables(f)}
        given = [n for n in names if n in known] or names
        return {min(given, key=lambda n: n in stored)}

    def _is_test(self, form: Primitive) -> bool:
        return form.output is None and in_kernel(form, self.rule.types)

    def _is_recursive(self, form: Form) -> bool:
        strata = self.stored.program.stratum_of
        read = (strata.get(atom.predicate) for atom, _ in Conj((), (form,)).atoms())
        return any(stratum is own for stratum in read for own in self.recursions)


def _linked(domain: list[Form], atoms: list[Atom]) -> list[Form] | None:
    """The domain with atoms that connect all of it; None if there are none."""
    linked, rest = domain[:1], domain[1:]
    while rest:
        bound = {v for f in linked for v in form_bindings(f)}
        near = [f for f in rest if form_bindings(f) & bound]
        if not near:
            near = _path(bound, {v for f in rest for v in form_bindings(f)}, atoms)
            if not near:
                return None
        linked += near
        rest = [f for f in rest if not any(f is g for g in near)]
    return linked


def _path(start: set[str], goal: set[str], atoms: Iterable[Atom]) -> list[Form]:
    """The fewest atoms that lead from some variables to others."""
    paths: list[tuple[set[str], list[Form]]] = [(start, [])]
    atoms = list(atoms)
    for bound, path in paths:
        for atom in list(atoms):
            if form_variables(atom) & bound:
                if form_variables(atom) & goal:
                    return [*path, atom]
                atoms.remove(atom)
                paths.append((form_variables(atom), [*path, atom]))
    return []


def _results(form: Primitive) -> set[str]:
    """What it may give a value."""
    names = form.inputs if form.name == "eq" else (form.output,)
    return {a.name for a in names if isinstance(a, Var)}


def _generates(form: Primitive) -> bool:
    return signature_of(form.name, len(form.inputs)).generator


def _is_narrow(type: Type) -> bool:
    return not type.is_decimal or type.precision <= MAX_PRECISION


def _in_order(forms: Iterable[Form], names: Sequence[str]) -> Iterator[str]:
    yield from names
    yield from (v.name for v in Conj((), tuple(forms)).occurrences())
