"""Shipped M3 programs check, print and convert; as rows come and go, the oracle says what DuckDB says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dlog.m3.convert import convert
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import A5, DBTOASTER
from dlog.m3.syntax.parse import parse, parse_file
from dlog.m3.syntax.print import print_program
from dlog.m3.types import functions as known
from dlog.m3.types.typecheck import check
from tests.oracle.m3_naive import Naive
from tests.oracle.m3_shipped import FOLDER, PROGRAMS, Cofactor, Relations, apply, events_of, sql_of, tables_of
from tests.test_errors import command

IDS = [path.name for path in PROGRAMS]
STEP = 11  # events between two comparisons


def test_both_dialects_and_all_forms_of_triggers_are_shipped() -> None:
    programs = [parse_file(path) for path in PROGRAMS]
    assert {p.dialect for p in programs} == {A5, DBTOASTER}
    assert {t.event for p in programs for t in p.triggers} == {ast.INSERT, ast.DELETE, ast.BATCH, ast.READY}
    kinds = {type(node) for p in programs for node in p.walk()}
    assert kinds == {
        kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.Node)
    } - {ast.Node}


@pytest.mark.parametrize("path", PROGRAMS, ids=IDS)
def test_dialects_are_found_out(path: Path) -> None:
    expected = A5 if path.name.endswith(".a5.m3") else DBTOASTER
    assert parse_file(path).dialect == expected


@pytest.mark.parametrize("path", PROGRAMS, ids=IDS)
def test_shipped_programs_are_read_back(path: Path) -> None:
    program = parse_file(path)
    assert parse(print_program(program), dialect=program.dialect) == program


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.name.endswith(".a5.m3") and p.stem != "inputs.a5"])
def test_the_two_dialects_of_a_program_say_the_same(path: Path) -> None:
    """Up to the files, which have other conventions for deletions."""
    twin = parse_file(FOLDER / path.name.replace(".a5", ""))
    converted = convert(twin, A5)
    assert parse_file(path).triggers == converted.triggers
    assert parse_file(path).maps == converted.maps


def close(found: dict[Any, Any], expected: dict[Any, Any]) -> bool:
    kept = {key: value for key, value in found.items() if abs(value) > 1e-9}
    return kept == pytest.approx({k: v for k, v in expected.items() if abs(v) > 1e-9}, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("path", PROGRAMS, ids=IDS)
def test_oracle_and_duckdb_agree_after_every_step(path: Path) -> None:
    program = check(parse_file(path))
    oracle = Naive(program, tables_of(program), {"lift": Cofactor.lift})
    relations = Relations(program)
    oracle.ready()
    compared = 0
    events = events_of(program)
    for number, event in enumerate(events, 1):
        apply(oracle, event)
        relations.apply(event)
        if number % STEP == 0 or number == len(events):
            compared += agree(oracle, relations, path)
    assert compared > 0, "no result was ever there to compare"


def agree(oracle: Naive, relations: Relations, path: Path) -> int:
    expected = relations.results(sql_of(path))
    if path.stem == "regression":
        return agree_on_cofactors(oracle, relations, path)
    for name, rows in expected.items():
        assert close(oracle.query(name), rows), name
    return sum(map(bool, expected.values()))


def agree_on_cofactors(oracle: Naive, relations: Relations, path: Path) -> int:
    found = oracle.query("COFACTOR")
    ((counted, sums),) = relations.results(sql_of(path))["COFACTOR"].items() or [((0,), 0)]
    if counted[0]:
        assert found[()].flat(2) == pytest.approx([float(x or 0) for x in (*counted, sums)])
    return int(bool(counted[0]))


# ---- functions of a program's users


FUNCTIONS = """import numpy as np
from dlog import m3

m3.register_function("ATOI", lambda texts: np.array([int(text) for text in texts]), ("string",))
m3.register_function("vec_length", lambda x, y, z: x + y + z, ("number", "number", "number"))
"""
PROGRAM = """CREATE STREAM R(name string, x double) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
DECLARE MAP Q(double)[][] := 0;
DECLARE QUERY Q := Q(double)[][];
ON BATCH UPDATE OF R {
  Q(double)[][] += AggSum([], (DELTA R)(name, x) * [ATOI: long](name) * [vec_length: double](x, x, 1));
}
"""


def test_functions_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_registered", {})
    functions, program = tmp_path / "own.py", tmp_path / "p.m3"
    functions.write_text(FUNCTIONS)
    program.write_text(PROGRAM)
    (tmp_path / "r.csv").write_text("2|3.5|1\n10|0.5|1\n")
    assert "unknown function ATOI" in command("m3-check", str(program))[1]
    assert command("m3-check", str(program), "--functions", str(functions)) == ("", "", 0)
    out, err, status = command("m3-run", str(program), "--functions", str(functions), "--format", "csv")
    assert (err, status) == ("", 0) and out.split() == ["value", str(2 * 8.0 + 10 * 2.0)]


def test_functions_that_fail_are_named_with_their_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions, program = tmp_path / "own.py", tmp_path / "p.m3"
    program.write_text(PROGRAM)
    (tmp_path / "r.csv").write_text("2|3.5|1\nten|0.5|1\n")
    for body, message, help in (
        ("np.array([int(t) for t in texts])", "ATOI failed with ValueError: invalid literal", "in line 4 of"),
        ("np.array([7])", "ATOI returned a column of length 1 for 2 rows", ""),
    ):
        monkeypatch.setattr(known, "_registered", {})
        functions.write_text(FUNCTIONS.replace("np.array([int(text) for text in texts])", body))
        out, err, status = command("m3-run", str(program), "--functions", str(functions))
        assert (out, status) == ("", 1)
        assert f"{program}:5:52: error: {message}" in err
        assert help in err and "Traceback" not in err


def test_errors_in_a_file_of_functions_name_the_line(tmp_path: Path) -> None:
    functions = tmp_path / "own.py"
    program = "programs/m3/vwap.m3"
    for text, message in (
        ("x = 1\ny = x / 0\n", "own.py:2: ZeroDivisionError: division by zero"),
        ("x = (\n", "own.py:1: SyntaxError: '(' was never closed (own.py, line 1)"),
        ("import nothing_of_that_name\n", "own.py:1: ModuleNotFoundError: No module named"),
        (
            "from dlog import m3\nm3.register_function('abs', abs, ('number',))\n",
            "abs is already a function of M3",
        ),
    ):
        functions.write_text(text)
        err = command("m3-check", program, "--functions", str(functions))[1]
        assert message in err and "Traceback" not in err
    assert "cannot read" in command("m3-check", program, "--functions", str(tmp_path / "none.py"))[1]
