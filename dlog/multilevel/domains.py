"""Owns domains: where the change of an expression can be other than 0, as factors that are 1 there (ML
3.1.1).

A domain of the change of q restricts where lifts and Exists over q are compared before and after.  Leaving a
domain out is correct, but slow.  A domain never reads a stored relation.
"""

from __future__ import annotations

from collections.abc import Iterable

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import (
    NONE,
    Names,
    inputs,
    is_binary,
    is_singleton,
    is_value,
    outputs,
    reads_relations,
    visible,
)
from dlog.multilevel.decompose import expand
from dlog.multilevel.names import same
from dlog.multilevel.values import factors_of, plus, sum_over, times

Factors = tuple[Node, ...]


def domain(change: Node, scope: Names = NONE) -> Factors:
    """Factors, each 0 or 1, and 1 wherever the change is not 0.  `scope`: the parameters of the event.

    >>> from dlog.multilevel.notation import read, text
    >>> [text(d) for d in domain(read("(k ^= x) * S(b, c) * {y > 1}"), frozenset("xy"))]
    ['(k ^= x)', '{y > 1}']
    """
    match change:
        case ast.Sum():
            return _of_sum([domain(term, scope) for term in change.terms], change, scope)
        case ast.AggSum():
            return _of_aggregate(change, scope)
        case ast.Exists() | ast.Domain():
            return domain(change.body, scope)
    return _of_product(change, scope)


def _of_product(change: Node, scope: Names) -> Factors:
    """What each factor says; delta relations together with the values and conditions that they bind."""
    factors = factors_of(change)
    rows = [f for f in factors if _has_deltas(f) and _is_pure(f, scope)]
    bound = scope.union(*map(outputs, rows))
    covered = [f for f in factors if is_value(f) and inputs(f) and inputs(f) <= bound and inputs(f) - scope]
    found = [_domain(times([*rows, *covered]))] if rows else []
    for factor in factors:
        if factor in rows or factor in covered:
            continue
        factor = _as_lift(factor, scope)
        if _is_condition(factor, scope):
            found.append(factor)
        elif isinstance(factor, ast.AggSum | ast.Sum | ast.Exists | ast.Domain):
            found.extend(domain(factor, scope))
    return tuple(found)


def _is_condition(node: Node, scope: Names) -> bool:
    """On parameters and constants alone, perhaps binding a variable."""
    operand = node.body if isinstance(node, ast.Lift) else node
    return (
        is_binary(node) and is_value(operand) and inputs(node) <= scope and not isinstance(node, ast.Constant)
    )


def _domain(body: Node) -> Node:
    """Where it is not 0."""
    return body if isinstance(body, ast.Domain) else ast.Domain(body)


def _as_lift(node: Node, scope: Names) -> Node:
    """{k = x}, with a parameter x, is (k ^= x), which also binds k."""
    if isinstance(node, ast.Comparison) and node.op == "=":
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, ast.Variable) and side.name not in scope and is_value(other):
                return ast.Lift(side, other) if inputs(other) <= scope else node
    return node


def _has_deltas(node: Node) -> bool:
    return any(isinstance(n, ast.DeltaRelation) for n in node.walk())


def _is_pure(node: Node, scope: Names) -> bool:
    """Computed from the batch and parameters alone."""
    return not reads_relations(node) and inputs(node) <= scope


def _of_aggregate(change: ast.AggSum, scope: Names) -> Factors:
    """Only what says something about visible variables remains."""
    if _has_deltas(change) and _is_pure(change, scope):
        return (_domain(change),)
    return _projected(domain(change.body, scope), visible(change) | scope)


def _projected(factors: Factors, kept: Names) -> Factors:
    """Multiplicities of a batch may cancel, so its rows are counted once each (`Exists`)."""
    found: list[Node] = []
    for factor in factors:
        if visible(factor) <= kept:
            found.append(factor)
        elif isinstance(factor, ast.Domain):
            found.append(_domain(sum_over(ast.Exists(factor.body), kept)))
    return tuple(found)


def _of_sum(parts: list[Factors], change: ast.Sum, scope: Names) -> Factors:
    """What all terms say; else, where each says something about the same variables, that one of them
    holds.
    """
    if _has_deltas(change) and _is_pure(change, scope):
        return (ast.Domain(change),)
    common = tuple(f for f in parts[0] if all(_has(part, f) for part in parts[1:]))
    if common or not all(parts):
        return common
    widest = next((w for part in parts for w in part if all(_covers(w, other) for other in parts)), None)
    if widest is not None:
        return (widest,)
    kept = frozenset.intersection(*(_binds(part) for part in parts))
    either = [times(_projected(part, kept | scope)) for part in parts]
    if not kept or any(outputs(e) != kept for e in either):
        return ()
    return (ast.Domain(plus(e if is_singleton(e, scope) else ast.Exists(e) for e in either)),)


def _covers(wide: Node, part: Factors) -> bool:
    """Whether it is 1 wherever the factors are: it has all rows of a batch, of which they have some."""
    rows = _all_rows(wide)
    return rows is not None and any(
        all(any(_same_keys(rows, f, outputs(wide)) for f in monomial) for monomial in expand(factor.body))
        for factor in part
        if isinstance(factor, ast.Domain)
    )


def _all_rows(node: Node) -> ast.DeltaRelation | None:
    """The delta relation of which a domain has all rows."""
    while isinstance(node, ast.Domain | ast.AggSum | ast.Exists):
        if isinstance(node, ast.AggSum) and not isinstance(node.body, ast.Exists):
            return None  # multiplicities may cancel
        node = node.body
    return node if isinstance(node, ast.DeltaRelation) else None


def _same_keys(rows: ast.DeltaRelation, factor: Node, keys: Names) -> bool:
    while isinstance(factor, ast.Exists | ast.Domain):
        factor = factor.body
    if not isinstance(factor, ast.DeltaRelation) or factor.name != rows.name:
        return False
    pairs = zip(rows.variables, factor.variables, strict=True)
    return all(v == w for v, w in pairs if v.name in keys)


def _has(part: Iterable[Node], factor: Node) -> bool:
    return any(same(factor, other, fixed=True) is not None for other in part)


def _binds(part: Factors) -> Names:
    return NONE.union(*map(outputs, part))


def restricts(found: Iterable[Node], change: Node) -> bool:
    """Whether a domain leaves few assignments of the variables that the change has in common with others."""
    return bool(NONE.union(*map(outputs, found)) & visible(change))
