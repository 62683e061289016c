"""Owns statistics for plans that are made before anything has run."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.planning.cost import Statistics

_ROWS, _DISTINCT, _PARTNERS = 1000, 100.0, 10.0


class Expected:
    """Statistics in which a relation that is still empty is taken to have a thousand rows."""

    def __init__(self, known: Statistics):
        self.known = known

    def rows(self, name: str) -> float:
        return self.known.rows(name) or _ROWS

    def distinct(self, name: str, column: int) -> float:
        return self.known.distinct(name, column) if self.known.rows(name) else _DISTINCT

    def partners(self, name: str, column: int) -> float:
        return self.known.partners(name, column) if self.known.rows(name) else _PARTNERS

    def orders(self, name: str) -> list[tuple[int, ...]]:
        return list(self.known.orders(name))

    def known_orders(self, name: str, foreseen: bool = True) -> Sequence[tuple[int, ...]]:
        return self.known.known_orders(name, foreseen)
