"""The command line: help, status, streams.  What commands compute is tested where it is computed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dlog

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str, cwd: Path = ROOT, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dlog", *arguments]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]], ids=["nothing", "--help", "-h"])
def test_help_has_a_runnable_example(arguments: list[str], tmp_path: Path) -> None:
    done = run(*arguments)
    assert "dlog run hello.dl -D -" in done.stdout + done.stderr
    text = (done.stdout + done.stderr).split("hello.dl:")[1].split("Run it")[0]
    (tmp_path / "hello.dl").write_text(text)
    example = run("run", "hello.dl", "-D", "-", cwd=tmp_path)
    assert example.returncode == 0 and "1\t3" in example.stdout, example.stdout + example.stderr


def test_version() -> None:
    done = run("--version")
    assert (done.stdout, done.stderr, done.returncode) == (f"dlog {dlog.__version__}\n", "", 0)


def test_check_is_silent_about_good_programs() -> None:
    done = run("check", "programs/reach.dl", "programs/two_syntaxes.dl")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_check_as_a_process() -> None:
    """As the golden files have it, by the installed command and by the module."""
    golden = (ROOT / "programs/errors/several_errors.stderr").read_text()
    done = run("check", "programs/errors/several_errors.dl")
    assert (done.stdout, done.stderr, done.returncode) == ("", golden, 1)
    script = Path(sys.executable).with_name("dlog")
    again = subprocess.run(
        [script, "check", "programs/errors/several_errors.dl"], cwd=ROOT, capture_output=True, text=True
    )
    assert (again.stdout, again.stderr, again.returncode) == ("", golden, 1)


@pytest.mark.parametrize("command", ["check", "format", "run"])
def test_no_traceback(command: str) -> None:
    """Whatever is wrong with a program, each command that reads it says it in the same form."""
    names = {"check": ["nested_too_deeply"], "format": ["not_utf8"], "run": ["several_errors"]}
    for name in ("unterminated_string", *names[command]):
        done = run(command, f"programs/errors/{name}.dl")
        assert done.returncode == 1 and done.stdout == "", done.stdout
        assert done.stderr.startswith(f"programs/errors/{name}.dl:"), done.stderr
        assert "Traceback" not in done.stderr


def test_explain_all_prints_the_choice_first_and_every_strategy() -> None:
    done = run("explain", "programs/reach.dl", "-F", "programs/reach/facts", "--all")
    _, *table = done.stdout[done.stdout.index("strategy      per transaction") :].splitlines()[:9]
    assert [line.split()[0] for line in table[:3]] == ["stages", "delta", "trace"]
    assert "chosen: " in table[0] and " us " in table[0] and "refused: it is recursive" in table[1]
    assert "from scratch" in done.stdout and "not supported yet" in done.stdout
    assert "--all" in run("explain", "--help").stdout
    refused = run("explain", "programs/sql/triangles.sql", "--all")
    assert refused.returncode == 1 and "--all is for programs" in refused.stderr


def test_the_cache_is_shown_and_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only entries of dlog are counted and removed."""
    root = tmp_path / "cache"
    monkeypatch.setenv("DLOG_CACHE_DIR", str(root))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert run("cache").stdout == f"{root}: 0 entries, 0.0 MB\n"
    folder = root / "kernels-0123456789abcdef"
    folder.mkdir(parents=True)
    (folder / "image").write_bytes(bytes(2_500_000))
    (root / "mine").write_text("stays")
    assert run("cache").stdout == f"{root}: 1 entry, 2.5 MB\n"
    assert run("cache", "--clear").stdout == f"{root}: removed 1 entry, 2.5 MB\n"
    assert [path.name for path in root.iterdir()] == ["mine"]
    assert run("cache", "--clear").stdout == f"{root}: removed 0 entries, 0.0 MB\n"


def test_unknown_command_and_option() -> None:
    for arguments in (["frobnicate"], ["check", "--frobnicate", "x.dl"]):
        done = run(*arguments)
        assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr, arguments


def test_format_write_keeps_the_meaning(tmp_path: Path) -> None:
    path = tmp_path / "p.dl"
    path.write_text("q(1).   p(x):-q(x),x>0.\n")
    assert run("format", "--write", str(path)).returncode == 0
    text = path.read_text()
    assert "p(x) <- q(x), x > 0." in text
    assert dlog.parse(text) == dlog.parse("q(1).   p(x):-q(x),x>0.\n")
    assert run("format", str(path)).stdout == text


def test_broken_pipe_is_not_an_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m dlog format programs/ontology.dl | head -n 1",
        cwd=ROOT,
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1
