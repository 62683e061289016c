"""Sparse complements against set difference; counts follow what is missing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.storage.arena.arena import Arena
from dlog.storage.diff.complement import complement, counted_complement
from dlog.storage.index.index import Index
from tests.storage.conftest import TINY
from tests.storage.model import recipes, some


@given(
    recipe=recipes(3000),
    more=recipes(200),
    arity=st.integers(1, 3),
    seed=st.integers(0, 99),
    share=st.sampled_from([0.0, 0.01, 0.3, 0.97, 1.0]),
)
@settings(max_examples=25 if TINY else 80)
def test_oracle_complement(recipe: object, more: object, arity: int, seed: int, share: float) -> None:
    """Of flat and of changed indices, that share pages or not."""
    arena = Arena(1 << 28)
    rows = set(recipe.rows(arity))  # type: ignore[attr-defined]
    whole = Index.build(arena, sorted(rows), arity)
    gone = set(some(rows, seed, share))
    for part in (Index.build(arena, sorted(rows - gone), arity), whole.apply(erases=sorted(gone))[0]):
        assert list(map(tuple, complement(whole, part).tolist())) == sorted(gone)
        new = set(more.rows(arity))  # type: ignore[attr-defined]
        larger, _ = whole.apply(inserts=sorted(new))
        assert list(map(tuple, complement(larger, part).tolist())) == sorted((rows | new) - (rows - gone))


@pytest.mark.skipif(TINY, reason="large sets")
def test_counts_follow_what_is_missing() -> None:
    """At most two counts for each halving and row that is missing; nothing missing needs none."""
    for n in (1_000, 100_000, 1_000_000):
        arena = Arena(1 << 28)
        whole = Index.build(arena, np.arange(n)[:, None], 1)
        for missing in (0, 1, 30):
            gone = np.linspace(0, n - 1, missing).astype(np.int64)
            part, _ = whole.apply(erases=gone[:, None])
            rows, counts = counted_complement(whole, part)
            assert rows[:, 0].tolist() == gone.tolist()
            assert counts <= missing * (2 * np.log2(n) + 2)
