"""Owns the change of an indicator projection in M3: the keys that appear or disappear
when the rows of its atom change.  Knows no views.

Correct output: `change` is 1 for each key that had no row before and has one after, -1 for each that had one
and has none, and nothing for others, whatever the multiplicities of the changed rows are.  The statements
`before` run before the rows are counted, `after` after that; in between the rows are counted, by the path of
the atom, unless the indicator has its own counts, which `after` begins with.

In a batch the changed keys are a map, and so is the change; in a trigger for one row, whose keys are its
parameters, the change is one number, and no look-up is done if it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dlog.m3.syntax import ast
from dlog.views.tree.payloads import COUNT

_MINUS = ast.Constant("int", -1)


@dataclass(frozen=True)
class Appearing:
    """The maps that are needed, the statements, and the factors for the change."""

    maps: tuple[ast.MapDeclaration, ...]
    before: tuple[ast.Assign, ...]
    after: tuple[ast.Assign, ...]
    change: tuple[ast.Node, ...]


def appearing(
    counts: ast.MapAccess, columns: tuple[ast.Column, ...], rows: list[ast.Node], counted: bool, single: bool
) -> Appearing:
    """`counts` are the rows of the atom by the indicator's keys, whose columns are given; `rows` the changed
    rows; `counted`: the path of the atom counts them; `single`: there is one, and its keys are bound.

    >>> keys = (ast.Variable("a"), ast.Variable("b"))
    >>> found = appearing(ast.MapAccess("VIEW_R", COUNT, (), keys), (), [], True, True)
    >>> [(s.target.name, s.op) for s in (*found.before, *found.after)]
    [('DELTA_EXISTS_R', ':='), ('DELTA_EXISTS_R', '+=')]
    """
    name = "DELTA_EXISTS_" + counts.name.removeprefix("VIEW_").removeprefix("INDICATOR_")
    return _of_row(counts, name, rows, counted) if single else _of_batch(counts, name, columns, rows, counted)


def _of_row(counts: ast.MapAccess, name: str, rows: list[ast.Node], counted: bool) -> Appearing:
    change = ast.MapAccess(name, COUNT, (), ())
    there = ast.Exists(counts)
    own = () if counted else (_assign(counts, "+=", rows),)
    before = (_assign(change, ":=", [_MINUS, there]),)
    after = (*own, _assign(change, "+=", [there]))
    return Appearing((_declared(change, ()),), before, after, (ast.Exists(change), change))


def _of_batch(
    counts: ast.MapAccess, name: str, columns: tuple[ast.Column, ...], rows: list[ast.Node], counted: bool
) -> Appearing:
    change, changed = replace(counts, name=name), replace(counts, name=f"DELTA_{counts.name}")
    there: list[ast.Node] = [ast.Exists(changed), ast.Exists(counts)]
    own = () if counted else (ast.Assign(counts, "+=", changed),)
    before = (_summed(changed, ":=", rows), _summed(change, ":=", [_MINUS, *there]))
    after = (*own, _summed(change, "+=", there))
    return Appearing((_declared(changed, columns), _declared(change, columns)), before, after, (change,))


def _declared(access: ast.MapAccess, columns: tuple[ast.Column, ...]) -> ast.MapDeclaration:
    return ast.MapDeclaration(access.name, COUNT, (), columns, ast.Constant("int", 0))


def _assign(target: ast.MapAccess, op: str, parts: list[ast.Node]) -> ast.Assign:
    return ast.Assign(target, op, ast.product(parts) if parts else ast.Constant("int", 1))


def _summed(target: ast.MapAccess, op: str, parts: list[ast.Node]) -> ast.Assign:
    return ast.Assign(target, op, ast.AggSum(target.keys, ast.product(parts)))
