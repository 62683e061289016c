"""Aggregations of self-joins, disjunctions and negated conjunctions take the short path: the same answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain.triggers.trigger_search import NEVER
from tests.examples import relaxed

DECLARED = "edge(x, y) -> int(x), int(y).  mark(x) -> int(x)."
RULES = {
    "self-join": "t[x] = s <- agg<<s = sum(m)>> edge(x, y), edge(x, z), m = y * z.",
    "path": "t[x] = n <- agg<<n = count()>> edge(x, y), edge(y, z).",
    "disjunction": "t[x] = n <- agg<<n = count()>> (edge(x, y) ; edge(y, x) ; mark(x), mark(y)).",
    "disjunction joined": "t[x] = n <- agg<<n = count()>> mark(x), (edge(x, y) ; edge(y, x)).",
    "negated conjunction": "t[x] = n <- agg<<n = count()>> edge(x, y), !(edge(y, x), mark(x)).",
    "two negated conjunctions": (
        "t[x] = n <- agg<<n = count()>> edge(x, y), !(edge(y, x), mark(x)), !(mark(y), edge(y, y))."
    ),
    "least": "t[x] = n <- agg<<n = min(y)>> mark(x), (edge(x, y) ; edge(y, x)).",
    "all": "t[] = s <- agg<<s = sum(y)>> (edge(x, y) ; edge(y, x)).",
    "distinct": "t[x] = n <- agg<<n = count_distinct(z)>> edge(x, y), edge(y, z).",
    "distinct of either": "t[x] = n <- agg<<n = count_distinct(y)>> mark(x), (edge(x, y) ; edge(y, x)).",
}
# Two groups of variants give rows of one sign; groups that are not changed in one kernel call.
GENERAL = {"two negated conjunctions", "distinct of either"}
NUMBERS = st.integers(0, 4)
EDGE = st.tuples(st.just("edge"), st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=4))
MARK = st.tuples(st.just("mark"), st.lists(st.tuples(NUMBERS), min_size=1, max_size=2))
CHANGES = st.tuples(st.sampled_from(("insert", "erase", "both")), EDGE | MARK)


@pytest.mark.parametrize("rule", RULES)
@relaxed(20)
@given(changes=st.lists(CHANGES, min_size=5, max_size=25))
def test_differential_groups(rule: str, changes: list) -> None:  # type: ignore[type-arg]
    db = dlog.Database(source=DECLARED + RULES[rule], strategy="delta")
    db.apply(insert={"edge": [(x, y) for x in range(5) for y in range(x)], "mark": [(1,), (3,)]})
    db.apply(insert={"edge": [(9, 9)], "mark": [(9,)]})
    known = set(db["t"].rows())
    for sign, (name, rows) in changes:
        if sign == "both":  # in two steps
            commit = db.apply(insert={name: rows[:1]}, erase={name: rows[1:]})
        else:
            commit = db.apply(**{sign: {name: rows}})
        if "t" in commit.changes:
            known -= set(commit.changes["t"].erased.rows())
            known |= set(commit.changes["t"].inserted.rows())
        assert known == set(db["t"].rows())
    db.verify()
    db.check()


@pytest.mark.parametrize("rule", RULES)
def test_which_aggregations_take_the_short_path(rule: str) -> None:
    db = dlog.Database(source=DECLARED + RULES[rule], strategy="delta")
    db.apply(insert={"edge": [(x, y) for x in range(9) for y in range(x)], "mark": [(1,), (3,)]})
    for sign in ("erase", "insert", "erase"):
        db.apply(**{sign: {"edge": [(3, 1)]}})
    found = {db._maintenance.triggers["edge", sign] is NEVER for sign in (1, -1)}
    assert found == {rule in GENERAL}
    db.verify()
