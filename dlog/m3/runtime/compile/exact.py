"""Owns which maps of floats hold exact sums.

A map is exact if all that comes to it is a sum of values of rows times integers: counts, columns or maps of
integers.  Entries of other exact maps times integers are such sums, too.  A product of two sums of floats is
not, as it comes from several relations: such maps hold doubled floats, and so do maps that only they read.

The value of a row is a doubled float: a product of two floats, or their sum, is not rounded.
"""

from __future__ import annotations

from dlog.m3.rings.rings import INT_WORD, Ring
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.analysis import Names, Typing, assignments, has_initial, maps_read
from dlog.m3.syntax import ast
from dlog.m3.types.typing import FLOATS, INTEGERS

# Sums have no product, so this is no ring of M3; a store has it as one.  Kernels know what it means.
EXACT_RING = Ring("exact sum", (INT_WORD,) * o.EXACT_WORDS, lambda _: (), lambda _: None)
_GATHERED = (ast.MapAccess, ast.Relation, ast.DeltaRelation)


# ---- which maps are exact


def exact_maps(program: ast.Program, typing: Typing) -> Names:
    """The maps that hold exact sums.  O(size of the program * maps)."""
    able = _able(program, typing)
    kept = {m.name for m in program.maps} - _read_by_others(program)
    kept |= {n.name for q in program.queries for n in q.walk() if isinstance(n, ast.MapAccess)}
    kept &= able
    while True:  # what is added to an exact map is exact
        more = {
            n for a in _all(program) if a.target.name in kept for n in _summed(a.expression)
        } & able - kept
        if not more:
            return frozenset(kept)
        kept |= more


def _able(program: ast.Program, typing: Typing) -> set[str]:
    """The maps that only sums of values times integers come to."""
    plain = (m for m in program.maps if m.type is not None and m.type.name in FLOATS and not m.inputs)
    initial = {n.name for n in program.walk() if isinstance(n, ast.MapAccess) and n.initial is not None}
    able = {m.name for m in plain} - initial
    while True:
        wrong = {
            a.target.name
            for a in _all(program)
            if a.target.name in able and not is_sum(a.expression, frozenset(able), typing)
        }
        if not wrong:
            return able
        able -= wrong


def is_sum(node: ast.Node, exact: Names, typing: Typing, inner: bool = False) -> bool:
    """Whether an expression is a sum of values of rows, or of entries of exact maps, times integers."""
    if has_initial(node):
        return False
    if typing.of(node).name in INTEGERS:
        return True
    if typing.of(node).name not in FLOATS:
        return False
    if not any(isinstance(n, _GATHERED) for n in node.walk()):
        return True
    match node:
        case ast.MapAccess():
            return node.name in exact
        case ast.AggSum():
            return is_sum(node.body, exact, typing, inner)
        case ast.Sum():
            return not inner and all(is_sum(term, exact, typing) for term in node.terms)
        case ast.Product():
            floats = [f for f in node.factors if typing.of(f).name not in INTEGERS]
            gathered = [f for f in floats if any(isinstance(n, _GATHERED) for n in f.walk())]
            alone = not gathered or len(floats) == 1
            return alone and all(is_sum(f, exact, typing, True) for f in floats)
    return False


def _summed(node: ast.Node) -> set[str]:
    """The maps whose entries are added: those outside of conditions."""
    if isinstance(node, ast.MapAccess):
        return {node.name}
    if isinstance(node, ast.AggSum):
        return _summed(node.body)
    parts = node.factors if isinstance(node, ast.Product) else node.terms if isinstance(node, ast.Sum) else ()
    return {name for part in parts for name in _summed(part)}


def _all(program: ast.Program) -> list[ast.Assign]:
    return [a for trigger in program.triggers for a in assignments(trigger.statements)]


def _read_by_others(program: ast.Program) -> set[str]:
    """The maps that conditions or statements with another target read."""
    conditions = (s for t in program.triggers for s in t.walk() if isinstance(s, ast.If))
    found = {name for one in conditions for name in maps_read(one.condition)}
    return found.union(*(maps_read(a.expression) - {a.target.name} for a in _all(program)))
