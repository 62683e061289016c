"""Owns cached results of sub-joins that other rules may need too, valid as long as their inputs are the same.

The inputs of a sub-join are held as snapshots of indices: while these are held, a relation that has changed
in any way has another root, so that equal roots mean equal rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dlog.storage.index.index import Index

if TYPE_CHECKING:
    from dlog.engine.body.readable import Passing
    from dlog.engine.state.store import Store

_MOST = 8  # results in the cache
_MOST_ROWS = 1 << 23  # of one of them


class SharedSubjoins:
    """By the canonical text of the sub-join.  The least recently used one is dropped first."""

    def __init__(self) -> None:
        self._results: OrderedDict[str, tuple[dict[str, Index], Passing]] = OrderedDict()

    def find(self, text: str, store: Store) -> Passing | None:
        """O(predicates that it reads)."""
        if text not in self._results:
            return None
        read, passing = self._results[text]
        if not all(name in store.relations for name in read) or any(
            _index(store, name).root != held.root for name, held in read.items()
        ):  # what an iteration added exists only while it is needed
            del self._results[text]
            return None
        self._results.move_to_end(text)
        return passing

    def keep(self, text: str, store: Store, names: Iterable[str], passing: Passing) -> None:
        if passing.n > _MOST_ROWS:
            return
        self._results[text] = ({name: _index(store, name).snapshot() for name in names}, passing)
        if len(self._results) > _MOST:
            self._results.popitem(last=False)

    def texts(self, store: Store) -> frozenset[str]:
        """What is available now without computing it."""
        return frozenset(text for text in list(self._results) if self.find(text, store) is not None)

    def clear(self) -> None:
        self._results.clear()


def _index(store: Store, name: str) -> Index:
    relation = store.relations[name]
    return relation.index(relation.orders[0])
