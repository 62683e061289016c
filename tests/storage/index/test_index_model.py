"""An index against Python sets, over many versions at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from dlog.storage.layout import LEAF_ROWS as FULL_LEAF_ROWS
from tests.storage.conftest import TINY
from tests.storage.model import Recipe, Row, recipes, some

LEAF_ROWS = 8 if TINY else FULL_LEAF_ROWS
MOST = 250 if TINY else 3000
ROOM = 1 << 28


def as_lists(rows: set[Row]) -> list[list[int]]:
    return [list(row) for row in sorted(rows)]


class Versions(RuleBasedStateMachine):
    """Every version stays what it was when it was made, until it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.arena = Arena(ROOM)
        self.versions: list[tuple[Index, set[Row]]] = []

    @initialize(arity=st.integers(0, 4), recipe=recipes(MOST), scan=st.booleans())
    def first(self, arity: int, recipe: Recipe, scan: bool) -> None:
        self.arity = arity
        rows = recipe.rows(arity)
        index = Index.build(self.arena, rows, arity, scan=arity - 1 if scan and arity else None)
        self.versions.append((index, set(rows)))

    def pick(self, which: int) -> tuple[Index, set[Row]]:
        return self.versions[which % len(self.versions)]

    @rule(which=st.integers(0, 99), recipe=recipes(MOST), share=st.sampled_from([0, 0.01, 0.1, 0.6, 1]))
    def apply(self, which: int, recipe: Recipe, share: float) -> None:
        index, model = self.pick(which)
        inserts = recipe.rows(self.arity)
        erases = some(model, recipe.seed, share) + inserts[::3] + [row[::-1] for row in inserts[::5]]
        later, change = index.apply(inserts, erases)
        expected = (model - set(erases)) | set(inserts)
        assert change.inserted.tolist() == as_lists(expected - model)
        assert change.erased.tolist() == as_lists(model - expected)
        assert bool(change) == (expected != model)
        self.versions.append((later, expected))

    @rule(which=st.integers(0, 99), recipe=recipes(MOST), share=st.sampled_from([0, 0.01, 0.2, 0.9]))
    def apply_in_place(self, which: int, recipe: Recipe, share: float) -> None:
        index, model = self.pick(which)
        inserts, erases = recipe.rows(self.arity), some(model, recipe.seed, share)
        change = index.apply_in_place(inserts, erases)
        expected = (model - set(erases)) | set(inserts)
        assert change.inserted.tolist() == as_lists(expected - model)
        assert change.erased.tolist() == as_lists(model - expected)
        self.versions[which % len(self.versions)] = (index, expected)

    @rule(which=st.integers(0, 99), recipe=recipes(MOST), steps=st.integers(1, 12), seed=st.integers(0, 99))
    def wear_away(self, which: int, recipe: Recipe, steps: int, seed: int) -> None:
        """Grow page by page, then erase neighbours, a fifth at a time: nodes fill, split, empty and join."""
        index, model = self.pick(which)
        index, model = index.snapshot(), set(model)
        rng = np.random.default_rng(seed)
        for row in recipe.rows(self.arity) if TINY else ():
            index.apply_in_place(inserts=[row])
            model.add(row)
        for _ in range(steps):
            index.check()
            start = int(rng.integers(0, len(model) + 1))
            erases = sorted(model)[start : start + 1 + len(model) // 5]
            index.apply_in_place(erases=erases)
            model -= set(erases)
        self.versions.append((index, model))

    @rule(which=st.integers(0, 99), recipe=recipes(8), erase=st.booleans())
    def single_rows(self, which: int, recipe: Recipe, erase: bool) -> None:
        index, model = self.pick(which)
        rows = some(model, recipe.seed, 1)[:8] if erase else recipe.rows(self.arity)
        for row in rows:
            changed = index.erase_row(row) if erase else index.insert_row(row)
            assert (changed is None) == ((row in model) != erase)
            if changed is not None:
                index, model = changed, model - {row} if erase else model | {row}
                self.versions.append((index, model))

    @rule(which=st.integers(0, 99))
    def snapshot(self, which: int) -> None:
        index, model = self.pick(which)
        self.versions.append((index.snapshot(), model))

    @rule(which=st.integers(0, 99))
    def compact(self, which: int) -> None:
        index, model = self.pick(which)
        flat = index.compact()
        assert flat.is_flat
        self.versions.append((flat, model))

    @rule(which=st.integers(0, 99))
    def spread(self, which: int) -> None:
        index, model = self.pick(which)
        self.versions.append((index.compact().spread(), model))

    @precondition(lambda self: len(self.versions) > 1)
    @rule(which=st.integers(0, 99), explicitly=st.booleans())
    def let_go(self, which: int, explicitly: bool) -> None:
        index, _ = self.versions.pop(which % len(self.versions))
        if explicitly:
            index.close()

    @rule(which=st.integers(0, 99), recipe=recipes(20), length=st.integers(0, 4))
    def look_up(self, which: int, recipe: Recipe, length: int) -> None:
        index, model = self.pick(which)
        for row in recipe.rows(self.arity)[:10] + some(model, recipe.seed, 1)[:10]:
            prefix = row[:length]
            matching = [r for r in model if r[:length] == prefix]
            assert index.contains(row) == (row in model)
            assert index.range_count(prefix) == len(matching)
            assert index.has_prefix(prefix) == bool(matching)
            if prefix:
                assert index.rank(prefix) == sum(r[:length] < prefix for r in model)
                assert index.rank(prefix, inclusive=True) == sum(r[:length] <= prefix for r in model)

    @invariant()
    def the_newest_is_what_it_should_be(self) -> None:
        while len(self.versions) > 6:
            self.compare(*self.versions.pop(0))
        if self.versions:
            self.compare(*self.versions[-1])

    def compare(self, index: Index, model: set[Row]) -> None:
        assert len(index) == len(model)
        assert index.rows().tolist() == as_lists(model)
        assert index.columns().T.tolist() == as_lists(model)
        index.check()

    def teardown(self) -> None:
        for index, model in self.versions:
            self.compare(index, model)
            index.close()
        usage = self.arena.usage()
        assert (usage.used_blocks, usage.used_extents, usage.used_words) == (0, 0, 0), (
            "memory was not given back"
        )
        self.arena.check()


TestVersions = pytest.mark.timeout(600)(Versions.TestCase)
TestVersions.settings = settings(max_examples=150 if TINY else 40, stateful_step_count=20, deadline=None)


def test_a_large_batch_leaves_the_index_flat_and_a_small_one_does_not() -> None:
    n = 40 if TINY else 10_000
    index = Index.build(Arena(ROOM), [(i,) for i in range(n)], 1)
    assert index.is_flat
    assert index.apply(inserts=[(i,) for i in range(n, n + n // 2)])[0].is_flat
    assert index.apply(erases=[(i,) for i in range(0, n, 2)])[0].is_flat
    assert not index.apply(inserts=[(-1,)])[0].is_flat


def test_the_last_slice_of_a_bulk_load_is_not_extended_past_its_extent() -> None:
    """Rows whose number is that of the words of a size class: no room is left after the last slice."""
    n = 24 if TINY else 3080
    index = Index.build(Arena(ROOM), [(2 * i,) for i in range(n)], 1)
    rows = LEAF_ROWS * 15 // 16
    for start in range(0, n - rows, rows):
        index.apply_in_place(erases=[(2 * start,)])
    for i in range(n - n % rows, n):
        index.apply_in_place(inserts=[(2 * i + 1,)])
        index.check()


@pytest.mark.skipif(TINY, reason="measures full-sized pages")
def test_rows_that_arrive_in_order_fill_their_pages() -> None:
    index, n = Index.build(Arena(ROOM), [(0,)], 1), 40_000
    for start in range(1, n, 700):
        index.apply_in_place(inserts=[(i,) for i in range(start, min(start + 700, n))])
    index.check()
    assert index.arena.usage().used_words < 1.2 * n, "pages are not full"


def test_rows_replaced_until_leaves_are_split() -> None:
    """The leaf that new rows go to is full at some time, when the old row has gone from its own already."""
    arena = Arena(1 << 28)
    moved, place = LEAF_ROWS // 2, 3 * LEAF_ROWS
    rows = {(i, 0) for i in range(4 * LEAF_ROWS)} | {(1, 1 + i) for i in range(moved)}
    index = Index.build(arena, sorted(rows), 2)
    for i in range(1, 1 + moved):
        assert index.replace_row((place, i), (0, 1)) is None and index.replace_row((1, i), (place, 0)) is None
        later = index.replace_row((1, i), (place, i))
        assert later is not None and len(index) == len(rows)
        index = later
        rows = rows - {(1, i)} | {(place, i)}
        assert index.contains((place, i)) and len(index) == len(rows)
    index.check()
    assert set(map(tuple, index.rows().tolist())) == rows
