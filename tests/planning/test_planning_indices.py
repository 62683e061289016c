"""Column orders for a predicate: against all sets of permutations, an oracle without any idea."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.planning.indices import Choice, choose_orders


def reads(order, requirement) -> bool:
    """The definition: go through the order and take each set's columns until it is used up."""
    order = list(order)
    for columns in requirement:
        left = set(columns)
        while left:
            column = order.pop(0)
            if column not in left:
                return False
            left.remove(column)
    return True


def least(arity, requirements, existing=()) -> int:
    """The number of new orders that no choice of permutations can do without."""
    todo = {r for r in requirements if not any(reads(o, r) for o in existing)}
    useful = {frozenset(r for r in todo if reads(o, r)) for o in permutations(range(arity))}
    for size in range(len(todo) + 1):
        if any(frozenset().union(*chosen) == todo for chosen in combinations(useful, size)):
            return size
    raise AssertionError("some requirement has no order")


@st.composite
def requirement(draw, arity):
    columns = draw(st.permutations(range(arity)))
    cuts = sorted(draw(st.sets(st.integers(1, arity), min_size=1, max_size=arity)))
    return tuple(frozenset(columns[a:b]) for a, b in zip((0, *cuts), cuts, strict=False))


@st.composite
def cases(draw):
    arity = draw(st.integers(2, 4))
    orders = st.permutations(range(arity)).map(tuple)
    return arity, draw(st.lists(requirement(arity), max_size=6)), draw(st.lists(orders, max_size=2))


def sets(*columns):
    return tuple(frozenset(c) for c in columns)


def check(arity, requirements, choice: Choice) -> None:
    for needed, place in zip(requirements, choice.serving, strict=True):
        assert reads(choice.orders[place], needed)
    assert all(sorted(order) == list(range(arity)) for order in choice.orders)


@given(cases())
def test_oracle_fewest_orders(case):
    arity, requirements, existing = case
    choice = choose_orders(arity, requirements, existing)
    check(arity, requirements, choice)
    assert choice.exact
    assert choice.orders[: len(existing)] == tuple(existing)
    assert len(choice.orders) - len(existing) == least(arity, requirements, existing)


@given(cases(), st.randoms(use_true_random=False))
def test_the_sequence_of_requirements_does_not_matter(case, random):
    arity, requirements, existing = case
    shuffled = random.sample(requirements, len(requirements))
    assert (
        choose_orders(arity, shuffled, existing).orders == choose_orders(arity, requirements, existing).orders
    )


def test_prefixes_x_xy_y_take_two_orders():
    choice = choose_orders(3, [sets({0}), sets({0, 1}), sets({1})])
    assert choice.orders == ((0, 1, 2), (1, 0, 2)) and choice.exact


def test_a_completion_that_others_need():
    """(2, 0, 1, 3), as columns come, would be of no use to the others."""
    choice = choose_orders(4, [sets({2}), sets({1, 2}), sets({2}, {1, 3})], [(0, 1, 2, 3)])
    assert choice.orders == ((0, 1, 2, 3), (2, 1, 3, 0)) and choice.serving == (1, 1, 1)


def test_agreement_that_is_not_transitive():
    """{0, 1} agrees with {0, 1, 2}, and that with ({2}, ...), but {0, 1} and {2} have no order in common."""
    needed = [sets({0, 1}), sets({0, 1, 2}), sets({2}, {0, 1, 3})]
    choice = choose_orders(5, needed)
    check(5, needed, choice)
    assert len(choice.orders) == least(5, needed) == 2 and choice.exact


def test_a_search_that_is_cut_short_reports_it(monkeypatch):
    """There, compatibility gives one path of three, which is not a group: the bound is not reached."""
    monkeypatch.setattr("dlog.planning.indices.BUDGET", 1)
    needed = [sets({0, 1}), sets({0, 1, 2}), sets({2}, {0, 1, 3})]
    choice = choose_orders(5, needed)
    check(5, needed, choice)
    assert not choice.exact


