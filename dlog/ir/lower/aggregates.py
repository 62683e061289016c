"""Owns aggregates: what `agg<<...>>` may contain, and inline aggregates -> auxiliary predicates with rules.

    # n = count : { edge(x, _) }         becomes, with x a group,
    # (aux[x] = n ; !aux[x] = _, n = 0)  where  aux[x] = n <- agg<<n = count()>> edge(x, _).
    # l = max m : { length(x, m) }       becomes, with x a witness,
    # witnesses(x, l)  where  aux[] = l <- agg<<l = max(m)>> length(x, m).
    #                         witnesses(x, m) <- length(x, m), aux[] = m.

An aggregate whose body does not bind its groups ranges over a *domain*: an auxiliary predicate over the forms
around it that do.  It may have more groups than the rule needs, never fewer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from dlog.aggregates import AGGREGATES, COFACTOR, aggregate_named
from dlog.errors import did_you_mean
from dlog.ir.functors import is_call
from dlog.ir.lower.dependencies import Dependencies
from dlog.ir.lower.equivalence import relation_of
from dlog.ir.lower.grounding import (
    AggregateForm,
    RawForm,
    ground,
    has_aggregate,
    needs,
    providers,
    raw,
)
from dlog.ir.lower.literals import ZERO
from dlog.ir.lower.lowered import Lowered
from dlog.ir.lower.names import Shape
from dlog.ir.lower.scope import Scope, variables
from dlog.ir.rules import (
    Aggregate,
    Atom,
    Conj,
    Const,
    Disjunction,
    Form,
    Negation,
    Operand,
    Primitive,
    Rule,
    Var,
)
from dlog.language import ast
from dlog.language.foreign import FUNCTIONS, function_help
from dlog.language.source import Span

# `agg<<...>>`


def aggregation(scope: Scope, node: ast.Aggregation, forms: list[RawForm]) -> Aggregate | None:
    """One `result = op(argument)`; None when it was reported."""
    assert isinstance(scope.root, ast.Rule) and scope.root.body is not None
    if is_call(node.op):
        if (op := scope.lowered.functors.aggregate(node.op, node.span, len(node.args))) is None:
            scope.failed = True
            return None
    else:
        op = node.op
    if not is_call(op) and op not in AGGREGATES:
        known = {*AGGREGATES, COFACTOR}
        otherwise = f"the aggregates are {', '.join(sorted(known))}"
        help = function_help(node.op) if FUNCTIONS.get(node.op.lower()) in AGGREGATES else None
        help = help or did_you_mean(node.op, known, otherwise)
        scope.error(f"unknown aggregate {node.op}", node.span, help)
    elif len(node.args) != aggregate_named(op).takes_argument:
        need = "one argument" if AGGREGATES[node.op].takes_argument else "no argument"
        form = f"{node.result} = {AGGREGATES[node.op].usage(name=node.op)}"
        scope.error(f"{node.op} takes {need}", node.span, f"write {form}")
    elif node.result in variables(scope.root.body):
        message = f"{node.result} is the result of {node.op}, but the body uses it too"
        scope.error(message, node.span, "give the result a different name")
    elif not _uses_results(scope, node):
        argument = scope.term(node.args[0], forms) if node.args else None
        return Aggregate(aggregate_named(op).name, Var(node.result, node.span), argument, node.span)
    return None


def _uses_results(scope: Scope, node: ast.Aggregation) -> bool:
    assert isinstance(scope.root, ast.Rule)
    results = {a.result for a in scope.root.aggregations}
    for argument in node.args:
        for inner in argument.walk():
            if isinstance(inner, ast.Variable) and inner.name in results:
                message = (
                    f"{inner.name} is the result of an aggregate and cannot be the argument of {node.op}"
                )
                scope.error(message, inner.span, "compute it in a separate rule first")
                return True
    return False


def check_aggregates(scope: Scope, aggregates: list[Aggregate], heads: list[Atom]) -> None:
    """Every result belongs to one aggregate, and is used by a head."""
    seen: set[str] = set()
    for aggregate in aggregates:
        if aggregate.result.name in seen:
            message = f"{aggregate.result} is the result of two aggregates"
            scope.error(message, aggregate.span, "give each result a different name")
        elif not any(aggregate.result in h.args for h in heads):
            message = f"the result {aggregate.result} of {aggregate.function} is not used in the head"
            scope.error(message, aggregate.span, f"add a head such as total[...] = {aggregate.result}")
        seen.add(aggregate.result.name)


def check_head_terms(scope: Scope, args: Iterable[ast.Node]) -> None:
    """A result is stored unchanged: expressions over it belong in another rule."""
    assert isinstance(scope.root, ast.Rule)
    results = {a.result for a in scope.root.aggregations}
    for node in (n for a in args if not isinstance(a, ast.Variable) for n in a.walk()):
        if isinstance(node, ast.Variable) and node.name in results:
            message = (
                f"{node.name} is the result of an aggregate and cannot be used in an expression of the head"
            )
            scope.error(message, node.span, "store it unchanged, and compute with it in a second rule")


# What computes the terms of a head or the argument of an aggregate.
OwnForms: TypeAlias = dict[Atom | Aggregate, tuple[RawForm, ...]]


def by_group(
    heads: list[Atom], aggregates: list[Aggregate], computed: OwnForms
) -> list[tuple[tuple[Atom, ...], tuple[Aggregate, ...]]]:
    """Heads with the same group keys stay one rule, unless something is computed for one of them alone.

    Others become separate rules, so that what has no value for one head has no effect on another.
    """
    results = {a.result.name for a in aggregates}
    parts: dict[tuple[object, ...], list[Atom]] = {}
    for head in heads:
        groups = frozenset(a.name for a in head.args if isinstance(a, Var) and a.name not in results)
        own = tuple(a for a in used_by([head], aggregates) if a in computed)
        alone = head if head in computed else None
        parts.setdefault((groups if aggregates else None, own, alone), []).append(head)
    return [(tuple(part), used_by(part, aggregates)) for part in parts.values()]


def used_by(heads: Iterable[Atom], aggregates: Iterable[Aggregate]) -> tuple[Aggregate, ...]:
    args = {a for head in heads for a in head.args}
    return tuple(a for a in aggregates if a.result in args)


# Inline aggregates

_DOMAIN = "'domain"


def is_domain(predicate: str) -> bool:
    """Whether an auxiliary predicate is the domain of an aggregate's outer variables."""
    return predicate.endswith(_DOMAIN)


