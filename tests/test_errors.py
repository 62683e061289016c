"""Error messages are golden files: every `programs/errors/FAULT.dl` has its exact output in `FAULT.stderr`.

Those in `programs/errors/running/` are right as programs; what they say when they run is the golden text.

`python -m tests.test_errors` writes the golden files again; read the difference before committing it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dlog import errors
from dlog.cli import main

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted((ROOT / "programs" / "errors").glob("*.dl"))
RUNNING = sorted((ROOT / "programs" / "errors" / "running").glob("*.dl"))
WARNED = sorted((ROOT / "programs" / "errors" / "warnings").glob("*.dl"))
NOISY = {ROOT / "programs" / "errors" / "running" / "nothing_to_write.dl"}  # with warnings about their texts
# Faults of files rather than of texts: what the command is given, and what it says.
FILES = {
    "no_such_program.dl": "error: no such file: no_such_program.dl\n",
    "programs": "error: programs is a directory, not a program\n",
    "x" * 300: f"error: cannot read {'x' * 300}: File name too long\n",
}


def check(*arguments: str) -> tuple[str, str, object]:
    return command("check", *arguments)


def run(program: Path) -> tuple[str, str, object]:
    """The same of a run, without messages that are printed once per installation or after a while."""
    with tempfile.TemporaryDirectory() as out_folder:
        facts = "programs/errors/running/facts"
        quiet = [] if program in NOISY else ["--no-warnings"]
        out, err, status = command("run", name_of(program), "-F", facts, "-D", out_folder, *quiet)
    said = [line for line in err.splitlines(True) if not line.startswith(("compiling ", "evaluating "))]
    return out, "".join(said), status


def command(*arguments: str) -> tuple[str, str, object]:
    """What `dlog` prints on both streams, and its exit status, run from the project's root."""
    out, err = io.StringIO(), io.StringIO()
    argv, folder, modules = sys.argv, os.getcwd(), dict(sys.modules)
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    status: object = None
    try:
        sys.argv = ["dlog", *arguments]
        os.chdir(ROOT)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stopped:
        status = stopped.code
    finally:
        sys.argv, sys.unraisablehook = argv, hook
        signal.signal(signal.SIGINT, handler)
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_NoPandas"]
        os.chdir(folder)
        if "pandas" not in modules:  # the command hides it, for its whole process
            sys.modules.pop("pandas", None)
    return out.getvalue(), err.getvalue(), status


def name_of(program: Path) -> str:
    return program.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_golden_messages(program: Path) -> None:
    golden = program.with_suffix(".stderr").read_text(encoding="utf-8")
    assert check(name_of(program)) == ("", golden, 1)


@pytest.mark.parametrize("program", RUNNING, ids=lambda p: p.stem)
def test_golden_messages_of_runs(program: Path) -> None:
    golden = program.with_suffix(".stderr").read_text(encoding="utf-8")
    assert run(program) == ("", golden, int("error: " in golden))


@pytest.mark.parametrize("program", WARNED, ids=lambda p: p.stem)
def test_golden_warnings(program: Path) -> None:
    golden = program.with_suffix(".stderr").read_text(encoding="utf-8")
    assert check(name_of(program)) == ("", golden, 0) and "error: " not in golden
    assert check(name_of(program), "-w") == check(name_of(program), "--no-warn") == ("", "", 0)


@pytest.mark.parametrize("path", FILES, ids=["missing", "directory", "unreadable"])
def test_messages_about_files(path: str) -> None:
    assert check(path) == ("", FILES[path], 1)


def test_several_programs_are_all_checked() -> None:
    names = ["programs/errors/wrong_arity.dl", "programs/reach.dl", "programs/errors/missing_include.dl"]
    out, err, status = check(*names)
    assert (out, status) == ("", 1)
    assert err == check(names[0])[1] + check(names[2])[1]


