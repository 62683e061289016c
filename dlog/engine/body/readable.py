"""Owns what a join can read: the store's relations, and relations that exist only while a body runs.

The latter are the table of bindings between two stages, and the results of sub-joins.  To the planner they
are relations like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dlog.engine.body.table import Table
from dlog.engine.state.store import Store, column_estimate
from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from dlog.storage.index.sample import sample_places
from dlog.values import INT, Type

TABLE = "$table"
"""The name under which a join reads the table of bindings that it continues from."""

_SAMPLE = 1 << 12


@dataclass
class Passing:
    """A temporary relation: columns of codes, and an index for each column order that was requested.

    Rows may repeat; an index has each once.
    """

    columns: list[np.ndarray]
    n: int
    _indices: dict[tuple[int, ...], Index] = field(default_factory=dict)
    _estimates: list[tuple[float, float]] | None = None

    @classmethod
    def of(cls, table: Table) -> Passing:
        return cls(list(table.columns.values()), table.n)

    def index(self, arena: Arena, columns: tuple[int, ...]) -> Index:
        """O(n) when it is new."""
        if columns not in self._indices:
            if columns:
                chosen = [np.ascontiguousarray(self.columns[c]) for c in columns]
                self._indices[columns] = Index.from_columns(arena, chosen)
            else:
                self._indices[columns] = Index.build(arena, np.empty((min(self.n, 1), 0), np.int64), 0)
        return self._indices[columns]

    def estimate(self, column: int) -> tuple[float, float]:
        """(distinct values, rows that share the value of a random row), from a sample."""
        if self._estimates is None:
            at = sample_places(self.n, _SAMPLE)
            self._estimates = [column_estimate(np.asarray(c)[at], self.n) for c in self.columns]
        return self._estimates[column]


class Readable:
    """The store with some temporary relations, as the planner sees it."""

    def __init__(self, store: Store, passing: Mapping[str, Passing]):
        self.store = store
        self.passing = passing

    def rows(self, name: str) -> int:
        return self.passing[name].n if name in self.passing else self.store.rows(name)

    def distinct(self, name: str, column: int) -> float:
        if name not in self.passing:
            return self.store.distinct(name, column)
        return self.passing[name].estimate(column)[0] if self.rows(name) else 1.0

    def partners(self, name: str, column: int) -> float:
        if name not in self.passing:
            return self.store.partners(name, column)
        return self.passing[name].estimate(column)[1] if self.rows(name) else 1.0

    def orders(self, name: str) -> Sequence[tuple[int, ...]]:
        return () if name in self.passing else self.store.orders(name)

    def known_orders(self, name: str, foreseen: bool = True) -> Sequence[tuple[int, ...]]:
        return () if name in self.passing else self.store.known_orders(name, foreseen)

    def column_types(self, name: str) -> Sequence[Type]:
        if name in self.passing:
            return [INT] * len(self.passing[name].columns)
        return self.store.column_types(name)

    def index(self, name: str, columns: tuple[int, ...]) -> Index:
        if name in self.passing:
            return self.passing[name].index(self.store.arena, columns)
        return self.store.index(name, columns)
