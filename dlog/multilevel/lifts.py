"""Owns the laws of lifts, `(x ^= e)`: where they are written, when a variable may be replaced by what it
equals, and how conditions on aggregates become lifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import (
    Names,
    commutes,
    hidden,
    inputs,
    is_value,
    outputs,
    reads_relations,
    visible,
)
from dlog.multilevel.names import fresh, mentioned, rename, substitute
from dlog.multilevel.values import factors_of, sum_over, times


def advance(node: Node, scope: Names) -> Node:
    """A lift of a value moves in front of all factors with which it commutes, except other lifts."""
    if not isinstance(node, ast.Product):
        return node
    factors = list(node.factors)
    for i, factor in enumerate(factors):
        if not isinstance(factor, ast.Lift) or not is_value(factor.body):
            continue
        at = i
        while at and not isinstance(factors[at - 1], ast.Lift) and _passes(factors, at, scope):
            factors[at - 1], factors[at] = factors[at], factors[at - 1]
            at -= 1
    return ast.product(factors)


def _passes(factors: list[Node], at: int, scope: Names) -> bool:
    before = scope.union(*map(outputs, factors[: at - 1]))
    return commutes(factors[at - 1], factors[at], before)


def propagate(node: Node, scope: Names) -> Node:
    """(x ^= y) * e = (x ^= y) * e[x := y], for a variable y."""
    if not isinstance(node, ast.Product):
        return node
    factors = list(node.factors)
    for i, factor in enumerate(factors):
        if _is_renaming(factor):
            names = {factor.variable.name: factor.body.name}  # type: ignore[attr-defined]
            factors[i + 1 :] = [rename(f, names) for f in factors[i + 1 :]]
    return times(factors)


def _is_renaming(node: Node) -> bool:
    return isinstance(node, ast.Lift) and isinstance(node.body, ast.Variable) and node.body != node.variable


def unify(node: Node, scope: Names) -> Node:
    """AggSum(k, (x ^= e) * f) = AggSum(k, f[x := e]) for a hidden variable x.

    e is a variable; or a value, and x is only used where a value may be written and only after the lift; or x
    is not used at all.
    """
    while isinstance(node, ast.AggSum) and (body := _unified(node)) is not None:
        node = sum_over(body, visible(node))
    return node


def _unified(node: ast.AggSum) -> Node | None:
    """The body without one lift; None if none can be left out."""
    factors, names = factors_of(node.body), hidden(node)
    for i, factor in enumerate(factors):
        if isinstance(factor, ast.Lift) and factor.variable.name in names:
            rest = _without(factor, factors[:i], factors[i + 1 :])
            if rest is not None:
                return times(rest)
    return None


def _without(lift: ast.Lift, before: Sequence[Node], after: Sequence[Node]) -> list[Node] | None:
    """The other factors, with the value of the lift for its variable."""
    name, value = lift.variable.name, lift.body
    if name not in frozenset().union(*map(visible, (*before, *after))):
        return [*before, *after]
    if isinstance(value, ast.Variable):
        return [rename(f, {name: value.name}) for f in (*before, *after)]
    if not is_value(value) or name in frozenset().union(*map(visible, before)):
        return None
    changed = [substitute(f, name, value) for f in after]
    return None if None in changed else [*before, *changed]  # type: ignore[list-item]


def equalities(node: Node, scope: Names) -> Node:
    """AggSum(k, f * {x = y}) = AggSum(k, f[x := y]) for a hidden variable x that f binds.

    If y is an expression over what is bound outside, f is looked up by it:
    AggSum(k, f * {x = e}) = AggSum(k, (x ^= e) * f).
    """
    if not isinstance(node, ast.AggSum):
        return node
    factors = factors_of(node.body)
    for i, factor in enumerate(factors):
        if not isinstance(factor, ast.Comparison) or factor.op != "=":
            continue
        rest = [*factors[:i], *factors[i + 1 :]]
        for side, other in ((factor.left, factor.right), (factor.right, factor.left)):
            if not isinstance(side, ast.Variable) or side.name not in hidden(node) or side == other:
                continue
            if isinstance(other, ast.Variable):
                names = {side.name: other.name}
                return sum_over(times(rename(f, names) for f in rest), visible(node))
            if is_value(other) and inputs(other) and inputs(other) <= inputs(node):
                return sum_over(times([ast.Lift(side, other), *rest]), visible(node))
    return node


def locate(node: Node, scope: Names) -> Node:
    """f * {x = y} = (x ^= y) * f for a variable x that f binds and a variable y that is bound outside: f is
    looked up by it.
    """
    if not isinstance(node, ast.Product):
        return node
    for i, factor in enumerate(node.factors):
        if not isinstance(factor, ast.Comparison) or factor.op != "=":
            continue
        for side, other in ((factor.left, factor.right), (factor.right, factor.left)):
            if _is_name(side) and side.name not in scope and _is_name(other) and other.name in scope:
                return times([ast.Lift(side, other), *node.factors[:i], *node.factors[i + 1 :]])
    return node


def _is_name(node: Node) -> TypeGuard[ast.Variable]:
    return isinstance(node, ast.Variable)


def tests(node: Node, scope: Names) -> Node:
    """A lift of a value to a variable that is bound outside is a comparison."""
    if isinstance(node, ast.Lift) and node.variable.name in scope and is_value(node.body):
        return ast.Comparison("=", node.variable, node.body)
    return node


def lifted(node: Node, scope: Names) -> Node:
    """Aggregates in conditions and functions become lifts:
    {e < f} = AggSum([], (u ^= e) * (w ^= f) * {u < w}).
    """
    if not isinstance(node, ast.Comparison | ast.In | ast.Call) or not reads_relations(node):
        return node
    used = set(scope | mentioned(node))
    lifts: list[Node] = []

    def value(operand: Node) -> Node:
        if not reads_relations(operand):
            return operand
        name = fresh("value", used)
        used.add(name)
        lifts.append(ast.Lift(ast.Variable(name), operand))
        return ast.Variable(name)

    if isinstance(node, ast.Comparison):
        node = replace(node, left=value(node.left), right=value(node.right))
    elif isinstance(node, ast.In):
        node = replace(node, operand=value(node.operand))
    else:
        node = replace(node, arguments=tuple(map(value, node.arguments)))
    return ast.AggSum((), ast.product([*lifts, node]))


def inline(node: Node, scope: Names) -> Node:
    """AggSum(k, (x ^= e) * f) = AggSum(k, f[x := e]), where e is read from maps and x is used once."""
    if not isinstance(node, ast.AggSum):
        return node
    factors = factors_of(node.body)
    for i, lift in enumerate(factors):
        if (
            not isinstance(lift, ast.Lift)
            or lift.variable.name not in hidden(node)
            or reads_relations(lift.body)
        ):
            continue
        name, rest = lift.variable.name, factors[:i] + factors[i + 1 :]
        uses = sum(isinstance(n, ast.Variable) and n.name == name for f in rest for n in f.walk())
        if uses != 1 or name in frozenset().union(*map(visible, factors[:i])):
            continue
        changed = [substitute(f, name, lift.body) for f in rest]
        if None not in changed:
            return sum_over(times(changed), visible(node))  # type: ignore[arg-type]
    return node
