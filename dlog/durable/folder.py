"""Owns the folder of a durable database: its lock, and the checkpoint and the log of each generation.

    lock             held by the writer
    checkpoint-7     all up to some version
    log-7            every commit since

Lifecycle of a generation.  1 `checkpoint-8.new` is written beside the current files and synced.  2 `log-8` is
created and synced, and the folder.  3 The checkpoint gets its name, and the folder is synced: from here on
generation 8 is valid.  4 The files of generation 7 are removed.  Whenever that stops, either 7 or 8 is
complete; the next writer removes what is left of the other.
"""

from __future__ import annotations

import errno
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dlog.durable.checkpoint import Image, Loaded, read_checkpoint, write_checkpoint
from dlog.durable.files import Buffer, Files, Handle, SyncError, folder_synced
from dlog.durable.frames import HEADER_BYTES, LOG, Tail, corruption, read_header
from dlog.durable.frames import records as framed_records
from dlog.durable.log import Log
from dlog.durable.records import CommitRecord, Record, read_record
from dlog.errors import StoreError

LOCK = "lock"
LOG_BYTES = 16 << 20  # a log that is longer than this, and than its checkpoint, triggers a new one
_OURS = re.compile(r"lock|(checkpoint|log)-(\d+)(\.new)?")
_TRIES = 20  # of a reader, whose files a writer may remove

_READ = "reading (--read-only, read_only=True)"
READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)

Warn = Callable[[str], None]


class LogEntry(NamedTuple):
    """A record of a log: its offset, its bytes, and its meaning."""

    offset: int
    payload: memoryview
    record: Record


@dataclass
class Found:
    """The contents of a database's files."""

    generation: int
    checkpoint: Loaded
    records: list[LogEntry] = field(default_factory=list)
    tail: Tail = field(default_factory=lambda: Tail(0, 0))
    log: Path = Path()


def read_folder(folder: Path, files: Files) -> Found | None:
    """Reads and checks everything; None if there is no database.  Changes nothing; needs no lock."""
    for attempt in range(_TRIES):
        with _as_store_errors(folder, "read"):
            try:
                return _read(folder, files)
            except FileNotFoundError:  # a checkpoint was made meanwhile: its files exist now
                if attempt == _TRIES - 1:
                    raise
    raise AssertionError


def _read(folder: Path, files: Files) -> Found | None:
    names = files.names(folder)
    generation = max((g for kind, g in map(_parsed, names) if kind == "checkpoint"), default=0)
    if not generation:
        _require_empty(folder, files, names)
        return None
    checkpoint = read_checkpoint(files, folder / f"checkpoint-{generation}", generation)
    path = folder / f"log-{generation}"
    data = files.read(path)
    if read_header(data, path, LOG) != generation:
        raise corruption(path, 0, "its name and its header do not agree")
    records, tail = read_log(data, path)
    version = checkpoint.states[0]["last"]
    for offset, _, record in records:
        if isinstance(record, CommitRecord):
            version += 1
            if record.version != version:
                raise corruption(path, offset, f"version {record.version} instead of {version}")
    return Found(generation, checkpoint, records, tail, path)


def read_log(data: Buffer, path: Path, start: int = 0) -> tuple[list[LogEntry], Tail]:
    """The records of a log from an offset on, of which `data` has the bytes.  O(bytes)."""
    framed, tail = framed_records(data, path, 0 if start else HEADER_BYTES)
    found = []
    for offset, payload in framed:
        try:
            found.append(LogEntry(start + offset, payload, read_record(payload)))
        except (ValueError, KeyError, IndexError, struct.error) as error:
            raise corruption(path, start + offset, str(error)) from None
    return found, tail


def _parsed(name: str) -> tuple[str, int]:
    """(checkpoint or log, its generation); ("", 0) for other files, including unfinished ones."""
    match = _OURS.fullmatch(name)
    if match is None or match[1] is None or match[3]:
        return "", 0
    return match[1], int(match[2])


def _require_empty(folder: Path, files: Files, names: list[str]) -> None:
    strange = [name for name in names if not _OURS.fullmatch(name)]
    if strange:
        raise StoreError(
            f"{folder} is not a dlog database: it contains {strange[0]}", help="give an empty folder"
        )
    if any(_has_commits(folder, files, name) for name in names) and not _has_checkpoint(files.names(folder)):
        raise StoreError(
            f"{folder} is damaged: it has a log but no checkpoint", help="restore it from a copy"
        )


def _has_commits(folder: Path, files: Files, name: str) -> bool:
    """Whether it is a log that was once valid.  The first is created before its checkpoint, empty."""
    kind, generation = _parsed(name)
    return kind == "log" and (generation > 1 or len(files.read(folder / name)) > HEADER_BYTES)


def _has_checkpoint(names: list[str]) -> bool:
    return any(_parsed(name)[0] == "checkpoint" for name in names)