class RuleMaker:
    """Adds the rules of one statement to a program, those of its inline aggregates first."""

    def __init__(self, scope: Scope, dependencies: Dependencies, heads: tuple[str, ...] = ()):
        self.scope = scope
        self.lowered: Lowered = scope.lowered
        self.dependencies = dependencies
        self.heads = heads  # the statement's own

    def add(
        self,
        heads: tuple[Atom, ...],
        forms: Iterable[RawForm],
        aggregates: tuple[Aggregate, ...],
        span: Span | None,
    ) -> None:
        if not any(self.lowered.names.shapes[h.predicate].auxiliary for h in heads):
            self.heads = tuple(h.predicate for h in heads)
        body = self.conj(tuple(forms), (), heads[0].predicate)
        rules = self.lowered.rules
        computed = frozenset(self.scope.computed)
        rules.append(Rule(len(rules), heads, body, aggregates, span=span, computed=computed))

    def auxiliary(self, name: str, args: tuple[Operand, ...], n_keys: int, span: Span | None) -> Atom:
        self.lowered.names.shapes[name] = Shape(len(args), n_keys < len(args), span, auxiliary=True)
        return Atom(name, args, n_keys, span)

    def conj(self, forms: tuple[RawForm, ...], context: tuple[Form, ...], name: str) -> Conj:
        """Replaces the aggregates among and below forms, each after those whose results it needs."""
        done: dict[int, Form] = {i: f for i, f in enumerate(forms) if not has_aggregate(f)}  # type: ignore[misc]
        waiting = [i for i in range(len(forms)) if i not in done]
        while waiting:
            around = (*context, *done.values())
            index = next((i for i in waiting if not needs(forms[i])), -1)
            if index < 0:
                bound = ground(around)
                index = next((i for i in waiting if needs(forms[i]) <= bound), waiting[0])
            waiting.remove(index)
            done[index] = self.form(forms[index], around, name)
        return Conj((), tuple(done[i] for i in sorted(done)))

    def form(self, form: RawForm, around: tuple[Form, ...], name: str) -> Form:
        if isinstance(form, AggregateForm):
            return self.aggregate(form, around, name)
        if isinstance(form, Negation):
            return replace(form, body=self.conj(raw(form.body), around, name))
        assert isinstance(form, Disjunction)
        return replace(form, branches=tuple(self.conj(raw(b), around, name) for b in form.branches))

    def aggregate(self, form: AggregateForm, around: tuple[Form, ...], name: str) -> Form:
        auxiliary = f"{name}'{aggregate_named(form.op)}{len(self.lowered.rules) + 1}"
        forms = list(form.forms)
        if form.needed:
            missing = form.missing(ground(around))
            forms.insert(0, self.domain(missing, around, auxiliary + _DOMAIN, form.span))
        head = self.auxiliary(auxiliary, (*form.groups, form.result), len(form.groups), form.span)
        aggregate = Aggregate(form.op, form.result, form.argument, form.span)
        if form.witnesses:
            forms = self.candidates(form, forms, auxiliary)
        self.add((head,), forms, (aggregate,), form.span)
        if form.witnesses:
            return self.with_witnesses(form, forms, head)
        return head if form.over_nothing is None else self.or_empty(form, form.over_nothing, head)

    def candidates(self, form: AggregateForm, forms: list[RawForm], name: str) -> list[RawForm]:
        """The body of an aggregate with witnesses, without aggregates: two rules will have it.

        A computed argument is stored first, since storing may round it.
        """
        body = self.conj(tuple(forms), (), name).forms
        stored = {a for f in body if isinstance(f, Atom) for a in f.args}
        if not isinstance(form.argument, Var) or form.argument in stored:
            return list(body)
        args = (*form.groups, *form.witnesses, form.argument)
        head = self.auxiliary(name + "'candidates", args, len(args), form.span)
        self.add((head,), body, (), form.span)
        return [head]

    def with_witnesses(self, form: AggregateForm, forms: list[RawForm], best: Atom) -> Atom:
        """The assignments that have the result, projected to groups, witnesses and result."""
        assert form.argument is not None
        reached = replace(best, args=(*best.keys, form.argument))
        args = (*form.groups, *form.witnesses, form.argument)
        head = self.auxiliary(best.predicate + "'witnesses", args, len(args), form.span)
        self.add((head,), (*forms, reached), (), form.span)
        return replace(head, args=(*args[:-1], form.result))

    def or_empty(self, form: AggregateForm, value: int, head: Atom) -> Form:
        """The aggregate's value, or the one it has over nothing."""
        absent = replace(head, args=(*head.keys, self.scope.fresh(form.span)))
        empty = Const(ZERO if aggregate_named(form.op).adds_up else "int", value, None, form.span)
        equal = Primitive("eq", (form.result, empty), None, form.span)
        otherwise = Conj((), (Negation(Conj((), (absent,)), form.span), equal))
        return Disjunction((Conj((), (head,)), otherwise), form.span, exclusive=True)

    def domain(
        self, missing: tuple[Var, ...], around: tuple[Form, ...], name: str, span: Span | None
    ) -> Atom:
        """Over forms outside the recursion if they suffice: an aggregate may not depend on itself."""
        wanted = [v.name for v in missing]
        stratified = [f for f in around if not self.dependencies.are_recursive(self.heads, _predicates(f))]
        candidates = stratified if set(wanted) <= ground(stratified, around=set(wanted)) else around
        head = self.auxiliary(name, missing, len(missing), span)
        self.add((head,), providers(candidates, wanted), (), span)
        return head


def _predicates(form: Form) -> set[str]:
    return {relation_of(atom.predicate) for atom, _ in Conj((), (form,)).atoms()}
