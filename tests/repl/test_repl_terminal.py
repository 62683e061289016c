"""The prompt on a pseudo-terminal: typing, history, completion, Ctrl-C, statements of several lines."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

ROOT = Path(__file__).resolve().parents[2]
UP, TAB, ENTER, CTRL_C, CTRL_D = "\x1b[A", "\t", "\r", "\x03", "\x04"
ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])")


class Person:
    """Someone at the prompt."""

    def __init__(self, folder: Path, *arguments: str):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DLOG_HISTORY": str(folder / "state" / "history"),
            "TERM": "xterm-256color",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        command = ["-m", "dlog", "repl", *arguments]
        self.screen = pexpect.spawn(
            sys.executable,
            command,
            cwd=str(ROOT),
            env=environment,  # type: ignore[arg-type]
            encoding="utf-8",
            timeout=100,
            dimensions=(40, 120),
        )
        self.sees("dlog>")

    def types(self, text: str) -> None:
        self.screen.send(text)

    def sees(self, text: str) -> str:
        """Waits for a text, whatever its colours; returns what came before it."""
        letters = r"(?:\x1b\[[0-?]*[ -/]*[@-~])*".join(map(re.escape, text))
        self.screen.expect(letters)
        return ESCAPES.sub("", self.screen.before or "")

    def leaves(self) -> int:
        self.types(CTRL_D)
        self.screen.expect(pexpect.EOF)
        self.screen.close()
        return self.screen.exitstatus


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    someone = Person(tmp_path, "programs/reach.dl")
    yield someone
    someone.screen.close(force=True)


def test_typing_transactions_and_queries(person: Person) -> None:
    person.types("+edge(1, 2), +edge(2, 3)." + ENTER)
    person.sees("committed 1: +2 edge, +3 reach (")
    person.sees("dlog>")
    person.types("?- reach(1, y)." + ENTER)
    person.sees("2 rows")
    person.sees("dlog>")
    person.types("-edge(2, 3)." + ENTER)
    person.sees("committed 2: -1 edge, -2 reach (")
    person.sees("dlog>")
    person.types("begin" + ENTER)
    person.sees("tx>")
    person.types("+edge(5, 6)." + ENTER)
    person.sees("tx>")
    person.types("+egde(6, 7)." + ENTER)
    person.sees("did you mean edge?")
    person.sees("failed>")
    person.types("commit" + ENTER)
    person.sees("rolled back: it has errors")
    person.sees("dlog>")
    assert person.leaves() == 0


def test_a_statement_continues_until_it_ends(person: Person) -> None:
    person.types("far(x, y) <-" + ENTER)
    person.sees("...")
    person.types("reach(x, y), // not yet." + ENTER)
    person.types("!edge(x, y)." + ENTER)
    person.sees("committed 1: 1 rule (")
    person.sees("dlog>")
    person.types("+edge(1, 2), +edge(2, 3)." + ENTER)
    person.sees("+3 reach, +1 far (")
    person.sees("dlog>")
    person.types(".why far(1, 3)" + ENTER)
    person.sees("no edge(1, 3)")
    assert person.leaves() == 0


def test_completion_of_predicates_and_commands(person: Person) -> None:
    person.types("+edge(1, 2)." + ENTER)
    person.sees("committed 1")
    person.sees("dlog>")
    person.types("?- rea" + TAB)
    person.sees("reach")
    person.types("(1, y)." + ENTER)
    person.sees("1 row")
    person.sees("dlog>")
    person.types(".pri" + TAB)
    person.sees(".print")
    person.types(" ed" + TAB)
    person.sees("edge")
    person.types(ENTER)
    person.sees("1 row")
    assert person.leaves() == 0


def test_history_persists_between_sessions(tmp_path: Path) -> None:
    first = Person(tmp_path, "programs/reach.dl")
    first.types("+edge(7, 8)." + ENTER)
    first.sees("committed 1")
    first.sees("dlog>")
    first.types(UP)
    first.sees("+edge(7, 8).")
    first.types(ENTER)
    first.sees("committed 2: no change (")
    first.sees("dlog>")
    assert first.leaves() == 0
    second = Person(tmp_path, "programs/reach.dl")
    second.types(UP)
    second.sees("+edge(7, 8).")
    second.types(ENTER)
    second.sees("committed 1: +1 edge, +1 reach (")
    assert second.leaves() == 0


def test_ctrl_c_stops_an_evaluation_and_names_the_rule(person: Person) -> None:
    person.types("n(0)." + ENTER)
    person.sees("committed 1: +1 n (")
    person.sees("dlog>")
    person.types("n(y) <- n(x), y = x + 1." + ENTER)
    person.sees("evaluating")  # the progress bar, after a second of work
    person.types(CTRL_C)
    person.sees("interrupted while")
    seen = person.sees("dlog>")
    assert "evaluating the rule at <prompt>:2 (n)" in seen, seen
    person.types("?- n(x)." + ENTER)
    person.sees("1 row")
    person.sees("dlog>")
    assert person.leaves() == 0


def test_ctrl_c_discards_the_input(person: Person) -> None:
    person.types("+edge(1, " + CTRL_C)
    person.sees("dlog>")
    person.types("+edge(3, 4)." + ENTER)
    person.sees("committed 1: +1 edge, +1 reach (")
    person.sees("dlog>")
    person.types(".quit" + ENTER)
    person.screen.expect(pexpect.EOF)
    person.screen.close()
    assert person.screen.exitstatus == 0
