"""Deltas or a trace: chosen by the size of their state, explained, the same answers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dlog
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
    assert "delta, because it reads little data" in db.explain("p")


def test_a_trace_is_taken_where_deltas_need_more_column_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The few x of s come first; changes of r and u would need a by z and by w."""
    monkeypatch.setattr("dlog.engine.maintain.delta.offer.LARGE", 1000)
    db = database()
    before = len(db.store.relations["a"].orders)
    reported = db.explain("p")
    assert "the next transaction evaluates the rule again and records where it looks" in reported
    expected = re.search(r"it is expected to need ([\d,]+) bytes of intervals\n", reported)
    assert expected is not None
    db.apply(insert={"r": [(60,)]})
    reported = db.explain("p")
    assert "the next transaction" not in reported and "expected to need" not in reported
    kept = sum(int(size.replace(",", "")) for size in re.findall(r" intervals, ([\d,]+) bytes", reported))
    assert kept / 10 <= int(expected[1].replace(",", "")) <= 4 * kept, (
        "one row for each context: some have more"
    )
    assert "additional column orders" in reported and "trace, because deltas need" in reported
    for change in ({"erase": {"r": [(7,)]}}, {"insert": {"u": [(9,)]}}, {"erase": {"s": [(0,)]}}):
        assert db.apply(**change).ways == {"p": "trace"}
        db.verify()
        db.check()
    assert len(db.store.relations["a"].orders) == before, "what the evaluation reads is enough"


def test_a_shipped_program_is_maintained_by_its_trace() -> None:
    """By itself, and `explain` says why; column orders of the log that deltas would need are not made."""
    db = dlog.Database(PROGRAMS / "watch_list.dl", facts=PROGRAMS / "watch_list" / "facts")
    assert "trace, because deltas need 2 additional column orders of 8.6 MB, a trace " in db.explain("alert")
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
    assert f"{reason}a view tree maintains counts and sums, not max" in db.explain("m")
    assert "a view tree, because it was requested" in db.explain("n")


def test_a_forced_strategy_that_is_ignored_is_reported() -> None:
    rules = "reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z).  edge(1, 2)."
    reported = dlog.Database(source=rules, strategy="trace").explain("reach")
    assert "maintained by strategy stages, because it is recursive\n" in reported
    assert "trace was requested, but it is for rules without recursion" in reported
    assert "asked for" not in dlog.Database(source=rules).explain("reach")


def test_rules_of_one_head_report_their_own_strategies() -> None:
    rules = "s(x) -> string(x).  t(x) -> string(x).  p(x) <- a(x), b(x).  a(1).  b(1).\n"
    rules += "p(y) <- s(x), t(z), y = to_number(cat(x, z)), b(y)."
    reported = dlog.Database(source=rules, strategy="trace").explain("p")
    assert "maintained by strategy trace, rule by rule\n" in reported
    assert (
        "line 1: trace, because it was requested" in reported
        and "line 2: delta, because its body" in reported
    )


def test_a_limit_of_memory_names_what_is_noted() -> None:
    db = dlog.Database(source="a(0). b(0). c(0, 0). p(x, y) <- a(x), b(y), c(x, y).", strategy="trace")
    with pytest.raises(dlog.DlogError, match="reached while recording where a rule of p looks"):
        rows = [(i,) for i in range(2000)]
        db.limits = dlog.Limits(timeout=0.0)
        db.apply(insert={"a": rows, "b": rows, "c": [(1, 1)]})
