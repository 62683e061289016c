"""Owns a predicate while recursion adds to it: which rows have been seen, and when the relation gets them.

Lifecycle.  1 `unseen` returns the new rows of a batch, as a rule derives them.  2 `add`, at the end of a
round, adds them.  3 `finish`, at the fixpoint, makes the relation complete.  A predicate that no recursive
rule reads as a whole (linear recursion reads only what the last round added) is added to its sorted indices
once, at the end; one that is read is added round by round.
"""

from __future__ import annotations

import numpy as np

from dlog.storage.queue.row_set import RowSet
from dlog.storage.relation.relation import Relation


class Growth:
    def __init__(self, relation: Relation, read: bool, packed: bool = True):
        """`read`: rules read the relation while it grows.  Without `packed` the indices detect new rows."""
        self._relation = relation
        self._read = read
        self._waiting: list[np.ndarray] = []
        self._seen = RowSet(relation.arity) if packed and relation.arity else None
        if self._seen is not None and self._seen.add(relation.rows().T) is None:
            self._seen = None

    def __len__(self) -> int:
        return len(self._relation) + sum(map(len, self._waiting))

    def unseen(self, rows: np.ndarray) -> np.ndarray:
        """Those of an (n, arity) array that no round has added yet; rows that cannot be checked are
        included.
        """
        if self._seen is None or not len(rows):
            return rows
        new = self._seen.add(rows.T)
        if new is None:  # values too far apart to be packed: from here on the indices detect new rows
            self._flush()
            self._seen = None
            return rows
        return new.T

    def add(self, rows: np.ndarray) -> np.ndarray:
        """Adds what a round derived; returns what is new."""
        if self._seen is None or self._read:
            return self._relation.apply_in_place(inserts=rows).inserted
        self._waiting.append(rows)
        return rows

    def finish(self) -> None:
        self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._relation.apply_in_place(inserts=np.concatenate(self._waiting))
            self._waiting = []
