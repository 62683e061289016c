"""Owns the order of a trigger's statements.

1 what is set first: maps of the batch.  2 all `+=`, each of which must find old values: a statement that
reads a map comes before those that change it.  Statements that wait for each other in a cycle are staged: one
is computed into a map of its own and added after the others.  3 all `:=`, which must find new values: a
statement that sets a map comes before those that read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import Names, remembered

Statements = list[ast.Assign]


@dataclass(frozen=True)
class Staged:
    """The first half of a statement, which computes, and the second, which adds.  `scratch` is the target of
    the first.
    """

    compute: ast.Assign
    add: ast.Assign


def reads(statement: ast.Assign) -> Names:
    return maps_in(statement.expression)


@remembered
def maps_in(node: Node) -> Names:
    return frozenset(n.name for n in node.walk() if isinstance(n, ast.MapAccess))


def ordered(
    first: Sequence[ast.Assign], statements: Sequence[ast.Assign], stage: Callable[[ast.Assign], Staged]
) -> Statements:
    """All statements of a trigger in an order that is right.  `first`: what is set before all others."""
    added = [s for s in statements if s.op == "+="]
    replaced = [s for s in statements if s.op == ":="]
    return [*first, *_old_values(added, stage), *_new_values(replaced)]


def _old_values(statements: Statements, stage: Callable[[ast.Assign], Staged]) -> Statements:
    left, done, last = list(statements), [], []
    while left:
        free = next((s for s in left if not _is_read(s.target.name, s, left)), None)
        if free is not None:
            done.append(free)
        else:
            free = left[0]
            staged = stage(free)
            done.append(staged.compute)
            last.append(staged.add)
        left = [s for s in left if s is not free]
    return [*done, *last]


def _is_read(name: str, statement: ast.Assign, others: Statements) -> bool:
    return any(name in reads(other) for other in others if other is not statement)


def _new_values(statements: Statements) -> Statements:
    left, done = list(statements), []
    while left:
        waiting = {s.target.name for s in left}
        free = next((s for s in left if not reads(s) & waiting - {s.target.name}), None)
        assert free is not None, "definitions that contain each other"
        done.append(free)
        left = [s for s in left if s is not free]
    return done


def staged(statement: ast.Assign, scratch: str, parameters: frozenset[str]) -> Staged:
    """A statement in two: into a map of this name, which has the keys that are not parameters, and from
    it.
    """
    keys = tuple(v for v in dict.fromkeys(statement.target.keys) if v.name not in parameters)
    access = ast.MapAccess(scratch, None, (), keys)
    return Staged(replace(statement, target=access, op=":="), ast.Assign(statement.target, "+=", access))
