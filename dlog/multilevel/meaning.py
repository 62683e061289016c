"""Owns what an expression is worth over given rows, by what each of its parts says.  For checks: it compiles
nothing and joins row by row.

An expression, with some variables bound, is a function from assignments of the variables that it binds to
numbers.  It is given as pairs of an assignment and a number; those of one assignment are added.

>>> from dlog.multilevel.notation import read
>>> meaning = Meaning({"R": [(1, 5), (2, 5), (3, 7)]})
>>> meaning.table(read("AggSum([b], R(a, b) * a)"), ["b"])
{(5,): 3, (7,): 3}
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import inputs

Row = tuple[int, ...]
Bound = Mapping[str, int]
Pairs = Iterator[tuple[dict[str, int], int]]

HOLDS: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Meaning:
    """Over these rows by relation, each with multiplicity 1.  `constant` gives the number of a constant."""

    def __init__(
        self,
        rows: Mapping[str, Sequence[Row]],
        constant: Callable[[ast.Constant], int] = lambda node: node.value,  # type: ignore[assignment, return-value]
    ):
        self.rows, self.constant = rows, constant

    def table(self, node: Node, names: Iterable[str]) -> dict[Row, int]:
        """The numbers other than 0, by the values of variables in this order."""
        names = list(names)
        found: dict[Row, int] = {}
        for assigned, number in self.pairs(node, {}):
            key = tuple(assigned[name] for name in names)
            found[key] = found.get(key, 0) + number
        return {key: number for key, number in found.items() if number}

    def number(self, node: Node, bound: Bound) -> int:
        """Of an expression that binds nothing."""
        return sum(number for _, number in self.pairs(node, bound))

    def pairs(self, node: Node, bound: Bound) -> Pairs:
        match node:
            case ast.Constant():
                yield {}, self.constant(node)
            case ast.Variable():
                yield {}, bound[node.name]
            case ast.Relation():
                yield from self._rows(node, bound)
            case ast.Product():
                yield from self._product(node.factors, bound)
            case ast.Sum():
                for term in node.terms:
                    yield from self.pairs(term, bound)
            case ast.AggSum():
                yield from self._sum(node, bound)
            case ast.Lift():
                yield from self._lift(node, bound)
            case ast.Comparison():
                yield {}, int(HOLDS[node.op](self.number(node.left, bound), self.number(node.right, bound)))
            case ast.In():
                values = map(self.constant, node.values)
                yield {}, int(self.number(node.operand, bound) in values)
            case ast.Exists() | ast.Domain():
                merged = _merged(self.pairs(node.body, bound))
                yield from ((assigned, 1) for assigned, number in merged if number)
            case _:
                raise TypeError(f"not in a definition of rules: {type(node).__name__}")

    def _rows(self, node: ast.Relation, bound: Bound) -> Pairs:
        names = [variable.name for variable in node.variables]
        for row in self.rows[node.name]:
            new: dict[str, int] = {}
            for name, value in zip(names, row, strict=True):
                if bound.get(name, value) != value or new.setdefault(name, value) != value:
                    break
            else:
                yield {name: value for name, value in new.items() if name not in bound}, 1

    def _product(self, factors: Sequence[Node], bound: Bound) -> Pairs:
        if not factors:
            yield {}, 1
            return
        first, *others = factors
        for assigned, number in self.pairs(first, bound):
            if number:
                for more, other in self._product(others, {**bound, **assigned}):
                    yield {**assigned, **more}, number * other

    def _sum(self, node: ast.AggSum, bound: Bound) -> Pairs:
        """A variable that is summed out belongs to the sum, whatever is bound outside."""
        kept = {key.name for key in node.keys}
        seen = kept | inputs(node.body)
        inside = {name: value for name, value in bound.items() if name in seen}
        projected = (
            ({name: value for name, value in assigned.items() if name in kept}, number)
            for assigned, number in self.pairs(node.body, inside)
        )
        return _merged(projected)

    def _lift(self, node: ast.Lift, bound: Bound) -> Pairs:
        name, number = node.variable.name, self.number(node.body, bound)
        if name not in bound:
            yield {name: number}, 1
        elif bound[name] == number:
            yield {}, 1


def _merged(pairs: Iterable[tuple[dict[str, int], int]]) -> Pairs:
    """Each assignment once."""
    found: dict[tuple[tuple[str, int], ...], int] = {}
    for assigned, number in pairs:
        key = tuple(sorted(assigned.items()))
        found[key] = found.get(key, 0) + number
    return ((dict(key), number) for key, number in found.items())
