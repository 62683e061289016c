"""Row sets say what is new, as a Python set would, whatever the values and however they come."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.storage.queue.row_set import RowSet

SMALL = st.integers(-3, 12)
FAR = st.sampled_from([-(2**63), -5, 0, 1, 2**31, 2**40, 2**63 - 1])


@st.composite
def batches(draw: st.DrawFn, values: st.SearchStrategy[int]) -> tuple[int, list[list[tuple[int, ...]]]]:
    arity = draw(st.integers(1, 3))
    row = st.tuples(*[values] * arity)
    return arity, draw(st.lists(st.lists(row, max_size=40), max_size=8))


def check_against_a_set(arity: int, parts: list[list[tuple[int, ...]]]) -> RowSet:
    rows, seen = RowSet(arity), set()
    for part in parts:
        new = rows.add(np.array(part, np.int64).reshape(-1, arity).T)
        if new is None:  # too far apart: nothing was added
            assert len(rows) == len(seen)
            continue
        expected = [r for i, r in enumerate(part) if r not in seen and r not in part[:i]]
        assert list(map(tuple, new.T.tolist())) == expected
        seen |= set(expected)
        assert len(rows) == len(seen)
    assert set(map(tuple, rows.rows().T.tolist())) == seen
    rows.check()
    return rows


@settings(deadline=None)
@given(batches(SMALL))
def test_oracle_small_values(case: tuple[int, list[list[tuple[int, ...]]]]) -> None:
    check_against_a_set(*case)


@settings(deadline=None)
@given(batches(st.one_of(SMALL, FAR)))
def test_oracle_values_far_apart(case: tuple[int, list[list[tuple[int, ...]]]]) -> None:
    check_against_a_set(*case)


def test_dense_rows_become_a_bitmap_and_sparse_ones_do_not() -> None:
    grid = [(x, y) for x in range(60) for y in range(60)]
    assert check_against_a_set(2, [grid[:2000], grid, [(500, 3)], grid]).is_bitmap
    sparse = [(x * 1_000_003, x * 999_983) for x in range(3000)]
    assert not check_against_a_set(2, [sparse, sparse]).is_bitmap
