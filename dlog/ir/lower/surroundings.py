"""Owns which variables stand around an inline aggregate: those it shares with them are its groups.

What another aggregate uses inside is its own, and alternatives of the aggregate's branch are apart.
"""

from __future__ import annotations

from functools import cached_property

from dlog.language import ast


class Surroundings:
    """Of the inline aggregates of one statement.  Looks at the statement once, when first asked."""

    def __init__(self, root: ast.Node):
        self.root = root
        self.seen: dict[int, frozenset[str]] = {}  # what a node shows, by its id

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
        """The variables that a node shows to what stands around it."""
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
