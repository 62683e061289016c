"""Owns tables of bindings: one column per variable, all of one length.  The data between stages of a body.

A column holds int64 codes, or decimals of any size while a rule computes with them (see
`dlog.column_functions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Values: TypeAlias = Any  # numpy int64 array, or a pyarrow decimal256 array


@dataclass(frozen=True)
class Table:
    n: int
    columns: Mapping[str, Values]

    @classmethod
    def of_rows(cls, names: tuple[str, ...], rows: np.ndarray) -> Table:
        """REQUIRES: rows is (n, len(names))."""
        return cls(len(rows), {name: rows[:, i] for i, name in enumerate(names)})

    def take(self, rows: np.ndarray) -> Table:
        """The given row numbers, in that order, repeated as often as they occur."""
        return Table(len(rows), {name: _take(values, rows) for name, values in self.columns.items()})

    def filter(self, mask: np.ndarray) -> Table:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def only(self, names: tuple[str, ...]) -> Table:
        return Table(self.n, {name: self.columns[name] for name in names})

    def with_column(self, name: str, values: Values) -> Table:
        return Table(self.n, {**self.columns, name: values})

    def is_wide(self, name: str) -> bool:
        return not isinstance(self.columns[name], np.ndarray)

    def check(self) -> None:
        assert all(len(values) == self.n for values in self.columns.values())


def _take(values: Values, rows: np.ndarray) -> Values:
    return values[rows] if isinstance(values, np.ndarray) else values.take(rows)


def distinct_rows(columns: list[np.ndarray], n: int) -> np.ndarray:
    """Numbers of rows that are the first of their kind, in no particular order.  O(n log n)."""
    if not columns:
        return np.arange(min(n, 1))
    order = np.lexsort(columns[::-1])
    fresh = np.ones(n, bool)
    same = np.ones(max(n - 1, 0), bool)
    for column in columns:
        sorted_column = column[order]
        same &= sorted_column[1:] == sorted_column[:-1]
    fresh[1:] = ~same
    return order[fresh]
