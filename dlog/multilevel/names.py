"""Owns names of variables: renaming without capture, substitution, canonical forms, equality up to names.

Every function takes an expression and returns one with the same meaning, up to the names that it is given to
change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dlog.language.ast import Node, parts
from dlog.m3.syntax import ast
from dlog.multilevel.binding import (
    NONE,
    ROWS,
    Names,
    binding,
    commutes,
    hidden,
    inputs,
    outputs,
    remembered,
    visible,
)

Renaming = Mapping[str, str]


def fresh(name: str, used: Iterable[str]) -> str:
    """A name like this one that is not used.

    >>> fresh("a", {"a", "a_1"})
    'a_2'
    """
    taken, number = set(used), 1
    base = name.rsplit("_", 1)[0] if name.rsplit("_", 1)[-1].isdigit() else name
    while f"{base}_{number}" in taken:
        number += 1
    return name if name not in taken else f"{base}_{number}"


@remembered
def mentioned(node: Node) -> Names:
    """All names, those of hidden variables too."""
    return frozenset(n.name for n in node.walk() if isinstance(n, ast.Variable))


def plain(node: Node) -> Node:
    """Without types of variables, so that equal names are equal nodes."""
    if isinstance(node, ast.Variable):
        return ast.Variable(node.name)
    return replaced(node, plain)


def replaced(node: Any, change: Any) -> Any:
    """With each child replaced."""
    changes: dict[str, Any] = {}
    for name in parts(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            changes[name] = change(value)
        elif isinstance(value, tuple):
            changes[name] = tuple(change(v) if isinstance(v, Node) else v for v in value)
    return replace(node, **changes) if changes else node


# ---- renaming


def rename(node: Node, names: Renaming) -> Node:
    """Visible variables by their new names; hidden ones are renamed where they would be confused with one.

    Two variables may get one name: then they must be equal.

    >>> from dlog.multilevel.notation import read, text
    >>> text(rename(read("R(a, b) * AggSum([], S(b, c) * {a < c})"), {"a": "c"}))
    'R(c, b) * AggSum([], S(b, c_1) * {c < c_1})'
    """
    wanted = {old: new for old, new in names.items() if old in visible(node) and old != new}
    if not wanted:
        return node
    if isinstance(node, ast.Variable):
        return ast.Variable(wanted[node.name])
    if isinstance(node, ast.AggSum):
        return _rename_sum(node, wanted)
    renamed = replaced(
        node, lambda child: rename(child, wanted) if not isinstance(child, ast.TypeRef) else child
    )
    return _flat(renamed)


def _flat(node: Node) -> Node:
    if isinstance(node, ast.Product):
        return ast.product(node.factors)
    return ast.total(node.terms) if isinstance(node, ast.Sum) else node


def _rename_sum(node: ast.AggSum, names: dict[str, str]) -> Node:
    targets = set(names.values())
    used = targets | mentioned(node)
    moved: dict[str, str] = {}
    for name in sorted(hidden(node) & targets):
        moved[name] = fresh(name, used)
        used.add(moved[name])
    keys = dict.fromkeys(names.get(k.name, k.name) for k in node.keys)
    body = rename(node.body, {**names, **moved})
    return ast.AggSum(tuple(map(ast.Variable, keys)), body)


def substitute(node: Node, name: str, value: Node) -> Node | None:
    """With a value for a variable, wherever the value of the variable is used.  None if it is used in
    another place too: as a column, a key or the variable of a lift.
    """
    if name not in visible(node):
        return node
    if isinstance(node, ast.Variable):
        return value
    if isinstance(node, ast.Relation | ast.DeltaRelation | ast.MapAccess):
        return None
    if isinstance(node, ast.Lift) and node.variable.name == name:
        return None
    if isinstance(node, ast.AggSum):
        if any(k.name == name for k in node.keys):
            return None
        node = hide_from(node, visible(value))
    changed: list[Node | None] = []

    def change(child: Node) -> Node:
        if isinstance(child, ast.TypeRef) or (isinstance(node, ast.Lift) and child is node.variable):
            return child
        changed.append(substitute(child, name, value))
        return changed[-1] or child

    result = replaced(node, change)
    return None if None in changed else _flat(result)


def hide_from(node: ast.AggSum, names: Names) -> ast.AggSum:
    """With other names for hidden variables that are called like one of these."""
    clash = sorted(hidden(node) & names)
    if not clash:
        return node
    used = set(names | mentioned(node))
    moved = {}
    for name in clash:
        moved[name] = fresh(name, used)
        used.add(moved[name])
    return replace(node, body=rename(node.body, moved))


def apart(node: Node, scope: Iterable[str] = ()) -> Node:
    """With a name of its own for each hidden variable, unlike all others and those of `scope`.  What results
    means the same to M3 and to the calculus.
    """
    return _apart(node, set(scope) | visible(node))


def m3_form(node: Node, scope: Names = NONE) -> Node:
    """The same for M3: hidden variables have names of their own, and keys that are bound outside, which M3
    does not need, are left out.
    """
    return _without_bound_keys(apart(node, scope), scope)


def _without_bound_keys(node: Node, scope: Names) -> Node:
    if isinstance(node, ast.Product):
        factors = []
        for factor in node.factors:
            factors.append(_without_bound_keys(factor, scope))
            scope |= outputs(factor)
        return ast.product(factors)
    if isinstance(node, ast.AggSum):
        keys = tuple(k for k in node.keys if k.name not in scope)
        return ast.AggSum(keys, _without_bound_keys(node.body, scope))
    if isinstance(node, ast.Variable | ast.TypeRef | ast.MapAccess):
        return node
    return _flat(replaced(node, lambda child: _without_bound_keys(child, scope)))


def _apart(node: Node, used: set[str]) -> Node:
    if isinstance(node, ast.AggSum):
        moved = {}
        for name in (n for n in binding(node.body).outputs if n in hidden(node)):
            if name in used:
                moved[name] = fresh(name, used | mentioned(node.body))
            used.add(moved.get(name, name))
        node = replace(node, body=rename(node.body, moved))
    if isinstance(node, ast.Variable | ast.TypeRef):
        return node
    return _flat(replaced(node, lambda child: _apart(child, used)))


# ---- canonical forms


@lru_cache(maxsize=1 << 14)
def canonical(node: Node) -> Node:
    """Expressions with equal canonical forms mean the same: hidden variables are numbered, commuting factors
    and terms are sorted.  The reverse need not hold: see `same`.
    """
    node = apart(plain(node))
    if isinstance(node, ROWS):
        return node
    for _ in range(2):  # numbers depend on the order, and the order of like factors on the numbers
        node = _sorted(node, mentioned(node) - visible(node))
        node = _numbered(node)
    return node


def _sorted(node: Node, unnamed: Names) -> Node:
    if isinstance(node, ast.Variable | ast.TypeRef):
        return node
    node = _flat(replaced(node, lambda child: _sorted(child, unnamed)))
    if isinstance(node, ast.Sum):
        return ast.total(sorted(node.terms, key=lambda t: (_shown(t, unnamed), repr(t))))
    if isinstance(node, ast.Product):
        return ast.product(_arranged(node.factors, unnamed))
    return node


def _arranged(factors: tuple[Node, ...], unnamed: Names) -> list[Node]:
    """The least first, of those that may come next."""
    left, done = list(factors), []
    while left:
        free = [i for i, f in enumerate(left) if all(commutes(g, f) for g in left[:i])]
        done.append(left.pop(min(free, key=lambda i: (_shown(left[i], unnamed), repr(left[i])))))
    return done


def _shown(node: Node, unnamed: Names) -> str:
    """Text without the names of hidden variables."""
    return repr(_unnamed(node, unnamed))


def _unnamed(node: Node, unnamed: Names) -> Node:
    if isinstance(node, ast.Variable):
        return ast.Variable("") if node.name in unnamed else node
    return replaced(node, lambda child: _unnamed(child, unnamed))


def _numbered(node: Node) -> Node:
    seen = visible(node)
    order = dict.fromkeys(n.name for n in node.walk() if isinstance(n, ast.Variable) and n.name not in seen)
    numbers = {name: f"#{i}" for i, name in enumerate(order)}

    def change(child: Node) -> Node:
        if isinstance(child, ast.Variable):
            return ast.Variable(numbers.get(child.name, child.name))
        return replaced(child, change)

    return change(node)


# ---- equality up to names


def same(left: Node, right: Node, fixed: bool = False) -> dict[str, str] | None:
    """What the visible variables of `left` are called in `right`, if both are the same up to names and the
    order of factors and terms; None if not.  `fixed`: visible variables must have the same names.

    >>> from dlog.multilevel.notation import read
    >>> same(read("AggSum([a], R(a, b) * b)"), read("AggSum([x], y * R(x, y))"))  # y is an input there
    >>> same(read("AggSum([a], R(a, b) * b * 2)"), read("AggSum([x], R(x, y) * 2 * y)"))
    {'a': 'x'}
    """
    if shape(left) != shape(right):
        return None
    left, right = _plainly_apart(left), _plainly_apart(right)
    names, others = visible(left), visible(right)
    start = {name: name for name in names} if fixed else {}
    if fixed and names != others:
        return None
    for found in _match(left, right, start):
        if _agree(left, right, found):
            return {name: found[name] for name in (*binding(left).inputs, *binding(left).outputs)}
    return None


@remembered
def _plainly_apart(node: Node) -> Node:
    return apart(plain(node))


def _agree(left: Node, right: Node, found: dict[str, str]) -> bool:
    """Whether both need and bind the same: factors in another order may not."""
    return {found[n] for n in inputs(left)} == inputs(right) and {found[n] for n in outputs(left)} == outputs(
        right
    )


@remembered
def shape(node: Node) -> Any:
    """What remains of an expression without names and order."""
    if isinstance(node, ast.Variable):
        return "variable"
    if isinstance(node, ast.Constant):
        return ("constant", node.type, repr(node.value))
    below = [shape(child) for child in node.children()]
    if isinstance(node, ast.Product | ast.Sum):
        below.sort(key=repr)
    name = (node.name,) if isinstance(node, ast.Relation | ast.DeltaRelation | ast.MapAccess) else ()
    extra = tuple(
        repr(getattr(node, part)) for part in parts(type(node)) if part in ("op", "function", "parameters")
    )
    return (type(node).__name__, *name, *extra, *below)


def _match(left: Node, right: Node, found: dict[str, str]) -> Iterator[dict[str, str]]:
    """All ways to read one as the other that agree with the names already found.  REQUIRES: one shape."""
    if isinstance(left, ast.Variable):
        assert isinstance(right, ast.Variable)
        yield from _pair(left.name, right.name, found)
    elif isinstance(left, ast.Product):
        assert isinstance(right, ast.Product)
        yield from _match_any(left.factors, right.factors, found)
    elif isinstance(left, ast.Sum):
        assert isinstance(right, ast.Sum)
        yield from _match_any(left.terms, right.terms, found)
    elif isinstance(left, ast.AggSum):
        assert isinstance(right, ast.AggSum)
        yield from _match_sum(left, right, found)
    else:
        yield from _match_each(list(left.children()), list(right.children()), found)


def _pair(left: str, right: str, found: dict[str, str]) -> Iterator[dict[str, str]]:
    if left in found:
        if found[left] == right:
            yield found
    elif right not in found.values():
        yield {**found, left: right}


def _match_each(left: list[Node], right: list[Node], found: dict[str, str]) -> Iterator[dict[str, str]]:
    if not left:
        yield found
        return
    for longer in _match(left[0], right[0], found):
        yield from _match_each(left[1:], right[1:], longer)


def _match_any(
    left: tuple[Node, ...], right: tuple[Node, ...], found: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Factors or terms, in any order."""
    if not left:
        yield found
        return
    wanted = shape(left[0])
    for i, other in enumerate(right):
        if shape(other) == wanted:
            for longer in _match(left[0], other, found):
                yield from _match_any(left[1:], right[:i] + right[i + 1 :], longer)


def _match_sum(left: ast.AggSum, right: ast.AggSum, found: dict[str, str]) -> Iterator[dict[str, str]]:
    """Keys are a set."""
    for longer in _match(left.body, right.body, found):
        keys = {longer.get(k.name) for k in left.keys}
        if keys == {k.name for k in right.keys} and _agree(left.body, right.body, longer):
            yield longer
