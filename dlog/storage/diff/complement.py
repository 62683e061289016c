"""Owns sparse complements (maintenance paper, 3.1.2): the rows of a set that a subset of it lacks.

If two sets have the same number of rows in an interval of keys, and one is inside the other, they are equal
there: so only counts are compared, and rows that both have are never examined.
"""

from __future__ import annotations

import numpy as np

from dlog.jit import Words
from dlog.storage.diff.complement_kernels import PROBES, missing_rows
from dlog.storage.index.index import Index


def complement(whole: Index, part: Index) -> Words:
    """The rows of `whole` that `part` lacks, sorted.  REQUIRES: every row of `part` is in `whole`.

    O(missing log n) counts of O(log n + a page) each.

    >>> from dlog.storage.arena.arena import Arena
    >>> arena = Arena(1 << 28)
    >>> complement(Index.build(arena, [(1,), (2,), (5,)], 1), Index.build(arena, [(2,)], 1)).tolist()
    [[1], [5]]
    """
    return counted_complement(whole, part)[0]


def counted_complement(whole: Index, part: Index) -> tuple[Words, int]:
    """The same, and how often rows were counted."""
    assert whole.arena is part.arena and whole.arity == part.arity
    missing = len(whole) - len(part)
    assert missing >= 0, "a part has more rows than the whole"
    out, state = np.empty((missing, whole.arity), np.int64), np.zeros(1, np.int64)
    if whole.arity and missing:
        missing_rows(whole.arena.A, whole.root, part.root, whole.arity, out.reshape(-1), state)
    return out, int(state[PROBES])
