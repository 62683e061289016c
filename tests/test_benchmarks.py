"""Every benchmark runs at its smallest size, so that none rots: each asserts that both sides agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import table
from benchmarks.__main__ import find
from benchmarks.harness import Row, below, compare, faster, timed, within

SMALLEST = 1e-6
FOUND = find()


@pytest.mark.parametrize("name", FOUND)
def test_benchmark_runs(name: str) -> None:
    rows = list(FOUND[name](SMALLEST))
    assert rows
    assert all(row.ours > 0 and (row.theirs is None) == (row.peer == "") for row in rows)
    assert len({(row.name, row.size, row.peer) for row in rows}) == len(rows), "no two rows look alike"


def test_differing_results_are_an_error() -> None:
    with pytest.raises(AssertionError, match="join"):
        list(compare("join", "", lambda: 1, {"other": lambda: 2}))


def test_sides_run_in_turns_and_the_best_counts() -> None:
    ticks = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0, 30.0, 35.0])
    seen: list[str] = []
    actions = {"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}
    best = timed(actions, runs=2, clock=lambda: next(ticks))
    assert seen == ["a", "b", "a", "b"]
    assert {name: m.seconds for name, m in best.items()} == {"a": 2.0, "b": 1.0}


def test_aims() -> None:
    row = Row("", "", 2.0, 6.0, "peer")
    assert faster(3).met(row) and not faster(3.1).met(row)
    assert within(0.34).met(row) and not within(0.33).met(row)
    assert below(2.0).met(row) and not below(1.9).met(row)


def test_writing_some_benchmarks_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    table.write({"a": [Row("first", "", 1.0)], "b": [Row("second", "", 2.0)]}, 1, path)
    table.write({"a": [Row("third", "", 3.0)]}, 1, path)
    text = path.read_text()
    assert "second" in text and "third" in text and "first" not in text
    assert text.count("| benchmark |") == 1
