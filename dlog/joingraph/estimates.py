"""Owns estimates: join tuples that a changed row enters, rows of the view that it changes, bytes of a graph.

Knows statistics only.  Values of columns are taken to be independent and evenly distributed, and at a vertex
the values of one atom to be among those of the other.  What look-ahead leaves out is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dlog.joingraph import layout as at
from dlog.joingraph.plan import Enter, Plan

INDEX_BYTES = 14  # of an index for each entry: between a quarter and half of its words are empty
LIST_BYTES = 12  # of a list for each entry: between none and half of its words are empty


class Statistics(Protocol):
    """Of stored relations."""

    def rows(self, name: str) -> int: ...

    def distinct(self, name: str, column: int) -> float:
        """How many values a column has."""


@dataclass(frozen=True)
class Sizes:
    """Estimates for one atom: rows that pass its filters, join tuples, payload rows."""

    rows: float
    tuples: float
    payload: float


def atom_sizes(plan: Plan, atom: int, statistics: Statistics) -> Sizes:
    planned = plan.atoms[atom]
    rows = float(statistics.rows(planned.atom.relation))
    for test in planned.filters:
        rows *= 1 / _distinct_column(plan, atom, test.left, statistics) if test.op == "=" else 1 / 3
    joined = dict.fromkeys(v for e in planned.vertices for v in plan.vertices[e].variables)
    tuples = min(rows, distinct(plan, atom, tuple(joined), statistics))
    payload = min(rows, distinct(plan, atom, (*joined, *planned.payload), statistics))
    return Sizes(rows, tuples, payload)


def distinct(plan: Plan, atom: int, variables: Sequence[str], statistics: Statistics) -> float:
    """How many combinations of values some variables of an atom have, at least 1."""
    found, planned = 1.0, plan.atoms[atom]
    for variable in variables:
        found *= _distinct_column(plan, atom, planned.atom.column(variable), statistics)
    return max(1.0, min(found, float(statistics.rows(planned.atom.relation))))


def _distinct_column(plan: Plan, atom: int, column: int, statistics: Statistics) -> float:
    return max(1.0, statistics.distinct(plan.atoms[atom].atom.relation, column))


@dataclass(frozen=True)
class Work:
    """What one changed row of an atom causes."""

    visits: float
    rows: float


def work(plan: Plan, atom: int, statistics: Statistics) -> Work:
    """Each step multiplies the paths so far by its atom's rows for one vertex value.

    >>> from dlog.joingraph.body import Atom, Body
    >>> from dlog.joingraph.plan import plan_graph
    >>> class Ten:
    ...     def rows(self, name): return 1000
    ...     def distinct(self, name, column): return 100
    >>> body = Body((Atom("r", ("a", "b")), Atom("s", ("b", "c")), Atom("t", ("c", "d"))), ("a", "d"))
    >>> work(plan_graph(body), 0, Ten())
    Work(visits=20.0, rows=100.0)
    """
    paths, visits, rows = 1.0, 0.0, 1.0
    for step in plan.searches[atom].steps:
        if not isinstance(step, Enter):
            continue
        sizes, values = atom_sizes(plan, step.atom, statistics), vertex_values(plan, step.vertex, statistics)
        paths *= sizes.tuples / values
        visits += paths
        rows *= sizes.rows / values
        for _ in step.tests:
            paths, rows = paths / 3, rows / 3
    return Work(visits, rows)


def graph_bytes(plan: Plan, statistics: Statistics) -> float:
    """Bytes of a graph: records, lists and indices."""
    found = 0.0
    for i, planned in enumerate(plan.atoms):
        sizes, vertices = atom_sizes(plan, i, statistics), len(planned.vertices)
        if planned.is_leaf:
            continue
        row = len(planned.payload) + int(planned.counted) if planned.payload else 0
        found += sizes.tuples * 8 * (vertices + 1 + row)
        if sizes.payload > 1.5 * sizes.tuples:
            found += sizes.payload * row * LIST_BYTES
            if sizes.payload > at.INDEXED * sizes.tuples:
                found += sizes.payload * INDEX_BYTES
        if vertices > 1:
            found += sizes.tuples * INDEX_BYTES
            found += sum(
                sizes.tuples * LIST_BYTES for e in planned.vertices if _is_shared(plan, i, e, statistics)
            )
    for e, vertex in enumerate(plan.vertices):
        found += vertex_values(plan, e, statistics) * (8 * (len(vertex.variables) + 6) + INDEX_BYTES)
    return found


def vertex_values(plan: Plan, vertex: int, statistics: Statistics) -> float:
    """How many values a vertex has."""
    variables = plan.vertices[vertex].variables
    return max(distinct(plan, atom, variables, statistics) for atom in plan.vertices[vertex].atoms)


def _is_shared(plan: Plan, atom: int, vertex: int, statistics: Statistics) -> bool:
    """Whether most values of a vertex have several join tuples of an atom: then these are in blocks."""
    values = distinct(plan, atom, plan.vertices[vertex].variables, statistics)
    return atom_sizes(plan, atom, statistics).tuples > 1.5 * values
