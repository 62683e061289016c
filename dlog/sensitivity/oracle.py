"""Owns the change oracle (maintenance paper, 4.2.2): where an evaluation has to be repeated.

A *contribution* means: in this context (values of the first d - 1 key variables), with the d-th from a to b,
whatever comes below.  If some variables of the context may be anything the contribution is *wild* in them.
An oracle is all contributions of one cycle, as guides for the machine: one for each set of wild depths.  It
is never expanded into the tuples it stands for.

Users see an oracle variable by variable, as merged intervals.  Those are few and not time-critical: the
`intervaltree` package merges them.  `flatten` makes the form for kernels, a thousand times faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dlog.jit import Words
from dlog.sensitivity.oracle_kernels import GREATEST, LEAST, flatten

__all__ = ["SHOWN", "Oracle"]

SHOWN = 1000  # contributions from which on only their number is shown


@dataclass
class Oracle:
    """Contributions as they are found, for a plan with `width` key variables.

    >>> oracle = Oracle(1)
    >>> oracle.add(np.array([[6], [2]]), np.array([9, 2]))
    >>> oracle.add(np.array([[8]]), np.array([12]))
    >>> oracle.intervals()
    [[(2, 2), (6, 12)]]
    """

    width: int
    parts: dict[tuple[int, ...], list[Words]] = field(default_factory=dict)

    def add(self, contexts: Words, ends: Words | None = None, wild: tuple[int, ...] = ()) -> None:
        """Contributions of one depth, (n, d): the last column has the starts of intervals, `ends` their ends.

        Without ends they are points.  `wild` are depths, counted from 0, at which values do not matter.
        """
        n, d = contexts.shape
        if n:
            rows = np.full((n, self.width + 2), LEAST, np.int64)
            rows[:, 0] = d
            if d:
                rows[:, 1 : d + 1] = contexts
                rows[:, 1 + self.width] = contexts[:, -1] if ends is None else ends
            rows[:, [1 + w for w in wild]] = LEAST
            self.parts.setdefault(wild, []).append(rows)

    def __bool__(self) -> bool:
        return bool(self.parts)

    @classmethod
    def of_rows(cls, width: int, rows: Words) -> Oracle:
        """Contributions in any order, each followed by the bits of its wild depths."""
        oracle = cls(width)
        for bits in np.unique(rows[:, -1]).tolist():
            wild = tuple(d for d in range(width) if bits >> d & 1)
            oracle.parts[wild] = [rows[rows[:, -1] == bits, :-1]]
        return oracle

    @property
    def everything(self) -> bool:
        """Whether some contribution excludes nothing."""
        return any((part[:, 0] == 0).any() for parts in self.parts.values() for part in parts)

    def guides(self) -> list[Words]:
        """One guide for each set of wild depths.  O(n log n)."""
        if self.everything:
            return [np.array([-1, -1], np.int64)]
        return [_guide(parts, self.width, wild) for wild, parts in self.parts.items()]

    def __len__(self) -> int:
        """The number of contributions."""
        return sum(len(part) for parts in self.parts.values() for part in parts)

    def intervals(self, joined: Sequence[bool] = ()) -> list[list[tuple[int, int]]]:
        """For each key variable the values that contributions lead to, for display: closed intervals,
        ascending and disjoint.  What a contribution leaves open is everything.  Overlapping ones are merged,
        and so are neighbours if `joined` says so: not if the order of a variable's codes means nothing.

        REQUIRES: fewer than SHOWN contributions.  O(n log n) for each variable."""
        joined = joined or [True] * self.width
        return [self._values(depth, joined[depth]) for depth in range(self.width)]

    def _values(self, depth: int, joined: bool) -> list[tuple[int, int]]:
        from intervaltree import IntervalTree  # only for display

        tree = IntervalTree()
        for wild, parts in self.parts.items():
            for row in (row for part in parts for row in part.tolist()):
                low, high = _side(row, depth, depth in wild)
                tree.addi(low, high + 1)  # half open: beyond int64 a Python number continues
        tree.merge_overlaps(strict=not joined)
        return [(interval.begin, interval.end - 1) for interval in sorted(tree)]


def _side(row: list[int], depth: int, is_wild: bool) -> tuple[int, int]:
    """The range of one contribution at a depth, counted from 0."""
    length = row[0]
    if depth >= length or is_wild:
        return LEAST, GREATEST
    return row[1 + depth], row[-1] if depth == length - 1 else row[1 + depth]


def _guide(parts: Sequence[Words], width: int, wild: tuple[int, ...]) -> Words:
    rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
    n = len(rows)
    if n > 1:
        order = np.lexsort((rows[:, 0], *rows[:, width:0:-1].T))
        rows = np.ascontiguousarray(rows[order])
    out = np.empty(2 + 4 * n * width, np.int64)
    kept, cursors = np.empty(n, np.int64), np.zeros(3 * (width + 2), np.int64)
    mask = sum(1 << w for w in wild)
    size = flatten(rows.reshape(-1), n, width, mask, kept, cursors, out)
    return out[:size]
