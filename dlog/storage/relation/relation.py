"""Owns a predicate's rows in the several column orders that plans need, which always agree.

Knows nothing of rules, values or transactions.  An order is a permutation of the columns: column j of its
index holds column order[j] of the predicate.  Rows go in and out in the predicate's own order.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index
from dlog.storage.layout import N_ROWS, ROOT_REFERENCES
from dlog.storage.relation.rows_kernels import NEEDS_BATCH, change_rows

Order = tuple[int, ...]
COMPARISON_SORT_ROWS = 4096  # rows of a batch that is sorted by comparing

__all__ = ["Change", "Index", "Order", "Relation"]


class Relation:
    """One version: an index for each order.  A new version shares with the old one what did not change.

    >>> edge = Relation(Arena(1 << 28), 2, [(0, 1), (1, 0)])
    >>> later, change = edge.apply(inserts=[(1, 5), (2, 4)])
    >>> later.index((1, 0)).rows().tolist(), len(edge)
    ([[4, 2], [5, 1]], 0)
    """

    __slots__ = ("__weakref__", "_made", "_orders", "arena", "arity", "bare_roots")

    # A version that a kernel has made is a list of roots, each with its own reference, in the order of
    # `_orders`; most of them are never read from Python.  Their indices are made when one is requested, and
    # `bare_roots` is empty from then on.
    _made: dict[Order, Index] | None
    _orders: tuple[Order, ...]
    bare_roots: Sequence[int]

    def __init__(self, arena: Arena, arity: int, orders: Iterable[Sequence[int]] = ()):
        """An empty relation.  Without orders it has the natural one."""
        self.bare_roots = ()
        self.arena = arena
        self.arity = arity
        natural = tuple(range(arity))
        wanted = [_checked(order, arity) for order in orders] or [natural]
        # The natural order, if present, comes first: it gives rows and changes without another sort.
        wanted.sort(key=lambda order: order != natural)
        self._made = {order: Index.build(arena, (), arity) for order in wanted}

    @classmethod
    def build(cls, arena: Arena, rows: Any, arity: int, orders: Iterable[Sequence[int]] = ()) -> Relation:
        """As `Index.build`, once for each order."""
        relation = cls(arena, arity, orders)
        relation.apply_in_place(inserts=rows)
        return relation

    @classmethod
    def from_columns(
        cls, arena: Arena, columns: Sequence[Words], orders: Iterable[Sequence[int]] = ()
    ) -> Relation:
        """From arrays of one length, one for each column.  REQUIRES: at least one column."""
        relation = cls(arena, len(columns), orders)
        for order in relation.orders:
            relation._indices[order].close()
            relation._indices[order] = Index.from_columns(arena, [columns[c] for c in order])
        return relation

    @classmethod
    def of_index(cls, index: Index) -> Relation:
        """With one index, in the natural order."""
        return cls.of_indices({tuple(range(index.arity)): index})

    @classmethod
    def of_indices(cls, indices: dict[Order, Index]) -> Relation:
        """With these indices, which hold the same rows.  REQUIRES: at least one."""
        first = next(iter(indices.values()))
        return _of_indices(first.arena, first.arity, indices)

    @property
    def orders(self) -> list[Order]:
        """The column orders; rows and changes are read from the first."""
        return list(self._indices if self._made is not None else self._orders)

    @property
    def n_orders(self) -> int:
        made = self._made
        return len(self._orders if made is None else made)

    @property
    def is_bare(self) -> bool:
        """Whether this is the list of roots that a kernel has made, and nothing has read it or added to its
        orders.  It stays so while the arena's lock is held."""
        return bool(self.bare_roots)

    def rows_in(self, orders: tuple[Order, ...]) -> int:
        """The number of rows, if these are its orders; else -1."""
        roots = self.bare_roots
        if roots:
            return self.arena.words[roots[0] + N_ROWS] if self._orders == orders else -1
        return len(self._first) if tuple(self._indices) == orders else -1

    def index(self, order: Sequence[int]) -> Index:
        """The index of an existing order.  It belongs to this version: take `snapshot()` to hold it
        longer.
        """
        return self._indices[tuple(order)]

    def find(self, order: Order) -> Index | None:
        """The index of an order, if it exists."""
        return self._indices.get(order)

    def order_of(self, index: Index) -> Order:
        """The order of one of the indices."""
        return next(order for order, found in self._indices.items() if found is index)

    def add_order(self, order: Sequence[int]) -> Index:
        """Add an order, in this version and in versions made from it.  O(n) if it is new."""
        order = _checked(order, self.arity)
        if order not in self._indices:
            columns = self._columns()
            index = Index.build(self.arena, (), self.arity)
            if self.arity and len(self):
                index = Index.from_columns(self.arena, [columns[c] for c in order])
            elif len(self):
                index.apply_in_place(inserts=np.empty((1, 0), np.int64))
            self._indices[order] = index
        return self._indices[order]

    # Versions

    def apply(self, inserts: Any = None, erases: Any = None) -> tuple[Relation, Change]:
        """(A new version, the net change), as `Index.apply`; a row that is in both is inserted."""
        few = self._changed_by_few(inserts, erases, 0)
        if few is None:
            later = self.snapshot()
            return later, later.apply_in_place(inserts, erases)
        roots, change = few
        if not change:
            return self.snapshot(), change
        return self.of_roots(roots.data), change

    def apply_rows(self, rows: Words, n_inserts: int) -> tuple[Relation, Change]:
        """The same for an (n, arity) array: rows to insert, then rows to erase."""
        few = self._changed_by_rows(rows, n_inserts, 0) if len(rows) <= COMPARISON_SORT_ROWS else None
        if few is None or not few[1]:
            return self.apply(rows[:n_inserts], rows[n_inserts:])
        return self.of_roots(few[0].tolist()), few[1]

    def apply_in_place(self, inserts: Any = None, erases: Any = None) -> Change:
        """The same on this handle, as `Index.apply_in_place`.

        If it fails for lack of memory the handle must be closed: its orders need not agree.
        """
        few = self._changed_by_few(inserts, erases, 1)
        if few is not None:
            roots, change = few
            for index, root in zip(self._indices.values(), roots.tolist(), strict=True):
                index.renew(root)
            return change
        first, *others = self._indices
        natural = tuple(range(self.arity))
        change = self._indices[first].apply_in_place(
            _permuted(inserts, first, self.arity), _permuted(erases, first, self.arity)
        )
        if first != natural:
            change = Change(*(in_order(rows[:, np.argsort(first)]) for rows in change))
        if change:
            for order in others:
                inserted, erased = (_permuted(rows, order, self.arity) for rows in change)
                self._indices[order].apply_in_place(inserted, erased)
        return change

    def _changed_by_few(self, inserts: Any, erases: Any, in_place: int) -> tuple[Words, Change] | None:
        """(Roots after a small batch, the net change); None: it needs the general path.  One kernel call."""
        rows = _joined(inserts, erases, self.arity)
        if rows is None or not len(rows):
            return None
        return self._changed_by_rows(rows, len(rows) - (0 if erases is None else len(erases)), in_place)

    def _changed_by_rows(self, rows: Words, n_inserts: int, in_place: int) -> tuple[Words, Change] | None:
        k, arena, m = self.arity, self.arena, len(rows)
        roots = self.roots()
        net = np.empty((m, k), np.int64)
        with arena.lock:
            arena.release_many()
            found = change_rows(
                arena.A, k, len(roots), self.layout(), roots, rows.reshape(-1), n_inserts, m - n_inserts,
                in_place, net.reshape(-1),
            )  # fmt: skip
            if found == NEEDS_BATCH:
                return None
            n = arena.words[RESULT]
            arena.reclaim()
        return roots, self.in_order(Change(net[:n], net[n:found]))

    # Arguments and results of kernels that change all orders

    def roots(self) -> Words:
        """Of the indices, in their order."""
        return np.array(self.bare_roots or [index.root for index in self._indices.values()], np.int64)

    def layout(self) -> Words:
        """The column orders, one after the other; not to be written to."""
        return _layout(self._orders if self._made is None else tuple(self._made))

    def root_of(self, order: Order) -> int | None:
        """Of the index of an order, if it exists."""
        roots = self.bare_roots
        if roots:
            return roots[self._orders.index(order)] if order in self._orders else None
        index = self._indices.get(order)
        return None if index is None else index.root

    def spread(self) -> Relation:
        """Every index after `Index.spread`; this version must not be used any more.  O(n)."""
        spread = {}
        for order, index in self._indices.items():
            spread[order] = index.spread()
            index.close()
        return Relation.of_indices(spread)

    def put_roots(self, words: memoryview) -> int:
        """The same into words of a caller; returns their number."""
        place = 0
        for root in self.bare_roots or [index.root for index in self._indices.values()]:
            words[place] = root
            place += 1
        return place

    def put_roots_of(self, orders: tuple[Order, ...], words: memoryview) -> bool:
        """The same if these are its orders, else nothing and False."""
        if self._made is not None or self._orders != orders:
            return False
        for place, root in enumerate(self.bare_roots):
            words[place] = root
        return True

    def of_roots(self, roots: memoryview | list[int]) -> Relation:
        """The version with these roots; takes ownership.  REQUIRES: a list has no more than these."""
        made = self._made
        orders = self._orders if made is None else tuple(made)
        own = roots if isinstance(roots, list) else roots[: len(orders)].tolist()
        return Relation.of_list(self.arena, self.arity, orders, own)

    @staticmethod
    def of_list(arena: Arena, arity: int, orders: tuple[Order, ...], roots: list[int]) -> Relation:
        """The same without a version before."""
        version = _new(Relation)
        version._made = None
        version._orders = orders
        version.bare_roots = roots
        version.arena = arena
        version.arity = arity
        return version

    def in_order(self, change: Change) -> Change:
        """A change in the order of the first index, converted to the predicate's own columns."""
        made = self._made
        first = self._orders[0] if made is None else next(iter(made))
        return change if first == tuple(range(self.arity)) else Change(*map(in_order, change))

    def insert_row(self, row: Sequence[int]) -> Relation | None:
        """A new version with one more row; None if the row exists."""
        return self._change_row(row, Index.insert_row)

    def erase_row(self, row: Sequence[int]) -> Relation | None:
        """A new version with one row less; None if the row does not exist."""
        return self._change_row(row, Index.erase_row)

    def replace_row(self, old: Sequence[int], new: Sequence[int]) -> Relation | None:
        """A new version with one row replaced by another; None if `old` does not exist or `new` does.

        REQUIRES: at least one column.
        """
        indices = {}
        for order, index in self._indices.items():
            changed = index.replace_row([old[c] for c in order], [new[c] for c in order])
            if changed is None:
                return None
            indices[order] = changed
        return self._version(indices)

    def _change_row(self, row: Sequence[int], change: Any) -> Relation | None:
        indices = {}
        for order, index in self._indices.items():
            changed = change(index, [row[c] for c in order] if len(row) == self.arity else row)
            if changed is None:
                return None
            indices[order] = changed
        return self._version(indices)

    def snapshot(self) -> Relation:
        """Another handle on this version.  O(orders)."""
        indices = self._indices.copy()  # another thread may add an order meanwhile
        return self._version({order: index.snapshot() for order, index in indices.items()})

    def same(self) -> Relation:
        """Another object for the same indices, which must not be closed.  O(1)."""
        made = self._made
        same = _new(Relation)
        same._made = self._make_indices() if made is None else made
        same.bare_roots, same.arena, same.arity = (), self.arena, self.arity
        return same

    def __del__(self, _finalizing: Any = sys.is_finalizing) -> None:
        roots = self.bare_roots
        if roots and not _finalizing():
            self.arena.forget_roots(roots)

    def close(self) -> None:
        """Free this version's memory."""
        for index in self._indices.values():
            index.close()

    # Reading

    def __len__(self) -> int:
        roots = self.bare_roots
        return self.arena.words[roots[0] + N_ROWS] if roots else len(self._first)

    def __contains__(self, row: Sequence[int]) -> bool:
        return self.contains(row)

    def contains(self, row: Sequence[int]) -> bool:
        """O(log n)."""
        order = next(iter(self._indices))
        return self._first.contains([row[c] for c in order] if len(row) == self.arity else row)

    def rows(self) -> Words:
        """All rows, sorted in the predicate's own column order, as an (n, arity) array.  O(n)."""
        order = next(iter(self._indices))
        rows = self._first.rows()
        if order == tuple(range(self.arity)):
            return rows
        return in_order(rows[:, np.argsort(order)])

    def distinct_prefixes(self, order: Sequence[int]) -> list[int]:
        """Statistics for planning: see `Index.distinct_prefixes`."""
        return self.index(order).distinct_prefixes()

    def check(self) -> None:
        """Assert each index's invariants, and that all hold the same rows.  O(n log n)."""
        expected = self.rows()
        for order, index in self._indices.items():
            index.check()
            found = index.rows()[:, np.argsort(order)] if self.arity else index.rows()
            assert np.array_equal(in_order(found), expected), f"order {order} disagrees"

    # Helpers

    @property
    def _first(self) -> Index:
        return next(iter(self._indices.values()))

    def _columns(self) -> Words:
        """(arity, n), in the predicate's own columns; rows in the first order."""
        order = next(iter(self._indices))
        return self._first.columns()[np.argsort(order)] if self.arity else self._first.columns()

    def _version(self, indices: dict[Order, Index]) -> Relation:
        return _of_indices(self.arena, self.arity, indices)

    @property
    def _indices(self) -> dict[Order, Index]:
        made = self._made
        return self._make_indices() if made is None else made

    def _make_indices(self) -> dict[Order, Index]:
        """Each takes its own reference; then those of this handle are released, whenever that may be."""
        with _making:
            arena = self.arena
            if self._made is None:
                with arena.lock:
                    roots = self.bare_roots
                    for root in roots:
                        arena.words[root + ROOT_REFERENCES] += 1
                    pairs = zip(self._orders, roots, strict=True)
                    self._made = {order: Index(arena, root, self.arity) for order, root in pairs}
                    self.bare_roots = ()
                    arena.forget_roots(roots)
            return self._made


