"""`dlog compare`: every strategy over the same transactions, the table, the page, and what users do wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dlog.compare import Comparison, compare, table
from dlog.compare.measure import OWN
from dlog.compare.page import page
from dlog.compare.table import sentences
from dlog.engine.maintain.strategies import FROM_SCRATCH, SELECTABLE
from dlog.engine.maintain.trace.keep import TraceStrategy
from dlog.errors import DlogError, VerifyError

from .test_cli import ROOT, run
from .test_profile import tags

PROGRAM = """\
edge(x, y) -> int(x), int(y).
edge(x, y) -> x != y.
two(x, z) <- edge(x, y), edge(y, z).
degree[x] = n <- agg<<n = count()>> edge(x, y), edge(y, z).
reach(x, y) <- edge(x, y).
reach(x, z) <- reach(x, y), edge(y, z).
label(x, "</script>&") <- degree[x] = 2.
"""
TRANSACTIONS = """\
+edge(1, 2). +edge(2, 3).
+edge(3, 1).
+edge(4, 4).
begin
-edge(3, 1).
+edge(2, 5). +edge(5, 6). +edge(6, 7).
commit
?- reach(1, y).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "t.tx").write_text(TRANSACTIONS)
    return tmp_path


def compared(folder: Path, predicate: str | None = None, seconds: float = 60.0) -> Comparison:
    return compare(
        folder / "p.dl", predicate, folder, folder / "t.tx", seconds, lambda phase, what, done, total: None
    )


def test_every_strategy_runs_every_transaction(folder: Path) -> None:
    comparison = compared(folder)
    assert [run.name for run in comparison.runs] == [OWN, *SELECTABLE, FROM_SCRATCH]
    assert comparison.transactions == comparison.available == 4
    for measured in comparison.runs:
        assert not measured.refused and len(measured.seconds) == 4 and measured.total > 0
        assert measured.memory > 0 and (measured.operations is None) == (measured.name == FROM_SCRATCH)
    assert [place.split("/")[-1] for place in comparison.failed] == ["t.tx:3"]
    assert comparison.ratio >= 1.0 and comparison.fastest in comparison.runs


def test_the_table_marks_the_choice_and_tells_the_reasons(folder: Path) -> None:
    lines = list(table(compared(folder)))
    assert lines[0].split()[:4] == ["strategy", "to", "build", "median"]
    assert [line[:2] for line in lines[1 : len(SELECTABLE) + 3]] == ["->", *["  "] * (len(SELECTABLE) + 1)]
    text = "\n".join(lines)
    assert "delta for two, degree, label and 1 more; stages for reach" in text
    assert "dlog chooses delta for two, degree, label and 1 more, because it reads little data" in text
    assert "falls back to delta for two, label, constraint: it has no view tree: it has no aggregate" in text
    assert "The choice is" in text and "1 transaction fails and is left out" in text
    assert "the same answers as evaluation from scratch, after 4 transactions." in text


def test_a_predicate_leaves_other_rules_out(folder: Path) -> None:
    comparison = compared(folder, "two")
    assert {name for one in comparison.own.chosen for name in one.predicates} == {"two"}
    refused = {run.name: run.refused for run in comparison.runs if run.refused}
    assert refused["views"] == "it has no view tree: it has no aggregate"
    text = "\n".join(table(comparison))
    assert re.search(r"views +refused: it has no view tree", text)
    assert "fails" not in text, "constraints are rules, too"


def test_a_recursion_has_nothing_to_select(folder: Path) -> None:
    text = "\n".join(table(compared(folder, "reach")))
    assert text.count("refused: all rules are recursive") == len(SELECTABLE)
    assert "dlog chooses stages, because it is recursive." in text and "No strategy can be selected" in text


def test_what_needs_too_much_memory_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.compare.measure.machine_bytes", lambda: 100)
    refused = {run.name: run.refused for run in compared(folder).runs if run.refused}
    assert "trace-exact" in refused and "delta" not in refused
    assert all("it is expected to need" in reason for reason in refused.values())


