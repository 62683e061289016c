"""The prompt through a pipe, as a process: what is typed in the documents gives what they show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dlog.language.typed import Piece
from dlog.repl.commands import COMMANDS
from dlog.repl.session import Session

ROOT = Path(__file__).resolve().parents[2]


def prompt(text: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dlog", "repl", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=cwd, input=text, capture_output=True, text=True, timeout=230, env=environment
    )


def without_times(text: str) -> str:
    return re.sub(r"\([0-9.]+ m?s\)", "(TIME)", text)


def test_the_example_of_the_documents() -> None:
    done = prompt("+edge(1, 2), +edge(2, 3).\n?- reach(1, y).\n-edge(2, 3).\n", "programs/reach.dl")
    assert without_times(done.stdout) == (
        "committed 1: +2 edge, +3 reach (TIME)\n y\n 2\n 3\n2 rows\ncommitted 2: -1 edge, -2 reach (TIME)\n"
    )
    assert done.returncode == 0, done.stderr


def test_a_fault_of_dlog_does_not_end_the_session(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Session, piece: Piece) -> None:
        raise AssertionError("no order")

    session = Session()
    with monkeypatch.context() as patch:
        patch.setattr(Session, "_statements", broken)
        session.run(Piece("statements", "+e(1, 2).", "typed", 1))
    session.run(Piece("statements", "e(1, 2). ?- e(1, y).", "typed", 1, lines=("e(1, 2). ?- e(1, y).",)))
    reported = capsys.readouterr()
    assert "error: this is a bug in dlog: AssertionError: no order" in reported.err and session.failures == 1
    assert "1 row" in reported.out


def test_a_strategy_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "t.dl").write_text("p(x, z) <- q(x, y), r(y, z), s(x, z).  q(1, 2).  r(2, 3).  s(1, 3).\n")
    done = prompt(
        "+s(4, 5).\n.explain p\n+s(6, 7).\n.stats\n", "t.dl", "--strategy", "trace-exact", cwd=tmp_path
    )
    assert "trace-exact, because it was requested" in done.stdout and " intervals, " in done.stdout
    assert "trace: p (" in done.stdout and "p re-examined at " in done.stdout
    assert done.returncode == 0, done.stderr


def test_every_strategy_is_explained(tmp_path: Path) -> None:
    (tmp_path / "t.dl").write_text("p(x) <- q(x).  q(1).  r(x) <- q(x), x > 1.\n")
    done = prompt(".explain --all p\n.explain p\n", "t.dl", cwd=tmp_path)
    assert done.stdout.count("strategy      per transaction") == 1 and done.stdout.count("chosen: ") == 1
    assert done.returncode == 0, done.stderr


def test_errors_have_places_and_the_session_continues(tmp_path: Path) -> None:
    text = "p(1).\n+q(2).\n\n  p(2,\n 3).\n.prnt p\n.print q\n+p(2). +p(3\n).\n?- p(x).\n+p(1.\n"
    done = prompt(text, cwd=tmp_path)
    assert re.findall(r"^(<stdin>:\S+ error: .*)$", done.stderr, re.MULTILINE) == [
        "<stdin>:2:1: error: unknown predicate q",
        "<stdin>:4:3: error: p takes 1 argument, but 2 are given",
        "<stdin>:6:1: error: unknown command .prnt",
        "<stdin>:7:1: error: unknown predicate q",
        "<stdin>:11:3: error: `(` is not closed",
    ], done.stderr
    assert without_times(done.stdout) == (
        "committed 1: +1 p (TIME)\ncommitted 2: +2 p (TIME)\n x\n 1\n 2\n 3\n3 rows\n"
    )
    assert done.returncode == 1


SCRIPT = """\
begin
+edge(1, 2).
?- edge(x, y).
+edge(2, 3).
commit
begin
+edge(7, 7).
rollback
begin
+edge(8, 8).
+egde(9, 9).
+edge(9, 9).
commit
commit
begin
begin
rollback
?- edge(x, y).
begin
+edge(5, 5).
"""


def test_longer_transactions_are_atomic() -> None:
    done = prompt(SCRIPT, "programs/reach.dl")
    assert without_times(done.stdout) == (
        " x  y\n0 rows\ncommitted 1: +2 edge, +3 reach (TIME)\n"
        "rolled back\nrolled back: it has errors\nrolled back\n x  y\n 1  2\n 2  3\n2 rows\n"
    )
    assert re.findall(r"error: (.*)", done.stderr) == [
        "unknown predicate egde",
        "there is no transaction to commit",
        "a transaction is already open",
        "the transaction was not committed: rolled back",
    ]
    assert done.returncode == 1


SESSION = """\
far(x, y) <- reach(x, y),     // continues
             !edge(x, y).
