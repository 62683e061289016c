"""`dlog apply` and `dlog why` as processes: streams, exit status, what a failed transaction leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dlog
from dlog.apply import Options, apply_file
from dlog.engine.maintain.strategies import REGISTRY, SELECTABLE

from .test_cli import run

PROGRAM = """\
edge(x, y) -> int(x), int(y).
edge(x, y) -> x != y.
cost[x] = c -> int(x), int(c).
reach(x, y) <- edge(x, y).
reach(x, z) <- reach(x, y), edge(y, z).
dear(x) <- cost[x] = c, c > 10.
.output reach
"""
TRANSACTIONS = """\
// the first
+edge(1, 2). +edge(2, 3).

+edge(4,
      4).
^cost[1] = 11. ^cost[1] = 3.
?- reach(1, y).
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "t.tx").write_text(TRANSACTIONS)
    return tmp_path


def apply(folder: Path, *arguments: str):
    done = run("apply", str(folder / "p.dl"), "--tx", str(folder / "t.tx"), *arguments)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.replace(f"{folder}/", ""), done.stderr.replace(f"{folder}/", "")


def test_a_failed_transaction_stops_the_run(folder: Path) -> None:
    status, out, err = apply(folder, "--changes", "-D", str(folder / "out"))
    assert status == 1
    assert out == "// 1: t.tx:2\n+reach(1, 2)\n// 2: t.tx:2\n+reach(1, 3)\n+reach(2, 3)\n"
    assert "t.tx:4: error: the transaction is rolled back\np.dl:2:1: error: constraint broken" in err
    assert "2 transactions committed, 1 failed: +2 -0 base rows, +3 -0 derived rows (" in err
    assert not (folder / "out").exists()


def test_keep_going(folder: Path) -> None:
    status, out, err = apply(
        folder, "--changes", "--keep-going", "--verify", "--stats", "-D", str(folder / "out")
    )
    assert status == 1
    assert out.endswith(
        "// 3: t.tx:6\n+dear(1)\n// 4: t.tx:6\n-dear(1)\n?- reach(1, y).\n y\n 2\n 3\n2 rows\n"
    )
    assert (folder / "out" / "reach.csv").read_text() == "1\t2\n1\t3\n2\t3\n"
    stats = re.findall(r"^(\d+: .*); [\d,]+ operations; (.*); \S+ m?s$", err, re.MULTILINE)
    assert [(changes, re.sub(r" \(\d+\)", "", ways)) for changes, ways in stats] == [
        ("1: +1 edge, +1 reach", "from scratch: reach"),
        ("2: +1 edge, +2 reach", "stages: reach"),
        ("3: +1 cost, +1 dear", "delta: dear"),
        ("4: -1 +1 cost, -1 dear", "delta: dear"),
    ]
    assert all(re.search(r" \([1-9]\d*\)$", ways) for _, ways in stats)
    assert "4 transactions committed, 1 failed: +4 -1 base rows, +4 -1 derived rows (" in err


