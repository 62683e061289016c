"""Owns which variables forms give values to, before they are typed and put in order.

Among the forms of a statement that is being lowered inline aggregates still stand where they were written, as
`AggregateForm`s; everything here understands them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Operand, Primitive, Var
from dlog.language.source import Span

# Inline aggregates that have a value over nothing.
EMPTY_VALUE = {"count": 0, "sum": 0}


@dataclass(frozen=True)
class AggregateForm:
    """An inline aggregate on its way to a rule of its own: `result = op(argument) : { forms }`.

    `groups` are the variables that it shares with what stands around it.
    """

    op: str
    result: Var
    argument: Operand | None
    forms: tuple[RawForm, ...]
    groups: tuple[Var, ...]
    span: Span | None

    def missing(self) -> list[Var]:
        """Groups that the aggregate's own body gives no values."""
        own = ground(self.forms)
        return [g for g in self.groups if g.name not in own]

    def offers(self) -> set[str]:
        """What it binds: groups too, unless it has a value for every group, being 0 over nothing."""
        groups = set() if self.op in EMPTY_VALUE else {g.name for g in self.groups} & ground(self.forms)
        return {self.result.name} | groups


RawForm: TypeAlias = Form | AggregateForm


def raw(conj: Conj) -> tuple[Any, ...]:
    """The forms of a conjunction that may still hold aggregates."""
    return conj.forms


def ground(forms: Iterable[RawForm], bound: Iterable[str] = ()) -> set[str]:
    """Variables that forms bind together, given what is bound around them.  O(forms^2)."""
    return set(_providers(forms, frozenset(bound)))


def providers(forms: Iterable[RawForm], wanted: Iterable[str]) -> list[RawForm]:
    """Some of the forms that together bind all that is wanted, as few as going backwards finds."""
    by_name = _providers(forms, frozenset())
    chosen: list[RawForm] = []
    todo = [name for name in wanted if name in by_name]
    while todo:
        form = by_name[todo.pop()]
        if form not in chosen:
            chosen.append(form)
            todo += [name for name in _inputs(form) if name in by_name]
    return chosen


def needs(form: RawForm) -> set[str]:
    """Variables that the aggregates inside a form need from outside of it."""
    if isinstance(form, AggregateForm):
        return {v.name for v in form.missing()}
    inner: set[str] = set()
    for conj in children(form):
        inner |= set().union(*map(needs, raw(conj))) - ground(raw(conj))
    return inner


def has_aggregate(form: RawForm) -> bool:
    return isinstance(form, AggregateForm) or any(
        has_aggregate(inner) for conj in children(form) for inner in raw(conj)
    )


def children(form: RawForm) -> tuple[Conj, ...]:
    """The conjunctions directly below a form."""
    if isinstance(form, Negation):
        return (form.body,)
    return form.branches if isinstance(form, Disjunction) else ()


def _providers(forms: Iterable[RawForm], bound: frozenset[str]) -> dict[str, RawForm]:
    """For each variable that forms bind one that does; atoms first."""
    waiting = sorted(forms, key=lambda form: not isinstance(form, Atom))
    found: dict[str, RawForm] = {}
    before = -1
    while len(found) > before:
        before = len(found)
        for form in waiting:
            for name in _binds(form, bound | found.keys()) - found.keys():
                found[name] = form
    return found


def _binds(form: RawForm, bound: frozenset[str]) -> set[str]:
    """What a form binds once `bound` is: nothing while its inputs are missing."""
    if isinstance(form, AggregateForm):
        return form.offers()
    if isinstance(form, Atom):
        return {a.name for a in form.args if isinstance(a, Var)}
    if isinstance(form, Primitive):
        names = {a.name for a in form.inputs if isinstance(a, Var)}
        if form.name == "eq":
            return names if len(names - bound) < 2 and form.inputs[0] != form.inputs[1] else set()
        return {form.output.name} if names <= bound and isinstance(form.output, Var) else set()
    if isinstance(form, Disjunction) and form.branches:
        return set.intersection(*(ground(raw(branch), bound) for branch in form.branches))
    return set()


def _inputs(form: RawForm) -> set[str]:
    """Variables that must be bound before a form can bind others.

    All of a disjunction's: a negation inside it would say something else if they were free.
    """
    if isinstance(form, Primitive):
        return {a.name for a in form.inputs if isinstance(a, Var)}
    if isinstance(form, AggregateForm):
        return {v.name for v in form.missing()}
    return {v.name for branch in children(form) for v in branch.occurrences()}
