"""Owns the distributive law read backwards: a * b + a * c = a * (b + c), at either end (ML 3.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import Names, commutes, hidden, is_value, outputs, visible
from dlog.multilevel.names import apart, canonical, rename, same, shape
from dlog.multilevel.values import factors_of, plus, sum_over, terms_of, times

Keyed = list[tuple[Node, Node]]  # factors with their canonical forms


@dataclass(frozen=True)
class _Common:
    """A factor and, for each term that has it, what else the term has."""

    factor: Node
    first: bool
    rests: dict[int, Keyed]

    @property
    def worth(self) -> tuple[int, bool]:
        return len(self.rests), not is_value(self.factor)


def factorise(node: Node, scope: Names) -> Node:
    """The factor that most terms have is written once, as long as two terms have one in common."""
    if not isinstance(node, ast.Sum):
        return node
    return _factorised([[(f, canonical(f)) for f in factors_of(term)] for term in node.terms], scope)


def _factorised(terms: list[Keyed], scope: Names) -> Node:
    done: list[Node] = []
    while len(terms) > 1 and (best := _best(terms, scope)) is not None:
        bound = scope | outputs(best.factor) if best.first else scope
        inner = _factorised(list(best.rests.values()), bound)
        done.append(times([best.factor, inner] if best.first else [inner, best.factor]))
        terms = [term for i, term in enumerate(terms) if i not in best.rests]
    return plus([*done, *map(_product, terms)])


def _product(term: Keyed) -> Node:
    return times(factor for factor, _ in term)


def _best(terms: list[Keyed], scope: Names) -> _Common | None:
    """The rests that are to be added must bind the same."""
    found: _Common | None = None
    for key, factor in {k: f for term in terms for f, k in term}.items():
        if isinstance(factor, ast.Constant):
            continue
        for first in (True, False):
            one = _common(factor, key, first, terms)
            if len(one.rests) < 2 or (found is not None and one.worth <= found.worth):
                continue
            if _bind_the_same(map(_product, one.rests.values()), scope | outputs(factor) if first else scope):
                found = one
    return found


def _common(factor: Node, key: Node, first: bool, terms: list[Keyed]) -> _Common:
    rests: dict[int, Keyed] = {}
    for number, term in enumerate(terms):
        at = next((i for i, (_, other) in enumerate(term) if other == key), None)
        if at is not None and _reaches_end(term, at, first):
            rests[number] = term[:at] + term[at + 1 :]
    return _Common(factor, first, rests)


def _reaches_end(term: Keyed, at: int, first: bool) -> bool:
    if first:
        return all(commutes(other, term[at][0]) for other, _ in term[:at])
    return all(commutes(term[at][0], other) for other, _ in term[at + 1 :])


def _bind_the_same(products: Iterable[Node], bound: Names) -> bool:
    return len({outputs(product) - bound for product in products}) == 1


# ---- sums over like rows


def gather(node: Node, scope: Names) -> Node:
    """AggSum(k, a * b) + AggSum(k, a * c) = AggSum(k, a * (b + c)): sums over like rows become one, whatever
    their hidden variables are called.
    """
    if not isinstance(node, ast.Sum):
        return node
    done: list[Node] = []
    for term in terms_of(apart(node, scope)):
        for i, other in enumerate(done):
            joined = _gathered(other, term, scope)
            if joined is not None:
                done[i] = joined
                break
        else:
            done.append(term)
    return node if len(done) == len(node.terms) else plus(done)


def _gathered(left: Node, right: Node, scope: Names) -> Node | None:
    """The sum of two terms as one term; None if they are not sums over like rows."""
    before, one = _summed(left)
    after, other = _summed(right)
    if one is None or other is None or outputs(one) != outputs(other):
        return None
    kept = visible(one) | visible(other)
    names = {name: name for name in kept}
    mine, yours = list(factors_of(one.body)), list(factors_of(other.body))
    rows = [f for f in mine if outputs(f) & hidden(one)]
    for row in rows:
        longer = [(o, found) for o in yours if (found := _extended(row, o, names)) is not None]
        if not longer:
            return None
        pair, names = longer[0]
        mine.remove(row)
        yours.remove(pair)
    if not rows or any(outputs(f) & hidden(other) for f in yours):
        return None
    back = {new: old for old, new in names.items()}
    rests = times([*before, *mine]), times([*after, *(rename(f, back) for f in yours)])
    if not _bind_the_same(rests, scope.union(*map(outputs, rows))):
        return None
    return sum_over(times([*rows, plus(rests)]), kept)


def _summed(term: Node) -> tuple[list[Node], ast.AggSum | None]:
    """The values before the one AggSum of a product, and it."""
    factors = list(factors_of(term))
    if isinstance(factors[-1], ast.AggSum) and not any(map(outputs, factors[:-1])):
        return factors[:-1], factors[-1]
    return factors, None


def _extended(left: Node, right: Node, names: dict[str, str]) -> dict[str, str] | None:
    """The names, with those that make the right factor out of the left one."""
    found = same(left, right) if shape(left) == shape(right) else None
    if found is None or any(names.get(old, new) != new for old, new in found.items()):
        return None
    joined = {**names, **found}
    return joined if len(set(joined.values())) == len(joined) else None
