"""Owns which part of a rule's body a join graph maintains: its atoms, and comparisons of their variables.

What is left are primitives, which are evaluated on the rows that the graph gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dlog.engine.state.store import Store
from dlog.errors import UnsupportedError
from dlog.ir.primitives import COMPARISONS
from dlog.ir.rules import Atom, Const, Form, Operand, Primitive, Rule, Var
from dlog.joingraph import body as graph
from dlog.joingraph.plan import Plan, Refusal, plan_graph
from dlog.values import Type

OPERATORS = {name: op for op, name in COMPARISONS.items()}
Encode = Callable[[Const, Type], int | None]


@dataclass(frozen=True)
class RuleBody:
    """A graph's plan, and the forms that are evaluated after it."""

    plan: Plan
    rest: tuple[Form, ...]


def rule_body(store: Store, rule: Rule, outputs: Sequence[str]) -> RuleBody:
    """Raises UnsupportedError with the reason if a rule has no join graph."""
    atoms = [form for form in rule.body.forms if isinstance(form, Atom)]
    others = [form for form in rule.body.forms if not isinstance(form, Atom)]
    if not all(isinstance(form, Primitive) for form in others):
        raise UnsupportedError("its body is not a conjunction of atoms and primitives")
    bound = {a.name for atom in atoms for a in atom.args if isinstance(a, Var)}
    compared = [form for form in others if _is_compared(rule, form, bound)]
    rest = tuple(form for form in others if form not in compared)
    needed = {a.name for form in rest if isinstance(form, Primitive) for a in form.args if isinstance(a, Var)}
    shown = tuple(v for v in dict.fromkeys((*outputs, *sorted(needed))) if v in bound)
    body = graph.Body(
        tuple(_atom(store, rule, atom) for atom in atoms),
        shown,
        tuple(_comparison(store, rule, form) for form in compared if isinstance(form, Primitive)),
    )
    plan = plan_graph(body)
    if isinstance(plan, Refusal):
        raise UnsupportedError(plan.reason)
    return RuleBody(plan, rest)


def _is_compared(rule: Rule, form: Form, bound: set[str]) -> bool:
    """Whether a form compares variables of atoms, or one with a literal, by their codes."""
    if not isinstance(form, Primitive) or form.name not in OPERATORS or form.output is not None:
        return False
    types = [rule.types[a.name] for a in form.inputs if isinstance(a, Var)]
    names = {a.name for a in form.inputs if isinstance(a, Var)}
    if not names or not names <= bound or any(type != types[0] for type in types):
        return False
    return types[0].ordered_codes or form.name in ("eq", "ne")


def _atom(store: Store, rule: Rule, atom: Atom) -> graph.Atom:
    args = []
    for place, (operand, type) in enumerate(zip(atom.args, store.column_types(atom.predicate), strict=True)):
        if isinstance(operand, Var) and rule.types[operand.name] != type:
            raise UnsupportedError(f"{operand} is not of the type of column {place + 1} of {atom.predicate}")
        args.append(_operand(store, operand, type))
    return graph.Atom(atom.predicate, tuple(args))


def _comparison(store: Store, rule: Rule, form: Primitive) -> graph.Comparison:
    type = next(rule.types[a.name] for a in form.inputs if isinstance(a, Var))
    left, right = (_operand(store, operand, type) for operand in form.inputs)
    return graph.Comparison(OPERATORS[form.name], left, right)


def _operand(store: Store, operand: Operand, type: Type) -> graph.Operand:
    if isinstance(operand, Var):
        return operand.name
    code = store.encode(operand, type)
    if code is None:
        raise UnsupportedError(f"a column of type {type} cannot hold {operand}")
    return code
