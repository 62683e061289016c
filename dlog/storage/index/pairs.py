"""Owns the pairs of rows in a change of which one replaces the other.  Knows nothing of predicates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dlog.jit import Words
from dlog.storage.index.batch import Change


class Paired(NamedTuple):
    """Row i of `before` is replaced by row i of `after`; the other rows are only erased, or only inserted."""

    before: Words
    after: Words
    erased: Words
    inserted: Words


def paired(change: Change, n_keys: int) -> Paired:
    """Erased and inserted rows with equal keys, which are the first columns, as pairs.  O(n log n).

    REQUIRES: no two erased rows have the same keys, and no two inserted ones.

    >>> change = Change(inserted=np.array([[1, 5], [4, 7]]), erased=np.array([[1, 2], [3, 3]]))
    >>> [part.tolist() for part in paired(change, 1)]
    [[[1, 2]], [[1, 5]], [[3, 3]], [[4, 7]]]
    """
    inserted, erased = change
    n = len(erased)
    if n == 0 or len(inserted) == 0:
        return Paired(erased[:0], inserted[:0], erased, inserted)
    keys = np.concatenate([erased[:, :n_keys], inserted[:, :n_keys]])
    order = np.lexsort(keys.T[::-1]) if n_keys else np.arange(len(keys))
    same = (keys[order[1:]] == keys[order[:-1]]).all(axis=1)
    one, other = order[:-1][same], order[1:][same]  # sorting is stable: an erased row comes first
    other = other - n
    return Paired(erased[one], inserted[other], np.delete(erased, one, 0), np.delete(inserted, other, 0))
