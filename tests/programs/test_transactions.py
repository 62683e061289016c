"""Shipped files of transactions: what `dlog apply --changes` prints, against files and the oracle."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import dlog
from dlog.apply import Options, apply_file
from dlog.engine.commit.printed_facts import fact_text
from dlog.planning.options import ENVIRONMENT
from tests.engine.remembered import memory_of
from tests.oracle.naive import evaluate, evaluate_base
from tests.oracle.shipped import PROGRAMS, read_inputs
from tests.planning.test_planning_features import SETTINGS

FILES = sorted(PROGRAMS.glob("*/*.tx"))
WANTED = {
    *("reach", "reachability", "access_control", "points_to", "shortest_paths", "bill_of_materials"),
    *("company_control", "retail"),
}

SLOW = {"points_to"}  # 10 s in the naive evaluator; there `--verify` alone is the judge


def test_every_wanted_program_has_transactions() -> None:
    assert {path.parent.name for path in FILES} >= WANTED


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_oracle_transactions(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The changes are those of the file; from the naive start they lead to the naive end."""
    name = path.parent.name
    database = dlog.Database(PROGRAMS / f"{name}.dl", facts=path.parent / "facts")
    tally = apply_file(database, path, Options(changes=True, verify=True, keep_going=True))
    printed = printed_changes(capsys)
    assert printed == path.with_suffix(".changes").read_text()
    assert tally.failed == path.read_text().count("aborted")
    assert tally.committed > 2

    if name not in SLOW:
        against_naive(path, database, printed)


@pytest.mark.parametrize("strategy", ["delta", "trace", "trace-exact", "views", "multilevel", "join_graph"])
def test_oracle_changes_under_every_strategy(strategy: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same changes, whatever is asked for; strategies check their state after each file."""
    for path in FILES:
        program = PROGRAMS / f"{path.parent.name}.dl"
        database = dlog.Database(program, facts=path.parent / "facts", strategy=strategy)
        apply_file(database, path, Options(changes=True, keep_going=True))
        assert printed_changes(capsys) == path.with_suffix(".changes").read_text(), path
        if path.parent.name not in SLOW:
            database.check()


@pytest.mark.parametrize("setting", SETTINGS)
def test_oracle_changes_whatever_the_planner_does(
    setting: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same changes with features of the planner forced on and off; each file under two settings."""
    monkeypatch.setenv(ENVIRONMENT, setting)
    for path in FILES[SETTINGS.index(setting) % 3 :: 3]:
        database = dlog.Database(PROGRAMS / f"{path.parent.name}.dl", facts=path.parent / "facts")
        apply_file(database, path, Options(changes=True, keep_going=True))
        assert printed_changes(capsys) == path.with_suffix(".changes").read_text(), path


def printed_changes(capsys: pytest.CaptureFixture[str]) -> str:
    return re.sub(r"^(// \d+: ).*/programs/", r"\1programs/", capsys.readouterr().out, flags=re.MULTILINE)


def against_naive(path: Path, database: dlog.Database, printed: str) -> None:
    name = path.parent.name
    program = dlog.check(PROGRAMS / f"{name}.dl")
    before = evaluate(program, read_inputs(program, path.parent / "facts"))
    base = {p: set(database.base(p).rows()) if p in database else set() for p in program.predicates}
    after = evaluate_base(program, base, memory_of(database) if program.remembered else None)
    for predicate in {p for s in program.strata for p in s.predicates}:
        shape = program.predicates[predicate]
        if not shape.auxiliary:
            reported = signed_facts(printed, predicate)
            expected = Counter(fact_text(shape, row) for row in after[predicate])
            expected.subtract(fact_text(shape, row) for row in before[predicate])
            assert reported == {fact: n for fact, n in expected.items() if n}, predicate


def signed_facts(printed: str, predicate: str) -> dict[str, int]:
    """How often more a fact came than went, over all transactions."""
    counts: Counter[str] = Counter()
    for sign, fact in re.findall(rf"^([+-])({re.escape(predicate)}[(\[].*)$", printed, flags=re.MULTILINE):
        counts[fact] += 1 if sign == "+" else -1
    return {fact: n for fact, n in counts.items() if n}
