"""Rows and sets that storage is compared with.  Imports nothing of dlog."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

Row = tuple[int, ...]
EXTREMES = [-(2**63), -1, 0, 1, 2**63 - 1]


@dataclass(frozen=True)
class Recipe:
    """How to make a batch of rows: Hypothesis draws few numbers, rows follow from them."""

    seed: int
    count: int
    spread: int
    start: int
    kind: str

    def rows(self, arity: int) -> list[Row]:
        rng = np.random.default_rng(self.seed)
        if self.kind == "run":  # neighbours in order, as when rows arrive sorted
            head = rng.integers(0, 3, max(arity - 1, 0)).tolist()
            return [(*head, self.start + i) for i in range(self.count)] if arity else [()] * self.count
        if self.kind == "extreme":
            return [tuple(int(rng.choice(EXTREMES)) for _ in range(arity)) for _ in range(self.count)]
        return list(map(tuple, (self.start + rng.integers(0, self.spread, (self.count, arity))).tolist()))


def recipes(most: int) -> st.SearchStrategy[Recipe]:
    """Batches of up to `most` rows; small ones more often."""
    counts = st.one_of(st.integers(0, 3), st.integers(0, min(60, most)), st.integers(0, most))
    return st.builds(
        Recipe,
        seed=st.integers(0, 2**16),
        count=counts,
        spread=st.sampled_from([2, 10, 100, 3000]),
        start=st.integers(-50, 50),
        kind=st.sampled_from(["spread", "spread", "run", "extreme"]),
    )


def some(rows: set[Row], seed: int, share: float) -> list[Row]:
    """A random part of the rows, in random order."""
    rng = np.random.default_rng(seed)
    ordered = sorted(rows)
    return [ordered[i] for i in rng.permutation(len(ordered))[: round(share * len(ordered))].tolist()]
