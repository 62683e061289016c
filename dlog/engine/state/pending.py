"""Owns the rows of an open transaction, in order: the last operation on each, insert or erase.

Knows nothing of versions or of what is derived from the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sortedcontainers import SortedDict

SignedRows = tuple[int, str, Any]  # +1 or -1, a predicate, rows of codes as tuples or as an array

Row = tuple[int, ...]
AFTER = float("inf")  # after every code


class Pending:
    """Statements on rows of codes, one after the other; a later operation on a row replaces the earlier one.

    >>> pending = Pending()
    >>> pending.say(1, "edge", [(2, 3), (1, 2)])
    >>> pending.say(-1, "edge", [(2, 3)])
    >>> pending.replace("price", [(7, 10)], n_keys=1, replaced=[(7, 9)])
    >>> [(sign, name, rows.tolist()) for sign, name, rows in pending.steps()]
    [(-1, 'edge', [[2, 3]]), (1, 'edge', [[1, 2]]), (-1, 'price', [[7, 9]]), (1, 'price', [[7, 10]])]
    """

    def __init__(self) -> None:
        self._signs: dict[str, Any] = {}  # predicate -> row -> sign, sorted by rows

    def say(self, sign: int, predicate: str, rows: Iterable[Row]) -> None:
        """Rows that are inserted (1) or erased (-1).  O(log n) for each."""
        signs = self._of(predicate)
        for row in rows:
            signs[row] = sign

    def replace(self, predicate: str, rows: Iterable[Row], n_keys: int, replaced: Iterable[Row]) -> None:
        """Rows that replace all that have their keys: base facts `replaced`, earlier rows."""
        signs = self._of(predicate)
        for row in replaced:
            signs.setdefault(row, -1)
        for row in rows:
            key = row[:n_keys]
            for other in list(signs.irange(key, (*key, AFTER))):
                signs[other] = -1
            signs[row] = 1

    def steps(self) -> Iterator[SignedRows]:
        """What is to be done, predicate by predicate, each row once: erased rows, then inserted ones."""
        for name, signs in self._signs.items():
            for sign in (-1, 1):
                rows = [row for row, word in signs.items() if word == sign]
                if rows:
                    yield sign, name, np.array(rows, np.int64).reshape(len(rows), -1)

    def _of(self, predicate: str) -> Any:
        signs = self._signs.get(predicate)
        if signs is None:
            signs = self._signs[predicate] = SortedDict()
        return signs
