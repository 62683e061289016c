"""Owns results of sub-joins that other rules may need too, kept as long as what they read is the same.

What a sub-join read is held as snapshots of indices: while these are held, a relation that has changed in any
way has another root, so that equal roots mean equal rows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dlog.storage.index.index import Index

if TYPE_CHECKING:
    from dlog.engine.body.readable import Passing
    from dlog.engine.state.store import Store

_MOST = 8  # results that are kept
_MOST_ROWS = 1 << 23  # of one of them


class SharedSubjoins:
    """By the canonical text of the sub-join.  The one not used for longest goes first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[dict[str, Index], Passing]] = OrderedDict()

    def find(self, text: str, store: Store) -> Passing | None:
        """O(predicates that it reads)."""
        if text not in self._kept:
            return None
        read, passing = self._kept[text]
        if not all(name in store.relations for name in read) or any(
            _index(store, name).root != held.root for name, held in read.items()
        ):  # what an iteration added is there only while it is needed
            del self._kept[text]
            return None
        self._kept.move_to_end(text)
        return passing

    def keep(self, text: str, store: Store, names: Iterable[str], passing: Passing) -> None:
        if passing.n > _MOST_ROWS:
            return
        self._kept[text] = ({name: _index(store, name).snapshot() for name in names}, passing)
        if len(self._kept) > _MOST:
            self._kept.popitem(last=False)

    def texts(self, store: Store) -> frozenset[str]:
        """What could be had now without computing it."""
        return frozenset(text for text in list(self._kept) if self.find(text, store) is not None)

    def clear(self) -> None:
        self._kept.clear()


def _index(store: Store, name: str) -> Index:
    relation = store.relations[name]
    return relation.index(relation.orders[0])
