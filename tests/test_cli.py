"""The command line: help, status, streams.  What commands compute is tested where it is computed."""

from __future__ import annotations

import sqlite3
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
    assert "from scratch" in done.stdout and "join_graph" in done.stdout
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


def test_a_program_alone_is_run(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text("p(1). .output p\n")
    expected = run("run", "p.dl", "-D", "-", cwd=tmp_path).stdout
    assert expected.splitlines()[3] == "1"
    assert run("p.dl", "-D", "-", cwd=tmp_path).stdout == expected
    assert run("-D", "-", "-F", ".", "p.dl", cwd=tmp_path).stdout == expected
    assert (
        run("run", "-", "-D", "-", "-j", "auto", cwd=tmp_path, stdin="p(1).\n.output p\n").stdout == expected
    )


def test_included_folders_and_macros(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "facts.dl").write_text("q(N).\n")
    (tmp_path / "inc" / "rules.dl").write_text("#define NEXT(x) ((x) + N)\n")
    (tmp_path / "p.dl").write_text(
        '#include "rules.dl"\n.include "facts.dl"\nr(NEXT(x)) <- q(x).\n.output r\n'
    )
    done = run("p.dl", "-D", "-", "-I", "inc", "-M", "N=4", cwd=tmp_path)
    assert (done.stdout.splitlines()[3], done.stderr) == ("8", "")
    assert "cannot find" in run("check", "p.dl", "-M", "N=4", cwd=tmp_path).stderr
    assert run("check", "p.dl", "-M", "N=4", "-I", "inc", cwd=tmp_path).stderr == ""


def test_all_commands_on_programs_take_folders_and_macros(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "rules.dl").write_text("q(x) <- p(x), x < N.\n")
    (tmp_path / "p.dl").write_text('#include "rules.dl"\np(1).  p(5).\n.output q\n')
    (tmp_path / "plain.dl").write_text("p(N).\n")
    (tmp_path / "some.tx").write_text("+p(2).\n")
    given = ["-I", "inc", "-M", "N=4"]
    commands = {
        "format": ([], "q(x) <- p(x), x < 4."),
        "explain": ([], "q(x)"),
        "why": (["q(1)"], "q(1)"),
        "apply": (["--tx", "some.tx", "--changes"], "q(2)"),
        "compare": (["--tx", "some.tx"], "strategy"),
    }
    for command, (more, expected) in commands.items():
        done = run(command, "p.dl", *more, *given, cwd=tmp_path)
        assert done.returncode == 0 and expected in done.stdout, (command, done.stdout, done.stderr)
        done = run(command, "p.dl", *more, "-M", "N=4", cwd=tmp_path)
        assert done.returncode == 1 and "rules.dl" in done.stderr, command
    done = run("format", "plain.dl", "-M", "N=3", cwd=tmp_path)
    assert (done.stdout, done.stderr) == (
        "p(3).\n",
        "warning: macros are given; this is the program after them\n",
    )
    done = run("format", "plain.dl", "-M", "N=3", "--write", cwd=tmp_path)
    assert done.returncode == 1 and (tmp_path / "plain.dl").read_text() == "p(N).\n"


def test_tables_of_sqlite_follow_transactions_and_survive_in_databases(tmp_path: Path) -> None:
    """The input is read when the folder is new; each run replaces the rows of the output."""

    def table(file: str, *statements: str) -> list[tuple[int, int]]:
        connection = sqlite3.connect(tmp_path / file)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        rows = connection.execute("SELECT * FROM edge ORDER BY 1, 2").fetchall()
        connection.close()
        return rows

    table("in.db", "CREATE TABLE edge (a INT, b INT)", "INSERT INTO edge VALUES (1, 2), (2, 3)")
    table("out.db", "CREATE TABLE edge (x INT, y INT)", "INSERT INTO edge VALUES (7, 7)")
    (tmp_path / "p.dl").write_text(
        '.decl edge(x: number, y: number)\n.input edge(IO=sqlite, dbname="in.db")\n'
        '.output edge(IO=sqlite, dbname="out.db")\n'
    )
    (tmp_path / "some.tx").write_text("+edge(5, 6), -edge(1, 2).\n")
    (tmp_path / "more.tx").write_text("-edge(2, 3).\n")
    assert run("run", "p.dl", cwd=tmp_path).stderr == ""
    assert table("out.db") == [(1, 2), (2, 3)]
    for changes, rows in (("some.tx", [(2, 3), (5, 6)]), ("more.tx", [(5, 6)])):
        done = run("apply", "p.dl", "--tx", changes, "--db", "folder", "-D", ".", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert table("out.db") == rows and table("in.db") == [(1, 2), (2, 3)]


def test_warnings_of_check_and_run(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text("p(1, 2).\nq(x) <- p(x, y).\n.output q\n")
    expected = "p.dl:2:14: warning: the variable y occurs only once in its rule\n"
    for command in (["check", "p.dl"], ["run", "p.dl", "-D", "-"]):
        done = run(*command, cwd=tmp_path)
        assert done.returncode == 0 and done.stderr.startswith(expected), done.stderr
        for switch in ("-w", "--no-warn", "--no-warnings"):
            assert run(*command, switch, cwd=tmp_path).stderr == ""
    (tmp_path / "some.tx").write_text("+p(2, 3).\n")
    assert "warning" not in run("apply", "p.dl", "--tx", "some.tx", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("options", "message", "help"),
    [
        (["-p", "log"], "unknown option -p", "for a profile write --profile PAGE.html"),
        (
            ["-t", "explain"],
            "unknown option -t",
            "for a derivation of a fact write dlog why PROGRAM.dl 'fact(1, 2)'",
        ),
        (["-j", "0"], "bad number of cores: 0", "write 1 or more, or auto"),
        (["-M", "3=4"], "bad macro: 3=4", "write -M NAME=VALUE"),
        (["-I", "nowhere"], "no such folder: nowhere", "-I names a folder of included files"),
    ],
)
def test_options_that_are_wrong_or_have_another_name(options: list[str], message: str, help: str) -> None:
    done = run("run", "programs/reach.dl", *options)
    assert (done.stderr, done.returncode) == (f"error: {message}\nhelp: {help}\n", 1)
