"""Owns what the variables of an inline aggregate are.

    group      has a value outside the aggregate: there is one result for each
    witness    has none, but is used outside: of the assignments that reach the least or greatest value
    local      any other, also one with the name of the result: `a = max a : r(a, _)`

    # longest(y, x, l) :- l = max m : length(x, y, m).         y and x are witnesses
    # best(r, d) :- sale(r, d, a), a = max b : sale(r, _, b).  r is a group

Variables inside another aggregate are local to it, and other branches of the same disjunction do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from dlog.ir.lower.tree_bindings import TreeBindings
from dlog.language import ast


@dataclass(frozen=True)
class Shared:
    """The variables of an aggregate that occur outside, in order of their first use."""

    groups: tuple[str, ...]
    witnesses: tuple[str, ...]


class Surroundings:
    """Of the inline aggregates of one statement.  `is_test`: see `TreeBindings`."""

    def __init__(self, root: ast.Node, is_test: Callable[[str], bool]):
        self.root = root
        self.is_test = is_test
        self.seen: dict[int, frozenset[str]] = {}  # the visible variables of a node, by its id
        self.known: dict[int, Shared] = {}

    def of(self, aggregate: ast.InlineAggregate) -> Shared:
        """O(size of the statement * depth)."""
        if id(aggregate) not in self.known:
            self.known[id(aggregate)] = self._of(aggregate)
        return self.known[id(aggregate)]

    def _of(self, aggregate: ast.InlineAggregate) -> Shared:
        path = list(self._path(aggregate))
        scope = path[-1]
        around = self.of(scope) if isinstance(scope, ast.InlineAggregate) else Shared((), ())
        used = self._beside(aggregate, path) | {*around.groups, *around.witnesses}
        formulas = list(_formulas(path))
        known = frozenset(around.groups)
        before = TreeBindings(self.is_test, aggregate).of(formulas, known)
        after = TreeBindings(self.is_test).of(formulas, known)
        inside = TreeBindings(self.is_test).of(_all(aggregate), before)
        inside |= {name for inner in _aggregates(aggregate) for name in _names(inner)}
        shared = [name for name in _names(aggregate) if name in used]
        groups = tuple(name for name in shared if name in before or name not in after | inside)
        return Shared(groups, tuple(name for name in shared if name not in after and name not in groups))

    def _path(self, aggregate: ast.Node) -> Iterator[ast.Node]:
        """The nodes above an aggregate up to its scope: the statement, or the next aggregate."""
        below = aggregate
        while below is not self.root:
            below = self.parents[id(below)]
            yield below
            if isinstance(below, ast.InlineAggregate):
                return

    def _beside(self, aggregate: ast.InlineAggregate, path: list[ast.Node]) -> set[str]:
        """The variables that occur in its scope, outside it."""
        found: set[str] = set()
        below: ast.Node = aggregate
        for node in path:
            if isinstance(node, ast.Aggregation):
                found.add(node.result)
            if not isinstance(node, ast.Disjunction):
                found.update(*(self.shown(child) for child in node.children() if child is not below))
            below = node
        return found

    @cached_property
    def parents(self) -> dict[int, ast.Node]:
        return {id(child): node for node in self.root.walk() for child in node.children()}

    def shown(self, node: ast.Node) -> frozenset[str]:
        """The variables of a node that are visible to its surroundings."""
        if id(node) not in self.seen:
            self.seen[id(node)] = self._shown(node)
        return self.seen[id(node)]

    def _shown(self, node: ast.Node) -> frozenset[str]:
        if isinstance(node, ast.Variable):
            return frozenset((node.name,))
        if isinstance(node, ast.InlineAggregate):
            return frozenset()
        result = (node.result,) if isinstance(node, ast.Aggregation) else ()
        return frozenset(result).union(*map(self.shown, node.children()))


def _formulas(path: list[ast.Node]) -> Iterator[ast.Node]:
    """What holds around an aggregate, by the path from it to its scope; the literal that contains it, too."""
    inside = {id(node) for node in path}
    pending = list(_whole(path[-1], inside))
    while pending:
        formula = pending.pop()
        if id(formula) not in inside:
            yield formula
        elif isinstance(formula, ast.Conjunction):
            pending.extend(formula.items)
        elif isinstance(formula, ast.Disjunction):
            pending.extend(branch for branch in formula.items if id(branch) in inside)
        elif isinstance(formula, ast.Negation):
            pending.append(formula.body)
        else:
            yield formula


def _whole(scope: ast.Node, inside: set[int]) -> tuple[ast.Node, ...]:
    """The formulas that hold together in a scope, seen from a place inside it."""
    if isinstance(scope, ast.Constraint):
        return (scope.left, scope.right) if id(scope.right) in inside else (scope.left,)
    body = scope.body if isinstance(scope, ast.Rule | ast.Query | ast.InlineAggregate) else None
    return () if body is None else (body,)


def _all(aggregate: ast.InlineAggregate) -> tuple[ast.Node, ...]:
    """The body of an aggregate; its target may apply functions, which bind their keys."""
    target = aggregate.target
    if target is None:
        return (aggregate.body,)
    return (aggregate.body, ast.Comparison("<=", target, target))


def _aggregates(aggregate: ast.InlineAggregate) -> Iterator[ast.InlineAggregate]:
    return (n for n in aggregate.walk() if isinstance(n, ast.InlineAggregate) and n is not aggregate)


def _names(node: ast.Node) -> list[str]:
    return list(dict.fromkeys(n.name for n in node.walk() if isinstance(n, ast.Variable)))
