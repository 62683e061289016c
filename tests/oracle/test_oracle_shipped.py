"""The shipped programs: what the naive evaluator makes of their facts, against their expected outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

import dlog

from .compare import same
from .naive import evaluate
from .shipped import as_printed, expected_outputs, expected_stdout, read_inputs, shipped_programs


@pytest.mark.parametrize("path", shipped_programs(), ids=lambda path: path.stem)
def test_oracle_shipped(path: Path) -> None:
    folder = path.with_suffix("")
    program = dlog.check(path)
    facts = evaluate(program, read_inputs(program, folder / "facts"))
    for name, rows in expected_outputs(program, folder / "expected"):
        types = [column.type for column in program.predicates[name].columns]
        assert same(rows, as_printed(facts[name]), types, name)
    stdout = folder / "expected" / "stdout.txt"
    assert expected_stdout(program, facts) == (stdout.read_text().splitlines() if stdout.exists() else [])
