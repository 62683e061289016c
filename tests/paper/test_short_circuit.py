"""Short circuit (maintenance paper, 2.2.1) under deltas: where only existence matters, a changed row costs a
handful of operations, however many derivations head rows have and however the database came to its rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.errors import DlogError
from tests.engine.followed import follow
from tests.examples import relaxed

DECLARED = "A(x, y) -> int(x), int(y). B(y, z) -> int(y), int(z).\n"
PAIRS = DECLARED + "S(x, y) <- A(x, y), B(y, z).\n"
FIRSTS = DECLARED + "S(x) <- A(x, y), B(y, z).\n"
Rows = dict[str, list[tuple[int, ...]]]
ROWS: Rows = {
    "A": [(x, y) for y in range(10) for x in range(5)],
    "B": [(y, z) for y in range(10) for z in range(1000)],
}
SKEWED: Rows = {
    "A": [(y, y) for y in range(4000)],
    "B": [*((y, 0) for y in range(4000)), *((3, z) for z in range(1000))],
}
HANDFUL = 10


def loaded(text: str, rows: Rows) -> dlog.Database:
    facts = (f"{name}({', '.join(map(str, row))})." for name, own in rows.items() for row in own)
    return dlog.Database(source=text + " ".join(facts), strategy="delta")


def in_one(text: str, rows: Rows) -> dlog.Database:
    db = dlog.Database(source=text, strategy="delta")
    db.apply(insert=rows)
    return db


def row_by_row(text: str, rows: Rows) -> dlog.Database:
    """A few rows at a time, from one row each on."""
    db = dlog.Database(source=text, strategy="delta")
    for name, own in rows.items():
        db.apply(insert={name: own[:1]})
    for name, own in rows.items():
        for start in range(0, len(own), 250):
            db.apply(insert={name: own[start : start + 250]})
    return db


@pytest.mark.parametrize("rows", [ROWS, SKEWED], ids=["even", "skewed"])
@pytest.mark.parametrize("make", [loaded, in_one, row_by_row])
def test_a_row_costs_a_handful(make: Callable[[str, Rows], dlog.Database], rows: Rows) -> None:
    db = make(PAIRS, rows)
    for x in (100_000, 100_001):
        for sign in ("insert", "erase"):
            commit = db.apply(**{sign: {"A": [(x, 3)]}})
            assert commit.operations <= HANDFUL and commit.ways == {"S": "delta"}
    affected = sum(y == 3 for _, y in rows["A"])
    for z in (500, 0, 999):  # in the middle, the first, the last
        for sign in ("erase", "insert"):
            assert db.apply(**{sign: {"B": [(3, z)]}}).operations <= HANDFUL * (affected + 1)
    db.verify()


def test_a_row_that_loses_its_last_derivation() -> None:
    db = row_by_row(PAIRS, ROWS)
    db.apply(erase={"B": [(3, z) for z in range(1000) if z != 500]})
    assert len(db["S"].rows()) == 50
    assert db.apply(erase={"B": [(3, 500)]}).changes["S"].erased.rows() == [(x, 3) for x in range(5)]
    assert db.apply(insert={"B": [(3, 7)]}).changes["S"].inserted.rows() == [(x, 3) for x in range(5)]
    db.verify()
    db.check()


@pytest.mark.parametrize("make", [loaded, in_one, row_by_row])
def test_far_more_derivations_than_rows_are_not_counted(make: Callable[[str, Rows], dlog.Database]) -> None:
    """Whatever the size at the beginning was; here a lookup does not decide whether a row is derived."""
    db = make(FIRSTS, ROWS)
    for sign in ("insert", "erase"):
        assert db.apply(**{sign: {"A": [(100, 3)]}}).operations <= HANDFUL
    assert not len(db.store.relations.get("#S", ())), "counts of the time when there were few are dropped"
    db.verify()


def test_counts_come_back_when_the_data_has_shrunk() -> None:
    db = loaded(
        FIRSTS, {"A": [(x, x) for x in range(500)], "B": [(y, z) for y in range(500) for z in range(40)]}
    )
    db.apply(insert={"A": [(1000, 3)]})
    assert db._maintenance.strategies[0].by_existence
    db.apply(erase={"B": [(y, z) for y in range(500) for z in range(1, 40)]})
    db.apply(insert={"A": [(1001, 3)]})
    assert not db._maintenance.strategies[0].by_existence
    db.apply(insert={"B": [(3, 1)]})
    db.verify()
    db.check()


def test_a_failed_transaction_leaves_the_counts() -> None:
    """The transaction in which existence is chosen fails; the next one still has the counts."""
    db = dlog.Database(source=FIRSTS + "B(_, z) -> z < 2000.\n", strategy="delta")
    db.apply(insert={"A": ROWS["A"], "B": [(y, z) for y in range(10) for z in range(5)]})
    strategy = db._maintenance.strategies[0]
    assert not strategy.by_existence
    with pytest.raises(DlogError):
        db.apply(insert={"B": [*ROWS["B"], (1, 5000)]})
    assert db._maintenance.strategies[0] is strategy
    db.apply(erase={"B": [(3, 2)]})
    db.apply(insert={"B": ROWS["B"]})
    db.apply(erase={"B": [(3, 2)]})
    assert db._maintenance.strategies[0].by_existence
    db.verify()
    db.check()


PROGRAMS = [
    PAIRS,
    PAIRS + "S(x, y) <- A(y, x). S(1, 2).\n",
    PAIRS + "T(x) <- S(x, _), A(_, x).\n",
    PAIRS + "S(x, y) <- B(x, y), A(y, _), x < y.\n",
    DECLARED + "F[x] = y <- A(x, y), B(y, _), x != y.  A(x, y), A(x, z) -> y = z.\n",
    DECLARED + "S(x, y) <- A(x, y), A(y, z), B(x, w).\n",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_oracle_existence(text: str) -> None:
    @relaxed(12)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        follow(data, text, "delta", most=10, sizes=(1, 1, 3))

    check()
