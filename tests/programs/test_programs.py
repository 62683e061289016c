"""Every shipped program under every treatment writes what `expected/` says.

One program, many treatments, one expectation: run by the command, with kernels uncompiled, in threads, and
with every feature of the planner forced and forbidden.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dlog.planning.options import ENVIRONMENT, Options
from tests.planning.test_planning_features import SETTINGS

PROGRAMS = Path(__file__).parents[2] / "programs"
NAMES = sorted(
    str(path.relative_to(PROGRAMS).with_suffix(""))
    for folder in (PROGRAMS, PROGRAMS / "souffle", PROGRAMS / "finance")
    for path in folder.glob("*.dl")
)


def lines(path: Path) -> list[str]:
    """The lines of a file in any order, gzip or not; of a SQLite file, the rows of its tables."""
    data = path.read_bytes()
    if path.suffix == ".sqlite":
        return sorted(map(str, tables(path)))
    return sorted((gzip.decompress(data) if path.suffix == ".gz" else data).decode().splitlines())


def tables(path: Path) -> Iterator[tuple[object, ...]]:
    """Tables, columns and rows, whatever SQLite quotes."""
    connection = sqlite3.connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master").fetchall():
        yield (name, *connection.execute("SELECT name, type FROM pragma_table_info(?)", (name,)))
        yield from ((name, *row) for row in connection.execute(f'SELECT * FROM "{name}"'))
    connection.close()


def check_outputs(name: str, out: Path, stdout: str) -> None:
    expected = PROGRAMS / name / "expected"
    files = {p.name for p in expected.iterdir()} - {"stdout.txt"}
    assert {p.name for p in out.iterdir()} == files
    for file in files:
        assert lines(out / file) == lines(expected / file), file
    printed = expected / "stdout.txt"
    assert sorted(stdout.splitlines()) == (lines(printed) if printed.exists() else [])


@pytest.mark.parametrize("name", NAMES)
def test_oracle_expected_output(name: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    from dlog.engine.run import run_program
    from dlog.report import print_queries

    database = run_program(PROGRAMS / f"{name}.dl", PROGRAMS / name / "facts", tmp_path)
    print_queries(database)
    sys.stdout.flush()
    check_outputs(name, tmp_path, capfdbinary.readouterr().out.decode())
    assert not database.warnings
    database.check()


@pytest.mark.parametrize("setting", SETTINGS)
def test_oracle_expected_output_whatever_the_planner_does(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All programs, and all files of transactions, with features of the planner forced on and off."""
    from dlog.engine.run import run_program

    monkeypatch.setenv(ENVIRONMENT, setting)
    for name in NAMES:
        out = tmp_path / name
        out.mkdir(parents=True)
        with open(tmp_path / "printed", "wb") as printed:
            database = run_program(PROGRAMS / f"{name}.dl", PROGRAMS / name / "facts", out, stdout=printed)
        assert database.store.options == Options.parse(setting)
        expected = PROGRAMS / name / "expected"
        for file in {p.name for p in expected.iterdir()} - {"stdout.txt"}:
            assert lines(out / file) == lines(expected / file), (name, file)


def test_differential_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores write the same files as one, byte for byte; programs are small, so thresholds go down."""
    from dlog.engine.body import parallel
    from dlog.engine.evaluate import chunks
    from dlog.engine.run import run_program

    cut: dict[str, int] = {"in_parallel": 0, "in_threads": 0}

    def pool(threads: int) -> ThreadPoolExecutor:
        assert threads > 1 or sys._getframe(1).f_code.co_name == "in_parallel"
        cut[sys._getframe(1).f_code.co_name] += 1
        return ThreadPoolExecutor(threads)

    monkeypatch.setattr(parallel, "ThreadPoolExecutor", pool)
    monkeypatch.setattr(parallel, "_SMALL", 0)
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 2)
    monkeypatch.setattr(chunks, "FIRST_SEEDS", 2)
    monkeypatch.setattr(chunks, "WORTH_THREADS", 0)
    for name in NAMES:
        written: dict[int, dict[str, bytes]] = {}
        for jobs in (1, 2):
            before, out = sum(cut.values()), tmp_path / name / str(jobs)
            out.mkdir(parents=True)
            with open(out / "printed", "wb") as printed:
                run_program(
                    PROGRAMS / f"{name}.dl", PROGRAMS / name / "facts", out, jobs=jobs, stdout=printed
                )
            written[jobs] = {path.name: path.read_bytes() for path in out.iterdir()}
            assert jobs == 2 or sum(cut.values()) == before
        assert written[1] == written[2], name
    assert all(times > 5 for times in cut.values()), "threads were used"


def test_the_command_itself(tmp_path: Path) -> None:
    """The same through the command line, with Soufflé's flags."""
    name = "graph_metrics"
    command = [sys.executable, "-m", "dlog", "run", str(PROGRAMS / f"{name}.dl")]
    done = subprocess.run(
        [*command, "-F", str(PROGRAMS / name / "facts"), "-D", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    check_outputs(name, tmp_path, done.stdout)


def test_differential_jit(tmp_path: Path) -> None:
    """All programs with kernels run as plain Python write the same files."""
    script = (
        "import sys, pathlib\n"
        "from dlog.engine.run import run_program\n"
        "programs, out = map(pathlib.Path, sys.argv[1:3])\n"
        "for name in sys.argv[3:]:\n"
        "    (out / name).mkdir(parents=True)\n"
        "    facts, null = programs / name / 'facts', open('/dev/null', 'wb')\n"
        "    run_program(programs / f'{name}.dl', facts, out / name, stdout=null)\n"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    arguments = [sys.executable, "-W", "ignore", "-c", script, str(PROGRAMS), str(tmp_path), *NAMES]
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        expected = PROGRAMS / name / "expected"
        for file in {p.name for p in expected.iterdir()} - {"stdout.txt"}:
            assert lines(tmp_path / name / file) == lines(expected / file), (name, file)


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_is_explained(name: str) -> None:
    from dlog.engine.database import plan_only
    from dlog.engine.evaluate.demand import rewriting_for

    database = plan_only(PROGRAMS / f"{name}.dl", PROGRAMS / name / "facts")
    text = database.explain()
    rewriting = rewriting_for(database.program, database.store, database.pending)
    reported = [rule for stratum in rewriting.program.strata for rule in stratum.rules if rule.span]
    has_rules = any(rule.span for stratum in database.program.strata for rule in stratum.rules)
    assert bool(reported) == has_rules, "what will run is explained, as it will run"
    assert all(f"{rule.span.file}:{rule.span.line}: {rule}" in text for rule in reported if rule.span)
    for stratum in database.program.strata:
        wanted = [
            rule for rule in stratum.rules if rule.span and rule.heads[0].predicate not in rewriting.left_out
        ]
        assert all(f"{rule.span.file}:{rule.span.line}: " in text for rule in wanted if rule.span)
    assert not database.measures.rules  # nothing ran