def test_it_stops_in_time(folder: Path) -> None:
    comparison = compared(folder, seconds=0.0)
    assert (comparison.transactions, comparison.available) == (1, 5)  # with the one that fails
    assert "after 1 transaction of 5, for lack of time" in "\n".join(table(comparison))


def test_a_wrong_answer_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(self: Any, cycle: Any) -> None:
        """Publishes no change."""

    monkeypatch.setattr(TraceStrategy, "apply", nothing)
    (folder / "t.tx").write_text("+edge(1, 2). +edge(2, 3). +edge(3, 4).\n")
    with pytest.raises(VerifyError, match="disagree"):
        compared(folder, "two")


def test_the_page_is_one_file(folder: Path) -> None:
    comparison = compared(folder)
    text = page(comparison)
    seen = tags(text)
    assert [tag for tag, _ in seen].count("script") == 1
    assert not [attrs for _, attrs in seen if "src" in attrs or "href" in attrs]
    lines = [attrs for tag, attrs in seen if tag == "polyline"]
    assert len(lines) == len(comparison.runs)
    assert all(len(str(line["points"]).split()) == comparison.transactions for line in lines)
    assert text.count("<tr") == len(comparison.runs) + 1
    assert page(compared(folder, seconds=0.0)).count("<polyline") == len(comparison.runs)


def test_the_command(folder: Path) -> None:
    arguments = ("p.dl", "two", "--tx", "t.tx", "--html", "page.html")
    done = run("compare", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("   strategy") and "dlog chooses" in done.stdout
    assert "<svg" in (folder / "page.html").read_text()
    text = run("compare", "--help").stdout
    assert "to build" in text and "dlog compare sales.dl" in text


@pytest.mark.parametrize(
    ("predicate", "transactions", "message", "help"),
    [
        ("tow", TRANSACTIONS, "unknown predicate tow", "did you mean two?"),
        ("edge", TRANSACTIONS, "edge has no rules", "name a predicate with rules"),
        (None, "?- reach(1, y).\n", "has no transactions", "one statement per line"),
        (None, "+edge(1, 1).\n", "every transaction fails", "dlog apply -k"),
        ("two", "far(x) <- two(x, _).\n", "this one changes rules", "leave out PREDICATE"),
    ],
)
def test_mistakes(folder: Path, predicate: str | None, transactions: str, message: str, help: str) -> None:
    (folder / "t.tx").write_text(transactions)
    with pytest.raises(DlogError) as caught:
        compared(folder, predicate)
    assert message in caught.value.message and help in (caught.value.help or "")


def test_without_transactions_it_says_how_to_write_them(folder: Path) -> None:
    done = run("compare", str(folder / "p.dl"))
    assert done.returncode == 1 and done.stdout == ""
    assert "--tx FILE is missing" in done.stderr and "help: write a file" in done.stderr


def test_the_example_in_the_documents_is_what_it_prints() -> None:
    """But for the figures, and which strategy was the fastest."""
    document = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    found = re.search(r"^\$ dlog (compare .*)\n((?:.*\n)*?)```", document, re.MULTILINE)
    assert found is not None
    done = run(*found[1].split())
    assert done.returncode == 0, done.stderr
    assert _masked(done.stdout) == _masked(found[2])


def _masked(text: str) -> list[str]:
    text = re.sub(r"^The choice is .*", "The choice is good.", text, flags=re.MULTILINE)
    text = re.sub(r"\b[\d.,]+( (us|ms|s|B|kB|MB|GB))?\b", "#", text)
    return [" ".join(line.split()) for line in text.splitlines() if line]


def test_strategies_are_compared_on_predicates_that_are_not_stored(folder: Path) -> None:
    before = [run.operations for run in compared(folder).runs]
    (folder / "p.dl").write_text(f"{PROGRAM}.materialize reach on_read\n")
    found = compared(folder)
    assert [run.operations for run in found.runs] == before
    assert "All rows were stored here, whatever the mode (.materialize) of reach." in sentences(found)
