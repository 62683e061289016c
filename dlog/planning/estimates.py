"""Owns estimates of the contents of sub-joins, in the terms of statistics of relations.  Reads no data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlog.ir.rules import Atom, Form
from dlog.planning.cost import AtomModel, Statistics


class Estimates:
    """Statistics, with those of sub-joins as far as they can be estimated."""

    def __init__(self, statistics: Statistics):
        self.statistics = statistics
        self.made: dict[str, tuple[float, list[float], list[float]]] = {}
        self.models: dict[Atom, AtomModel] = {}

    def add(
        self, name: str, forms: Sequence[Form], outputs: Sequence[str], bindings: float, weighted: bool
    ) -> float:
        """Adds a sub-join; returns the rows expected: the distinct outputs among this many bindings."""
        models = [self.model(f) for f in forms if isinstance(f, Atom)]
        distinct, skew = [], []
        for variable in outputs:
            holders = [m for m in models if variable in m.columns]
            domain = min((m.domain(variable) for m in holders), default=bindings)
            distinct.append(_drawn(bindings, max(1.0, domain)))
            skew.append(max((m.skew(variable) for m in holders), default=1.0))
        rows = _drawn(bindings, math.prod(distinct)) if outputs else 1.0
        distinct = [max(1.0, min(d, rows)) for d in distinct]
        partners = [min(rows, s * rows / d) for s, d in zip(skew, distinct, strict=True)]
        self.made[name] = (rows, distinct + [1.0] * weighted, partners + [rows] * weighted)
        return rows

    def model(self, atom: Atom) -> AtomModel:
        """Cached: the same atoms occur in many drafts."""
        if atom not in self.models:
            self.models[atom] = AtomModel.of(atom, self)
        return self.models[atom]

    def rows(self, name: str) -> float:
        return self.made[name][0] if name in self.made else self.statistics.rows(name)

    def distinct(self, name: str, column: int) -> float:
        return self.made[name][1][column] if name in self.made else self.statistics.distinct(name, column)

    def partners(self, name: str, column: int) -> float:
        return self.made[name][2][column] if name in self.made else self.statistics.partners(name, column)

    def orders(self, name: str) -> Sequence[tuple[int, ...]]:
        return () if name in self.made else self.statistics.orders(name)

    def known_orders(self, name: str, foreseen: bool = True) -> Sequence[tuple[int, ...]]:
        return () if name in self.made else self.statistics.known_orders(name, foreseen)


def _drawn(draws: float, values: float) -> float:
    """How many different values this many draws are expected to give."""
    return values * -math.expm1(-draws / values) if values > 0 else 0.0
