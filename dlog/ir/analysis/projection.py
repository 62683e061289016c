"""Owns which variables of a body a head shows, and whether each row of it has one assignment."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.ir.rules import Atom, Rule, Var
from dlog.values import Type


def outer_variables(rule: Rule) -> tuple[str, ...]:
    """The variables of an assignment of a rule's body: its universals and its outermost `exists` block."""
    results = {a.result.name for a in rule.aggregates}
    names = (v.name for v in (*rule.universals, *rule.body.exists))
    return tuple(dict.fromkeys(n for n in names if n not in results))


def stored_as(rule: Rule, operand: object, column: Type) -> bool:
    """Whether a head's argument is a variable whose codes are stored unchanged, without rounding."""
    if not isinstance(operand, Var):
        return False
    type = rule.types[operand.name]
    return not column.is_decimal or (type.scale == column.scale and type.precision <= 18)


def shown_variables(rule: Rule, head: Atom, types: Sequence[Type]) -> set[str]:
    """The variables whose values are in a head's rows, unrounded.  `types` are those of its columns."""
    given = zip(head.args, types, strict=True)
    return {a.name for a, type in given if isinstance(a, Var) and stored_as(rule, a, type)}


def hidden_keys(rule: Rule, head: Atom, types: Sequence[Type]) -> list[str]:
    """The keys of the body that a head does not show; without any, each row of it has one assignment."""
    return sorted(rule.keys & set(outer_variables(rule)) - shown_variables(rule, head, types))
