"""A relation in several column orders against a Python set."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation
from tests.storage.conftest import TINY
from tests.storage.model import Recipe, Row, recipes, some

MOST = 60 if TINY else 2000


def as_lists(rows: set[Row]) -> list[list[int]]:
    return [list(row) for row in sorted(rows)]


class Orders(RuleBasedStateMachine):
    """All orders hold the same rows, in every version; the memory of versions that went is free again."""

    @initialize(arity=st.integers(0, 3), recipe=recipes(MOST), data=st.data())
    def first(self, arity: int, recipe: Recipe, data: st.DataObject) -> None:
        self.arena = Arena(1 << 28)
        self.arity = arity
        self.all_orders = list(permutations(range(arity)))
        orders = data.draw(st.lists(st.sampled_from(self.all_orders), unique=True))
        rows = recipe.rows(arity)
        self.relation, self.model = Relation.build(self.arena, rows, arity, orders), set(rows)
        self.older: list[tuple[Relation, set[Row]]] = []

    @rule(recipe=recipes(MOST), share=st.sampled_from([0, 0.05, 0.5]), in_place=st.booleans())
    def apply(self, recipe: Recipe, share: float, in_place: bool) -> None:
        self.change(recipe.rows(self.arity), some(self.model, recipe.seed, share), in_place, as_arrays=False)

    @rule(recipe=recipes(40), share=st.sampled_from([0, 0.01, 0.2]), in_place=st.booleans())
    def apply_few(self, recipe: Recipe, share: float, in_place: bool) -> None:
        """Arrays that are small beside the relation: one kernel call.  Rows repeat, and some are in both."""
        inserts, erases = recipe.rows(self.arity), some(self.model, recipe.seed, share)
        inserts = inserts + inserts[::3] + erases[::5]
        self.change(inserts, erases + inserts[1:4], in_place, as_arrays=True)

    def change(self, inserts: Any, erases: Any, in_place: bool, as_arrays: bool) -> None:
        expected = (self.model - set(erases)) | set(inserts)
        if as_arrays and self.arity:
            inserts, erases = (np.array(r, np.int64).reshape(-1, self.arity) for r in (inserts, erases))
        if in_place:
            change = self.relation.apply_in_place(inserts, erases)
        else:
            self.older.append((self.relation, self.model))
            self.relation, change = self.relation.apply(inserts, erases)
        assert change.inserted.tolist() == as_lists(expected - self.model)
        assert change.erased.tolist() == as_lists(self.model - expected)
        self.model = expected

    @rule(recipe=recipes(5), erase=st.booleans())
    def single_row(self, recipe: Recipe, erase: bool) -> None:
        rows = some(self.model, recipe.seed, 1) if erase else recipe.rows(self.arity)
        for row in rows[:1]:
            changed = self.relation.erase_row(row) if erase else self.relation.insert_row(row)
            assert (changed is None) == ((row in self.model) != erase)
            assert self.relation.contains(row) == (row in self.model)
            self.older.append((self.relation, self.model))
            self.relation = self.relation.snapshot() if changed is None else changed
            self.model = self.model - {row} if erase else self.model | {row}

    @rule(recipe=recipes(5), seed=st.integers(0, 99))
    def replace_row(self, recipe: Recipe, seed: int) -> None:
        """One row in place of another; sometimes the first is not there, or the second is."""
        rows = some(self.model, seed, 1)[:1] + recipe.rows(self.arity)
        if not self.arity or len(rows) < 2 or rows[0] == rows[1]:
            return
        old, new = rows[:2]
        changed = self.relation.replace_row(old, new)
        assert (changed is None) == (old not in self.model or new in self.model)
        if changed is not None:
            self.older.append((self.relation, self.model))
            self.relation, self.model = changed, (self.model - {old}) | {new}

    @rule(which=st.integers(0, 5))
    def add_order(self, which: int) -> None:
        order = self.all_orders[which % len(self.all_orders)]
        index = self.relation.add_order(order)
        expected = {tuple(row[c] for c in order) for row in self.model}
        assert index.rows().tolist() == as_lists(expected)
        assert self.relation.index(order) is index

    @invariant()
    def all_orders_agree(self) -> None:
        while len(self.older) > 4:
            self.older.pop(0)[0].close()
        assert len(self.relation) == len(self.model)
        assert self.relation.rows().tolist() == as_lists(self.model)
        self.relation.check()

    def teardown(self) -> None:
        if not hasattr(self, "relation"):
            return
        for relation, model in self.older:
            assert relation.rows().tolist() == as_lists(model)
            relation.close()
        self.relation.close()
        usage = self.arena.usage()
        assert (usage.used_blocks, usage.used_extents, usage.used_words) == (0, 0, 0)


TestOrders = pytest.mark.timeout(600)(Orders.TestCase)
TestOrders.settings = settings(max_examples=60 if TINY else 25, stateful_step_count=15, deadline=None)


def test_columns_in_are_rows_in() -> None:
    rows = np.random.default_rng(1).integers(0, 50, (300, 3))
    by_rows = Relation.build(Arena(1 << 28), rows, 3, [(2, 0, 1)])
    by_columns = Relation.build(Arena(1 << 28), [rows[:, c].copy() for c in range(3)], 3, [(2, 0, 1)])
    assert by_rows.rows().tolist() == by_columns.rows().tolist() == as_lists(set(map(tuple, rows.tolist())))


def test_wrong_shapes_are_refused() -> None:
    relation = Relation(Arena(1 << 28), 2)
    for rows in ([(1, 2, 3)], [1, 2], np.zeros((2, 2, 2), np.int64)):
        with pytest.raises(ValueError):
            relation.apply(inserts=rows)
    for order in ((0,), (0, 0), (1, 2)):
        with pytest.raises(ValueError):
            relation.add_order(order)
    with pytest.raises(ValueError):
        relation.insert_row((1, 2, 3))
    assert len(relation) == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), recipes(MOST))
def test_model_distinct_prefixes_of_few_leaves_are_exact(arity: int, recipe: Recipe) -> None:
    rows = set(recipe.rows(arity))
    relation = Relation.build(Arena(1 << 28), sorted(rows), arity)
    expected = [len({row[:d] for row in rows}) for d in range(1, arity + 1)]
    found = relation.distinct_prefixes(range(arity))
    if len(rows) < (7 if TINY else 960):
        assert found == expected
    else:  # pairs across leaves are not examined
        assert np.allclose(found, expected, rtol=0.5, atol=3)


@pytest.mark.skipif(TINY, reason="needs many rows")
def test_distinct_prefixes_of_a_large_index_are_near() -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3000, 400_000), rng.integers(0, 40, 400_000), rng.integers(0, 10**6, 400_000)]
    relation = Relation.build(Arena(1 << 30), columns, 3)
    exact = [len(np.unique(columns[0])), len(np.unique(columns[0] * 40 + columns[1])), len(relation)]
    assert np.allclose(relation.distinct_prefixes((0, 1, 2)), exact, rtol=0.15)
