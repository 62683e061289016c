"""Owns the choice of column orders: as few as possible for all the orders in which plans read a predicate.

A requirement is a sequence of sets of columns: first all of one set are read, in any order, then all of the
next; columns in no set are not read.  An order of all columns serves it if each set follows the ones
before it: (2, 0, 1) serves ({2}, {0}), ({0, 2},) and ({2}, {0, 1}).  Knows nothing of rules, plans or data.

Correct output of `choose_orders`: every requirement has an order that serves it, and the number of new orders
is as small as possible.  A requirement says which sets of columns have to be the beginning of
an order.  One order serves several requirements if and only if all these sets, taken together, are nested;
for that, any two requirements have to be compatible, so we search for the least number of groups that are
pairwise compatible.  In general that is as hard as colouring a graph.  What is exact:

    1 what exists is free, so whatever an existing order serves is left out first
    2 a requirement whose sets another one has, too, is served along with it and left out
    3 the rest, by the size of its largest set, is an order in which each group is a path; the least number of
      paths comes from a bipartite matching.  If compatibility is transitive along it, each path is a group,
      and the answer is exact (Dilworth).  So it is if all requirements are single sets (Subotić et al.,
      Automatic Index Selection), and when all are sequences of single columns
    4 otherwise the number of paths is a lower bound; branch and bound searches for groups, and ends
      with the least number unless it stops after BUDGET steps: then `exact` is False, and the answer is
      the best that was found, at worst that of putting each requirement into the first group that fits
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

Order: TypeAlias = tuple[int, ...]
Requirement: TypeAlias = tuple[frozenset[int], ...]
_Chain: TypeAlias = frozenset[frozenset[int]]  # nested sets that an order has to begin with

BUDGET = 20_000  # steps of the search: some 20 ms


@dataclass(frozen=True)
class Choice:
    """`orders`, those that exist before those that are new; for each requirement the place of its order.

    `exact`: there are provably no fewer.
    """

    orders: tuple[Order, ...]
    serving: tuple[int, ...]
    exact: bool


def choose_orders(arity: int, requirements: Sequence[Requirement], existing: Iterable[Order] = ()) -> Choice:
    """As few new orders as possible, so that each requirement is served by one of these or an existing one.

    Depends on the set of requirements, not on their sequence.  O(n^3) for n requirements, besides BUDGET.

    >>> x, y = frozenset({0}), frozenset({1})
    >>> choose_orders(2, [(x,), (x | y,), (y,)])
    Choice(orders=((0, 1), (1, 0)), serving=(0, 0, 1), exact=True)
    """
    orders = list(existing)
    open_ones = [r for r in requirements if not any(serves(order, r) for order in orders)]
    chains = _maximal({_chain(arity, r) for r in open_ones})
    groups, exact = _groups(chains)
    orders += [_order(arity, group) for group in groups]
    if open_ones and not groups:  # any order would do, but there is none
        orders.append(tuple(range(arity)))
    serving = [next(i for i, order in enumerate(orders) if serves(order, r)) for r in requirements]
    return Choice(tuple(orders), tuple(serving), exact)


def serves(order: Order, requirement: Requirement) -> bool:
    """Whether an order has the sets of a requirement one after the other.

    >>> serves((2, 0, 1), (frozenset({2}), frozenset({0, 1})))
    True
    """
    start = 0
    for columns in requirement:
        if columns != frozenset(order[start : start + len(columns)]):
            return False
        start += len(columns)
    return True


def arrange(order: Order, requirement: Requirement) -> Order:
    """The columns of a requirement as an order reads them.  REQUIRES: the order serves it."""
    return order[: sum(map(len, requirement))]


def _chain(arity: int, requirement: Requirement) -> _Chain:
    """All sets that have to begin the order; the set of all columns always does."""
    beginnings = accumulate(requirement, lambda before, columns: before | columns)
    return frozenset(s for s in beginnings if 0 < len(s) < arity)


def _maximal(chains: set[_Chain]) -> list[_Chain]:
    """Those that are not part of another one; by their largest set, so that groups are paths."""
    kept = [c for c in chains if c and not any(c < other for other in chains)]
    return sorted(kept, key=lambda c: (max(map(len, c)), sorted(map(sorted, c))))


def _agree(a: _Chain, b: _Chain) -> bool:
    return all(s <= t or t <= s for s in a for t in b)


def _groups(chains: Sequence[_Chain]) -> tuple[list[list[_Chain]], bool]:
    """Compatible groups, and whether there are provably no fewer."""
    n = len(chains)
    after = [[j for j in range(i + 1, n) if _agree(chains[i], chains[j])] for i in range(n)]
    paths = _paths(after)
    if all(k in after[i] for i in range(n) for j in after[i] for k in after[j]):
        found, exact = paths, True
    else:
        found, exact = _search(after, len(paths))
    return [[chains[i] for i in group] for group in found], exact


def _paths(after: list[list[int]]) -> list[list[int]]:
    """The least number of paths that hold each node once: all nodes but those with a matched predecessor."""
    before: dict[int, int] = {}  # the matching: node -> the one before it on its path

    def augment(i: int, seen: set[int]) -> bool:
        for j in after[i]:
            if j not in seen:
                seen.add(j)
                if j not in before or augment(before[j], seen):
                    before[j] = i
                    return True
        return False

    for i in range(len(after)):
        augment(i, set())
    following = {i: j for j, i in before.items()}
    paths = []
    for start in range(len(after)):
        if start not in before:
            path = [start]
            while path[-1] in following:
                path.append(following[path[-1]])
            paths.append(path)
    return paths


def _search(after: list[list[int]], bound: int) -> tuple[list[list[int]], bool]:
    """The least number of groups by branch and bound, each node into a group that fits or a new one.

    `bound`: a lower bound.
    """
    n = len(after)
    agreeing = [{*after[i], *(j for j in range(i) if i in after[j])} for i in range(n)]
    best = _first_fit(agreeing)
    groups: list[list[int]] = []
    steps = 0

    def place(i: int) -> None:
        nonlocal best, steps
        steps += 1
        if len(groups) >= len(best) or len(best) == bound or steps > BUDGET:
            return
        if i == n:
            best = [list(group) for group in groups]
            return
        for group in groups:  # as long again after each attempt
            if agreeing[i].issuperset(group):
                group.append(i)
                place(i + 1)
                group.pop()
        groups.append([i])
        place(i + 1)
        groups.pop()

    place(0)
    return best, len(best) == bound or steps <= BUDGET


def _first_fit(agreeing: list[set[int]]) -> list[list[int]]:
    """Each node in the first group that fits."""
    groups: list[list[int]] = []
    for i, others in enumerate(agreeing):
        group = next((g for g in groups if others.issuperset(g)), None)
        if group is None:
            groups.append([i])
        else:
            group.append(i)
    return groups


def _order(arity: int, group: Iterable[_Chain]) -> Order:
    """All columns, the sets of a group one after the other, inside each as the predicate has them."""
    order: list[int] = []
    for columns in sorted({s for chain in group for s in chain}, key=len):
        order += sorted(columns - set(order))
    return (*order, *(c for c in range(arity) if c not in order))
