"""Owns the choice between updating a map and computing it again after an event (ML 3.3, 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import is_value, outputs, reads, visible
from dlog.multilevel.decompose import Monomial, expand
from dlog.multilevel.deltas import NESTED, Event, delta
from dlog.multilevel.domains import domain, restricts
from dlog.multilevel.simplify import Budget, simplify
from dlog.multilevel.values import is_zero

UPDATE, REPLACE = "+=", ":="


@dataclass(frozen=True)
class Way:
    """`op` is += or :=."""

    op: str
    reason: str


def way(definition: Node, event: Event, has_floats: Callable[[Node], bool], budget: Budget) -> Way:
    """How a map with this definition follows an event.  REQUIRES: comparisons have no aggregates inside.

    Where an aggregate inside a condition changes, rows that did not change may begin or cease to satisfy
    it.  The map
    is updated if few of them can: those that agree with the changed rows in a key (a domain), or those with a
    value between the old and the new bound of one comparison.
    """
    nested = False
    for monomial in expand(definition, event.scope):
        changing = [f for f in monomial if isinstance(f, NESTED) and reads(f, event.relation)]
        nested = nested or bool(changing)
        if any(has_floats(f.body) for f in changing):
            return Way(
                REPLACE, "a condition depends on a sum of floats, whose old value is not known exactly"
            )
        free = [f for f in changing if not _is_restricted(f, event, budget)]
        if free and not (len(free) == 1 and _is_bound(free[0], monomial)):
            return Way(REPLACE, "an aggregate in a condition changes for too many rows at once")
    return Way(
        UPDATE, "only what agrees with the changed rows" if nested else "the delta has one relation less"
    )


def _is_restricted(factor: ast.Lift | ast.Exists, event: Event, budget: Budget) -> bool:
    change = simplify(delta(factor.body, event, budget), event.scope, budget)
    return is_zero(change) or restricts(domain(change, event.scope), factor.body)


def _is_bound(factor: Node, monomial: Monomial) -> bool:
    """Whether it binds the one bound of one comparison with a column: {column < bound}."""
    if not isinstance(factor, ast.Lift) or visible(factor.body):
        return False
    name = factor.variable.name
    used = [f for f in monomial if f is not factor and name in visible(f)]
    columns = frozenset().union(*(outputs(f) for f in monomial if isinstance(f, ast.Relation)))
    if len(used) != 1 or not isinstance(used[0], ast.Comparison):
        return False
    sides = (used[0].left, used[0].right)
    return all(map(is_value, sides)) and any(
        name in visible(one) and name not in visible(other) and visible(other) & columns
        for one, other in (sides, sides[::-1])
    )