BAD_FILES = {
    "+edge(1, 2).\n+edge(1.\n": "t.tx:2:6: error: `(` is not closed",
    "+edge(1, 2).\n\n   +egde(1, 2).\n": "t.tx:3:4: error: unknown predicate egde",
    "+edge(1, 2). +edge(1, true).\n": "t.tx:1:23: error: type conflict: true is bool",
    "+edge(1, 2).\n.list\n": "t.tx:2:1: error: a file of transactions has no commands",
    "begin\n+edge(1, 2).\n": "t.tx:1:1: error: this transaction is never committed",
    "+edge(1, 2).\ncommit\n": "t.tx:2:1: error: commit without begin",
    "begin\nbegin\n": "t.tx:2:1: error: begin inside a transaction",
    "begin\n+edge(1, 2).\n+edge(5, 5).\ncommit\n": "t.tx:1: error: the transaction is rolled back",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_errors_have_their_place(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.tx").write_text(text)
    database = dlog.Database(folder / "p.dl")
    try:
        assert apply_file(database, folder / "t.tx", Options()).failed == 1
        printed = capsys.readouterr().err
    except dlog.DlogError as error:  # of the file as a whole
        printed = error.render()
    assert BAD_FILES[text] in printed.replace(f"{folder}/", "")


def test_no_such_file(folder: Path) -> None:
    (folder / "t.tx").unlink()
    status, _, err = apply(folder)
    assert status == 1 and "error: no such file: t.tx" in err


def test_a_strategy_is_forced(folder: Path) -> None:
    assert apply(folder, "--strategy", "delta", "--verify")[2].count("error") == 2  # a transaction that fails
    many = [(x, x + k) for x in range(10, 600) for k in (1, 7)]  # few derivations for each row
    rule = "path(x, z) <- edge(x, y), edge(y, z).  edge(0, 1)."
    ways = {}
    for strategy in (None, "delta", "trace", "trace-exact"):
        db = dlog.Database(source=rule, strategy=strategy)
        db.apply(insert={"edge": [(1, 2), (2, 3)]})
        ways[strategy] = db.apply(insert={"edge": many}).ways["path"]
        db.check()
        db.verify()
    assert ways == {None: "from scratch", "delta": "delta", "trace": "trace", "trace-exact": "trace"}


def test_explain_of_a_strategy(folder: Path) -> None:
    done = run("explain", str(folder / "p.dl"), "dear", "--strategy", "trace")
    assert done.returncode == 0 and "trace, because it was requested" in done.stdout, done.stderr
    assert run("explain", str(folder / "p.dl"), "--strategy", "tracy").returncode == 1


def test_an_unknown_strategy(folder: Path) -> None:
    status, _, err = apply(folder, "--strategy", "detla")
    assert (status, err) == (1, "error: unknown strategy detla\nhelp: did you mean delta?\n")
    with pytest.raises(dlog.DlogError) as found:
        dlog.Database(source=PROGRAM, strategy="magic")
    assert all((e.name in str(found.value.help)) == (e.name in SELECTABLE) for e in REGISTRY)
    with pytest.raises(TypeError, match="strategy must be a string, not 3"):
        dlog.Database(source=PROGRAM, strategy=3)  # type: ignore[arg-type]


def test_rules_and_facts_in_a_file(folder: Path) -> None:
    (folder / "t.tx").write_text(
        "far(x, y) <- reach(x, y), !edge(x, y).\nbegin\nedge(1, 2).\nedge(2, 3).\ncommit\n"
    )
    status, out, err = apply(folder, "--changes", "--verify")
    assert status == 0, err
    assert out == "// 1: t.tx:1\n// 2: t.tx:2\n+reach(1, 2)\n+reach(1, 3)\n+reach(2, 3)\n+far(1, 3)\n"


def test_why_as_a_process(folder: Path) -> None:
    (folder / "p.dl").write_text(PROGRAM + "edge(1, 2). edge(2, 3).\n")
    path = str(folder / "p.dl")
    done = run("why", path, "reach(1, 3)")
    assert done.stdout.replace(f"{folder}/", "") == (
        "reach(1, 3)   by p.dl:5\n  reach(1, 2)   by p.dl:4\n    edge(1, 2)   base fact\n"
        "  edge(2, 3)   base fact\n"
    )
    done = run("why", path, "reach(3, 1)")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: reach(3, 1) does not hold\n")
    done = run("why", path, "raech(3, 1)")
    assert done.returncode == 1 and done.stderr.startswith("<fact>:1:1: error: unknown predicate raech")


def test_stats_tell_of_rules_that_come_with_a_transaction(folder: Path) -> None:
    (folder / "t.tx").write_text("far(x) <- reach(x, _).\n+edge(1, 2).\n")
    _, _, err = apply(folder, "--stats")
    assert re.search(r"^1: 1 rule(, .*)?; ", err, re.MULTILINE) and "2: +1 edge" in err