def test_every_golden_file_has_its_program() -> None:
    golden = {p.stem for p in (ROOT / "programs" / "errors").glob("*.stderr")}
    assert golden == {p.stem for p in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_golden_form(program: Path) -> None:
    """Each error has its place, its line, and carets under it; no place is given twice for one message."""
    lines = program.with_suffix(".stderr").read_text(encoding="utf-8").splitlines()
    heads = [line for line in lines if ": error: " in line]
    assert heads and len(heads) == len(set(heads))
    for line in heads:
        place = line.split(": error: ")[0]
        file, row, column = place.rsplit(":", 2)
        assert (ROOT / file).is_file() and int(row) > 0 and int(column) > 0
    assert not [line for line in lines if line.startswith("help: ") and AUXILIARY.search(line)]
    assert not [line for line in heads if AUXILIARY.search(line)]


# Names of predicates that lowering makes: no user wrote them.
AUXILIARY = re.compile(r"'(count|sum|min|max|mean|concat|domain)|(constraint|query)'\d|\bNone\b|`_\d")


def test_check_accepts_all_programs() -> None:
    programs = sorted(p for p in (ROOT / "programs").rglob("*.dl") if "errors" not in p.parts)
    assert len(programs) > 40
    assert check(*map(name_of, programs)) == ("", "", 0)
    assert check("-w", *map(name_of, RUNNING + WARNED)) == ("", "", 0)


# Nothing is untested: every line of the front end that makes an error must run for some golden file.

MAKERS = {"SourceError", "UnsupportedError", "DataError", "DlogError", "_Misuse", "ValueError"}
METHODS = {"error", "unsupported", "on_error", "on_last", "misuse", "outside"}


def test_every_message_has_a_golden_file() -> None:
    recorded: set[tuple[str, int]] = set()
    with _recording(recorded):
        for path in (*map(name_of, PROGRAMS), *FILES):
            check(path)
    missing = {
        (file.name, file.read_text(encoding="utf-8").splitlines()[first - 1].strip())
        for file in _front_end()
        for first, last in _sites(file)
        if not any((str(file), line) in recorded for line in range(first, last + 1))
    }
    assert missing == UNREACHED


# An included file that exists and cannot be read: a superuser can read all of them.
UNREACHED = {("parse.py", "diagnostics.error(error.message, include.span)")}


def _front_end() -> Iterator[Path]:
    for folder in ("language", "ir"):
        yield from sorted((ROOT / "dlog" / folder).rglob("*.py"))


def _sites(file: Path) -> Iterator[tuple[int, int]]:
    """First and last line of each call that makes an error."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            by_name = isinstance(node.func, ast.Name) and node.func.id in MAKERS
            by_method = isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
            if by_name or by_method:
                yield node.lineno, node.end_lineno or node.lineno


@contextlib.contextmanager
def _recording(recorded: set[tuple[str, int]]) -> Iterator[None]:
    """Notes which lines are active, or led to what is being handled, whenever an error is made."""
    original = errors.DlogError.__init__

    def noting(self: errors.DlogError, *args: object, **kwargs: object) -> None:
        recorded.update(_active_lines())
        original(self, *args, **kwargs)  # type: ignore[arg-type]

    errors.DlogError.__init__ = noting  # type: ignore[method-assign]
    try:
        yield
    finally:
        errors.DlogError.__init__ = original  # type: ignore[method-assign]


def _active_lines() -> Iterable[tuple[str, int]]:
    frame = sys._getframe(2)
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    trace = sys.exc_info()[2]
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


if __name__ == "__main__":
    for paths, say in ((PROGRAMS + WARNED, lambda path: check(name_of(path))), (RUNNING, run)):
        for path in paths:
            text = say(path)[1]
            golden = path.with_suffix(".stderr")
            if not golden.exists() or golden.read_text(encoding="utf-8") != text:
                golden.write_text(text, encoding="utf-8")
                print(f"wrote {name_of(golden)}")
