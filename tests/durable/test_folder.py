"""One writer, many readers, folders that cannot be written: a clear error, and nothing is lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.durable.files import Files
from dlog.errors import DlogError, StoreError
from tests.durable.model import PROGRAM


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "s", source=PROGRAM) as db:
        with pytest.raises(StoreError, match=f"is in use by process {os.getpid()}"):
            dlog.Database(tmp_path / "s")
        code = f"import dlog; dlog.Database({str(tmp_path / 's')!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 1 and f"is in use by process {os.getpid()}" in done.stderr
        db.execute("+edge(2, 3).")
    with dlog.Database(tmp_path / "s") as db:
        assert db.version == 1


def test_many_read_while_one_writes(tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "s", source=PROGRAM) as db:
        db.execute("+edge(2, 3).")
        with dlog.Database(tmp_path / "s", read_only=True) as one:
            db.execute("+edge(3, 4).")
            with dlog.Database(tmp_path / "s", read_only=True) as other:
                assert [one.version, other.version] == [1, 2]
                assert other["reach"].rows() == db["reach"].rows()
                assert one["edge"].rows() == [(1, 2), (2, 3)] == other.at(1)["edge"].rows()
            for attempt in (lambda: one.execute("+edge(5, 6)."), lambda: one.branch("b"), one.checkpoint):
                with pytest.raises(StoreError, match="read-only"):
                    attempt()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_is_forked_leaves_the_files_alone(tmp_path: Path) -> None:
    db = dlog.Database(tmp_path / "s", source=PROGRAM)
    db.execute("+edge(2, 3).")
    gone, left = os.pipe(), os.pipe()
    if (child := os.fork()) == 0:
        os.read(gone[0], 1)  # the parent has committed once more
        try:
            db.execute("+edge(6, 7).")
        except StoreError as error:
            os.write(left[1], str(error).encode())
        db.close()
        os._exit(0)
    db.execute("+edge(3, 4).")
    os.write(gone[1], b"x")
    assert (
        f"belongs to process {os.getpid()}, from which this one was forked" in os.read(left[0], 999).decode()
    )
    os.waitpid(child, 0)
    db.execute("+edge(4, 5).")
    db.close()
    with dlog.Database(tmp_path / "s") as db:
        assert db["edge"].rows() == [(1, 2), (2, 3), (3, 4), (4, 5)]


class Meddling(Files):
    """Between looking into the folder and reading the log, a writer makes a checkpoint."""

    def __init__(self, db: dlog.Database):
        self.db, self.times = db, 3

    def read(self, path: Path, start: int = 0) -> bytes:
        if self.times and path.name.startswith("log"):
            self.times -= 1
            self.db.checkpoint()
        return super().read(path, start)


def test_a_reader_continues_across_a_checkpoint(tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "s", source=PROGRAM) as db:
        db.execute("+edge(2, 3).")
        with dlog.Database(tmp_path / "s", read_only=True, files=Meddling(db)) as reader:
            assert reader["edge"].rows() == [(1, 2), (2, 3)]


def test_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no database in"):
        dlog.Database(tmp_path / "s", read_only=True)
    assert not (tmp_path / "s").exists()
    with pytest.raises(DlogError, match="only a database in a folder can be opened read-only"):
        dlog.Database(source=PROGRAM, read_only=True)


class Denied(Files):
    def __init__(self, number: int):
        self.number = number

    def lock(self, path: Path) -> int | None:
        raise OSError(self.number, os.strerror(self.number), str(path))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written(tmp_path: Path, number: int) -> None:
    dlog.Database(tmp_path / "s", source=PROGRAM).close()
    with pytest.raises(StoreError, match=rf"cannot open .*lock: {os.strerror(number)}") as error:
        dlog.Database(tmp_path / "s", files=Denied(number))
    assert error.value.help == "reading (--read-only, read_only=True) needs no write permission"
    with dlog.Database(tmp_path / "s", read_only=True) as db:
        assert db["edge"].rows() == [(1, 2)]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_the_right_to_write(tmp_path: Path) -> None:
    dlog.Database(tmp_path / "s", source=PROGRAM).close()
    (tmp_path / "s").chmod(0o555)
    (tmp_path / "s" / "lock").chmod(0o444)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            dlog.Database(tmp_path / "s")
        with dlog.Database(tmp_path / "s", read_only=True) as db:
            assert db["edge"].rows() == [(1, 2)]
    finally:
        (tmp_path / "s").chmod(0o755)


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("edge(1, 2).")
    with pytest.raises(DlogError):
        dlog.Database(tmp_path / "file" / "s", source=PROGRAM)
    assert dlog.Database(tmp_path / "file")["edge"].rows() == [(1, 2)]  # a file is a program
    with pytest.raises(DlogError, match=r"missing\.dl"):
        dlog.Database(tmp_path / "missing.dl")


def test_another_program_is_refused(tmp_path: Path) -> None:
    dlog.Database(tmp_path / "s", source=PROGRAM).close()
    dlog.Database(tmp_path / "s", source=PROGRAM).close()
    with pytest.raises(StoreError, match="was created from another program"):
        dlog.Database(tmp_path / "s", source="p(1).")


def test_closed_is_closed(tmp_path: Path) -> None:
    db = dlog.Database(tmp_path / "s", source=PROGRAM)
    db.close()
    db.close()
    with pytest.raises(StoreError, match="the database is closed"):
        db.execute("+edge(5, 6).")
    assert db["edge"].rows() == [(1, 2)]
    with pytest.raises(DlogError, match="unknown durability ful"):
        dlog.Database(tmp_path / "s", durability="ful")


def test_threads_that_commit_share_syncs(tmp_path: Path) -> None:
    class Counting(Files):
        syncs = 0

        def sync(self, file: int) -> None:
            Counting.syncs += 1
            started.wait()
            super().sync(file)

    started = threading.Event()
    started.set()
    db = dlog.Database(tmp_path / "s", source=PROGRAM, durability="group", files=Counting())
    Counting.syncs = 0
    started.clear()  # the first sync waits until all others have appended
    threads = [threading.Thread(target=db.execute, args=(f"+edge({n}, 9).",)) for n in range(8)]
    for thread in threads:
        thread.start()
    while db.version < 8:
        assert all(thread.is_alive() for thread in threads)  # nothing is acknowledged before it is synced
        time.sleep(0.001)
    started.set()
    for thread in threads:
        thread.join()
    assert 1 <= Counting.syncs <= 3
    db.close()
    with dlog.Database(tmp_path / "s") as db:
        assert db.version == 8 and len(db["edge"]) == 9


class Reading(Files):
    """While a checkpoint is written, a query of another thread makes texts that are new."""

    db: dlog.Database | None = None

    def write(self, file: int, parts: Sequence[Any], at: int) -> None:
        super().write(file, parts, at)
        if self.db is not None:
            self.db.store.dictionary.encode_one(f"text {len(self.db.store.dictionary)}")


def test_texts_that_readers_make_meanwhile_are_not_lost(tmp_path: Path) -> None:
    files = Reading()
    with dlog.Database(tmp_path / "s", source=PROGRAM, durability="none", files=files) as db:
        files.db = db
        db.execute('+name(3, "before").')
        db.checkpoint()
        db.execute('+name(4, "after").')
        rows = db["name"].rows()
    with dlog.Database(tmp_path / "s") as db:
        assert db["name"].rows() == rows


def test_a_long_log_becomes_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.durable.folder.LOG_BYTES", 2000)
    with dlog.Database(tmp_path / "s", source=PROGRAM, durability="none") as db:
        for n in range(100):
            db.apply(insert={"edge": [(n, 1000)], "name": [(n, f"t{n}")]})
        assert db._folder.generation > 2
        version, rows = db.version, db["name"].rows()
    assert len(os.listdir(tmp_path / "s")) == 3
    with dlog.Database(tmp_path / "s") as db:
        assert (db.version, db["name"].rows()) == (version, rows)


def test_opening_reports_progress(tmp_path: Path) -> None:
    with dlog.Database(tmp_path / "s", source=PROGRAM, durability="none") as db:
        db.execute("+edge(2, 3).")
    reported: list[tuple[str, str]] = []
    with dlog.Database(
        tmp_path / "s", progress=lambda phase, what, done, total: reported.append((phase, what))
    ):
        assert reported[:3] == [("recover", "texts"), ("recover", "facts"), ("recover", "transactions")]
        assert ("evaluate", "reach") in reported


def test_saved_and_dumped_databases_come_back(tmp_path: Path) -> None:
    """`.save`, `.load` of what it wrote, `dump`: the same predicates with the same rows."""
    from io import StringIO

    from dlog.durable.dump import dump
    from dlog.language.typed import Typed
    from dlog.repl import Session

    with dlog.Database(tmp_path / "s", source=PROGRAM, durability="none") as db:
        db.execute('+edge(2, 3), +flag(), +name(7, "a, \\"b\\""), ^price["tea"] = -4, +seen(9).')
        expected = {name: db[name].rows() for name in db.predicates()}
    text = StringIO()
    dump(tmp_path / "s", "main", None, text)
    assert dict(_contents(dlog.Database(source=text.getvalue()))) == expected
    dump(tmp_path / "s", "main", tmp_path / "out", StringIO())
    files = dlog.Database(tmp_path / "out" / "program.dl", facts=tmp_path / "out")
    assert dict(_contents(files)) == expected
    session = Session(out=StringIO(), err=StringIO(), folder=tmp_path / "t", durability="none")
    for piece in Typed("<stdin>").feed(f".load {tmp_path / 'out'}"):
        session.run(piece)
    assert session.failures == 0 and dict(_contents(session.database)) == expected
    session.close()


def _contents(db: dlog.Database) -> Iterator[tuple[str, list[tuple[object, ...]]]]:
    yield from ((name, db[name].rows()) for name in db.predicates())
