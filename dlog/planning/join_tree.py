"""Owns the test whether a join is acyclic (GYO), and the tree of its atoms.  Knows variables only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def join_tree(edges: Sequence[Iterable[str]]) -> list[tuple[int, int]] | None:
    """(atom, neighbour) for all atoms but one, in the order in which GYO removes them; None for a cycle.

    What an atom shares with those that are removed later is in its neighbour.  So any two atoms with a
    variable have it in all atoms between them.  An atom that shares nothing has any neighbour.

    >>> join_tree(["ab", "bc", "cd"]), join_tree(["ab", "bc", "ca"])
    ([(0, 1), (1, 2)], None)
    """
    left, pairs = _reduced(edges)
    return pairs if len(left) <= 1 else None


def cyclic_core(edges: Sequence[Iterable[str]]) -> list[int]:
    """The sets of variables that are left after removing, one by one, the first set whose variables
    shared with others are all in one other (GYO): their places.  More than one: a cycle.

    >>> cyclic_core(["ab", "bc", "ca", "cd"]), cyclic_core(["ab", "bc", "ca", "abc"])
    ([0, 1, 2], [3])
    """
    return _reduced(edges)[0]


def _reduced(edges: Sequence[Iterable[str]]) -> tuple[list[int], list[tuple[int, int]]]:
    """The places that are left, and each removed place with its neighbour."""
    left = {place: frozenset(edge) for place, edge in enumerate(edges)}
    removed: list[tuple[int, int]] = []
    while len(left) > 1:
        ear = next((pair for place in left if (pair := _ear(left, place)) is not None), None)
        if ear is None:
            break
        removed.append(ear)
        del left[ear[0]]
    return list(left), removed


def _ear(edges: Mapping[int, frozenset[str]], place: int) -> tuple[int, int] | None:
    others = {other: edge for other, edge in edges.items() if other != place}
    shared = edges[place] & frozenset().union(*others.values())
    neighbour = next((other for other, edge in others.items() if shared <= edge), None)
    return None if neighbour is None else (place, neighbour)
