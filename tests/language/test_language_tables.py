"""The parser's tables: kept once, the same whether made or read, rebuilt when they cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.language import parse as module
from dlog.language.parse import parse

PROGRAM = 'reach(x, y) <- edge(x, y).  edge(1, 2).  f[x] = y <- agg<<y = max(z)>> g(x, z).  ?- f["a"] = y.'


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DLOG_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "temporary").mkdir()  # where tables may have been kept, too: never the machine's own
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    module._grammar.cache_clear()
    yield
    module._grammar.cache_clear()


def again() -> object:
    module._grammar.cache_clear()
    return parse(PROGRAM)


def test_cached_tables_parse_the_same(tmp_path: Path) -> None:
    made = parse(PROGRAM)
    (kept,) = (tmp_path / "cache").glob("grammar-*")
    before = kept.stat().st_mtime_ns
    assert again() == made
    assert kept.stat().st_mtime_ns == before


def test_broken_tables_are_rebuilt(tmp_path: Path) -> None:
    made = parse(PROGRAM)
    (kept,) = (tmp_path / "cache").glob("grammar-*")
    kept.write_bytes(kept.read_bytes()[:1000])
    assert again() == made


def test_without_a_place_to_keep_them_tables_are_made_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("dlog.language.tables.roots", lambda: [tmp_path / "file" / "cache"])
    made = parse(PROGRAM)
    assert again() == made
    assert not (tmp_path / "cache").exists()