_making = threading.RLock()  # several threads may read one version
_new = object.__new__


def _of_indices(arena: Arena, arity: int, indices: dict[Order, Index]) -> Relation:
    relation = object.__new__(Relation)
    relation.arena, relation.arity = arena, arity
    relation._made, relation.bare_roots = indices, ()
    return relation


def _joined(inserts: Any, erases: Any, k: int) -> Words | None:
    """Rows to insert, then rows to erase, as one array; None if they are many or of another type."""
    parts = []
    for rows in (inserts, erases):
        if rows is None or not len(rows):
            continue
        if type(rows) is tuple and type(rows[0]) is tuple:
            rows = np.array(rows, np.int64)
        if type(rows) is not np.ndarray or rows.dtype != np.int64 or rows.ndim != 2 or rows.shape[1] != k:
            return None
        parts.append(rows)
    if not parts or not k or sum(map(len, parts)) > COMPARISON_SORT_ROWS:
        return None
    return np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate(parts)


@lru_cache(maxsize=4096)
def _layout(orders: tuple[Order, ...]) -> Words:
    return np.array([c for order in orders for c in order], np.int64)


def _checked(order: Sequence[int], arity: int) -> Order:
    if sorted(order) != list(range(arity)):
        raise ValueError(f"{tuple(order)} is not an order of {arity} columns")
    return tuple(order)


def _permuted(rows: Any, order: Order, arity: int) -> Any:
    """Rows, or a list of columns, in another column order."""
    if rows is None or order == tuple(range(arity)):
        return rows
    if isinstance(rows, (list, tuple)) and len(rows) and all(isinstance(c, np.ndarray) for c in rows):
        return [rows[c] for c in order]
    array = np.asarray(rows, dtype=np.int64)
    return array[:, list(order)] if array.ndim == 2 else array


def in_order(rows: Words) -> Words:
    """Rows of an (n, arity) array, sorted by their columns.  O(n log n)."""
    return rows[np.lexsort(rows.T[::-1])] if rows.shape[1] and len(rows) > 1 else rows
