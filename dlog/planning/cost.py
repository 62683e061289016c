"""Owns estimates: how many bindings a key order visits.  Reads statistics, never data.

The model is the usual one: columns are independent, except that a set of columns cannot have more distinct
values than the relation has rows.  Skew counts: a value that was reached through a row is more likely a
frequent one, so the rows it leads to are counted from a random row, not from a random value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dlog.ir.rules import Atom, Const, Var
from dlog.planning.versions import is_of_transaction

# The unit of cost is a value visited by a leap, some 5 ns.
_MERGE = 0.3  # a value passed while two sorted runs are merged
_SEEK = 0.7  # added to a seek by each doubling of the distance


class Statistics(Protocol):
    """The planner's statistics of the data."""

    def rows(self, predicate: str) -> float: ...
    def distinct(self, predicate: str, column: int) -> float:
        """Estimated number of distinct values in one column; at least 1."""

    def partners(self, predicate: str, column: int) -> float:
        """Estimated number of rows that share a column's value with a random row; at least 1."""

    def orders(self, predicate: str) -> Sequence[tuple[int, ...]]:
        """Column orders that exist already."""

    def known_orders(self, predicate: str, foreseen: bool = True) -> Sequence[tuple[int, ...]]:
        """Column orders that a plan should read, if they fit: those that exist, then those `foreseen`."""


@dataclass
class AtomModel:
    """One atom as the estimator sees it: which columns hold which variable, and how many values they have."""

    atom: Atom
    rows: float
    columns: dict[str, list[int]]  # variable -> its columns
    constants: list[int]
    distinct: list[float]
    partners: list[float]
    is_change: bool  # whose rows are given one by one, frequent values among them
    _fanouts: dict[tuple[str, bool, frozenset[str]], float] = field(default_factory=dict)

    @classmethod
    def of(cls, atom: Atom, statistics: Statistics) -> AtomModel:
        columns: dict[str, list[int]] = {}
        constants = []
        for index, operand in enumerate(atom.args):
            if isinstance(operand, Var):
                columns.setdefault(operand.name, []).append(index)
            elif isinstance(operand, Const):
                constants.append(index)
        rows = statistics.rows(atom.predicate)
        distinct = [max(1.0, statistics.distinct(atom.predicate, i)) for i in range(len(atom.args))]
        partners = [max(1.0, statistics.partners(atom.predicate, i)) for i in range(len(atom.args))]
        changes = is_of_transaction(atom.predicate)
        return cls(atom, float(rows), columns, constants, distinct, partners, changes)

    def prefixes(self, bound: frozenset[str]) -> float:
        """How many distinct combinations the bound columns have.  O(columns)."""
        product = 1.0
        for index in self.constants:
            product *= self.distinct[index]
        for name, indices in self.columns.items():
            if name in bound:
                for index in indices:
                    product *= self.distinct[index]
        return max(1.0, min(product, self.rows))

    def fanout(self, name: str, bound: frozenset[str], through_row: bool) -> float:
        """How many values of a variable to expect under one binding of the others, which was reached through
        a row or is any value.  Cached."""
        key = (name, through_row, bound.intersection(self.columns))
        if key not in self._fanouts:
            self._fanouts[key] = self._fanout(name, bound, through_row)
        return self._fanouts[key]

    def _fanout(self, name: str, bound: frozenset[str], through_row: bool) -> float:
        if self.rows == 0:
            return 0.0
        even = self.prefixes(bound | {name}) / self.prefixes(bound)
        known = [c for v, columns in self.columns.items() if v in bound for c in columns]
        if len(known) == 1 and through_row and not self.constants:
            return max(even, min(self.partners[known[0]], self.domain(name)))
        return even

    def domain(self, name: str) -> float:
        return min(self.distinct[i] for i in self.columns[name])

    def skew(self, name: str) -> float:
        """How many more rows share a value with a random row than with a random value; at least 1."""
        column = self.columns[name][0]
        return max(1.0, self.partners[column] * self.distinct[column] / max(self.rows, 1.0))


def extend(
    models: Sequence[AtomModel], name: str, bound: frozenset[str], last: bool = False
) -> tuple[float, float]:
    """(cost, values left) if a variable is bound next, per binding of the variables before it.

    Leapfrog visits about as many values as the smallest participant has, and seeks each in the others: the
    further, the larger they are.  Each other one retains its share.  The last variable is cheaper: there,
    sorted runs are merged.
    """
    parts = [m for m in models if name in m.columns]
    through_row = len(bound) > 1 or any(m.is_change and not bound.isdisjoint(m.columns) for m in models)
    fans = sorted(m.fanout(name, bound, through_row) for m in parts)
    if not fans:
        return 0.0, 1.0
    domain = max(1.0, *(m.domain(name) for m in parts))
    least = fans[0]
    kept, cost = least, least * (_MERGE if last else 1.0)
    for fan in fans[1:]:
        kept *= min(1.0, fan / domain)
        seeking = least * (1.0 + _SEEK * math.log2(max(1.0, fan / max(least, 1.0))))
        cost += min(seeking, _MERGE * (least + fan)) if last else seeking
    return cost, kept
