"""Owns which variables forms bind, before they are typed and ordered.

In a statement that is being lowered, inline aggregates are still where they were written, as
`AggregateForm`s; everything here handles them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from dlog.aggregates import aggregate_named
from dlog.ir.record_forms import is_constructor
from dlog.ir.rules import Atom, Conj, Disjunction, Form, Negation, Operand, Primitive, Var
from dlog.language.source import Span


@dataclass(frozen=True)
class AggregateForm:
    """An inline aggregate that will become a separate rule: `result = op(argument) : { forms }`.

    `groups` are the variables that it shares with its surroundings and that have a value there; `witnesses`
    get theirs from the assignments that have the result.
    """

    op: str
    result: Var
    argument: Operand | None
    forms: tuple[RawForm, ...]
    groups: tuple[Var, ...]
    span: Span | None
    witnesses: tuple[Var, ...] = ()

    @property
    def over_nothing(self) -> int | None:
        """Its value over nothing; None: it fails."""
        return aggregate_named(self.op).over_nothing

    @cached_property
    def own(self) -> frozenset[str]:
        """What is outside the aggregate's body: its groups, its witnesses, its argument and its result."""
        operands = (*self.groups, *self.witnesses, self.argument, self.result)
        return frozenset(a.name for a in operands if isinstance(a, Var))

    @cached_property
    def needed(self) -> tuple[Var, ...]:
        """What it needs from outside, while it is not known what is available."""
        return self.missing(frozenset())

    def missing(self, available: Set[str]) -> tuple[Var, ...]:
        """Groups that must come from outside for the aggregate's own body to bind the others.

        First those that no form of the body binds, then, while forms wait for each other, one
        more, if possible one that is `available` outside.
        """
        offered = set().union(*map(_offers, self.forms))
        given = {g.name for g in self.groups if g.name not in offered}
        while rest := {g.name for g in self.groups} - given - ground(self.forms, given, self.own):
            order = [g.name for g in self.groups if g.name in rest]
            given.add(next((name for name in order if name in available), order[0]))
        return tuple(g for g in self.groups if g.name in given)

    def binds(self, bound: Set[str]) -> set[str]:
        """Its result, and its groups, unless it has a value for every group, because it is 0 over nothing."""
        if not {v.name for v in self.needed} <= bound:
            return set()
        groups = {g.name for g in self.groups}
        if self.over_nothing is not None:
            return {self.result.name} if groups <= bound else set()
        return {self.result.name, *groups, *(w.name for w in self.witnesses)}


RawForm: TypeAlias = Form | AggregateForm


def raw(conj: Conj) -> tuple[Any, ...]:
    """The forms of a conjunction that may still contain aggregates."""
    return conj.forms


def ground(
    forms: Iterable[RawForm], bound: Set[str] = frozenset(), around: Set[str] = frozenset()
) -> set[str]:
    """Variables that forms bind together, given what is bound and what is used around them.

    As in `safety`: a disjunction binds nothing before each of its branches binds all that it shares with
    its surroundings.  O(forms^2).
    """
    return set(_providers(tuple(forms), frozenset(bound), frozenset(around)))


def providers(forms: Iterable[RawForm], wanted: Iterable[str]) -> list[RawForm]:
    """Some of the forms that together bind all `wanted` variables, as few as a backward search finds."""
    wanted = tuple(wanted)
    by_name = _providers(tuple(forms), frozenset(), frozenset(wanted))
    chosen: list[RawForm] = []
    todo = [name for name in wanted if name in by_name]
    while todo:
        form = by_name[todo.pop()]
        if form not in chosen:
            chosen.append(form)
            todo += [name for name in _inputs(form) if name in by_name]
    return chosen


def needs(form: RawForm) -> set[str]:
    """Variables that the aggregates inside a form need from outside it."""
    if isinstance(form, AggregateForm):
        return {v.name for v in form.needed}
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


