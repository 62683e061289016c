"""Owns statistics for plans that are made before anything has run."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.engine.body.readable import TABLE
from dlog.planning.cost import Statistics
from dlog.planning.versions import is_change

_ROWS, _DISTINCT, _PARTNERS = 1000, 100.0, 10.0
_LIKE_IT = 2  # rows that a single one stands for


class DefaultStatistics:
    """Statistics in which a relation that is still empty is assumed to have a thousand rows."""

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


class GrowingStatistics(DefaultStatistics):
    """The same for plans that are reused from transaction to transaction: one row counts as two.

    A plan that is made for the first rows of a stream then joins by what they share, and makes no cross
    product, which costs nothing while there is one row of each.  Sizes of changes are not adjusted.
    """

    def rows(self, name: str) -> float:
        return super().rows(name) * self._growth(name)

    def distinct(self, name: str, column: int) -> float:
        return super().distinct(name, column) * self._growth(name)

    def _growth(self, name: str) -> float:
        return 1.0 if is_change(name) or name == TABLE else max(1.0, _LIKE_IT / super().rows(name))
