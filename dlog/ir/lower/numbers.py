"""Owns `autoinc()`: a rule that gives numbers becomes three.

    # id(x, autoinc()) :- person(x).
    id'assignments1(x) <- person(x).            an auxiliary predicate has the assignments of the body
    id'numbers1(x, n) <- id'assignments1(x).    another one has each assignment with its numbers
    id(x, n) <- id'numbers1(x, n).

Conditions on a number, as in `n = autoinc(), n < 3`, stay in the last rule.  The second rule says where the
numbers come from, with 0 for the number, for types and strata: it is evaluated by giving numbers.  In place
of 1 the names have a digest of the rule, so that they stay the same when other rules come and go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from dlog.ir.lower.aggregates import RuleMaker
from dlog.ir.lower.grounding import AggregateForm, RawForm, children, ground, raw, visible_names
from dlog.ir.lower.scope import Scope
from dlog.ir.rules import Atom, Conj, Const, Negation, Numbering, Primitive, Rule, Var
from dlog.language import ast
from dlog.language.printing import format_node


def with_numbers(
    maker: RuleMaker, scope: Scope, node: ast.Rule, forms: list[RawForm], numbers: tuple[Var, ...]
) -> list[RawForm]:
    """The body of the last rule; adds the other two."""
    own, rest = _split(forms, {number.name for number in numbers})
    bound = ground(own)
    order = dict.fromkeys(name for form in own for name in _occurrences(form))
    args = tuple(Var(name) for name in order if name in bound)
    name = _name(scope, node)
    assignments = maker.auxiliary(f"{name[0]}'assignments{name[1]}", args, len(args), node.span)
    maker.add((assignments,), own, (), node.span)
    all_args = (*args, *numbers)
    numbered = maker.auxiliary(f"{name[0]}'numbers{name[1]}", all_args, len(all_args), node.span)
    scope.names.shapes[numbered.predicate].numbering = Numbering(assignments.predicate, len(numbers))
    zeros = tuple(Const("int", 0, None, number.span) for number in numbers)
    rules = scope.lowered.rules
    head = Atom(numbered.predicate, (*args, *zeros), len(all_args), node.span)
    rules.append(Rule(len(rules), (head,), Conj((), (assignments,)), span=node.span))
    return [numbered, *rest]


def _name(scope: Scope, node: ast.Rule) -> tuple[str, str]:
    """The first head, and a digest of the rule, with a count if the program has the rule several times."""
    head = node.heads[0]
    relation = head.name if isinstance(head, ast.Call | ast.Application) else "rule"
    if isinstance(head, ast.Comparison) and isinstance(head.left, ast.Application):
        relation = head.left.name
    digest = hashlib.sha256(format_node(node).encode()).hexdigest()[:8]
    count = 1
    while f"{relation}'numbers{digest}{_again(count)}" in scope.names.shapes:
        count += 1
    return relation, digest + _again(count)


def _again(count: int) -> str:
    return "" if count == 1 else f"_{count}"


def _split(forms: Iterable[RawForm], numbers: set[str]) -> tuple[list[RawForm], list[RawForm]]:
    """(Forms that say what the assignments are, those that need a number.)"""
    own, rest, needing = list(forms), list[RawForm](), set(numbers)
    while moved := [form for form in own if needing & visible_names(form)]:
        own = [form for form in own if form not in moved]
        rest += moved
        given = ground(own)
        needing |= {name for form in moved if _computes(form) for name in visible_names(form) - given}
    return own, rest


def _computes(form: RawForm) -> bool:
    return isinstance(form, Primitive)


def _occurrences(form: RawForm) -> Iterator[str]:
    """The variables of a form that its surroundings see, in the order in which they were written."""
    if isinstance(form, AggregateForm):
        yield from (variable.name for variable in (*form.groups, *form.witnesses, form.result))
    elif isinstance(form, Atom | Primitive):
        yield from (operand.name for operand in form.args if isinstance(operand, Var))
    elif not isinstance(form, Negation):
        for branch in children(form):
            for inner in raw(branch):
                yield from _occurrences(inner)
