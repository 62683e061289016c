"""Owns sequences, `f[g, i] = x <- seq<<i = (a, x)>> body.`: what lowering makes of them.

    # f'rows(g, a, x) <- body.                       an auxiliary predicate with what is numbered
    # f[g, i] = x <- f'rows(g, a, x), i = 0.         a rule that `numbers`: i is the place of (a, x) in g

The second rule says what depends on what, and gives types; nothing evaluates it as a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlog.errors import Diagnostics, place
from dlog.ir.expand.inlining import fresh
from dlog.ir.lower.dependencies import head_name
from dlog.ir.lower.names import Names, Shape
from dlog.ir.lower.scope import variables
from dlog.ir.rules import Predicate, Rule, Var
from dlog.language import ast
from dlog.values import INT

_FORM = "write f[i] = x <- seq<<>> p(x), or f[g, i] = x <- seq<<i = (a, x)>> p(g, a, x)."


@dataclass(frozen=True)
class Parts:
    """The two rules of a sequence."""

    rows: ast.Rule
    numbers: ast.Rule


def rows_name(name: str) -> str:
    """The predicate with what a sequence numbers."""
    return f"{name}'rows"


def sequence_rules(node: ast.SequenceRule, names: Names) -> Parts | None:
    """None if the sequence was reported.  Declares the predicate of its rows."""
    errors = names.diagnostics
    head, value = node.head, None
    if isinstance(head, ast.Comparison) and head.op == "=":
        value, head = head.right, head.left
    if not isinstance(head, ast.Application) or not isinstance(value, ast.Variable):
        errors.error("the head of a sequence is a function of variables", node.head.span, _FORM)
        return None
    keys = [arg.name for arg in head.args if isinstance(arg, ast.Variable)]
    if len({*keys, value.name}) < len(head.args) + 1:
        errors.error("the head of a sequence has different variables", node.head.span, _FORM)
        return None
    inside = set(variables(node.body))
    index = _index(node, keys, inside, errors)
    if index is None or not names.use(head.name, len(keys) + 1, True, node.head.span):
        return None
    groups = [ast.Variable(key, span=node.head.span) for key in keys if key != index]
    return _parts(node, head, value, index, groups, names)


def _parts(
    node: ast.SequenceRule,
    head: ast.Application,
    value: ast.Variable,
    index: str,
    groups: list[ast.Variable],
    names: Names,
) -> Parts:
    order = list(node.order or (value,))
    if value not in order:
        order.append(value)
    taken = {*variables(node)}
    shown = [o if o == value else ast.Variable(fresh("order", taken), span=node.span) for o in order]
    name = rows_name(head.name)
    names.shapes[name] = Shape(len(groups) + len(order), False, node.span, auxiliary=True)
    rows = ast.Call(name, (*groups, *order), span=node.span)
    number = ast.Variable(index, span=node.head.span)
    zero = ast.Comparison("=", number, ast.Constant("int", 0, span=node.span), span=node.span)
    source = ast.Call(name, (*groups, *shown), span=node.span)
    body = ast.Conjunction((source, zero), span=node.span)
    return Parts(ast.Rule((rows,), node.body, span=node.span), ast.Rule((node.head,), body, span=node.span))


def _index(node: ast.SequenceRule, keys: list[str], inside: set[str], errors: Diagnostics) -> str | None:
    """The key that is the number."""
    if node.index is not None:
        if node.index not in keys:
            errors.error(f"{node.index} is not a key of the head", node.head.span, _FORM)
            return None
        if node.index in inside:
            message = f"{node.index} is the number, so the body cannot use it"
            errors.error(message, node.body.span, "give the variable of the body another name")
            return None
        return node.index
    free = [key for key in keys if key not in inside]
    if len(free) != 1:
        message = "the head of a sequence has one key that the body does not have: the number"
        errors.error(message, node.head.span, _FORM)
        return None
    return free[0]


def check_alone(program: ast.Program, names: Names) -> None:
    """A sequence is all that derives its head."""
    first: dict[str, ast.Node] = {}
    for statement in program.statements:
        if isinstance(statement, ast.SequenceRule):
            first.setdefault(head_name(statement.head), statement)
    if not first:
        return
    for statement in program.statements:
        for name in _derives(statement):
            if name in first and statement is not first[name]:
                where = place(first[name].span, statement.span)
                help = f"a sequence is the only rule of its head; the first is at {where}"
                names.diagnostics.error(f"{name} is a sequence", statement.span, help)


def _derives(statement: ast.Node) -> list[str]:
    if isinstance(statement, ast.SequenceRule):
        return [head_name(statement.head)]
    if isinstance(statement, ast.Rule):
        return [head_name(head) for head in statement.heads]
    if isinstance(statement, ast.DeltaStatement):
        return [head_name(delta.atom) for delta in statement.deltas]
    if isinstance(statement, ast.Facts):
        return [statement.predicate]
    if isinstance(statement, ast.Directive) and statement.kind in ("input", "stream", "table", "limitsize"):
        return [statement.predicate]
    return []


def check_types(rule: Rule, predicates: Mapping[str, Predicate], diagnostics: Diagnostics) -> None:
    """Numbers are ints, what is numbered has an order, and nothing is converted.  REQUIRES: the rule
    numbers."""
    (head,) = rule.heads
    inside = {arg.name for atom, _ in rule.body.atoms() for arg in atom.args if isinstance(arg, Var)}
    for arg, column in zip(head.args, predicates[head.predicate].columns, strict=True):
        name = arg.name if isinstance(arg, Var) else ""
        own = rule.types[name] if name in inside else INT
        if own != column.type:
            message = f"the sequence gives {own}, but {head.predicate} has {column.type}"
            help = "declare the types that the body has, and int for the number"
            diagnostics.error(message, arg.span or rule.span, help)
            return
    for own in rule.types.values():
        if own.is_record:
            diagnostics.error(f"{own} has no order, so it cannot be numbered", rule.span, "number by a field")
            return
