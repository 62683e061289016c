"""Joins over real versions of indices: loaded, changed, and old ones."""

from __future__ import annotations

import numpy as np
import pytest

from dlog.lftj.assemble import assemble
from dlog.lftj.plan import Count, Emit, Leap, Plan
from dlog.lftj.triejoin import Join
from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index

# path(x, y, z) <- e(x, y), e(y, z).
STEPS = (Leap(0, ((0, 0),)), Leap(1, ((0, 1), (1, 0))), Leap(2, ((1, 1),)))
LISTING = assemble(Plan((2, 2), (*STEPS, Emit((0, 1, 2)))))
COUNTING = assemble(Plan((2, 2), (*STEPS, Count())))


def paths(rows: set[tuple[int, int]]) -> list[list[int]]:
    following: dict[int, list[int]] = {}
    for a, b in sorted(rows):
        following.setdefault(a, []).append(b)
    return [[x, y, z] for x, y in sorted(rows) for z in following.get(y, [])]


def check(index: Index, rows: set[tuple[int, int]]) -> None:
    expected = paths(rows)
    roots = [index.root, index.root]
    assert Join(LISTING, index.arena.A, roots).rows().tolist() == expected
    assert Join(COUNTING, index.arena.A, roots).count() == len(expected)


@pytest.mark.parametrize("size", [0, 1, 5000])
def test_oracle_versions(size):
    """Every version gives the paths of its own rows, after it was changed too."""
    random = np.random.default_rng(size)
    arena = Arena(1 << 28)
    rows = {tuple(row) for row in random.integers(0, 2000, (size, 2)).tolist()}
    index = Index.build(arena, sorted(rows), 2)
    check(index, rows)
    first, first_rows = index, set(rows)
    for _ in range(6):
        inserts = {tuple(row) for row in random.integers(0, 2000, (300, 2)).tolist()}
        erases = {row for row in rows if random.random() < 0.05} - inserts
        index, _ = index.apply(sorted(inserts), sorted(erases))
        rows = (rows - erases) | inserts
        check(index, rows)
    check(first, first_rows)
