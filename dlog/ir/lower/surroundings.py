"""Owns which variables occur around an inline aggregate: those that it also uses are its groups.

Variables inside another aggregate are local to it, and other branches of the same disjunction do not count.
"""

from __future__ import annotations

from functools import cached_property

from dlog.language import ast


class Surroundings:
    """Of the inline aggregates of one statement.  Visits the statement once, on first use."""

    def __init__(self, root: ast.Node):
        self.root = root
        self.seen: dict[int, frozenset[str]] = {}  # the visible variables of a node, by its id

    def of(self, aggregate: ast.InlineAggregate) -> set[str]:
        """O(nodes above it and beside these)."""
        found: set[str] = set()
        below: ast.Node = aggregate
        while below is not self.root:
            node = self.parents[id(below)]
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
