"""Owns what an expression needs and what it binds, without types (ML 3.1), and what follows from it: which
factors commute, which have one assignment, which are 0 or 1.  Rewrites nothing.

The calculus is the expressions of M3, with one difference.  A variable that an `AggSum` sums out belongs to
it, whatever is bound outside: `R(a, b) * AggSum([], S(b, c))` has two variables `b`.  M3 would read the
second as the first.  `names.apart` renames such variables, and then both meanings are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TypeVar

from dlog.language.ast import Node
from dlog.m3.syntax import ast

Names = frozenset[str]
T = TypeVar("T")
NONE: Names = frozenset()
ROWS = (ast.Relation, ast.DeltaRelation, ast.MapAccess)


@dataclass(frozen=True)
class Binding:
    """`inputs`: the variables that must be bound before.  `outputs`: those that the expression binds.  Both
    in the order in which they occur, without repetition and disjoint.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @cached_property
    def needed(self) -> Names:
        return frozenset(self.inputs)

    @cached_property
    def bound(self) -> Names:
        return frozenset(self.outputs)

    @cached_property
    def visible(self) -> Names:
        return self.needed | self.bound


def remembered(function: Callable[[Node], T]) -> Callable[[Node], T]:
    """What a function finds for a node, kept in the node.  A table would hash the whole expression at each
    look-up, which took most of the time of compilation.
    """
    key = f"_{function.__name__}"

    @wraps(function)
    def found(node: Node) -> T:
        if key not in node.__dict__:
            node.__dict__[key] = function(node)
        return node.__dict__[key]

    return found


@remembered
def binding(node: Node) -> Binding:
    """Table 1 of ML.  O(nodes * depth), cached."""
    match node:
        case ast.Variable():
            return Binding((node.name,), ())
        case ast.Relation() | ast.DeltaRelation():
            return _bound([], (v.name for v in node.variables))
        case ast.MapAccess():
            return _bound((v.name for v in node.inputs), (v.name for v in node.keys))
        case ast.Product():
            return _product(node.factors)
        case ast.Sum():
            return _sum(node.terms)
        case ast.AggSum():
            inner = binding(node.body)
            kept = [k.name for k in node.keys]
            return _bound(inner.inputs, (name for name in kept if name in inner.outputs))
        case ast.Lift():
            inner = binding(node.body)
            return _bound((*inner.inputs, *inner.outputs), (node.variable.name,))
        case ast.Exists() | ast.Domain():
            return binding(node.body)
    return _bound((name for child in node.children() for name in _mentioned(child)), ())


def _mentioned(child: Node) -> Iterable[str]:
    """What an operand needs: all that is visible in it.  Types have none."""
    if isinstance(child, ast.TypeRef):
        return ()
    found = binding(child)
    return (*found.inputs, *found.outputs)


def _bound(inputs: Iterable[str], outputs: Iterable[str]) -> Binding:
    needed = dict.fromkeys(inputs)
    return Binding(tuple(needed), tuple(name for name in dict.fromkeys(outputs) if name not in needed))


def _product(factors: Iterable[Node]) -> Binding:
    inputs: dict[str, None] = {}
    outputs: dict[str, None] = {}
    for found in map(binding, factors):
        inputs.update((name, None) for name in found.inputs if name not in outputs)
        outputs.update((name, None) for name in found.outputs if name not in inputs)
    return Binding(tuple(inputs), tuple(outputs))


def _sum(terms: Iterable[Node]) -> Binding:
    """A variable that only some terms bind is an input."""
    found = [binding(term) for term in terms]
    common = set.intersection(*(set(b.outputs) for b in found))
    needed = [n for b in found for n in (*b.inputs, *b.outputs) if n not in common]
    return _bound(needed, found[0].outputs)


def inputs(node: Node) -> Names:
    return binding(node).needed


def outputs(node: Node) -> Names:
    return binding(node).bound


def visible(node: Node) -> Names:
    """The names that mean something outside."""
    return binding(node).visible


def hidden(node: ast.AggSum) -> Names:
    """The variables that an AggSum sums out."""
    return outputs(node.body) - {k.name for k in node.keys}


@remembered
def is_value(node: Node) -> bool:
    """Whether it is computed from variables alone: it reads no rows and binds nothing."""
    return not any(isinstance(n, (*ROWS, ast.Lift, ast.AggSum, ast.Exists, ast.Domain)) for n in node.walk())


@remembered
def _relations(node: Node) -> Names:
    return frozenset(n.name for n in node.walk() if isinstance(n, ast.Relation))


def reads(node: Node, relation: str) -> bool:
    return relation in _relations(node)


def reads_relations(node: Node) -> bool:
    return bool(_relations(node))


def commutes(left: Node, right: Node, scope: Names = NONE) -> bool:
    """Whether `left * right` may be written `right * left`: neither binds what the other needs."""
    return not (outputs(left) & inputs(right) | outputs(right) & inputs(left)) - scope


def is_singleton(node: Node, scope: Names) -> bool:
    """Whether at most one assignment has a value other than 0, once `scope` is bound."""
    if outputs(node) <= scope:
        return True
    match node:
        case ast.Lift():
            return True
        case ast.Product():
            bound = scope
            for factor in node.factors:
                if not is_singleton(factor, bound):
                    return False
                bound |= outputs(factor)
            return True
        case ast.AggSum():
            return is_singleton(node.body, scope - hidden(node))
        case ast.Exists() | ast.Domain():
            return is_singleton(node.body, scope)
    return False


def is_binary(node: Node) -> bool:
    """Whether all values are 0 or 1."""
    match node:
        case ast.Comparison() | ast.In() | ast.Lift() | ast.Exists() | ast.Domain():
            return True
        case ast.Constant():
            return node.value in (0, 1)
        case ast.Product():
            return all(map(is_binary, node.factors))
        case ast.AggSum():
            kept = frozenset(k.name for k in node.keys)
            return is_binary(node.body) and is_singleton(node.body, kept)
    return False


def degree(node: Node, streams: Names | None = None) -> int:
    """The largest number of relations in a term, those in nested aggregates too; `streams`: of these only."""
    match node:
        case ast.Relation():
            return int(streams is None or node.name in streams)
        case ast.Sum():
            return max(degree(term, streams) for term in node.terms)
        case ast.DeltaRelation() | ast.MapAccess() | ast.TypeRef():
            return 0
    return sum(degree(child, streams) for child in node.children())
