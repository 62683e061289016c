"""Owns the change oracle (maintenance paper, 4.2.2): where an evaluation has to be looked at again.

A *contribution* says: in this context (values of the first d - 1 key variables), with the d-th from a to b,
whatever comes below.  Where some variables of the context may be anything the contribution is *wild* in them.
An oracle is all contributions of one cycle, as guides for the machine: one for each set of wild depths.  It
is never made into the tuples it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dlog.jit import Words
from dlog.sensitivity.kernels import LEAST, flatten

__all__ = ["Oracle"]


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

    @property
    def everything(self) -> bool:
        """Whether some contribution leaves nothing out."""
        return any((part[:, 0] == 0).any() for parts in self.parts.values() for part in parts)

    def guides(self) -> list[Words]:
        """One guide for each set of wild depths.  O(n log n)."""
        if self.everything:
            return [np.array([-1, -1], np.int64)]
        return [_guide(parts, self.width, wild) for wild, parts in self.parts.items()]

    def intervals(self) -> list[list[tuple[int, int]]]:
        """The intervals of the first depth, guide by guide, for people."""
        return [
            [(int(a), int(b)) for a, b, *_ in guide[2:].reshape(-1, 4)[: (guide[1] - guide[0]) // 4]]
            for guide in self.guides()
        ]


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
