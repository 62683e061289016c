"""Owns sequences over arrays: the number of each row in its group, and what a change of rows renumbers.

Rows are sorted; the first `n_groups` columns are their group.  The first row of a group has the number 0.

Correct output of `renumbered`: the rows of both versions, with their numbers, without those that are in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dlog.heads.sequences.kernels import read_range
from dlog.jit import Words
from dlog.storage.index.batch import Change
from dlog.storage.index.index import Index

Sorter = Callable[[Words], Words]


class Numbered(NamedTuple):
    """Rows and the number of each in its group."""

    rows: Words
    numbers: Words


def numbered(rows: Words, n_groups: int) -> Numbered:
    """O(rows).

    >>> numbered(np.array([[1, 5], [1, 7], [2, 5]]), 1).numbers.tolist()
    [0, 1, 0]
    """
    places = np.arange(len(rows))
    begins = np.zeros(len(rows), bool)
    begins[:1] = True
    begins[1:] = (rows[1:, :n_groups] != rows[:-1, :n_groups]).any(axis=1)
    return Numbered(rows, places - np.maximum.accumulate(np.where(begins, places, 0)))


def renumbered(
    before: Index, after: Index, change: Change, n_groups: int, sorter: Sorter | None = None
) -> tuple[Numbered, Numbered]:
    """(What goes, what comes).  `sorter` sorts the rows of a group, where the index has another order; then a
    changed group is read whole.  Else O((changed + renumbered rows) log n).
    """
    moved = np.concatenate(change)
    gone, come = [], []
    inserted, erased = (_by_group(rows, n_groups) for rows in change)
    for group in dict.fromkeys((*inserted, *erased)):
        changed = Change(inserted.get(group, moved[:0]), erased.get(group, moved[:0]))
        old, new = _of_group(before, after, group, changed, sorter)
        gone.append(old)
        come.append(new)
    return _joined(gone, moved), _joined(come, moved)


def rows_between(index: Index, first: int, last: int) -> Words:
    """The rows with these numbers in an index, `last` excluded."""
    out = np.empty((max(0, last - first), index.arity), np.int64)
    if len(out):
        with index.arena.lock:
            read_range(index.arena.A, index.root, index.arity, first, len(out), out.reshape(-1))
    return out


def _by_group(rows: Words, n_groups: int) -> dict[tuple[int, ...], Words]:
    """Sorted rows by group.  O(rows)."""
    differs = (rows[1:, :n_groups] != rows[:-1, :n_groups]).any(axis=1)
    parts = np.split(rows, np.flatnonzero(differs) + 1) if len(rows) else []
    return {tuple(part[0, :n_groups].tolist()): part for part in parts}


def _of_group(
    before: Index, after: Index, group: tuple[int, ...], change: Change, sorter: Sorter | None
) -> tuple[Numbered, Numbered]:
    """What changes in one group: from the first place that differs to the last one."""
    starts = [index.rank(group) for index in (before, after)]
    sizes = [index.range_count(group) for index in (before, after)]
    if sorter is not None:
        whole = (rows_between(i, s, s + n) for i, s, n in zip((before, after), starts, sizes, strict=True))
        old, new = (Numbered(rows[sorter(rows)], np.arange(len(rows))) for rows in whole)
        return _without_common(old, new)
    places = [before.rank(row) - starts[0] for row in change.erased.tolist()]
    places += [after.rank(row) - starts[1] for row in change.inserted.tolist()]
    first, last = min(places), max(places) + 1
    if sizes[0] != sizes[1]:
        last = max(sizes)
    parts = []
    for index, start, size in zip((before, after), starts, sizes, strict=True):
        rows = rows_between(index, start + first, start + min(last, size))
        parts.append(Numbered(rows, np.arange(first, first + len(rows))))
    return _without_common(*parts)


def _without_common(old: Numbered, new: Numbered) -> tuple[Numbered, Numbered]:
    """Two stretches that begin with the same number, without rows that keep theirs."""
    n = min(len(old.rows), len(new.rows))
    same = (old.rows[:n] == new.rows[:n]).all(axis=1)
    kept = []
    for rows, numbers in (old, new):
        differs = np.ones(len(rows), bool)
        differs[:n] = ~same
        kept.append(Numbered(rows[differs], numbers[differs]))
    return kept[0], kept[1]


def _joined(parts: list[Numbered], like: Words) -> Numbered:
    if not parts:
        return Numbered(like[:0], np.empty(0, np.int64))
    return Numbered(np.concatenate([p.rows for p in parts]), np.concatenate([p.numbers for p in parts]))
