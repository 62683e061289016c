"""Owns relations that change together, as one version: a kernel makes one list of roots for them.

Most versions are never read from Python: their relations are made when one is requested.  Knows nothing
of the meaning of the relations.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from dlog.storage.layout import N_ROWS, ROOT_REFERENCES
from dlog.storage.relation.relation import Order, Relation

# Words of the rows that each relation gained and then of those that it lost, in its own columns; and for each
# relation three words: how many it gained, how many it lost, and the word where they begin.
Undone = tuple[bytes, bytes]
# Where these are until a kernel overwrites them: the caller of such a kernel calls `keep_undo` before.
Undo = Callable[[], Undone]


class RelationGroup(Relation):
    """One version of some relations.

    >>> arena = Arena(1 << 28)
    >>> group = RelationGroup(arena, [Relation.build(arena, [(1, 2)], 2), Relation.build(arena, [(3,)], 1)])
    >>> [part.rows().tolist() for part in group.snapshot().parts], len(group)
    ([[[1, 2]], [[3]]], 2)
    """

    __slots__ = ("_forms", "_parts", "_undo")

    # A version that a kernel has made is the roots of all parts, each with its own reference, in the
    # order of `_forms`.  They are gone when parts have been made of them, or when a kernel has made the next
    # version of them in place: then `_undo` says how to get this one from that one.
    _forms: tuple[tuple[int, tuple[Order, ...]], ...]  # arity and column orders of each part
    _parts: tuple[Relation, ...] | None
    _undo: tuple[RelationGroup, Undone | Undo]

    def __init__(self, arena: Arena, parts: Sequence[Relation]):
        self.bare_roots = ()
        self._made, self._orders = NO_INDICES, ()
        self.arena, self.arity = arena, 0
        self._parts = tuple(parts)
        self._forms = tuple((part.arity, tuple(part.orders)) for part in parts)

    @property
    def parts(self) -> tuple[Relation, ...]:
        parts = self._parts
        return self._make_parts() if parts is None else parts

    def put_roots(self, words: memoryview) -> int:
        place = 0
        for root in self.bare_roots or [root for part in self.parts for root in part.roots().tolist()]:
            words[place] = root
            place += 1
        return place

    def of_roots(self, roots: memoryview | list[int]) -> RelationGroup:
        version = _new(RelationGroup)
        version.bare_roots = roots if isinstance(roots, list) else roots.tolist()
        version._made = NO_INDICES
        version._orders = ()
        version.arena = self.arena
        version.arity = 0
        version._parts = None
        version._forms = self._forms
        return version

    def followed_in_place(self, roots: list[int], undo: Undo) -> RelationGroup:
        """The version that a kernel has made of this one's own roots, whose references are used up.

        If this version is read again, because a transaction was undone or someone held it, it is
        made from the later one by undoing the inserted and erased rows: O(rows log n).  REQUIRES: `is_bare`,
        and the arena's lock has been held since.
        """
        later = self.of_roots(roots)
        self._undo = later, undo
        self.bare_roots = ()
        return later

    def keep_undo(self) -> None:
        """Store the rows that undo the change: their memory is about to be overwritten.
        REQUIRES: the arena's lock is held."""
        if self._parts is None and not self.bare_roots:
            later, undo = self._undo
            if callable(undo):
                self._undo = later, undo()

    def snapshot(self) -> RelationGroup:
        return RelationGroup(self.arena, [part.snapshot() for part in self.parts])

    def close(self) -> None:
        for part in self.parts:
            part.close()

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def size(self) -> tuple[int, int]:
        """(Rows, bytes in all orders) of all relations; makes no parts.  O(relations)."""
        words, at, rows, size = self.arena.words, 0, 0, 0
        roots = self.bare_roots or [root for part in self.parts for root in part.roots().tolist()]
        for arity, orders in self._forms:
            n = words[roots[at] + N_ROWS]
            rows, size, at = rows + n, size + 8 * arity * n * len(orders), at + len(orders)
        return rows, size

    def check(self) -> None:
        for part in self.parts:
            part.check()

    def _make_parts(self) -> tuple[Relation, ...]:
        """Each takes its own references; then those of this handle are released, whenever that may be."""
        with _making:
            arena = self.arena
            if self._parts is None:
                with arena.lock:
                    roots = self.bare_roots
                    for root in roots:
                        arena.words[root + ROOT_REFERENCES] += 1
                    if roots:
                        self._parts = tuple(self._parts_of(roots))
                        self.bare_roots = ()
                        arena.forget_roots(roots)
                    else:
                        self.keep_undo()
            if self._parts is None:
                self._parts = self._undone()
                del self._undo
            return self._parts

    def _parts_of(self, roots: Sequence[int]) -> list[Relation]:
        parts, at = [], 0
        for arity, orders in self._forms:
            own = roots[at : at + len(orders)]
            pairs = zip(orders, own, strict=True)
            parts.append(
                Relation.of_indices({order: Index(self.arena, root, arity) for order, root in pairs})
            )
            at += len(orders)
        return parts

    def _undone(self) -> tuple[Relation, ...]:
        """The parts of this version, from those of the one that was made from it in place."""
        later, undo = self._undo
        assert not callable(undo)
        words, changes = (np.frombuffer(given, np.int64) for given in undo)
        parts = []
        for part, (gained, lost, start) in zip(later.parts, changes.reshape(-1, 3).tolist(), strict=True):
            before = part.snapshot()
            if gained or lost:
                size = (gained + lost) * part.arity
                rows = words[start : start + size].reshape(-1, part.arity).copy()
                before.apply_in_place(inserts=rows[gained:], erases=rows[:gained])
            parts.append(before)
        return tuple(parts)


NO_INDICES: dict[Order, Index] = {}  # a group itself has no rows
_making = threading.RLock()  # several threads may read one version
_new = object.__new__
