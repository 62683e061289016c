"""Interval trees against the `intervaltree` package."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intervaltree import IntervalTree  # type: ignore[import-untyped]

from dlog.storage.arena.arena import Arena
from dlog.storage.layout import FANOUT, LEAF_ROWS
from dlog.storage.scan.interval_tree import GREATEST, LEAST, build_intervals, stabbing
from tests.storage.conftest import TINY

Row = tuple[int, ...]


def _rows(seed: int, count: int, spread: int, length: int, prefixes: int) -> list[Row]:
    """(prefix, a, b, other), some with open ends."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        a = int(rng.integers(-spread, spread))
        b = a + int(rng.integers(0, length))
        end = rng.random()
        a, b = (LEAST if end < 0.05 else a), (GREATEST if end > 0.95 else b)
        rows.append((int(rng.integers(0, prefixes)), a, b, int(rng.integers(0, 3))))
    return rows


def _package(rows: set[Row]) -> dict[int, IntervalTree]:
    """One tree of the package for each prefix; its intervals are half-open, Python's integers have no end."""
    trees: dict[int, IntervalTree] = defaultdict(IntervalTree)
    for row in rows:
        trees[row[0]].addi(row[1], row[2] + 1, row)
    return trees


def _expected(rows: set[Row], points: list[tuple[int, int]]) -> list[list[Row]]:
    trees = _package(rows)
    return [sorted(interval.data for interval in trees[p][x]) for p, x in points]


@given(
    seed=st.integers(0, 2**16),
    count=st.sampled_from([0, 1, 5, 60, 400, 3000]),
    spread=st.sampled_from([3, 50, 5000]),
    length=st.sampled_from([1, 10, 3000]),
    prefixes=st.sampled_from([1, 4, 300]),
)
@settings(max_examples=20 if TINY else 60)
def test_oracle_stabbing_after_changes(
    seed: int, count: int, spread: int, length: int, prefixes: int
) -> None:
    rows = set(_rows(seed, count, spread, length, prefixes))
    rng = np.random.default_rng(seed)
    tree = build_intervals(Arena(1 << 28), sorted(rows), 4, prefix=1)
    for turn in range(3):
        points = [
            (int(rng.integers(0, prefixes)), int(rng.integers(-spread, spread + length))) for _ in range(30)
        ]
        points += [(0, LEAST), (0, GREATEST), (-1, 0), (prefixes, 0)]
        matches = stabbing(tree, 1, points)
        found: list[list[Row]] = [[] for _ in points]
        for row, point in zip(matches.rows.tolist(), matches.points.tolist(), strict=True):
            found[point].append(tuple(row))
        assert found == _expected(rows, points)
        inserts = _rows(seed + turn + 1, count // 4 + 1, spread, length, prefixes)
        erases = [row for row in sorted(rows) if rng.random() < 0.3]
        tree, _ = tree.apply(inserts, erases)
        tree.check()
        rows = (rows - set(erases)) | set(inserts)


def test_a_query_with_more_matches_than_room() -> None:
    tree = build_intervals(Arena(1 << 28), [(a, 10_000) for a in range(3000)], 2, prefix=0)
    matches = stabbing(tree, 0, [[2000], [-1], [5000]])
    assert np.bincount(matches.points, minlength=3).tolist() == [2001, 0, 3000]
    assert matches.rows[:, 0].tolist() == [*range(2001), *range(3000)]


@pytest.mark.skipif(TINY, reason="the counts are those of real pages")
def test_work_follows_matches_and_not_intervals() -> None:
    """One prefix, all intervals begin before x and few reach it: work is flat in n, linear in matches."""
    page = LEAF_ROWS + FANOUT + LEAF_ROWS // 32 + 2
    for n in (10_000, 100_000, 1_000_000):
        starts = np.arange(n)
        for m in (0, 1, 10, 50):
            ends = starts.copy()
            ends[np.linspace(0, n - 1, m).astype(int)] = 2 * n
            tree = build_intervals(Arena(1 << 28), np.stack([starts, ends], axis=1), 2, prefix=0)
            matches = stabbing(tree, 0, [[n + 5]])
            assert len(matches.rows) == m
            assert matches.work <= (m + 1) * page + n // (LEAF_ROWS * FANOUT // 2)