.watch far
+edge(1, 2), +edge(2, 3).
.watch
.list
.print far
.watch far
-edge(1, 2).
.explain far
.stats
.help
.load more.dl
?- near(x, y).
.quit
+edge(9, 9).
"""


def test_commands(tmp_path: Path) -> None:
    (tmp_path / "more.dl").write_text('.include "facts.dl"\nnear(x, y) <- edge(x, y) ; edge(y, x).\n')
    (tmp_path / "facts.dl").write_text("edge(4, 5).\n")
    done = prompt(SESSION, str(ROOT / "programs/reach.dl"), cwd=tmp_path)
    out = without_times(done.stdout)
    assert out.startswith(
        "committed 1: 1 rule (TIME)\n"
        "watching far\n"
        "committed 2: +2 edge, +3 reach, +1 far (TIME)\n+far(1, 3)\n"
        "watching far\n"
    ), out
    assert "reach(c0: int, c1: int)  3  derived\n" in out and "edge(x: int, y: int)     2  base\n" in out
    assert " c0  c1\n 1   3\n1 row\nno longer watching far\n" in out
    assert "committed 3: -1 edge, -2 reach, -1 far (TIME)\nstratum" in out
    assert "far(x, y) <- reach(x, y), !edge(x, y)." in out
    assert re.search(
        r"^transaction 3: -1 edge, -2 reach, -1 far; "
        r"\d+ operations; stages: reach \(\d+\); delta: far \(\d+\); ",
        out,
        re.MULTILINE,
    )
    assert {f".{name}" for name in COMMANDS} <= set(re.findall(r"^  (\.\w+)", out, re.MULTILINE))
    assert out.endswith(
        "committed 4: 1 rule, +1 edge, +1 reach, +4 near (TIME)\n x  y\n 2  3\n 3  2\n 4  5\n 5  4\n4 rows\n"
    )
    assert done.returncode == 0, done.stderr


VALUES = r"""
t(i, u, f, d, s, b, day, at) -> int(i), unsigned(u), float(f), decimal[8, 2](d), string(s), bool(b),
    date(day), datetime(at).
+t(-5, 18446744073709551615, 0.1, 12.50, "a,\"b\"\n\tc", true, "2024-02-29", "2024-02-29T12:00:00.5").
+t(0, 0, 1.0e300, 0.00, "", false, "1999-12-31", "1999-12-31").
flag().
.type Pair = [a: symbol, n: number]
.decl pair(p: Pair, n: number)
pair(["a, \"b\"]", 1], 2).
price["tea"] = 3.50.
dear(x) <- price[x] = p, p > 3.0.
dear("gold").
edge(x, y) -> int(x), int(y).
edge(x, y) -> x != y.
reach(x, y) <- edge(x, y) ; reach(x, z), edge(z, y).
edge(1, 2). edge(2, 3).
"""


def test_a_saved_database_comes_back(tmp_path: Path) -> None:
    shown = ".print pair\n.print t\n.print dear\n.print reach\n"
    first = prompt(f"{VALUES}-edge(1, 2).\n.save kept\n{shown}", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    again = prompt(
        f"{shown}?- flag().\n+edge(4, 4).\n",
        "kept/program.dl",
        "-F",
        "kept",
        cwd=tmp_path,
    )
    tables = first.stdout.split("\n", first.stdout.count("committed"))[-1]
    assert again.stdout == tables + "yes\n"
    assert "constraint broken: edge(x, y) -> x != y." in again.stderr and again.returncode == 1


@pytest.mark.parametrize("arguments", [["nowhere.dl"], ["programs/errors/several_errors.dl"]])
def test_a_program_that_cannot_be_loaded_is_an_error(arguments: list[str]) -> None:
    done = prompt("", *arguments)
    assert done.returncode == 1 and "error: " in done.stderr and "Traceback" not in done.stderr


REMOVING = """\
far(x, y) <- reach(x, y), !edge(x, y).
+edge(1, 2), +edge(2, 3).
.rules
.remove far(x, y) :- reach(x,y), !edge(x,y)
begin
.remove 2
+edge(3, 4).
commit
.rules
.remove 7
.remove nothing(x) <- edge(x, _).
"""


def test_rules_are_removed(tmp_path: Path) -> None:
    done = prompt(REMOVING, str(ROOT / "programs/reach.dl"), cwd=tmp_path)
    assert without_times(done.stdout) == (
        "committed 1: 1 rule (TIME)\n"
        "committed 2: +2 edge, +3 reach, +1 far (TIME)\n"
        "  1  reach(x, y) <- edge(x, y).\n"
        "  2  reach(x, z) <- reach(x, y), edge(y, z).\n"
        "  3  far(x, y) <- reach(x, y), !edge(x, y).\n"
        "committed 3: 1 rule removed, -1 far (TIME)\n"
        "committed 4: 1 rule removed, +1 edge, -1 +1 reach (TIME)\n"
        "  1  reach(x, y) <- edge(x, y).\n"
    )
    assert "there is no rule 7" in done.stderr and "there is no such rule" in done.stderr
    assert done.returncode == 1


def test_a_transaction_that_breaks_something_is_reported_with_its_line() -> None:
    """The message points at the constraint; the script's line comes before it."""
    done = prompt("edge(1, 2).\nedge(x, y) -> x < y.\n\n+edge(3,\n  1).\nbegin\n+edge(4, 1).\ncommit\n")
    lines = [line for line in done.stderr.splitlines() if line.startswith("<stdin>")]
    broken = "<stdin>:2:1: error: constraint broken: edge(x, y) -> x < y."
    back = "error: the transaction is rolled back"
    assert lines == [f"<stdin>:4: {back}", broken, f"<stdin>:8: {back}", broken]


def test_pending_changes_are_shown_in_order(tmp_path: Path) -> None:
    text = "p(x) -> int(x).\nbegin\n+p(3).\n+p(1).\n+p(2).\n-p(3).\n.pending\n.pending p\ncommit\n.pending\n"
    done = prompt(text, cwd=tmp_path)
    lines = without_times(done.stdout).splitlines()[1:]
    assert lines == ["+p(1)", "+p(2)"] * 2 + ["committed 2: +2 p (TIME)", "nothing is pending"]
