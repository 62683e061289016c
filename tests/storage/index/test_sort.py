"""Sorting rows into the arena, against sorted(set())."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.storage.arena.arena import Arena
from dlog.storage.index.sort import as_rows, as_words, from_columns, sort_rows

ARENA = Arena(1 << 30)
LIMITS = [-(2**63), -(2**63) + 1, -(2**32), -1, 0, 1, 255, 256, 2**31, 2**62, 2**63 - 1]
values = st.one_of(st.integers(-3, 3), st.integers(0, 100_000), st.sampled_from(LIMITS))


def sorted_rows(rows: np.ndarray, k: int) -> list[tuple[int, ...]]:
    with ARENA.lock:
        found = sort_rows(ARENA, as_rows(rows, k))
        columns = [ARENA.A[found.base + c * found.stride :][: found.n].tolist() for c in range(k)]
        ARENA.release_extent(found.owner)
    return list(zip(*columns, strict=True))


@settings(deadline=None)
@given(st.integers(1, 5).flatmap(lambda k: st.lists(st.tuples(*[values] * k), min_size=1, max_size=120)))
def test_model_sort(rows: list[tuple[int, ...]]) -> None:
    array = np.array(rows, np.int64)
    expected = sorted(set(rows))
    assert sorted_rows(array, len(rows[0])) == expected
    assert sorted_rows(np.asfortranarray(array), len(rows[0])) == expected


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 999),
    n=st.integers(1, 3000),
    bits=st.lists(st.integers(0, 63), min_size=1, max_size=4),
    order=st.sampled_from(["random", "sorted", "reversed"]),
)
def test_model_sort_by_width(seed: int, n: int, bits: list[int], order: str) -> None:
    """Columns that share a word, that need their own, and that do not vary."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.integers(-(1 << b) + 1, 1 << b, n) if b < 63 else rng.integers(-(2**63), 2**63 - 1, n)
        for b in bits
    ]
    rows = np.stack(columns, axis=1)
    if order != "random":
        rows = rows[np.lexsort(rows.T[::-1])][:: -1 if order == "reversed" else 1]
    assert sorted_rows(rows, len(bits)) == sorted(set(map(tuple, rows.tolist())))


def test_inputs_are_left_as_they_were() -> None:
    rows = np.random.default_rng(0).integers(0, 1000, (500, 2))
    before = rows.copy()
    sorted_rows(rows, 2)
    assert np.array_equal(rows, before)


def test_arrow_memory_is_read_without_a_copy() -> None:
    array = pa.array([3, 1, 2])
    view = as_words(array.to_numpy())
    assert view.flags.writeable and view.ctypes.data == array.buffers()[1].address
    with ARENA.lock:
        found = sort_rows(ARENA, from_columns([array.to_numpy()], 1))
    assert ARENA.A[found.base : found.base + 3].tolist() == [1, 2, 3]
    assert array.to_pylist() == [3, 1, 2]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32])
def test_narrow_integers_are_widened(dtype: type) -> None:
    assert sorted_rows(np.array([[3, 1], [2, 9]], dtype), 2) == [(2, 9), (3, 1)]
