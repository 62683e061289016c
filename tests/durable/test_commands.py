"""The command line on databases in folders."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dlog
from dlog.cli import app
from dlog.errors import StoreError

ROOT = Path(__file__).parents[2]
REACH, EDGES = ROOT / "programs" / "reach.dl", ROOT / "programs" / "reach" / "edges.tx"


def run(*arguments: object, status: int = 0) -> str:
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    if isinstance(done.exception, dlog.DlogError):
        raise done.exception
    assert done.exit_code == status, done.output
    return done.output


@pytest.mark.parametrize("durability", ["full", "group", "none"])
def test_files_of_transactions_remain(tmp_path: Path, durability: str) -> None:
    run("apply", REACH, "--tx", EDGES, "--db", tmp_path / "s", "--durability", durability)
    with dlog.Database(tmp_path / "s") as db:
        assert db.version == 4 and len(db["edge"]) == 3
    run("apply", REACH, "--tx", EDGES, "--db", tmp_path / "s", "--durability", durability)
    with dlog.Database(tmp_path / "s") as db:
        assert db.version == 8


def test_check_finds_damage(tmp_path: Path) -> None:
    run("apply", REACH, "--tx", EDGES, "--db", tmp_path / "s")
    assert "sound" in run("db", "check", tmp_path / "s")
    log = tmp_path / "s" / "log-1"
    whole = log.read_bytes()
    log.write_bytes(whole[:-3])
    assert "bytes after the log are not a record" in run("db", "check", tmp_path / "s")
    assert log.read_bytes() == whole[:-3]  # looking changes nothing
    log.write_bytes(whole[:90] + b"?" + whole[91:])
    with pytest.raises(StoreError, match=r"log-1 is damaged at offset"):
        run("db", "check", tmp_path / "s")


def test_the_prompt_can_only_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dlog.Database(tmp_path / "s", program=REACH) as db:
        db.execute("+edge(1, 2).")
        typed = "?- edge(x, y).\n+edge(2, 3).\n"
        done = CliRunner().invoke(app, ["repl", "--db", str(tmp_path / "s"), "--read-only"], input=typed)
        assert done.exit_code == 1 and " 1  2" in done.output
        assert "the database was opened read-only" in done.output and db.version == 1


def test_mistakes_are_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no database in"):
        run("dump", tmp_path / "s")
    with pytest.raises(StoreError, match="there is no database in"):
        run("db", "check", tmp_path / "s")
    with pytest.raises(StoreError, match=r"there is no database in .*reach\.dl"):
        run("dump", REACH)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file is not a folder"):
        run("apply", REACH, "--tx", EDGES, "--db", tmp_path / "file")
    with (
        dlog.Database(tmp_path / "s", program=REACH),
        pytest.raises(StoreError, match="is in use by process"),
    ):
        run("apply", REACH, "--tx", EDGES, "--db", tmp_path / "s")


def test_a_dump_recreates_every_value(tmp_path: Path) -> None:
    source = """
        v(i, f, s, m, d) -> int(i), float(f), string(s), decimal(m), date(d).
        name[i] = s -> int(i), string(s).
    """
    day, money = datetime.date(1, 2, 3), Decimal("-0.000001")
    floats = [0.1 + 0.2, 5e-324, -1.7976931348623157e308, math.inf, -math.inf, math.nan]
    texts = ['a "b"', "two\r\nlines\n", "back\\slash\ttab\0nul", "", "ü😀\u2028", "nan"]
    with dlog.Database(tmp_path / "a", source=source) as db, db.transaction() as tx:
        tx.insert("v", [(i, f, s, money, day) for i, (f, s) in enumerate(zip(floats, texts, strict=True))])
        tx.insert("name", list(enumerate(texts)))
    text = run("dump", tmp_path / "a")
    with dlog.Database(tmp_path / "b", source=text):
        pass
    assert run("dump", tmp_path / "b") == text and text.count("v(") == 1 + len(floats)
    run("dump", tmp_path / "a", "-D", tmp_path / "out")
    with dlog.Database(tmp_path / "c", program=tmp_path / "out" / "program.dl", facts=tmp_path / "out"):
        pass
    assert run("dump", tmp_path / "c") == text


@pytest.mark.parametrize("generation", [1, 2])
def test_a_log_without_its_checkpoint_is_not_written_over(tmp_path: Path, generation: int) -> None:
    with dlog.Database(tmp_path / "s", program=REACH) as db:
        if generation == 2:
            db.checkpoint()
        db.execute("+edge(1, 2).")
    (tmp_path / "s" / f"checkpoint-{generation}").unlink()
    log = (tmp_path / "s" / f"log-{generation}").read_bytes()
    with pytest.raises(StoreError, match="damaged: it has a log but no checkpoint"):
        dlog.Database(tmp_path / "s", program=REACH)
    assert (tmp_path / "s" / f"log-{generation}").read_bytes() == log
