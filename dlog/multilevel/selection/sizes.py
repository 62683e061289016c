"""Owns estimates of how many entries a definition has, from the sizes of relations.

Columns are taken to be independent and evenly distributed: a row of one relation agrees with a row of another
in a column by chance, one in as many as the larger number of distinct values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import outputs
from dlog.multilevel.decompose import Monomial, expand
from dlog.multilevel.names import same

ROWS = 10_000.0  # of a relation about which nothing is known
REPEATED = 10.0  # how often a value of its columns occurs then, but for the first, which is a key
RANGE = 1 / 3  # the share of rows that satisfy an inequality


@dataclass(frozen=True)
class Statistics:
    """What is known of the data: `rates`, how many rows of each stream change in the same time; `rows` of
    each relation; `distinct`, how many values a column has, by relation and place.  `entries`, what was
    measured of maps, by their definitions; `written`, how many times as many rows were added to them as
    estimated.  What is missing is assumed.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    rows: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[tuple[str, int], float] = field(default_factory=dict)
    entries: tuple[tuple[Node, float], ...] = ()
    written: tuple[tuple[Node, float], ...] = ()

    def rate(self, relation: str) -> float:
        return self.rates.get(relation, 1.0)

    def size(self, relation: str) -> float:
        return max(self.rows.get(relation, ROWS), 1.0)

    def values(self, relation: str, place: int) -> float:
        size = self.size(relation)
        assumed = size / REPEATED if place else size
        return min(max(self.distinct.get((relation, place), assumed), 1.0), size)

    def grown(self, sizes: Mapping[str, float]) -> Statistics:
        """With these numbers of rows.  Where most values of a column differed they still do; of other
        columns there are as many values as there were.
        """
        distinct = {
            (name, place): values * sizes[name] / self.size(name)
            if name in sizes and 2 * values > self.size(name)
            else values
            for (name, place), values in self.distinct.items()
        }
        return replace(self, rows={**self.rows, **sizes}, distinct=distinct)

    def measured(self, definition: Node) -> float | None:
        return _found(self.entries, definition)

    def correction(self, definition: Node) -> float:
        """A factor of the work that a row causes for a map."""
        return _found(self.written, definition) or 1.0


def _found(known: Iterable[tuple[Node, float]], definition: Node) -> float | None:
    return next((n for d, n in known if same(d, definition) is not None), None)


@dataclass(frozen=True)
class Size:
    """`entries` of a map; `domains`: how many values each key could have."""

    entries: float
    domains: Mapping[str, float]

    def matches(self, bound: Iterable[str]) -> float:
        """How many entries have given values of some keys."""
        return self.entries / math.prod(self.domains[k] for k in bound)


def size_of(definition: Node, keys: Iterable[str], known: Statistics) -> Size:
    """
    >>> from dlog.multilevel.notation import read
    >>> known = Statistics(rows={"R": 1000, "S": 200}, distinct={("R", 1): 50, ("S", 0): 100})
    >>> size_of(read("R(a, b) * S(b, c)"), "b", known).entries  # 2,000 rows, 50 values of b
    50.0
    """
    found = [_monomial(m, known) for m in expand(definition)]
    domains = {k: max((d.get(k, 1.0) for _, d in found), default=1.0) for k in keys}
    measured = known.measured(definition)
    if measured is not None:
        return Size(measured, domains)
    return Size(groups(sum(rows for rows, _ in found), math.prod(domains.values())), domains)


def groups(rows: float, cells: float) -> float:
    """In how many of equally likely cells some of the rows are.

    >>> [round(groups(100, cells)) for cells in (1, 10, 100, 10**9)]
    [1, 10, 63, 100]
    """
    return cells * -math.expm1(-rows / cells)


def _monomial(monomial: Monomial, known: Statistics) -> tuple[float, dict[str, float]]:
    """The rows of a product, and how many values its variables have."""
    rows, domains = 1.0, dict[str, float]()
    for factor in monomial:
        if isinstance(factor, ast.Relation):
            rows *= known.size(factor.name)
            columns = [(v.name, known.values(factor.name, i)) for i, v in enumerate(factor.variables)]
            rows /= _joined(columns, domains)
        elif isinstance(factor, ast.Exists | ast.Domain):
            inner = size_of(factor.body, outputs(factor), known)
            rows *= inner.entries / _joined(inner.domains.items(), domains)
        elif isinstance(factor, ast.Lift):
            rows /= _joined([(factor.variable.name, _values(factor.body, domains))], domains)
        else:
            rows *= selectivity(factor, domains)
    return rows, domains


def _joined(columns: Iterable[tuple[str, float]], domains: dict[str, float]) -> float:
    """By how much the product of rows is larger than the rows that agree; adds the columns' domains."""
    factor = 1.0
    for name, values in columns:
        if name in domains:
            factor *= max(domains[name], values)
            values = min(domains[name], values)
        domains[name] = values
    return factor


def _values(node: Node, domains: Mapping[str, float]) -> float:
    """How many values an expression may have: as many as its variables have together, up to a limit."""
    names = {n.name for n in node.walk() if isinstance(n, ast.Variable)}
    return min(math.prod(domains.get(name, 1.0) for name in names), ROWS)


def selectivity(condition: Node, domains: Mapping[str, float]) -> float:
    """The share of rows that satisfy a condition; 1 for a value."""
    if isinstance(condition, ast.Comparison):
        if condition.op in ("=", "!="):
            equal = 1 / max(_values(condition.left, domains), _values(condition.right, domains), 1.0)
            return equal if condition.op == "=" else 1 - equal / 2
        return RANGE
    if isinstance(condition, ast.In):
        return min(1.0, len(condition.values) / max(_values(condition.operand, domains), 1.0))
    if isinstance(condition, ast.Product):
        return math.prod(selectivity(f, domains) for f in condition.factors)
    if isinstance(condition, ast.Sum):
        return max(selectivity(term, domains) for term in condition.terms)
    return 1.0
