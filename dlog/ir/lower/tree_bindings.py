"""Owns which variables formulas of the syntax tree bind together, before they become forms.

As in `grounding`, which does the same for forms.  An inline aggregate is here only a value: its own variables
are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from dlog.language import ast


class TreeBindings:
    """`is_test(name)`: whether a condition `name(..)` only tests values, as `contains` does.

    The value of the aggregate `unknown` is not available.
    """

    def __init__(self, is_test: Callable[[str], bool], unknown: ast.Node | None = None):
        self.is_test = is_test
        self.unknown = unknown

    def of(self, formulas: Iterable[ast.Node], bound: Set[str] = frozenset()) -> set[str]:
        """The variables that have a value once all formulas hold.  O(size * depth * variables)."""
        known = set(bound)
        items = [item for formula in formulas for item in _conjuncts(formula)]
        before = -1
        while len(known) > before:
            before = len(known)
            for item in items:
                known |= self.binds(item, known)
        return known

    def binds(self, formula: ast.Node, known: set[str]) -> set[str]:
        """What one formula binds once `known` is."""
        match formula:
            case ast.Call():
                own = set() if self.is_test(formula.name) else _direct(formula.args)
                return own | _applied(formula)
            case ast.Comparison(op="="):
                left, right = formula.left, formula.right
                own = self.equated(left, right, known) | self.equated(right, left, known)
                return own | _applied(formula)
            case ast.Comparison():
                return _applied(formula)
            case ast.Disjunction():
                return set.intersection(*(self.of([branch], known) for branch in formula.items))
            case ast.Conjunction():
                return self.of([formula], known)
        return set()

    def equated(self, target: ast.Node, term: ast.Node, known: set[str]) -> set[str]:
        if not isinstance(target, ast.Variable):
            return set()
        if isinstance(term, ast.Application):
            return {target.name}
        needed = {node.name for node in _outer(term) if isinstance(node, ast.Variable)}
        computable = needed - _applied(term) <= known and all(
            node is not self.unknown for node in _outer(term)
        )
        return {target.name} if computable else set()


def _conjuncts(formula: ast.Node) -> tuple[ast.Node, ...]:
    return formula.items if isinstance(formula, ast.Conjunction) else (formula,)


def _direct(args: Iterable[ast.Node]) -> set[str]:
    return {arg.name for arg in args if isinstance(arg, ast.Variable)}


def _applied(node: ast.Node) -> set[str]:
    """The keys of the functions that are applied below a node: each application is an atom."""
    return {
        name for inner in _outer(node) if isinstance(inner, ast.Application) for name in _direct(inner.args)
    }


def _outer(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes at and below a node; of an inline aggregate only the aggregate itself."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.InlineAggregate):
            pending.extend(node.children())
