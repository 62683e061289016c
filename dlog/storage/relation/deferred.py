"""Owns versions of a relation that are made when they are first read, and their changes.

A version whose rows contain long texts need not exist until something reads it: whoever made it says how
its rows are found.  A reader of codes gets a relation like any other.  A reader of values gets the new texts
beside the rows (`Shown`), so that none of them enters the dictionary.  Knows nothing of rules or groups.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

NO_ROWS = np.empty((0, 0), np.int64)
NO_TEXTS: Mapping[int, pa.Array] = MappingProxyType({})
_MAKING = threading.RLock()  # a version is made once, by one of the threads that read it


class Shown(NamedTuple):
    """Rows to be decoded.  A column of `texts` has numbers of texts in place of codes."""

    rows: Words
    texts: Mapping[int, pa.Array]


class DeferredRelation(Relation):
    """A version that is made by `make` when something reads it; its number of rows is known.

    REQUIRES: what reads it for the first time does not hold the arena's lock.
    """

    __slots__ = ("_count", "_make", "_show", "_shown", "source")

    def __init__(
        self,
        arena: Arena,
        arity: int,
        count: int,
        make: Callable[[], Relation],
        show: Callable[[], Shown | None],
        source: Any,
    ):
        """`source` is for whoever makes the next version; None once this one is made."""
        self.arena, self.arity = arena, arity
        self._count, self.source = count, source
        self._make: Callable[[], Relation] | None = make
        self._show: Callable[[], Shown | None] | None = show
        self._shown: Shown | None = None

    def shown(self) -> Shown | None:
        """Its rows to be decoded, if it has not been made.  O(what differs from the last version that was
        made, with its texts), once."""
        with _MAKING:
            if self._shown is None and self._show is not None:
                self._shown = self._show()
            return self._shown

    def snapshot(self) -> Relation:
        """Another handle, which makes nothing either."""
        with _MAKING:
            if self._make is None:
                return super().snapshot()
            own = super().snapshot
            return DeferredRelation(self.arena, self.arity, self._count, own, self.shown, self.source)

    def __getattr__(self, name: str) -> Any:
        """The parts of a relation, which are missing until it is made."""
        if name not in ("_made", "_orders", "bare_roots"):
            raise AttributeError(name)
        with _MAKING:
            if self._make is not None:
                made = self._make()
                self._orders, self.bare_roots, self._made = tuple(made.orders), (), made._indices
                self._make = self._show = self._shown = self.source = None
        return object.__getattribute__(self, name)

    def __len__(self) -> int:
        return self._count if self._make is not None else super().__len__()

    def __del__(self, _finalizing: Any = None) -> None:
        """Its indices release themselves."""


class DeferredChange(Change):
    """The net change from one version to another, whose rows are found when they are first read."""

    def __new__(
        cls, find: Callable[[], Change], show: Callable[[], tuple[Shown, Shown]], source: Any
    ) -> Self:
        """`show` gives what was inserted and what was erased; `source` is for whoever joins changes."""
        deferred = tuple.__new__(cls, (NO_ROWS, NO_ROWS))
        deferred._find, deferred._show, deferred.source = find, show, source
        return deferred

    _find: Callable[[], Change]
    _show: Callable[[], tuple[Shown, Shown]]
    source: Any
    _change: Change | None = None
    _shown: tuple[Shown, Shown] | None = None

    @property
    def change(self) -> Change:
        with _MAKING:
            if self._change is None:
                self._change = self._find()
            return self._change

    def shown(self) -> tuple[Shown, Shown]:
        with _MAKING:
            if self._shown is None:
                self._shown = self._show()
            return self._shown

    @property
    def inserted(self) -> Words:
        return self.change.inserted

    @property
    def erased(self) -> Words:
        return self.change.erased

    def __iter__(self) -> Iterator[Words]:
        return iter(self.change)

    def __getitem__(self, place: Any) -> Any:
        return self.change[place]

    def __bool__(self) -> bool:
        """Whether there is a change.  O(texts) when first asked."""
        return any(len(part.rows) > 0 for part in self.shown())


def may_differ(change: Change) -> bool:
    """Whether there may be a change, without making it."""
    return isinstance(change, DeferredChange) or bool(change)