def _providers(
    forms: tuple[RawForm, ...], bound: frozenset[str], around: frozenset[str]
) -> dict[str, RawForm]:
    """For each variable that forms bind one that does; atoms first."""
    waiting = sorted(forms, key=lambda form: not isinstance(form, Atom))
    shared = _shared(waiting, bound | around)
    found: dict[str, RawForm] = {}
    known = set(bound)
    before = -1
    while len(found) > before:
        before = len(found)
        stuck = []
        for form in waiting:
            binds = _binds(form, known, shared[id(form)])
            found |= {name: form for name in binds if name not in found}
            known |= binds
            if not binds:
                stuck.append(form)
        waiting = stuck
    return found


def _shared(forms: list[RawForm], around: frozenset[str]) -> dict[int, frozenset[str]]:
    """For each form its variables that are used around it.  O(size)."""
    names = {id(form): frozenset(visible_names(form)) for form in forms}
    uses = Counter(name for own in names.values() for name in own)
    return {i: frozenset(n for n in own if n in around or uses[n] > 1) for i, own in names.items()}


def visible_names(form: RawForm) -> set[str]:
    """The variables of a form; for an aggregate those visible to its surroundings."""
    if isinstance(form, AggregateForm):
        return {form.result.name, *(v.name for v in (*form.groups, *form.witnesses))}
    if isinstance(form, Atom | Primitive):
        return {a.name for a in form.args if isinstance(a, Var)}
    return set().union(*(visible_names(inner) for conj in children(form) for inner in raw(conj)))


def _binds(form: RawForm, bound: Set[str], shared: frozenset[str]) -> set[str]:
    """What a form binds once `bound` is: nothing while its inputs are missing."""
    if isinstance(form, AggregateForm):
        return form.binds(bound)
    if isinstance(form, Primitive):
        names = {a.name for a in form.inputs if isinstance(a, Var)}
        if form.name == "eq":
            return names if len(names - bound) < 2 and form.inputs[0] != form.inputs[1] else set()
        if is_constructor(form.name) and _is_bound(form.output, bound):  # taken apart
            return names
        return {form.output.name} if names <= bound and isinstance(form.output, Var) else set()
    if isinstance(form, Disjunction) and form.exclusive:
        aggregate = form.branches[0].forms[0]  # or its value over nothing
        assert isinstance(aggregate, Atom)
        groups = {a.name for a in aggregate.keys if isinstance(a, Var)}
        return visible_names(aggregate) if groups <= bound else set()
    if isinstance(form, Disjunction) and form.branches:
        given = set.intersection(*(ground(raw(branch), bound, shared) for branch in form.branches))
        return given if shared <= given | bound else set()
    return _offers(form)


def possible_outputs(form: Primitive) -> tuple[Operand | None, ...]:
    """What a primitive may give a value: either side of an equality, a record or its fields."""
    if is_constructor(form.name):
        return form.args
    return form.inputs if form.name == "eq" else (form.output,)


def _is_bound(operand: Operand | None, bound: Set[str]) -> bool:
    return not isinstance(operand, Var) or operand.name in bound


def _offers(form: RawForm) -> set[str]:
    """What a form would bind if it could run."""
    if isinstance(form, AggregateForm):
        groups = set() if form.over_nothing is not None else {g.name for g in form.groups}
        return {form.result.name, *groups, *(w.name for w in form.witnesses)}
    if isinstance(form, Atom):
        return visible_names(form)
    if isinstance(form, Primitive):
        return {a.name for a in possible_outputs(form) if isinstance(a, Var)}
    if isinstance(form, Disjunction) and form.branches:
        branches = (set().union(*map(_offers, raw(branch))) for branch in form.branches)
        return set.intersection(*branches)
    return set()


def _inputs(form: RawForm) -> set[str]:
    """Variables that must be bound before a form can bind others.

    All of a disjunction's: a negation inside it would mean something else if they were free.
    """
    if isinstance(form, Primitive):
        return {a.name for a in form.inputs if isinstance(a, Var)}
    if isinstance(form, AggregateForm):
        return {v.name for v in form.needed}
    return {v.name for branch in children(form) for v in branch.occurrences()}
