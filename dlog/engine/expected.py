"""Owns statistics for plans that are made before anything has run."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.engine.store import Store

_ROWS, _DISTINCT, _PARTNERS = 1000, 100.0, 10.0


class Expected:
    """Statistics of what is stored; a relation that is still empty is taken to have a thousand rows."""

    def __init__(self, store: Store):
        self.store = store

    def rows(self, name: str) -> int:
        return self.store.rows(name) or _ROWS

    def distinct(self, name: str, column: int) -> float:
        return self.store.distinct(name, column) if self.store.rows(name) else _DISTINCT

    def partners(self, name: str, column: int) -> float:
        return self.store.partners(name, column) if self.store.rows(name) else _PARTNERS

    def orders(self, name: str) -> list[tuple[int, ...]]:
        return list(self.store.orders(name))

    def arrangements(self, name: str, foreseen: bool = True) -> Sequence[tuple[int, ...]]:
        return self.store.arrangements(name, foreseen)
