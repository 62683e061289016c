"""Owns what the search for a variable order considered: for each choice the candidates and their costs.

Searches again, with the same result as `find_order`; nothing below the choices is tried that it did not try.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dlog.views.orders.orders import Search, searches
from dlog.views.query import Query


@dataclass(frozen=True)
class Candidate:
    """A chain of variables at the top of a part, with the cost of the best such order, if it was tried."""

    variables: tuple[str, ...]
    cost: float | None


@dataclass(frozen=True)
class Choice:
    """The variables `above`, which are bound, and what is put below them: `chosen` of `candidates`."""

    above: tuple[str, ...]
    chosen: Candidate
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class QueryPart:
    """A connected part of the query.  `free_first`: free variables are on top of it; `other` is the cost of
    the opposite.
    """

    free_first: bool
    cost: float
    other: float
    choices: tuple[Choice, ...]


def considered(query: Query, sizes: Mapping[str, int] | None = None) -> list[QueryPart]:
    """The parts of a query, each with its choices from the top down.  O(what the search took)."""
    found = []
    for search, other, part in searches(query, sizes):
        choices = tuple(_choices(search, part))
        costs = search.solve(part)[0][0], other.solve(part)[0][0]
        found.append(QueryPart(search.free_first, *costs, choices))
    return found


def _choices(search: Search, part: frozenset[int]) -> Iterator[Choice]:
    waiting: list[tuple[frozenset[int], tuple[str, ...]]] = [(part, ())]
    while waiting:
        part, above = waiting.pop(0)
        root = search.solve(part)[1]
        tried = {c: _candidate(search, part, c) for c in search.candidates(part)}
        yield Choice(above, tried[root], tuple(tried.values()))
        path = (*above, *search.classes[root].variables)
        waiting.extend((below, path) for below in search.parts(part - {root}))


def _candidate(search: Search, part: frozenset[int], root: int) -> Candidate:
    known = all(below in search.best for below in search.parts(part - {root}))
    return Candidate(search.classes[root].variables, search.with_root(part, root)[0] if known else None)
