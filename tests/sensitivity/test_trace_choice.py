"""Deltas or a trace: chosen by what each would have to keep, told by explain, the same answers."""

from __future__ import annotations

import numpy as np
import pytest

import dlog
from dlog.engine import trace_choice
from tests.oracle.shipped import PROGRAMS

WIDE = """
a(x, y, z, w) -> int(x), int(y), int(z), int(w).  s(x) -> int(x).  r(z) -> int(z).  u(w) -> int(w).
p(x, y, z, w) <- s(x), a(x, y, z, w), r(z), u(w).
"""


def database() -> dlog.Database:
    rng = np.random.default_rng(1)
    db = dlog.Database(source=WIDE)
    rows = rng.integers(0, 50, (3000, 4)).tolist()
    db.apply(insert={"a": rows, "s": [(0,), (1,)], "r": [(z,) for z in range(50)], "u": [(2,), (3,)]})
    return db


def test_small_relations_are_left_to_deltas() -> None:
    db = database()
    assert db.apply(insert={"r": [(60,)]}).ways == {"p": "delta"}
    assert "delta, because what it reads is small" in db.explain("p")


def test_a_trace_is_taken_where_deltas_need_more_column_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The few x of s come first; changes of r and u would need a by z and by w."""
    monkeypatch.setattr(trace_choice, "LARGE", 1000)
    db = database()
    before = len(db.store.relations["a"].orders)
    assert "the next transaction evaluates the rule again and notes where it looks" in db.explain("p")
    db.apply(insert={"r": [(60,)]})
    told = db.explain("p")
    assert "the next transaction" not in told and " intervals, " in told
    assert "further column orders" in told and "trace, because deltas need" in told
    for change in ({"erase": {"r": [(7,)]}}, {"insert": {"u": [(9,)]}}, {"erase": {"s": [(0,)]}}):
        assert db.apply(**change).ways == {"p": "trace"}
        db.verify()
        db.check()
    assert len(db.store.relations["a"].orders) == before, "what the evaluation reads is enough"


def test_a_shipped_program_is_kept_by_its_trace() -> None:
    """By itself, and `explain` says why; column orders of the log that deltas would need are not made."""
    db = dlog.Database(PROGRAMS / "watch_list.dl", facts=PROGRAMS / "watch_list" / "facts")
    assert "trace, because deltas need 2 further column orders of 8.6 MB, a trace 0." in db.explain("alert")
    read = db.store.relations["access"].orders
    db.apply(erase={"suspect": [(3,)]})
    assert db.apply(insert={"suspect": [(3,)]}).ways == {"alert": "trace"}
    assert db.store.relations["access"].orders == read


def test_views_that_cannot_be_say_so() -> None:
    source = (
        WIDE
        + "n[x] = k <- agg<<k = count()>> a(x, y, z, w), r(z).  m[x] = k <- agg<<k = max(w)>> a(x, _, _, w)."
    )
    db = dlog.Database(source=source, strategy="views")
    reason = "delta, because it has no view tree: "
    assert f"{reason}it has no aggregate" in db.explain("p") and reason not in db.explain("n")
    assert f"{reason}of rows that go, max cannot be taken back" in db.explain("m")
    assert "a view tree, because it was asked for" in db.explain("n")
