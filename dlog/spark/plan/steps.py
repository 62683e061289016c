"""Owns recursion that exchanges: the programs of its first job, of each step and of its end.

    # path(x, z) <- path(x, y), path(y, z).          with first key y, becomes in step k
    # path@1'new(x, y) <- path@1(x, y), !path@1'known(x, y).                       and the same for path@0
    # path'derived(x, z) <- path@1'new(x, y), path@0(y, z).
    # path'derived(x, z) <- path@1(x, y), path@0'new(y, z).

Every shard stores the copies of recursive predicates that its rules read.  A step takes in what the step
before derived for each copy, drops what the copy has, and runs each rule once for each recursive atom over
what is left.  Copies hold the same rows by different columns, and a row is in one shard of a copy, so each
detects new rows on its own.  Where values combine, a copy holds all candidates, and its best one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dlog.engine.evaluate.evaluate import as_plain, delta_variants, without
from dlog.ir.rules import (
    Aggregate,
    Atom,
    Conj,
    Disjunction,
    Form,
    Negation,
    Predicate,
    Program,
    Rule,
    Stratum,
    Var,
)
from dlog.planning.versions import delta_name
from dlog.spark.plan.places import Place, RulePlan
from dlog.spark.plan.shards import StratumPlan
from dlog.spark.plan.sub_programs import Input, SubProgram, copy_name, named, renamed, sub_program
from dlog.values import Type


@dataclass(frozen=True)
class Recursion:
    """A stratum that exchanges, and the places of the copies of its predicates, at least one of each."""

    program: Program
    plan: StratumPlan

    @property
    def stratum(self) -> Stratum:
        return self.plan.stratum

    @property
    def places(self) -> dict[str, tuple[Place, ...]]:
        found: dict[str, dict[Place, None]] = {name: {} for name in self.stratum.predicates}
        for rule in self.plan.rules:
            for name, place in rule.reads():
                if name in found:
                    found[name][place] = None
        return {name: tuple(sorted(places)) for name, places in found.items()}

    @property
    def copies(self) -> Iterator[tuple[str, Place, str]]:
        """Predicate, place and local name of each copy."""
        for name, places in self.places.items():
            for place in places:
                yield name, place, copy_name(name, place)

    def first(self) -> SubProgram:
        """Rules without their recursive parts: what they derive are the first candidates."""
        return self._program([], self._variants(recursive=False), ())

    def step(self, known: Iterable[int], candidates: int) -> SubProgram:
        """Takes in candidates, given the numbers of the steps whose new rows are known."""
        inputs = list(self._state(known))
        for name, place, local in self.copies:
            inputs.append(Input(candidates_name(name, candidates), place, self.all_of(name, local)))
        strata = [s for name, _, local in self.copies for s in self._own_strata(name, local)]
        return self._program(strata, self._variants(recursive=True), inputs)

    def last(self, known: Iterable[int]) -> SubProgram:
        """The predicates themselves, from the copies at their first places."""
        strata, predicates, inputs = [], {}, []
        for name in self.stratum.predicates:
            predicate = self.program.predicates[name]
            predicates[name] = predicate
            local = name
            if name in self.stratum.combine:
                local = all_name(name)
                predicates[local] = _plain(predicate, local)
                strata.append(_best(predicate, name, local, self.stratum.combine[name]))
            inputs += [Input(known_name(name, k), self.places[name][0], local) for k in known]
        return _numbered(self.program, predicates, [(s, [None] * len(s.rules)) for s in strata], inputs)

    def _state(self, known: Iterable[int]) -> Iterator[Input]:
        for name, place, local in self.copies:
            for k in known:
                yield Input(known_name(name, k), place, f"{local}'known")
                yield Input(known_name(name, k), place, self.all_of(name, local))

    def all_of(self, name: str, local: str) -> str:
        """The relation that candidates of a copy go into: where values combine, it is not the copy."""
        return all_name(local) if name in self.stratum.combine else local

    def _own_strata(self, name: str, local: str) -> Iterator[Stratum]:
        predicate = self.program.predicates[name]
        if name in self.stratum.combine:
            yield _best(predicate, local, all_name(local), self.stratum.combine[name])
        yield _new(predicate, local)

    def _program(
        self, strata: list[Stratum], variants: list[tuple[Rule, RulePlan]], inputs: Iterable[Input]
    ) -> SubProgram:
        """The strata of the copies, then one for what each predicate's rules derive."""
        predicates: dict[str, Predicate] = {}
        found: list[tuple[Stratum, list[RulePlan | None]]] = [(s, [None] * len(s.rules)) for s in strata]
        for name, _, local in self.copies:
            predicate = self.program.predicates[name]
            predicates[local] = named(predicate, local)
            for other in (f"{local}'known", new_name(local), all_name(local)):
                predicates[other] = _plain(predicate, other)
        for name in self.stratum.predicates:
            head = derived_name(name)
            predicates[head] = _plain(self.program.predicates[name], head)
            own = [(r, p) for r, p in variants if r.heads[0].predicate == head]
            found.append((Stratum((head,), tuple(r for r, _ in own), False), [p for _, p in own]))
        outside = {copy for plan in self.plan.rules for copy in plan.reads()}
        outside = {(n, p) for n, p in outside if n not in self.stratum.predicates}
        given = list(inputs)
        for name, place in sorted(outside):
            local = copy_name(name, place)
            predicates[local] = named(self.program.predicates[name], local)
            given.append(Input(name, place, local))
        return _numbered(self.program, predicates, found, given)

    def _variants(self, recursive: bool) -> list[tuple[Rule, RulePlan]]:
        """Rules over copies, one head each, and how they run: for each recursive atom, or without any."""
        names = {local for _, _, local in self.copies}
        found = []
        for plan in self.plan.rules:
            whole = renamed(plan, lambda copy: copy_name(*copy))
            combined = whole.heads[0].predicate in self.stratum.combine
            whole = as_plain(whole) if combined else whole
            for head in whole.heads:
                derived = Atom(derived_name(head.predicate), head.args, len(head.args), head.span)
                rule = replace(whole, heads=(derived,))
                bodies = (_quantified(rule, forms) for forms in _bodies(rule, names, recursive))
                found += [(replace(rule, body=body), plan) for body in bodies]
        return found


