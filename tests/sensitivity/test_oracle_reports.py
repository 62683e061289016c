"""Reports on change oracles: the values of each key variable that were re-examined."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dlog
from dlog.cli import app
from dlog.sensitivity.oracle import SHOWN, Oracle
from dlog.sensitivity.oracle_kernels import GREATEST, LEAST
from tests.examples import relaxed

EDGES = [(1, 2), (2, 3), (1, 3), (3, 4), (5, 6)]
TRIANGLE = "edge(x, y) -> int(x), int(y).  t(x, y, z) <- edge(x, y), edge(y, z), edge(x, z)."


def reported(commit: dlog.Commit) -> list[str]:
    return [str(looked) for looked in commit.oracle_reports()]


@st.composite
def contributions(draw: st.DrawFn) -> tuple[int, list[tuple[tuple[int, ...], list[int], int]]]:
    """(Key variables, contributions: wild depths, context, the end of the interval)."""
    width = draw(st.integers(1, 3))
    found = []
    for _ in range(draw(st.integers(0, 5))):
        least = draw(st.sampled_from((width, width, width, 0)))  # what is left open hides the others
        context = draw(st.lists(st.integers(0, 9), min_size=least, max_size=width))
        wild = {d for d in range(len(context) - 1) if draw(st.integers(0, 3)) == 3}
        found.append((tuple(sorted(wild)), context, max([0, *context[-1:]]) + draw(st.integers(0, 3))))
    return width, found


@relaxed(200)
@given(contributions())
def test_values_of_each_variable(drawn: tuple[int, list[tuple[tuple[int, ...], list[int], int]]]) -> None:
    """The union of what contributions lead to, as a set of numbers, whatever way intervals are merged."""
    width, found = drawn
    oracle = Oracle(width)
    for wild, context, end in found:
        oracle.add(np.array([context], np.int64).reshape(1, -1), np.array([end]) if context else None, wild)
    assert len(oracle) == len(found)
    for joined in (True, False):
        for depth, intervals in enumerate(oracle.intervals([joined] * width)):
            values = set()
            for wild, context, end in found:
                if depth >= len(context) or depth in wild:
                    values |= set(range(-2, 16))
                else:
                    values |= set(
                        range(context[depth], (end if depth == len(context) - 1 else context[depth]) + 1)
                    )
            assert {v for v in range(-2, 16) if any(a <= v <= b for a, b in intervals)} == values
            gaps = [b[0] - a[1] for a, b in pairwise(intervals)]
            assert all(gap > 1 if joined else gap > 0 for gap in gaps)


def test_everything_is_open_ended() -> None:
    oracle = Oracle(2)
    oracle.add(np.array([[3]]))
    assert oracle.intervals() == [[(3, 3)], [(LEAST, GREATEST)]]


@pytest.mark.parametrize("strategy", ["trace", "trace-exact"])
def test_a_transaction_reports_what_it_re_examined(strategy: str) -> None:
    db = dlog.Database(source=TRIANGLE, strategy=strategy)
    assert reported(db.apply(insert={"edge": EDGES})) == []  # all was evaluated
    one = db.apply(insert={"edge": [(2, 4)]})  # a single row may go a shorter way
    several = db.apply(erase={"edge": [(5, 6), (3, 4)]})
    assert reported(db.apply(insert={"edge": [(2, 4)]})) == []  # it is there already
    for commit, x in ((one, {2}), (several, {2, 3, 5})):
        (looked,) = commit.oracle_reports()
        intervals = looked.intervals()["x"]
        assert x <= {v for v in range(10) if any(a <= v <= b for a, b in intervals)}
        assert reported(commit) == reported(commit)  # asked again, the same
        assert reported(commit)[0].startswith("t re-examined at x in [")
    if strategy == "trace":
        assert reported(one) == ["t re-examined at x in [2, 2]"]
        assert repr(one.oracle_reports()) == "[<t re-examined at x in [2, 2]>]"


def test_points_of_other_types() -> None:
    """Codes of strings are in no order: neighbours stay apart."""
    text = (
        "a(x) -> string(x).  b(x) -> string(x).  p(x) <- a(x), b(x).  c(x) -> float(x).  q(x) <- c(x), c(x)."
    )
    db = dlog.Database(source=text, strategy="trace")
    db.apply(insert={"a": [("k",), ("l",), ("m",)], "b": [("k",)], "c": [(1.5,)]})
    commit = db.apply(insert={"b": [("m",), ("l",)], "c": [(-2.0,)]})
    assert sorted(reported(commit)) == [
        'p re-examined at x in ["l", "l"], ["m", "m"]',
        "q re-examined at x in [-2.0, -2.0]",
    ]


def test_many_places_are_only_counted() -> None:
    db = dlog.Database(source="a(x) -> int(x).  b(x) -> int(x).  p(x) <- a(x), b(x).", strategy="trace")
    db.apply(insert={"a": [(0,)], "b": [(0,)]})
    few = reported(db.apply(insert={"a": [(2 * x,) for x in range(1, 8)]}))
    assert few == ["p re-examined at x in [2, 2], [4, 4], [6, 6], [8, 8], and 3 more"]
    many = db.apply(insert={"b": [(x,) for x in range(1, SHOWN + 1)]})
    assert reported(many) == [f"p re-examined at {SHOWN:,} places"]


def test_stats_of_apply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.dl").write_text(TRIANGLE + "".join(f" edge{edge}." for edge in EDGES))
    (tmp_path / "t.tx").write_text("+edge(2, 4).\n+edge(7, 8), +edge(8, 9).\n")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["apply", "p.dl", "--tx", "t.tx", "--stats", "--strategy", "trace"])
    assert result.exit_code == 0
    assert "  t re-examined at x in " in result.stderr
    assert re.search(r"  t: [1-9]\d* intervals, [1-9]\d* bytes \(trace, coarse\)", result.stderr)


@pytest.mark.parametrize("strategy", ("trace", "trace-exact"))
def test_stats_count_the_operations_of_traced_rules(strategy: str) -> None:
    db = dlog.Database(source=TRIANGLE, strategy=strategy)
    for change in (EDGES, [(2, 4), (7, 8), (8, 9)]):
        commit = db.apply(insert={"edge": change})
        (measure,) = db.stats().rules.values()
        assert measure.operations == commit.operations > 0
    assert measure.rows == sum(len(c.inserted) for name, c in commit.changes.items() if name == "t") > 0
