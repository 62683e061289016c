"""Owns deltas: how the value of an expression changes with its relations (ML 3.1.1).

Correct output: for every database D and event u, [[e]](D + u) = [[e]](D) + [[delta(e, u)]](D).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import Names, outputs, reads, visible
from dlog.multilevel.domains import domain
from dlog.multilevel.lifts import lifted
from dlog.multilevel.names import apart
from dlog.multilevel.simplify import Budget, simplify
from dlog.multilevel.values import MINUS_ONE, ZERO, is_zero, minus, plus, sum_over, times

NESTED = (ast.Lift, ast.Exists)


@dataclass(frozen=True)
class Event:
    """A change of a relation: one row, inserted (`sign` 1) or deleted (-1), whose values are `parameters`;
    or a batch of rows (0).
    """

    relation: str
    sign: int = 0
    parameters: tuple[str, ...] = ()

    @property
    def scope(self) -> Names:
        return frozenset(self.parameters)


def delta(node: Node, event: Event, budget: Budget | None = None) -> Node:
    """The change of an expression; `DeltaRelation` stands for the rows of a batch.

    REQUIRES: no visible variable is called like a parameter.

    >>> from dlog.multilevel.notation import read, text
    >>> text(delta(read("AggSum([], R(a, b) * S(b, c) * a)"), Event("R", -1, ("x", "y"))))
    'AggSum([], -1 * (a ^= x) * (b ^= y) * S(b, c) * a)'
    """
    assert not visible(node) & event.scope, "a parameter is called like a variable"
    return _Deltas(event, budget or Budget()).of(apart(node, event.scope))


class _Deltas:
    def __init__(self, event: Event, budget: Budget):
        self.event, self.budget = event, budget

    def of(self, node: Node) -> Node:
        if not reads(node, self.event.relation):
            return ZERO
        match node:
            case ast.Relation():
                return self._rows(node)
            case ast.Sum():
                return plus(map(self.of, node.terms))
            case ast.Product():
                return self._product(node.factors)
            case ast.AggSum():
                return self._aggregate(node)
            case ast.Lift() | ast.Exists():
                return self._nested(node)
            case ast.Domain():
                return ZERO
        return self.of(lifted(node, self.event.scope))

    def _rows(self, node: ast.Relation) -> Node:
        if not self.event.sign:
            return ast.DeltaRelation(node.name, node.variables)
        pairs = zip(node.variables, self.event.parameters, strict=True)
        lifts: list[Node] = [ast.Lift(variable, ast.Variable(name)) for variable, name in pairs]
        return times(lifts if self.event.sign > 0 else [MINUS_ONE, *lifts])

    def _aggregate(self, node: ast.AggSum) -> Node:
        """A domain may bind what the body needed: it remains visible."""
        return sum_over(self.of(node.body), visible(node))

    def _nested(self, node: ast.Lift | ast.Exists) -> Node:
        """D * (new - old): outside the domain of the body's change both are equal."""
        change = simplify(self.of(node.body), self.event.scope, self.budget)
        if is_zero(change):
            return ZERO
        return times([*domain(change, self.event.scope), plus([self.new(node), minus(node)])])

    def _product(self, factors: Sequence[Node]) -> Node:
        """One term for each factor that changes; those that changed before are new in it, the others old.

        Nested aggregates change first: the new value of one is as simple as the old, while new rows are old
        rows and changed ones.
        """
        factors = [lifted(f, self.event.scope) for f in factors]
        changing = [i for i, f in enumerate(factors) if reads(f, self.event.relation)]
        changing.sort(key=lambda i: (not self._is_nested(factors[i]), i))
        terms = []
        current = list(factors)
        for i in changing:
            changed = self.of(factors[i])
            terms.append(times([*current[:i], changed, *current[i + 1 :]]))
            current[i] = self.new(factors[i])
        return plus(terms)

    def _is_nested(self, node: Node) -> bool:
        relation = self.event.relation
        return any(isinstance(n, NESTED) and reads(n, relation) for n in node.walk())

    def new(self, node: Node) -> Node:
        """The value after the event.

        Numbers are computed from the new aggregates just as from the old ones: with floats, 0.1 * (s + x)
        is the next old value of 0.1 * s, and 0.1 * s + 0.1 * x need not be.
        """
        if not reads(node, self.event.relation):
            return node
        if isinstance(node, NESTED):
            return replace(node, body=self.new(node.body))
        if isinstance(node, ast.Sum):
            return plus(map(self.new, node.terms))
        if isinstance(node, ast.Product) and self._is_by_factors(node):
            return times(self.new(lifted(f, self.event.scope)) for f in node.factors)
        if isinstance(node, ast.AggSum) and self._is_nested(node):
            return sum_over(self.new(node.body), visible(node))
        if isinstance(node, ast.Comparison | ast.In | ast.Call):
            return self.new(lifted(node, self.event.scope))
        return plus([node, self.of(node)])

    def _is_by_factors(self, node: ast.Product) -> bool:
        changing = [f for f in node.factors if reads(f, self.event.relation)]
        return len(changing) == 1 or self._is_nested(node) or not outputs(node)
