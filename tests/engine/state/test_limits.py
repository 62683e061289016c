"""Limits stop a run cleanly: one line that names the rule, exit status not 0, no partial output file."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dlog
from dlog.cli.common import read_bytes
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from dlog.engine.state import limits
from dlog.engine.state.limits import resident_bytes
from dlog.engine.state.measure import Measures

ENDLESS = """
.decl n(x: number)
.output n
n(0).
n(x + 1) :- n(x).
"""
BUSY = """
.decl a(x: number)
.decl n(x: number)
.output n
a(x) :- x = range(0, 4000).
n(0).
n(y) :- n(x), a(p), a(q), a(r), y = (x + p * q * r) % 10.
"""
WIDE = """
.decl a(x: number)
.decl pair(x: number, y: number, z: number, w: number)
.output pair
a(x) :- x = range(0, 400).
pair(x, y, z, w) :- a(x), a(y), a(z), a(w), x + y + z + w != 1.
"""


def run(program: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    path = folder / "p.dl"
    path.write_text(program)
    command = [sys.executable, "-m", "dlog", "run", str(path), "-D", str(folder / "out"), *flags]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("program", "flags", "message"),
    [
        (ENDLESS, ("--timeout", "1"), "timeout of 1 s reached while evaluating the rule at"),
        (ENDLESS, ("--max-rows", "5000"), "limit of 5,000 derived rows reached while evaluating the rule at"),
        (ENDLESS, ("--max-memory", "400M"), "memory limit of 419,430,400 bytes reached while evaluating"),
        (BUSY, ("--timeout", "1"), "timeout of 1 s reached while evaluating the rule at"),
        (WIDE, ("--timeout", "1"), "timeout of 1 s reached while evaluating the rule at"),
        (WIDE, ("--max-rows", "100000"), "limit of 100,000 derived rows reached"),
        (WIDE, ("--max-memory", "600M"), "memory limit of 629,145,600 bytes reached while evaluating"),
    ],
)
def test_limit_stops_cleanly(program: str, flags: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = run(program, tmp_path, *flags)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    assert len(errors) == 1 and message in errors[0], done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN])  # ignored: a shell's background job
def test_interrupt_names_the_rule(inherited: signal.Handlers, tmp_path: Path) -> None:
    path = tmp_path / "p.dl"
    path.write_text(BUSY)  # recursion without end in sight, in little memory
    process = subprocess.Popen(
        [sys.executable, "-m", "dlog", "run", str(path), "-D", str(tmp_path / "out")],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, inherited),
    )
    assert process.stderr is not None
    try:
        while (
            "evaluating" not in process.stderr.readline()
        ):  # printed after a second of work, then every five
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert "interrupted while evaluating the rule at" in errors and "Traceback" not in errors
    assert not (tmp_path / "out").exists()


def test_memory_of_the_machine_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any that was given: the system would end the process without a word."""
    monkeypatch.setattr(limits, "machine_bytes", lambda: resident_bytes() - (1 << 20))
    monkeypatch.setattr(limits, "_LOOK", 0.0)
    with pytest.raises(dlog.DlogError, match="out of memory while "):
        dlog.Database(source="n(0). n(y) <- n(x), y = x + 1.")
    monkeypatch.undo()
    assert resident_bytes() < limits.machine_bytes() < 1 << 60


def test_sizes_are_read_as_people_write_them() -> None:
    mega = 1 << 20
    assert [read_bytes(text) for text in ("500M", "500MB", "500 MiB", ".5m", "12", None)] == [
        *(500 * mega, 500 * mega, 500 * mega, mega // 2, 12, None)
    ]


def test_bad_size_is_an_error(tmp_path: Path) -> None:
    done = run(ENDLESS, tmp_path, "--max-memory", "lots")
    assert done.returncode == 1 and "bad size: lots" in done.stderr


def test_limits_from_python_leave_the_state_alone() -> None:
    db = dlog.Database(
        source="a(1). b(x) <- a(x). b(y) <- b(x), y = x + 1, x < 100.", limits=dlog.Limits(rows=150)
    )
    before = db["b"].rows()
    with pytest.raises(dlog.LimitError, match="derived rows"), db.transaction() as tx:
        tx.insert("a", [(k,) for k in range(-1000, 0)])
    assert db["b"].rows() == before
    assert db["a"].rows() == [(1,)]


def test_cross_product_is_announced(tmp_path: Path) -> None:
    done = run(
        WIDE.replace("400", "20").replace("a(x), a(y), a(z), a(w)", "a(x), a(y), a(z), a(w), x < 2, y > 3"),
        tmp_path,
    )
    assert done.returncode == 0
    assert "share no variable: a cross product of about" in done.stderr


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize(
    ("rule", "pieces"),
    [
        ("p(y, z) <- p(x, y), q(z), x < z.", "p and q"),
        ("p(x, z) <- p(x, y), p(z, w), q(x), q(z).", "p, q and p, q"),
    ],
)
def test_cross_product_of_a_recursive_rule_is_announced(rule: str, pieces: str, rounds: bool) -> None:
    """However recursion is done, and at the rule's place, once."""
    source = f"q(x) <- x = range(0, 400).\np(0, x) <- q(x).\n{rule}"
    made = dlog.Database(source=source, evaluated=False)
    said: list[str] = []
    evaluate(made.program, made.store, Evaluation(measures=Measures(on_warning=said.append), rounds=rounds))
    assert [text for text in said if ":3: warning: " in text] == said
    assert any(f"{pieces} share no variable: a cross product of about" in text for text in said)
    if not rounds:
        assert len(said) == 1
    small = dlog.Database(source=source.replace("400", "9"), evaluated=False)
    quiet: list[str] = []
    evaluate(
        small.program, small.store, Evaluation(measures=Measures(on_warning=quiet.append), rounds=rounds)
    )
    assert not quiet