def test_nothing_asked():
    assert choose_orders(2, []) == Choice((), (), True)
    assert choose_orders(2, [()]) == Choice(((0, 1),), (0,), True)
    assert choose_orders(0, [()]) == Choice(((),), (0,), True)


# Whole programs

SHARING = """
t(a, b, c, d) -> int(a), int(b), int(c), int(d).
some_b() <- t(_, 5, _, _).
by_b_c(x) <- t(x, 5, 7, _).
some_d() <- t(_, _, _, 3).
by_c(x) <- t(_, _, 7, x).
by_c_d(x) <- t(x, _, 7, 3).
"""


def orders_after(source: str, rows: np.ndarray) -> list[tuple[int, ...]]:
    database = dlog.Database(source=source, evaluated=False)
    database.store.relations["t"].apply_in_place(inserts=rows)
    database.complete()
    return database.store.orders("t")


def some_rows(n: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 30, (n, 4))


def test_rules_share_column_orders(monkeypatch):
    """As they come, the order of `some_b` would be of no use to `by_b_c`: four instead of three."""
    needed = [sets({1}), sets({1, 2}, {0}), sets({3}), sets({2}, {3}), sets({2, 3}, {0})]
    monkeypatch.setattr("dlog.engine.evaluate.column_orders.LARGE", 1000)
    orders = orders_after(SHARING, some_rows(2000))
    assert len(orders) - 1 == least(4, needed, [(0, 1, 2, 3)]) == 3
    assert all(any(reads(order, r) for order in orders) for r in needed)


def test_whatever_the_sequence_of_rules(monkeypatch):
    monkeypatch.setattr("dlog.engine.evaluate.column_orders.LARGE", 1000)
    declaration, *rules = SHARING.strip().splitlines()
    rows = some_rows(2000)
    for turn in range(len(rules)):
        text = "\n".join([declaration, *rules[turn:], *rules[:turn]])
        assert len(orders_after(text, rows)) == 4


@pytest.mark.parametrize("large", [0, 1 << 60])
def test_same_answers_and_orders_that_agree(monkeypatch, large):
    """Planned ahead or not: answers, also after changes, are those of filters over arrays."""
    monkeypatch.setattr("dlog.engine.evaluate.column_orders.LARGE", large)
    monkeypatch.setattr("dlog.engine.maintain.maintain.LARGE", large)
    rows = np.unique(some_rows(3000) % 8, axis=0)
    source = SHARING + "both(x, y) <- t(x, y, _, z), by_c(z), !t(y, x, _, z).\n"
    database = dlog.Database(source=source, evaluated=False)
    database.store.relations["t"].apply_in_place(inserts=rows)
    database.complete()
    for number in range(3):
        present = set(map(tuple, database["t"].rows() if number else rows.tolist()))
        gone, new = sorted(present)[number * 7 : number * 7 + 3], (number, 5, 7, 3)
        with database.transaction() as transaction:
            transaction.erase("t", gone)
            transaction.insert("t", [new])
        present = (present - set(gone)) | {new}
        by_c = {r[3] for r in present if r[2] == 7}
        pairs = {(r[0], r[1], r[3]) for r in present}
        expected = {(x, y) for x, y, z in pairs if z in by_c and (y, x, z) not in pairs}
        assert set(map(tuple, database["both"].rows())) == expected
        assert {r[0] for r in database["by_c"].rows()} == by_c
        assert {r[0] for r in database["by_b_c"].rows()} == {r[0] for r in present if r[1:3] == (5, 7)}
        database.check()


def test_explain_tells_column_orders():
    text = dlog.Database(source=SHARING + "t(1, 5, 7, 3).").explain()
    assert "column orders: " in text and "  t: " in text and "by a, b, c, d: as it is stored" in text
    assert "(by_c_d)" in text[text.index("column orders") :]
