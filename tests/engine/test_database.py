"""The Python interface: loading, reading, querying, and what a failed transaction leaves behind."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dlog

REACH = "edge(x, y) -> int(x), int(y).  reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z)."
CHAIN = [(1, 2), (2, 3), (3, 4)]
CLOSED = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


@pytest.mark.parametrize(
    "rows",
    [
        CHAIN,
        iter(CHAIN),
        np.array(CHAIN),
        np.array(CHAIN, np.int32),
        pa.table({"x": [1, 2, 3], "y": [2, 3, 4]}),
        pd.DataFrame(CHAIN, columns=["x", "y"]),
        pl.DataFrame({"x": [1, 2, 3], "y": [2, 3, 4]}),
    ],
    ids=["rows", "iterator", "numpy", "int32", "arrow", "pandas", "polars"],
)
def test_every_kind_of_rows_can_be_inserted(rows: object) -> None:
    db = dlog.Database(source=REACH)
    with db.transaction() as tx:
        tx.insert("edge", rows)
    assert db["reach"].rows() == CLOSED


def test_results_in_every_form() -> None:
    db = dlog.Database(source=REACH + " edge(1, 2). edge(2, 3).")
    reach = db["reach"]
    assert len(reach) == 3 and list(reach) == reach.rows() and (1, 3) in reach
    assert reach.to_arrow().to_pydict() == {"c0": [1, 1, 2], "c1": [2, 3, 3]}
    assert reach.to_pandas().shape == (3, 2)
    assert reach.to_polars().height == 3
    assert "3 rows" in repr(reach)


def test_values_of_every_type_come_back() -> None:
    db = dlog.Database(
        source="""
        t(i, u, f, d, s, b, day, at) -> int(i), unsigned(u), float(f), decimal[8, 2](d), string(s), bool(b),
            date(day), datetime(at).
        """
    )
    row = (
        *(-5, 2**64 - 1, -0.5, Decimal("12.50"), "naïve", True),
        *(datetime.date(2026, 2, 28), datetime.datetime(2026, 2, 28, 12, 30, 0, 5)),
    )
    with db.transaction() as tx:
        tx.insert("t", [row])
    assert db["t"].rows() == [row]
    assert db.query("t(_, _, _, _, s, _, d, _).").rows() == [("naïve", row[6])]


def test_strings_are_sorted_by_text() -> None:
    db = dlog.Database(source='w("b"). w("a"). w("ab"). w("é"). w("B").')
    assert [r[0] for r in db["w"]] == sorted(["b", "a", "ab", "é", "B"])


def test_erase_and_reinsert() -> None:
    db = dlog.Database(source=REACH + " edge(1, 2). edge(2, 3).")
    with db.transaction() as tx:
        tx.erase("edge", [(2, 3), (9, 9)])
    assert db["reach"].rows() == [(1, 2)]
    with db.transaction() as tx:
        tx.erase("edge", [(1, 2)])
        tx.insert("edge", [(1, 2)])
    assert db["reach"].rows() == [(1, 2)]


def test_base_facts_of_a_derived_predicate_are_one_more_rule() -> None:
    db = dlog.Database(source="p(x) <- q(x). q(1). p(2).")
    with db.transaction() as tx:
        tx.erase("p", [(1,), (2,)])
    assert db["p"].rows() == [(1,)]


def test_an_error_in_the_block_changes_nothing() -> None:
    db = dlog.Database(source=REACH + " edge(1, 2).")
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:
        tx.insert("edge", [(2, 3)])
        raise ZeroDivisionError
    assert db["edge"].rows() == [(1, 2)]


def test_a_broken_constraint_names_the_facts_and_changes_nothing() -> None:
    db = dlog.Database(source="node(1). node(2). edge(1, 2). edge(x, y) -> node(x), node(y).")
    with pytest.raises(dlog.ConstraintError) as caught, db.transaction() as tx:
        tx.insert("edge", [(2, 7)])
    assert "constraint broken: edge(x, y) -> node(x), node(y)." in str(caught.value)
    assert "edge(2, 7)" in str(caught.value)
    assert db["edge"].rows() == [(1, 2)]


def test_two_values_for_a_key_show_both_derivations() -> None:
    text = 'f[x] = y <- a(x, y).\nf[x] = y <- b(y, x).\na("k", 1). b(2, "k").'
    with pytest.raises(dlog.ConstraintError) as caught:
        dlog.Database(source=text)
    message = str(caught.value)
    assert 'f["k"] = 1  from a("k", 1) by the rule at <string>:1' in message
    assert 'f["k"] = 2  from b(2, "k") by the rule at <string>:2' in message


def test_a_sum_that_does_not_fit_names_its_group() -> None:
    text = (
        f't[k] = s <- agg<<s = sum(v)>> r(k, _, v). r("big", 1, {2**63 - 1}). r("big", 2, 1). r("ok", 1, 5).'
    )
    with pytest.raises(dlog.DataError, match=r"the sum of group \[big\] does not fit 64 bits"):
        dlog.Database(source=text)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(1,)], "edge"),
        ([(1, "two")], "row 0, column y"),
        ([(1, 2), (3, None)], "row 1, column y"),
        ([(1, 2**70)], "row 0"),
        ([(1, 2.5)], "row 0"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: object, message: str) -> None:
    db = dlog.Database(source=REACH)
    with pytest.raises(dlog.DataError, match=message), db.transaction() as tx:
        tx.insert("edge", rows)
    assert len(db["edge"]) == 0


def test_unknown_predicates_are_named() -> None:
    db = dlog.Database(source=REACH)
    with pytest.raises(dlog.DataError, match="unknown predicate edgy"):
        db["edgy"]
    with pytest.raises(dlog.DlogError, match="unknown predicate edgy"):
        db.query("?- edgy(x).")


def test_queries_see_the_current_state_and_leave_no_trace() -> None:
    db = dlog.Database(source=REACH + " edge(1, 2).")
    for k in range(3):
        with db.transaction() as tx:
            tx.insert("edge", [(k + 2, k + 3)])
        assert len(db.query("?- reach(1, y).")) == k + 2
    assert db.query("reach(x, y), x > 1, !edge(x, y).").rows() == [(2, 4), (2, 5), (3, 5)]
    assert db.query("n = count : { reach(_, _) }.").rows() == [(10,)]
    assert db.query("reach(5, 1).").rows() == []
    assert set(db.program.predicates) == {"edge", "reach"}


def test_a_program_file_with_its_facts(tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n2\tx\n2\t3\n")
    (tmp_path / "p.dl").write_text(".decl edge(a: number, b: number)\n.input edge\n")
    db = dlog.Database(tmp_path / "p.dl", facts=tmp_path)
    assert db["edge"].rows() == [(1, 2), (2, 3)]
    assert "edge.facts:2: warning: row rejected" in db.warnings[0]
    assert db.warnings[-1] == "warning: 1 row of edge rejected"


def test_explain_shows_the_key_order_and_runs_nothing() -> None:
    db = dlog.Database(source=REACH + " edge(1, 2).")
    text = db.explain("reach")
    assert "recursive, semi-naive" in text and "key order" in text and "reads edge" in text
    assert db.explain("edge") == "edge has no rules: 1 base facts"


def test_a_database_and_its_measures_are_readable() -> None:
    db = dlog.Database(source="q(1). q(2).\np(x) <- q(x), x > 1.")
    assert repr(db) in ("<dlog.Database: q, p>", "<dlog.Database: p, q>")
    header, line = str(db.stats()).splitlines()
    assert header.split() == ["rows", "iterations", "seeks", "nexts", "seconds", "rule"]
    assert line.split()[:2] == ["1", "1"] and line.endswith("  line 2: p(x) <- q(x), x > 1.")


def test_stats_count_what_rules_did() -> None:
    db = dlog.Database(source=REACH + " ".join(f" edge({i}, {i + 1})." for i in range(20)))
    measures = db.stats().rules
    assert sum(m.rows for m in measures.values()) >= 210
    assert measures[1].iterations > 10 and measures[1].seeks > 0
