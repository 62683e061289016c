"""Owns the setup of a stream: its options, where its files are, and that a checkpoint stays with
the stream that made it.  Knows nothing of Spark's API."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlog.errors import DlogError, StoreError
from dlog.language.source import read_source
from dlog.spark.stream.sinks import sync_all, write_whole

Progress = Callable[[str, str, int, int], None]
Screen = Callable[[], AbstractContextManager[Progress | None]]


@dataclass(frozen=True)
class Options:
    """The options besides the places."""

    master: str = "local[2]"
    shards: int = 0  # 0: one engine, in this process
    once: bool = False  # end when all available files have been processed
    every: float = 0.2  # seconds between two checks for files
    batch_files: int | None = None  # at most this many files of each predicate in a batch
    batch_bytes: int = 64 << 20  # else at most this many bytes
    operations: str | None = None  # the column of operations
    format: str = "csv"  # of changes
    values_every: float = 5.0  # seconds, at least, between two writes of all values
    facts: Path = Path(".")
    settings: Sequence[str] = ()  # of Spark's, NAME=VALUE


@dataclass(frozen=True)
class Places:
    """The program and the folders of a stream."""

    program: Path
    sources: Sequence[str]
    sink: Path
    checkpoint: Path

    @property
    def spark(self) -> Path:
        """Spark's records."""
        return self.checkpoint / "spark"

    @property
    def database(self) -> Path:
        """Of the engine; in a stream of shards, of the merged predicates."""
        return self.checkpoint / "database"

    @property
    def partials(self) -> Path:
        """What shards have changed in predicates that are merged."""
        return self.checkpoint / "partials"

    def shard(self, number: int) -> Path:
        return self.checkpoint / f"shard-{number:04}"

    @property
    def identity(self) -> Path:
        """The identity of the stream."""
        return self.checkpoint / "stream.json"


class Pace:
    """How often all values are written: not before this many seconds are over, and a twentieth of the
    time.
    """

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._next = 0.0

    def due(self) -> bool:
        return time.monotonic() >= self._next

    @contextmanager
    def working(self) -> Iterator[None]:
        started = time.monotonic()
        yield
        ended = time.monotonic()
        self._next = ended + max(self._seconds, 19 * (ended - started))


# A checkpoint belongs to one stream


def identity(
    places: Places, sources: Mapping[str, str], shards: int, placing: Mapping[str, int | None]
) -> dict[str, Any]:
    digest = hashlib.sha256(read_source(places.program).text.encode()).hexdigest()
    return {"program": digest, "sources": dict(sources), "shards": shards, "placing": dict(placing)}


def keep_identity(places: Places, given: Mapping[str, Any]) -> None:
    if not places.identity.exists():
        write_whole(places.identity, json.dumps(given, indent=1) + "\n")


def require_same(places: Places, given: Mapping[str, Any]) -> None:
    """Refuses to continue with another program, sources or shards than a checkpoint was made with.

    A checkpoint whose creation was interrupted has databases only, which check their program themselves.
    """
    if not places.identity.exists():
        others = {p.name for p in places.checkpoint.iterdir()} if places.checkpoint.is_dir() else set()
        if any(name != places.database.name and not name.startswith("shard-") for name in others):
            raise StoreError(f"{places.checkpoint} is not the checkpoint of a stream")
        return
    try:
        before = json.loads(places.identity.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise StoreError(f"{places.identity} cannot be read") from None
    help = "give another --checkpoint and --sink to start over"
    if before.get("program") != given["program"]:
        raise StoreError(f"{places.program} has changed since {places.checkpoint} was created", help=help)
    if before.get("sources") != given["sources"]:
        listed = ", ".join(f"{name}={place}" for name, place in before.get("sources", {}).items())
        raise StoreError(f"{places.checkpoint} was created with other sources: {listed}", help=help)
    if before.get("shards") != given["shards"]:
        raise StoreError(f"{places.checkpoint} was created with --shards {before.get('shards')}", help=help)
    if before.get("placing") != given["placing"]:
        raise StoreError(f"another version of dlog placed the facts of {places.checkpoint}", help=help)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DlogError(f"cannot create the folder {folder}: {error.strerror}") from None


# Spark's notes


def require_in_step(places: Places, last: int | None) -> None:
    """Spark's records and the database must belong to one stream: else files would be skipped, or read
    twice.
    """
    planned, done = (_numbers(places.spark / name) for name in ("offsets", "commits"))
    if last is not None and max(planned, default=-1) < last:
        raise StoreError(f"{places.spark} lacks batch {last}, which {places.database} has")
    if max(done, default=-1) > (-1 if last is None else last):
        raise StoreError(f"{places.database} lacks batch {max(done)}, which {places.spark} has")


def _numbers(folder: Path) -> list[int]:
    return [int(p.name) for p in folder.iterdir() if p.name.isdigit()] if folder.is_dir() else []


def sync_notes(folder: Path) -> None:
    """Sync Spark's records of this batch: Spark leaves it to the system when they reach the disk."""
    found: list[Path] = []
    for kind in (folder / "offsets", *(folder / "sources").glob("*")):
        notes = [entry for entry in os.scandir(kind) if not entry.name.startswith(".")]
        if notes:
            found += [Path(max(notes, key=lambda entry: entry.stat().st_mtime_ns)), kind]
    sync_all(found)
