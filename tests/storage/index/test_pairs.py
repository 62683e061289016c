"""Pairs of erased and inserted rows against dicts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dlog.storage.index.batch import Change
from dlog.storage.index.pairs import paired
from tests.examples import relaxed

CODES = st.integers(-2, 2)


@st.composite
def functions(draw: st.DrawFn) -> tuple[int, dict, dict]:
    """Two functions of as many keys, with values that differ where both have a key."""
    n_keys = draw(st.integers(0, 2))
    keys = st.tuples(*[CODES] * n_keys)
    before, after = (draw(st.dictionaries(keys, CODES, max_size=8)) for _ in range(2))
    return n_keys, before, {key: value for key, value in after.items() if before.get(key) != value}


@relaxed(150)
@given(given=functions())
def test_oracle_pairs(given: tuple[int, dict, dict]) -> None:
    n_keys, before, after = given

    def rows(function: dict) -> np.ndarray:
        return np.array([[*k, v] for k, v in sorted(function.items())], np.int64).reshape(-1, n_keys + 1)

    def function(rows: np.ndarray) -> dict:
        return {tuple(row[:-1]): row[-1] for row in rows.tolist()}

    found = paired(Change(rows(after), rows(before)), n_keys)
    both = before.keys() & after.keys()
    assert [row[:-1] for row in found.before.tolist()] == [row[:-1] for row in found.after.tolist()]
    assert function(found.before) == {k: before[k] for k in both} and len(found.before) == len(both)
    assert function(found.after) == {k: after[k] for k in both}
    assert function(found.erased) == {k: v for k, v in before.items() if k not in both}
    assert function(found.inserted) == {k: v for k, v in after.items() if k not in both}
