"""Owns what a program does to each of its maps: the statements by map and event, and which keys statements
read by range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import outputs, visible

RANGES = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Done:
    """A statement and when it runs: `event` is a trigger's event, of `relation` if it has one."""

    event: str
    relation: str | None
    statement: ast.Assign


def statements(program: ast.Program) -> list[Done]:
    """All of a program, in the order in which they are written."""
    return [
        Done(trigger.event, trigger.relation, statement)
        for trigger in program.triggers
        for statement in trigger.statements
        if isinstance(statement, ast.Assign)
    ]


def order_keys(program: ast.Program) -> dict[str, tuple[str, ...]]:
    """Of each map, by its name in the declaration, the keys of which statements read a range."""
    names = {m.name: tuple(k.name for k in m.keys) for m in program.maps}
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    for trigger in program.triggers:
        scope = frozenset(p.name for p in trigger.parameters)
        for statement in trigger.statements:
            if isinstance(statement, ast.Assign):
                for name, place in _ranges(statement.expression, scope):
                    found[name][names[name][place]] = None
    return {name: tuple(keys) for name, keys in found.items()}


def _ranges(node: Node, scope: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Maps and the places of their keys that are compared with what is bound before or outside."""
    if not isinstance(node, ast.Product):
        for child in node.children():
            yield from _ranges(child, scope)
        return
    bound, free = scope, dict[str, tuple[str, int]]()
    for factor in node.factors:
        if isinstance(factor, ast.MapAccess):
            new = {k.name: (factor.name, i) for i, k in enumerate(factor.keys) if k.name not in bound}
            free.update(new)
        for condition in _comparisons(factor):
            yield from _range(condition, free)
        yield from _ranges(factor, bound)
        bound |= outputs(factor)


def _comparisons(node: Node) -> Iterator[ast.Comparison]:
    """Those that a factor is made of."""
    if isinstance(node, ast.Comparison):
        yield node
    elif isinstance(node, ast.Sum | ast.Product):
        for child in node.children():
            yield from _comparisons(child)


def _range(condition: ast.Comparison, free: dict[str, tuple[str, int]]) -> Iterator[tuple[str, int]]:
    sides = ((condition.left, condition.right), (condition.right, condition.left))
    for key, other in sides if condition.op in RANGES else ():
        if isinstance(key, ast.Variable) and key.name in free and not visible(other) & free.keys():
            yield free[key.name]
