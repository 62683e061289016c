"""Roots of very large indices: what scans, counts, stabbing queries and changes of one row visit there.

An index of 100 million rows of two columns has 3,472 nodes, of four columns or with room for changes up to
8,700.  Here nodes are small, and their number is real.
"""

from __future__ import annotations

import numpy as np
import pytest

from dlog.jit import Words, kernel
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.pointer import pointer
from dlog.storage.index.change_kernels import build_pages
from dlog.storage.index.checks import _check_folds
from dlog.storage.index.index import Index
from dlog.storage.layout import (
    BUNCH,
    CAPACITY,
    FLAT_BASE,
    FLAT_STRIDE,
    FOLD,
    N_NODES,
    NODE_HEADER,
    NODE_REFERENCES,
    OWNER,
    ROOT_FOLDS,
    ROOT_HEADER,
    ROOT_SCAN,
)
from dlog.storage.scan.interval_tree import stabbing
from dlog.storage.scan.scan_tree import scan_interval

PAGE = 3  # rows in a leaf, and leaves in a node
SIZES = [1, 15, 16, 17, 255, 256, 257, 3472, 8700, 70_000]  # nodes


@kernel
def small_pages(A: Words, owner: int, base: int, stride: int, n: int, k: int, scan: int) -> int:
    return build_pages(pointer(A), owner, base, stride, n, k, scan, PAGE, PAGE)


def index_of(n_nodes: int, seed: int = 1) -> tuple[Index, Words]:
    """An index of (a, b), with scans of b, and its rows: intervals that are mostly short."""
    rng, n = np.random.default_rng(seed), n_nodes * PAGE * PAGE
    a = np.arange(n) * 10
    rows = np.stack([a, a + rng.integers(0, 30, n)], axis=1)
    arena = Arena(1 << 30)
    flat = Index.build(arena, rows, 2, scan=1)
    words = arena.words
    owner = words[words[flat.root + ROOT_HEADER] + NODE_HEADER + OWNER]
    base, stride = words[flat.root + FLAT_BASE], words[flat.root + FLAT_STRIDE]
    root = small_pages(arena.A, owner, base, stride, n, 2, words[flat.root + ROOT_SCAN])
    assert arena.A[root + N_NODES] == n_nodes
    flat.close()
    return Index(arena, root, 2), rows


def levels(n_nodes: int) -> int:
    return 1 + int(np.ceil(np.log(max(n_nodes, 2)) / np.log(FOLD)))


@pytest.mark.parametrize("n_nodes", SIZES)
def test_a_scan_visits_a_logarithm_of_the_root(n_nodes: int) -> None:
    index, rows = index_of(n_nodes)
    rng = np.random.default_rng(2)
    for _ in range(50):
        lo, hi = sorted(rng.integers(0, len(rows), 2).tolist())
        found = scan_interval(index, (int(rows[lo, 0]),), (int(rows[hi, 0]),))
        part = rows[lo : hi + 1, 1]
        assert (found.count, found.sum) == (len(part), part.sum())
        assert (found.min, found.max) == (part.min(), part.max())
        assert found.work <= 2 * (FOLD * levels(n_nodes) + 2 * PAGE)
        assert index.rank((int(rows[lo, 0]),)) == lo


@pytest.mark.parametrize("n_nodes", SIZES)
def test_stabbing_skips_most_of_the_root(n_nodes: int) -> None:
    """Points near the end, so that almost all intervals begin before them."""
    index, rows = index_of(n_nodes)
    for x in (rows[-1, 0] - 5, rows[len(rows) // 2, 0] + 4, rows[-1, 1] + 1):
        matches = stabbing(index, 0, [[x]])
        assert np.array_equal(matches.rows, rows[(rows[:, 0] <= x) & (x <= rows[:, 1])])
        assert matches.work <= (len(matches.rows) + 1) * (2 * FOLD * levels(n_nodes) + 4 * PAGE * PAGE)


@pytest.mark.parametrize("n_nodes", SIZES)
def test_one_row_changes_one_fold_of_each_level(n_nodes: int) -> None:
    """And it counts up the nodes of one bunch, not all."""
    index, rows = index_of(n_nodes)
    A = index.arena.A
    at = len(rows) // 2
    later, change = index.apply(inserts=[(int(rows[at, 0]) + 1, 10**12)])
    assert len(change.inserted) == 1
    assert scan_interval(later).max == 10**12 and scan_interval(index).max == rows[:, 1].max()
    roots = [index.root, later.root]
    if n_nodes >= FOLD:
        capacity, width, n = int(A[index.root + CAPACITY]), 5, 0
        while capacity >= FOLD:
            capacity = -(-capacity // FOLD)
            n += capacity
        before, after = (A[A[root + ROOT_FOLDS] :][: n * width].reshape(n, width) for root in roots)
        assert np.count_nonzero((before != after).any(axis=1)) <= levels(n_nodes)
    if n_nodes >= BUNCH:
        counts = A[A[index.root + ROOT_HEADER :][:n_nodes] + NODE_REFERENCES]
        assert np.count_nonzero(counts == 2) == min(BUNCH, n_nodes - at // PAGE**2 // BUNCH * BUNCH) - 1
        assert np.count_nonzero(counts == 1) == n_nodes - np.count_nonzero(counts == 2)
    for root in roots:
        _check_folds(A, root, A[root + ROOT_HEADER :][:n_nodes], int(A[root + ROOT_SCAN]))


def test_versions_of_a_root_with_bunches_are_freed() -> None:
    """Real pages: 87 nodes.  Whatever the order in which versions end; some changes split or join leaves."""
    n, rng, arena = 2_500_000, np.random.default_rng(3), Arena(1 << 30)
    rows = np.stack([np.arange(n), np.arange(n) * 7919 % 1_000_003], axis=1)
    first = Index.from_columns(arena, [rows[:, 0].copy(), rows[:, 1].copy()], scan=1)
    assert arena.words[first.root + N_NODES] > BUNCH
    versions = [(first, rows[:, 1].sum(), n)]
    for step in range(60):
        index, total, count = versions[rng.integers(len(versions))]
        start, size = int(rng.integers(0, n - 2000)), int(rng.choice([1, 2, 300, 1500]))
        if step % 3:
            later, change = index.apply(
                inserts=np.stack([np.arange(start, start + size), np.full(size, -step)], axis=1)
            )
        else:
            later, change = index.apply(erases=rows[start : start + size])
        total += change.inserted[:, 1].sum() - change.erased[:, 1].sum()
        versions.append((later, total, count + len(change.inserted) - len(change.erased)))
        if len(versions) > 5:
            versions.pop(rng.integers(len(versions)))[0].close()
    for index, total, count in versions:
        found = scan_interval(index)
        assert (found.sum, found.count, len(index)) == (total, count, count)
        nodes = arena.A[index.root + ROOT_HEADER :][: arena.words[index.root + N_NODES]]
        _check_folds(arena.A, index.root, nodes, 2)
    versions[0][0].check()
    for index, _, _ in versions:
        index.close()
    used = arena.usage()
    assert (used.used_blocks, used.used_extents, used.used_words) == (0, 0, 0)
