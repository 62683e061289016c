"""The command line on databases in folders."""

from __future__ import annotations

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
def test_files_of_transactions_are_kept(tmp_path: Path, durability: str) -> None:
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
    assert "bytes behind the log are no record" in run("db", "check", tmp_path / "s")
    assert log.read_bytes() == whole[:-3]  # looking changes nothing
    log.write_bytes(whole[:90] + b"?" + whole[91:])
    with pytest.raises(StoreError, match=r"log-1 is damaged at offset"):
        run("db", "check", tmp_path / "s")


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no database in"):
        run("dump", tmp_path / "s")
    with pytest.raises(StoreError, match="there is no database in"):
        run("db", "check", tmp_path / "s")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file is no folder"):
        run("apply", REACH, "--tx", EDGES, "--db", tmp_path / "file")
    with (
        dlog.Database(tmp_path / "s", program=REACH),
        pytest.raises(StoreError, match="is in use by process"),
    ):
        run("apply", REACH, "--tx", EDGES, "--db", tmp_path / "s")
