"""Owns the laws of AggSum, Exists and Domain: how they split, merge, and let factors out.

A law takes a node and the variables that are bound outside, and returns a node of the same meaning: the node
itself where the law does not apply.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import (
    NONE,
    Names,
    commutes,
    hidden,
    is_binary,
    visible,
)
from dlog.multilevel.names import apart
from dlog.multilevel.values import ONE, factors_of, plus, sum_over, times, with_children


def split(node: Node, scope: Names) -> Node:
    """AggSum(k, a + b) = AggSum(k, a) + AggSum(k, b).  What only one of them binds is bound outside."""
    if not isinstance(node, ast.AggSum) or not isinstance(node.body, ast.Sum):
        return node
    kept = visible(node)
    return plus(sum_over(term, kept) for term in node.body.terms)


def merge(node: Node, scope: Names) -> Node:
    """AggSum(k, AggSum(l, e)) = AggSum(k, e); an AggSum that sums nothing out is its body."""
    if not isinstance(node, ast.AggSum):
        return node
    if not hidden(node):
        return node.body
    return sum_over(node.body.body, visible(node)) if isinstance(node.body, ast.AggSum) else node


def pull(node: Node, scope: Names) -> Node:
    """AggSum(k, a * b) = a * AggSum(k', b), if a has no hidden variable and commutes with what stands before
    it.  k' has what b binds and a needs, too.
    """
    if not isinstance(node, ast.AggSum) or not isinstance(node.body, ast.Product):
        return node
    inside = hidden(node)
    moved, rest = _moved(node.body.factors, lambda factor: not visible(factor) & inside)
    if not moved or not rest:
        return node
    return times([*moved, sum_over(times(rest), visible(node))])


def _moved(factors, may_move) -> tuple[list[Node], list[Node]]:
    """The factors that can be written in front of all others, and the others."""
    moved: list[Node] = []
    rest: list[Node] = []
    for factor in factors:
        free = may_move(factor) and all(commutes(other, factor) for other in rest)
        (moved if free else rest).append(factor)
    return moved, rest


def independent(node: Node, scope: Names) -> Node:
    """AggSum(k, a * b) = AggSum(k1, a) * AggSum(k2, b), if a and b share no hidden variable."""
    if not isinstance(node, ast.AggSum) or not isinstance(node.body, ast.Product):
        return node
    groups = connected(node.body.factors, hidden(node))
    summed = [g for g in groups if any(visible(f) & hidden(node) for _, f in g)]
    if len(summed) < 2 or not _can_be_grouped(groups):
        return node
    kept = visible(node)
    return times(sum_over(times(f for _, f in group), kept) for group in groups)


Numbered = list[tuple[int, Node]]


def connected(factors: tuple[Node, ...], joining: Names) -> list[Numbered]:
    """Factors that share one of these variables, directly or through others, in groups; each with its
    number.
    """
    groups: list[tuple[Names, Numbered]] = []
    for number, factor in enumerate(factors):
        names, members = visible(factor) & joining, [(number, factor)]
        apart_from = []
        for other, group in groups:
            if other & names:
                names, members = names | other, group + members
            else:
                apart_from.append((other, group))
        groups = [*apart_from, (names, sorted(members, key=lambda m: m[0]))]
    return sorted((group for _, group in groups), key=lambda g: g[0][0])


def _can_be_grouped(groups: list[Numbered]) -> bool:
    """Whether a factor that comes to stand after one that it stood before commutes with it."""
    return all(
        commutes(f, g)
        for i, group in enumerate(groups)
        for later in groups[i + 1 :]
        for n, f in later
        for m, g in group
        if n < m
    )


def erase(node: Node, scope: Names) -> Node:
    """Inside an AggSum, a factor AggSum(l, e) is e with new names for what it hides:
    AggSum(k, R(a, b) * AggSum([], R(b, c))) = AggSum(k, R(a, b) * R(b', c')).
    """
    if not isinstance(node, ast.AggSum) or not isinstance(node.body, ast.Product):
        return node
    if not any(isinstance(f, ast.AggSum) for f in node.body.factors):
        return node
    body = apart(node.body, scope | visible(node))
    opened = (f.body if isinstance(f, ast.AggSum) else f for f in factors_of(body))
    return sum_over(times(opened), visible(node))


# ---- Exists and Domain


def binary(node: Node, scope: Names) -> Node:
    """Exists(e) = e, if e is 0 or 1."""
    if isinstance(node, ast.Exists | ast.Domain) and is_binary(node.body):
        return node.body
    return node


def pull_exists(node: Node, scope: Names) -> Node:
    """Exists(a * b) = a * Exists(b), if a is 0 or 1; Exists(2 * e) = Exists(e)."""
    if not isinstance(node, ast.Exists | ast.Domain) or not isinstance(node.body, ast.Product):
        return node
    factors = [f for f in node.body.factors if not isinstance(f, ast.Constant) or f.value == 0]
    moved, rest = _moved(factors, is_binary)
    if not moved and len(rest) == len(node.body.factors):
        return node
    return times([*moved, replace(node, body=times(rest)) if rest else ONE])


def assume(node: Node, scope: Names) -> Node:
    """a * b = a * b', where a is 0 or 1 and b' has 1 in place of each a: it holds there."""
    if not isinstance(node, ast.Product):
        return node
    factors = list(node.factors)
    for i, fact in enumerate(factors):
        if is_binary(fact) and not isinstance(fact, ast.Constant):
            factors[i + 1 :] = [_given(f, fact) for f in factors[i + 1 :]]
    return times(factors)


def _given(node: Node, fact: Node) -> Node:
    if node == fact:
        return ONE
    if isinstance(node, ast.AggSum):
        if hidden(node) & visible(fact):
            return node
        return sum_over(_given(node.body, fact), visible(node))
    if isinstance(node, ast.Product):
        return times(_given(f, fact) for f in node.factors)
    return with_children(node, NONE, lambda child, _: _given(child, fact))


def separate(node: Node, scope: Names) -> Node:
    """No hidden variable of a factor is called like a variable outside: M3 would confuse them."""
    if isinstance(node, ast.AggSum) and hidden(node) & scope:
        used = scope | visible(node)
        return apart(node, used)
    return node
