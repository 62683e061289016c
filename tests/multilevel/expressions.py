"""Owns random expressions of the calculus, databases and changes: small values, few names, many
collisions.
"""

from __future__ import annotations

import random

from dlog.m3.syntax import ast
from tests.oracle.agca_naive import Bag, scheme

SCHEMA = {"R": 2, "S": 2, "T": 1}
NAMES = ("a", "b", "c", "d")
LIFTED = ("u", "v")
OPS = ("=", "!=", "<", "<=", ">", ">=")
VALUES = range(-2, 3)


class Expressions:
    """Random expressions that can be evaluated once `scope` is bound."""

    def __init__(self, rng: random.Random, nesting: int = 3, lifts: bool = True, deltas: str | None = None):
        self.rng, self.lifts, self.deltas = rng, lifts, deltas
        self.nesting = nesting

    def closed(self, scope: tuple[str, ...] = ()) -> ast.Expression:
        return self.expression(frozenset(scope), self.nesting)

    def expression(self, scope: frozenset[str], depth: int) -> ast.Expression:
        kinds = ["rows", "rows", "product", "product", "product", "sum", "aggregate", "aggregate", "value"]
        if self.lifts:
            kinds += ["exists", "lift"]
        kind = self.rng.choice(kinds) if depth > 0 else self.rng.choice(["rows", "value"])
        return getattr(self, f"_{kind}")(scope, depth)

    def scalar(self, scope: frozenset[str], depth: int) -> ast.Expression:
        """It binds nothing that is not bound."""
        body = self.expression(scope, depth)
        _, given = scheme(body)
        if given <= scope and self.rng.random() < 0.5:
            return body
        return ast.AggSum(self._some(given & scope), body)

    def _some(self, names: frozenset[str] | set[str]) -> tuple[ast.Variable, ...]:
        return tuple(ast.Variable(n) for n in sorted(names) if self.rng.random() < 0.6)

    def _rows(self, scope: frozenset[str], depth: int) -> ast.Expression:
        name = self.rng.choice(sorted(SCHEMA))
        variables = tuple(ast.Variable(self.rng.choice(NAMES)) for _ in range(SCHEMA[name]))
        if name == self.deltas and self.rng.random() < 0.5:
            return ast.DeltaRelation(name, variables)
        return ast.Relation(name, variables)

    def _product(self, scope: frozenset[str], depth: int) -> ast.Expression:
        factors: list[ast.Expression] = []
        bound = scope
        for _ in range(self.rng.randint(2, 4)):
            factor = self.expression(bound, depth - 1)
            factors.append(factor)
            bound |= scheme(factor)[1]
        return ast.product(factors)

    def _sum(self, scope: frozenset[str], depth: int) -> ast.Expression:
        terms = [self.expression(scope, depth - 1) for _ in range(self.rng.randint(2, 3))]
        common = frozenset.intersection(*(frozenset(scheme(t)[1]) for t in terms))
        keys = common | scope
        parts = []
        for term in terms:
            given = scheme(term)[1]
            kept = tuple(ast.Variable(n) for n in sorted(given & keys))
            parts.append(term if given <= keys and self.rng.random() < 0.5 else ast.AggSum(kept, term))
        return ast.total(parts)

    def _aggregate(self, scope: frozenset[str], depth: int) -> ast.Expression:
        """Some of what is bound outside is used inside, the names of the rest are free."""
        used = frozenset(n for n in scope if self.rng.random() < 0.7)
        body = self._select(used, depth) if self.rng.random() < 0.4 else self.expression(used, depth - 1)
        return ast.AggSum(self._some(scheme(body)[1]), body)

    def _select(self, scope: frozenset[str], depth: int) -> ast.Expression:
        """Rows under conditions: some are equalities, of variables or of a variable and a value; some occur
        again in an aggregate beside, which has variables of the same names.
        """
        factors: list[ast.Expression] = [self._rows(scope, 0) for _ in range(self.rng.randint(1, 2))]
        bound = scope.union(*(scheme(f)[1] for f in factors))
        factors += [self._condition(scope, bound, depth) for _ in range(self.rng.randint(1, 3))]
        if self.rng.random() < 0.5:
            inner = [self._rows(scope, 0), self.rng.choice(factors[1:]), self._value(bound, 0)]
            beside = ast.product(inner)
            factors.append(ast.AggSum(self._some({"a", "b"} & scheme(beside)[1]), beside))
        if self.rng.random() < 0.3:
            factors.insert(0, ast.Lift(ast.Variable(self.rng.choice(NAMES)), self._value(scope, 0)))
        return ast.product(factors) if scheme(ast.product(factors))[0] <= scope else factors[0]

    def _condition(self, scope: frozenset[str], bound: frozenset[str], depth: int) -> ast.Expression:
        x, y = (ast.Variable(self.rng.choice(sorted(bound))) for _ in range(2))
        value = self._value(scope, 0)
        choices = [
            ast.Comparison("=", x, y),
            ast.Comparison("=", x, value),
            ast.Comparison("=", value, x),
            ast.Comparison(self.rng.choice(OPS), x, y),
            ast.Lift(x, y),
            ast.Lift(x, self._value(bound, 0)),
            self._value(bound, depth - 1),
            x,
        ]
        return self.rng.choice(choices)

    def _value(self, scope: frozenset[str], depth: int) -> ast.Expression:
        kind = self.rng.random()
        if kind < 0.3 or not scope:
            return ast.Constant("int", self.rng.choice((-2, -1, 0, 1, 2, 3)))
        if kind < 0.6:
            return ast.Variable(self.rng.choice(sorted(scope)))
        if kind < 0.7:
            return ast.total([self._value(scope, 0), self._value(scope, 0)])
        if kind < 0.75:
            values = tuple(ast.Constant("int", v) for v in self.rng.sample(VALUES, 2))
            return ast.In(self._operand(scope, depth), values)
        if kind < 0.8:
            return ast.Call("abs", ast.TypeRef("long"), (self._operand(scope, depth),))
        return ast.Comparison(self.rng.choice(OPS), self._operand(scope, depth), self._operand(scope, depth))

    def _operand(self, scope: frozenset[str], depth: int) -> ast.Expression:
        if self.lifts and depth > 1 and self.rng.random() < 0.3:
            return self.scalar(scope, depth - 1)
        return self._value(scope, 0)

    def _lift(self, scope: frozenset[str], depth: int) -> ast.Expression:
        name = self.rng.choice((*NAMES, *LIFTED))
        body = self.scalar(scope, depth - 1) if self.rng.random() < 0.5 else self._value(scope, 0)
        if name not in scope and name in set().union(*scheme(body)):
            return body
        return ast.Lift(ast.Variable(name), body)

    def _exists(self, scope: frozenset[str], depth: int) -> ast.Expression:
        return ast.Exists(self.expression(scope, depth - 1))


def bag(rng: random.Random, width: int, size: int) -> Bag:
    """Rows with multiplicities, some of them negative."""
    rows = {tuple(rng.choice(VALUES) for _ in range(width)): rng.choice((-1, 1, 1, 2)) for _ in range(size)}
    return dict(rows)


def database(rng: random.Random, size: int = 5) -> dict[str, Bag]:
    return {name: bag(rng, width, rng.randint(0, size)) for name, width in SCHEMA.items()}


def binding_of(rng: random.Random, names: tuple[str, ...]) -> dict[str, int]:
    return {name: rng.choice(VALUES) for name in names}