def known_name(predicate: str, step: int) -> str:
    """What a step added to the copies of a predicate."""
    return f"{predicate}'known{step}"


def candidates_name(predicate: str, step: int) -> str:
    """What a step derived, some of it known before."""
    return f"{predicate}'candidates{step}"


def derived_name(predicate: str) -> str:
    return f"{predicate}'derived"


def new_name(local: str) -> str:
    return f"{local}'new"


def all_name(local: str) -> str:
    return f"{local}'all"


def _bodies(rule: Rule, names: set[str], recursive: bool) -> Iterator[tuple[Form, ...]]:
    if not recursive:
        forms = without(rule.body.forms, names)
        if forms is not None:
            yield forms
    else:
        changes = {delta_name(name): new_name(name) for name in names}
        for forms in delta_variants(rule, names):
            yield tuple(_with_new(form, changes) for form in forms)


def _with_new(form: Form, names: dict[str, str]) -> Form:
    """The one atom that reads what is new is in the outermost conjunction."""
    if isinstance(form, Atom) and form.predicate in names:
        arity = len(form.args)
        return Atom(names[form.predicate], form.args, arity, form.span)
    return form


def _quantified(rule: Rule, forms: tuple[Form, ...]) -> Conj:
    """The body with everything that its outermost forms bind besides the head's variables."""
    universal = {a.name for head in rule.heads for a in head.args if isinstance(a, Var)}
    inner = {v.name for form in forms for v in _inner(form)}
    used = dict.fromkeys(v for v in Conj((), forms).occurrences())
    names = dict.fromkeys(v.name for v in used if v.name not in universal and v.name not in inner)
    return Conj(tuple(Var(name) for name in names), forms)


def _inner(form: Form) -> Iterator[Var]:
    """Variables that are quantified below a form."""
    parts: tuple[Conj, ...] = ()
    if isinstance(form, Negation):
        parts = (form.body,)
    elif isinstance(form, Disjunction):
        parts = form.branches
    for part in parts:
        yield from part.exists
        for below in part.forms:
            yield from _inner(below)


def _plain(predicate: Predicate, name: str) -> Predicate:
    """The same columns as a relation: keys may have several values."""
    return Predicate(name, predicate.columns, predicate.arity, auxiliary=True)


def _variables(predicate: Predicate) -> tuple[tuple[Var, ...], dict[str, Type]]:
    variables = tuple(Var(f"v{i}") for i in range(predicate.arity))
    return variables, {v.name: c.type for v, c in zip(variables, predicate.columns, strict=True)}


def _new(predicate: Predicate, local: str) -> Stratum:
    """What a copy has and did not have before."""
    variables, types = _variables(predicate)
    known = Negation(Conj((), (Atom(f"{local}'known", variables, predicate.arity),)))
    body = Conj((), (Atom(local, variables, predicate.n_keys), known))
    head = Atom(new_name(local), variables, predicate.arity)
    keys = frozenset(types)
    return Stratum((head.predicate,), (Rule(0, (head,), body, (), variables, types, keys),), False)


def _best(predicate: Predicate, local: str, candidates: str, op: str) -> Stratum:
    """The least or greatest value of each key."""
    variables, types = _variables(predicate)
    best = Var("best")
    head = Atom(local, (*variables[:-1], best), predicate.n_keys)
    body = Conj((variables[-1],), (Atom(candidates, variables, predicate.arity),))
    types["best"] = types[variables[-1].name]
    aggregates = (Aggregate(op, best, variables[-1]),)
    universals = (*variables[:-1], best)
    rule = Rule(0, (head,), body, aggregates, universals, types, frozenset(v.name for v in variables))
    return Stratum((local,), (rule,), False)


_EVERYWHERE = RulePlan(Rule(0, (), Conj((), ())), None, {})


def _numbered(
    program: Program,
    predicates: dict[str, Predicate],
    strata: list[tuple[Stratum, list[RulePlan | None]]],
    inputs: Iterable[Input],
) -> SubProgram:
    """Rules with their own numbers; those without a plan run in every shard."""
    plans: dict[int, RulePlan] = {}
    done = []
    for stratum, rule_plans in strata:
        rules = []
        for rule, plan in zip(stratum.rules, rule_plans, strict=True):
            rules.append(replace(rule, id=len(plans)))
            plans[len(plans)] = plan or _EVERYWHERE
        done.append(replace(stratum, rules=tuple(rules)))
    return SubProgram(sub_program(program, predicates, done), tuple(inputs), plans)
