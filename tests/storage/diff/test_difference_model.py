"""Differences, surgeries and scans of random versions, against sets of rows and of prefixes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.storage.arena.arena import Arena
from dlog.storage.diff.delta import counted_difference, difference
from dlog.storage.diff.surgery import surgeries
from dlog.storage.index.index import Index
from dlog.storage.scan.scan_tree import scan, scan_interval
from tests.storage.conftest import TINY
from tests.storage.model import Recipe, Row, recipes, some

MOST = 60 if TINY else 3000
ARENA = Arena(1 << 30)
arities = st.integers(1, 4)
steps = st.lists(st.tuples(recipes(MOST), st.sampled_from([0, 0.01, 0.1, 0.7])), min_size=1, max_size=4)


def two_versions(
    arity: int, first: Recipe, changes: list[tuple[Recipe, float]]
) -> tuple[Index, Index, set[Row], set[Row]]:
    """A version and what a few transactions made of it."""
    before = set(first.rows(arity))
    old = new = Index.build(ARENA, sorted(before), arity)
    after = before
    for recipe, share in changes:
        inserts, erases = recipe.rows(arity), some(after, recipe.seed, share)
        new, _ = new.apply(inserts, erases)
        after = (after - set(erases)) | set(inserts)
    return old, new, before, after


def prefixes(rows: set[Row], depth: int) -> set[Row]:
    return {row[:depth] for row in rows}


def as_lists(rows: set[Row]) -> list[list[int]]:
    return [list(row) for row in sorted(rows)]


@settings(max_examples=100, deadline=None)
@given(arities, recipes(MOST), steps)
def test_model_difference(arity: int, first: Recipe, changes: list[tuple[Recipe, float]]) -> None:
    old, new, before, after = two_versions(arity, first, changes)
    there, back = difference(old, new), difference(new, old)
    assert there.inserted.tolist() == back.erased.tolist() == as_lists(after - before)
    assert there.erased.tolist() == back.inserted.tolist() == as_lists(before - after)


@settings(max_examples=100, deadline=None)
@given(arities, recipes(MOST), steps)
def test_model_surgeries(arity: int, first: Recipe, changes: list[tuple[Recipe, float]]) -> None:
    old, new, before, after = two_versions(arity, first, changes)
    found = surgeries(old, new)
    assert len(found) == len(set(found))
    for d in range(1, arity + 1):
        level = found.at_depth(d)
        assert level.inserted.tolist() == as_lists(prefixes(after, d) - prefixes(before, d))
        assert level.erased.tolist() == as_lists(prefixes(before, d) - prefixes(after, d))


@settings(max_examples=60, deadline=None)
@given(arities, recipes(200), steps)
def test_invariant_surgeries_keep_the_trie_a_trie(
    arity: int, first: Recipe, changes: list[tuple[Recipe, float]]
) -> None:
    """Carried out in order, a branch is put under an existing one and taken away only when bare."""
    old, new, before, after = two_versions(arity, first, changes)
    trie = {row[:d] for row in before for d in range(arity + 1)} | {()}
    for sign, prefix in surgeries(old, new):
        if sign > 0:
            assert prefix not in trie and prefix[:-1] in trie
            trie.add(prefix)
        else:
            assert not any(len(p) == len(prefix) + 1 and p[:-1] == prefix for p in trie)
            trie.remove(prefix)
    assert trie == {row[:d] for row in after for d in range(arity + 1)} | {()}


@settings(max_examples=60, deadline=None)
@given(arities, recipes(MOST), steps, st.integers(0, 99), st.data())
def test_model_scans(
    arity: int, first: Recipe, changes: list[tuple[Recipe, float]], column: int, data: st.DataObject
) -> None:
    column %= arity
    index = Index.build(ARENA, first.rows(arity), arity, scan=data.draw(st.sampled_from([None, column])))
    model = set(first.rows(arity))
    for recipe, share in changes:
        inserts, erases = recipe.rows(arity), some(model, recipe.seed, share)
        index, _ = index.apply(inserts, erases)
        model = (model - set(erases)) | set(inserts)
    index.check()
    ends = [(), *some(model, 1, 1)[:3], *first.rows(arity)[:3]]
    for lower in ends:
        for upper in ends:
            low, high = lower[: data.draw(st.integers(0, arity))], upper[: data.draw(st.integers(0, arity))]
            values = [
                r[column] for r in model if r[: len(low)] >= low and (not high or r[: len(high)] <= high)
            ]
            found = scan_interval(index, low, high, column)
            assert (found.count, found.sum) == (len(values), sum(values))
            assert (found.min, found.max) == (min(values, default=None), max(values, default=None))


def test_cost_of_difference_follows_the_change() -> None:
    """One row changed costs the same walk in 20 times as many rows, but for the list of nodes."""
    work = []
    for n in (40, 800) if TINY else (40_000, 800_000):
        index = Index.build(ARENA, [(i // 10, i) for i in range(n)], 2)
        later = index.insert_row((n // 20, -1))
        assert later is not None
        change, looked_at = counted_difference(index, later)
        assert change.inserted.tolist() == [[n // 20, -1]]
        work.append(looked_at - n // (7 * 3 if TINY else 960 * 240))
    assert work[1] <= work[0] + 2 * (4 if TINY else 256)


def test_cost_of_stored_scan_follows_pages() -> None:
    n = 600 if TINY else 600_000
    rows = [(i, i % 1000) for i in range(n)]
    kept, plain = Index.build(ARENA, rows, 2, scan=1), Index.build(ARENA, rows, 2)
    interval = ((n // 10,), (n - 7,))
    with_scans, without = scan_interval(kept, *interval), scan_interval(plain, *interval)
    assert with_scans.sum == without.sum == sum(i % 1000 for i in range(n // 10, n - 6))
    assert without.work >= n // 2
    assert with_scans.work < (100 if TINY else 4000)
    assert scan(kept, "count") == n
