"""Owns the rules of a recursive stratum as stages see them: one head, recursive atoms outermost.

A derivation is an assignment of a body's outer variables.  How often a rule is split, by heads and by
branches of disjunctions that read the recursion, decides what counts as one; any choice is right as long as
it is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dlog.engine.evaluate.evaluate import as_plain
from dlog.engine.maintain.stages.expansion import Body
from dlog.heads.stages.table import FactKind
from dlog.ir.rules import Atom, Conj, Disjunction, Form, Program, Rule, Stratum, Var
from dlog.planning.versions import facts_name


def bodies(stratum: Stratum) -> list[Body]:
    """A body for each head of each rule, and for each path through disjunctions that read the recursion."""
    names = set(stratum.predicates)
    found = []
    for rule in stratum.rules:
        plain = as_plain(rule) if rule.heads[0].predicate in stratum.combine else rule
        for exists, forms in _alternatives(rule.body.forms, names):
            for head in plain.heads:
                own = (*(v.name for v in rule.body.exists), *exists)
                found.append(_body(plain, head, own, forms, names))
    return found


def _alternatives(
    forms: tuple[Form, ...], names: set[str]
) -> Iterator[tuple[tuple[str, ...], tuple[Form, ...]]]:
    """(Variables of the branches taken, forms) without disjunctions that read the recursion."""
    for i, form in enumerate(forms):
        if isinstance(form, Disjunction) and mentions(form, names):
            for branch in form.branches:
                own = tuple(v.name for v in branch.exists)
                for exists, rest in _alternatives((*forms[:i], *branch.forms, *forms[i + 1 :]), names):
                    yield (*own, *exists), rest
            return
    yield (), forms


def _body(rule: Rule, head: Atom, exists: tuple[str, ...], forms: tuple[Form, ...], names: set[str]) -> Body:
    used = Conj((), forms).variables()
    outer = dict.fromkeys(n for n in (*(v.name for v in rule.universals), *exists) if n in used)
    in_head = {a.name for a in head.args if isinstance(a, Var)}
    own = replace(
        rule,
        heads=(head,),
        body=Conj(tuple(Var(n) for n in outer if n not in in_head), forms),
        universals=tuple(Var(n) for n in outer if n in in_head),
        aggregates=(),
    )
    recursive = [f for f in forms if isinstance(f, Atom) and f.predicate in names]
    return Body(own, forms, (head, *recursive))


def mentions(form: Form, names: set[str]) -> bool:
    return any(atom.predicate in names for atom, _ in Conj((), (form,)).atoms())


def kind_of(program: Program, stratum: Stratum, name: str) -> FactKind:
    predicate = program.predicates[name]
    combine = stratum.combine.get(name, "")
    return FactKind(predicate.arity, predicate.n_keys if combine else predicate.arity, combine)


def base_facts_body(program: Program, name: str) -> Body:
    """`p(x, y) <- base p(x, y)`; a key has several base facts where values combine."""
    predicate = program.predicates[name]
    args = tuple(Var(f"x{i}") for i in range(predicate.arity))
    types = {f"x{i}": column.type for i, column in enumerate(predicate.columns)}
    head = Atom(name, args, predicate.n_keys)
    fact = Atom(facts_name(name), args, predicate.arity)
    return Body(Rule(-1, (head,), Conj((), (fact,)), (), args, types), (fact,), (head,))
