"""A naive evaluator of the calculus of aggregates: fractions and dictionaries.  The oracle of
dlog.multilevel.

It knows the syntax tree and nothing else of dlog.  An expression, with some variables bound, is a function
from assignments of its other variables to numbers, a dictionary without zeros.  A variable that an AggSum
sums out belongs to it, also when a variable of that name is bound outside.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from dlog.m3.syntax import ast

Row = tuple[Any, ...]
Bag = dict[Row, Any]
Bindings = dict[str, Any]
Values = dict[frozenset[tuple[str, Any]], Any]

HOLDS = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


def add(left: Mapping[Any, Any], right: Mapping[Any, Any]) -> dict[Any, Any]:
    """The sum of two functions; what has become 0 is left out."""
    result = dict(left)
    for key, value in right.items():
        result[key] = result.get(key, 0) + value
    return {key: value for key, value in result.items() if value != 0}


class Naive:
    """A database: bags of rows, with multiplicities; `deltas` are the rows of a batch.  `real` makes numbers
    of constants like 0.1: exact ones, or rounded ones as machines have.
    """

    def __init__(
        self, bags: Mapping[str, Bag], deltas: Mapping[str, Bag] | None = None, real: Any = Fraction
    ):
        self.bags, self.deltas, self.real = bags, deltas or {}, real

    def table(self, node: Any, names: Iterable[str], bound: Bindings | None = None) -> Bag:
        """The values by row of these variables, in this order."""
        names, bound = list(names), bound or {}
        return {
            tuple({**bound, **dict(key)}[name] for name in names): value
            for key, value in self.evaluate(node, bound).items()
        }

    def number(self, node: Any, bound: Bindings) -> Any:
        found = self.evaluate(node, bound)
        assert set(found) <= {frozenset()}, found
        return found.get(frozenset(), 0)

    def evaluate(self, node: Any, bound: Bindings) -> Values:
        found = getattr(self, "_" + type(node).__name__.lower())(node, bound)
        return {key: value for key, value in found.items() if value != 0}

    def _constant(self, node: ast.Constant, bound: Bindings) -> Values:
        value = node.value
        return {frozenset(): self.real(value) if isinstance(value, float) else value}

    def _variable(self, node: ast.Variable, bound: Bindings) -> Values:
        return {frozenset(): bound[node.name]}

    def _relation(self, node: ast.Relation, bound: Bindings) -> Values:
        return self._rows(self.bags.get(node.name, {}), node.variables, bound)

    def _deltarelation(self, node: ast.DeltaRelation, bound: Bindings) -> Values:
        return self._rows(self.deltas.get(node.name, {}), node.variables, bound)

    def _rows(self, bag: Bag, variables: tuple[ast.Variable, ...], bound: Bindings) -> Values:
        found: Values = {}
        for row, count in bag.items():
            assigned = dict(bound)
            if all(assigned.setdefault(v.name, x) == x for v, x in zip(variables, row, strict=True)):
                found[_new(assigned, bound)] = count
        return found

    def _product(self, node: ast.Product, bound: Bindings) -> Values:
        found: Values = {frozenset(): 1}
        for factor in node.factors:
            longer: Values = {}
            for key, value in found.items():
                for more, other in self.evaluate(factor, {**bound, **dict(key)}).items():
                    longer = add(longer, {key | more: value * other})
            found = longer
        return found

    def _sum(self, node: ast.Sum, bound: Bindings) -> Values:
        found: Values = {}
        for term in node.terms:
            found = add(found, self.evaluate(term, bound))
        return found

    def _aggsum(self, node: ast.AggSum, bound: Bindings) -> Values:
        needed, _ = scheme(node.body)
        kept = {key.name for key in node.keys}
        inside = {n: v for n, v in bound.items() if n in needed or n in kept}
        found: Values = {}
        for key, value in self.evaluate(node.body, inside).items():
            found = add(found, {frozenset(item for item in key if item[0] in kept): value})
        return found

    def _lift(self, node: ast.Lift, bound: Bindings) -> Values:
        value, name = self.number(node.body, bound), node.variable.name
        if name in bound:
            return {frozenset(): int(bound[name] == value)}
        return {frozenset({(name, value)}): 1}

    def _comparison(self, node: ast.Comparison, bound: Bindings) -> Values:
        return {
            frozenset(): int(HOLDS[node.op](self.number(node.left, bound), self.number(node.right, bound)))
        }

    def _in(self, node: ast.In, bound: Bindings) -> Values:
        operand = self.number(node.operand, bound)
        return {frozenset(): int(any(operand == value.value for value in node.values))}

    def _exists(self, node: ast.Exists, bound: Bindings) -> Values:
        return dict.fromkeys(self.evaluate(node.body, bound), 1)

    _domain = _exists

    def _call(self, node: ast.Call, bound: Bindings) -> Values:
        numbers = [self.number(argument, bound) for argument in node.arguments]
        return {frozenset(): FUNCTIONS[node.function](*numbers)}


def _new(assigned: Bindings, bound: Bindings) -> frozenset[tuple[str, Any]]:
    return frozenset((name, value) for name, value in assigned.items() if name not in bound)


def _divide(first: Any, second: Any = None) -> Any:
    dividend, divisor = (1, first) if second is None else (first, second)
    return Fraction(dividend) / Fraction(divisor) if divisor else 0


FUNCTIONS: dict[str, Any] = {"/": _divide, "abs": abs, "listmax": max, "listmin": min}


def scheme(node: Any) -> tuple[set[str], set[str]]:
    """The variables that an expression needs and those that it binds, from left to right."""
    if isinstance(node, ast.Variable):
        return {node.name}, set()
    if isinstance(node, ast.Relation | ast.DeltaRelation):
        return set(), {v.name for v in node.variables}
    if isinstance(node, ast.AggSum):
        needed, given = scheme(node.body)
        return needed, given & {key.name for key in node.keys}
    if isinstance(node, ast.Exists | ast.Domain):
        return scheme(node.body)
    if isinstance(node, ast.Product):
        needed, given = set(), set()
        for factor in node.factors:
            more, new = scheme(factor)
            needed |= more - given
            given |= new - needed
        return needed, given
    if isinstance(node, ast.Sum):
        parts = [scheme(term) for term in node.terms]
        common = set.intersection(*(given for _, given in parts))
        mentioned = set().union(*(needed | given for needed, given in parts))
        return mentioned - common, common
    parts = [scheme(child) for child in _operands(node)]
    needed = set().union(*(a | b for a, b in parts)) if parts else set()
    return needed, {node.variable.name} - needed if isinstance(node, ast.Lift) else set()


def _operands(node: Any) -> list[Any]:
    if isinstance(node, ast.Comparison):
        return [node.left, node.right]
    if isinstance(node, ast.Call):
        return list(node.arguments)
    return [node.operand] if isinstance(node, ast.In) else [node.body] if isinstance(node, ast.Lift) else []