class Folder:
    """A folder that is open for writing."""

    def __init__(self, path: Path, files: Files, lock: Handle):
        self.path = path
        self.generation = 0
        self.log: Log | None = None
        self.files = files
        self._lock: Handle | None = lock
        self.most_bytes = 0  # of the log: a longer one triggers a checkpoint
        self._checkpoint_bytes = 0

    @classmethod
    def open(cls, path: Path, files: Files) -> Folder:
        """Creates the folder if needed, and locks it.  Raises if another process is writing there."""
        with _as_store_errors(path, "open"):
            _require_empty_or_ours(path, files)
            files.make_folder(path)
            lock = files.lock(path / LOCK)
        if lock is None:
            help = f"only one process can write; {_READ} can be done meanwhile"
            raise StoreError(f"{path} is in use by {_holder(path, files)}", help=help)
        return cls(path, files, lock)

    def begin(self, found: Found, warn: Warn) -> None:
        """Continues where the files end.  A tail that is not a record is cut off and reported."""
        tail, path = found.tail, found.log
        if tail.cut:
            warn(f"{path}: {tail.cut:,} bytes cut off at offset {tail.end}: {tail.reason}")
        with _as_store_errors(path, "open"):
            self.log = Log.reopen(self.files, path, tail.end)
            self.generation = found.generation
            self._bound(0, found.checkpoint.size)
            self._remove_others()

    def checkpoint(self, image: Image) -> None:
        """A new generation.  If it fails before its checkpoint has its name, the old one stays.

        A failed sync poisons the log in use: the state of the disk is unknown.
        """
        files, generation = self.files, self.generation + 1
        if self.log is not None:
            self.log.require_sound()
        new, final = self.path / f"checkpoint-{generation}.new", self.path / f"checkpoint-{generation}"
        log: Log | None = None
        named = False
        try:
            size = write_checkpoint(files, new, generation, image)
            log = Log.create(files, self.path / f"log-{generation}", generation)
            folder_synced(files, self.path)
            named = True
            files.rename(new, final)
            folder_synced(files, self.path)
            if self.generation == 0:
                folder_synced(files, self.path.parent)  # the folder may be new itself
        except OSError as error:
            self._failed(error, new, log, named)
            help = "nothing is lost: the log remains in use, and is read when the database is opened"
            if self.log is None or self.log.poison:
                help = "check the disk, then open the database again"
            message = f"cannot write a checkpoint of {self.path}: {error.strerror}"
            raise StoreError(message, help=help) from None
        old, self.log = self.log, log
        self.generation = generation
        self._bound(0, size)
        if old is not None:
            old.close()
        self._remove_others()

    def _failed(self, error: OSError, new: Path, log: Log | None, named: bool) -> None:
        """Once the new checkpoint may have its name, it is unknown whether it is valid: then nothing more is
        accepted.
        """
        if self.log is not None:
            self._bound(self.log.size, self._checkpoint_bytes)
            if named or isinstance(error, SyncError):
                self.log.poison = f"a checkpoint of {self.path} failed ({error.strerror})"
        if log is not None:
            log.close()
        if not named:
            with suppress(OSError):
                self.files.remove(new)

    def log_since(self, start: int) -> list[LogEntry]:
        """The records of the log in use from an offset on.  O(their bytes)."""
        assert self.log is not None
        with _as_store_errors(self.log.path, "read"):
            data = self.files.read(self.log.path, start)
        return read_log(memoryview(data)[: self.log.size - start], self.log.path, start)[0]

    def _bound(self, start: int, checkpoint_bytes: int) -> None:
        """From `start` on the log may grow by the cost of rewriting everything."""
        self._checkpoint_bytes = checkpoint_bytes
        self.most_bytes = start + max(LOG_BYTES, checkpoint_bytes)

    def _remove_others(self) -> None:
        """Files of other generations.  One that is left does no harm."""
        kept = {LOCK, f"checkpoint-{self.generation}", f"log-{self.generation}"}
        with suppress(OSError):
            for name in self.files.names(self.path):
                if name not in kept and _OURS.fullmatch(name):
                    self.files.remove(self.path / name)

    def close(self) -> None:
        if self.log is not None:
            self.log.close()
            self.log = None
        if self._lock is not None:
            self.files.close(self._lock)
            self._lock = None


def _require_empty_or_ours(path: Path, files: Files) -> None:
    names = files.names(path)
    if not _has_checkpoint(names):
        _require_empty(path, files, names)


def _holder(path: Path, files: Files) -> str:
    with suppress(OSError, ValueError):
        return f"process {int(bytes(files.read(path / LOCK)))}"
    return "another process"


@contextmanager
def _as_store_errors(path: Path, what: str) -> Iterator[None]:
    """System errors as StoreErrors."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        help = None
        if error.errno in READ_ONLY and what == "open":
            there = path.is_dir() or path.is_file()
            help = f"{_READ} needs no write permission" if there else "give a folder that you may write to"
        elif error.errno in READ_ONLY:
            help = "the owner of the files can give you read permission"
        raise StoreError(f"cannot {what} {where}: {error.strerror}", help=help) from None
