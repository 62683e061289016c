"""Rows of a negated atom: one of them takes the short path, as a row of any other atom does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain.triggers.trigger_search import NEVER
from tests.examples import relaxed

PROGRAM = """
e(x, y) -> int(x), int(y).  f(x) -> int(x).  g[x] = y -> int(x), int(y).
one_way(x, y) <- e(x, y), !e(y, x).
alone(x) <- f(x), !e(_, x).
unknown(x) <- f(x), !g[x] = _.
unwanted(x, y) <- e(x, y), !g[_] = y.
counted[x] = n <- agg<<n = count()>> f(x), e(x, y), !e(_, x), !g[y] = _.
reader(x) <- alone(x), !unknown(x).
"""
ROWS = {
    "e": st.tuples(st.integers(0, 3), st.integers(0, 3)),
    "f": st.tuples(st.integers(0, 3)),
    "g": st.tuples(st.integers(0, 3), st.integers(0, 3)),
}
CHANGES = st.sampled_from(sorted(ROWS)).flatmap(
    lambda name: st.tuples(
        st.just(name), st.sampled_from("+-^"), st.lists(ROWS[name], min_size=1, max_size=3)
    )
)


def apply(db: dlog.Database, name: str, op: str, rows: list[tuple[int, ...]]) -> None:
    if name == "g" and op != "-":
        db.apply(upsert={name: [*{row[0]: row for row in rows}.values()]})
    elif op == "-":
        db.apply(erase={name: rows})
    else:
        db.apply(insert={name: rows})


@relaxed(60)
@given(st.lists(CHANGES, max_size=12))
def test_oracle_rows_of_negated_atoms(changes: list[Any]) -> None:
    """After each transaction all heads are what evaluation from scratch gives."""
    db = dlog.Database(source=PROGRAM)
    db.build_states()
    for name, op, rows in changes:
        apply(db, name, op, rows)
        db.verify()
    db.check()


@pytest.mark.parametrize("name", ["e", "g"])
def test_they_have_triggers(name: str) -> None:
    rules = PROGRAM.replace("reader(x) <- alone(x), !unknown(x).", "")
    db = dlog.Database(source=rules + "f(1).  f(2).  e(1, 2).  g[5] = 6.")
    for row in ((3, 1), (2, 4)):
        db.apply(insert={name: [row]})
        db.apply(erase={name: [row]})
    for sign in (1, -1):
        assert db._maintenance.triggers.get((name, sign), NEVER) is not NEVER


def test_several_rows_may_give_the_same() -> None:
    """Two rows make the same negation true: its head loses one derivation, not two."""
    db = dlog.Database(source=PROGRAM + "f(1).  e(7, 1).  e(8, 1).")
    db.build_states()
    for _ in range(3):
        db.apply(erase={"e": [(7, 1), (8, 1)]})
        assert db["alone"].rows() == [(1,)]
        db.apply(insert={"e": [(7, 1), (8, 1)]})
        assert db["alone"].rows() == []
    db.check()
