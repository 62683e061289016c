"""Owns `dlog stream`: Spark watches folders, the engine follows batch by batch, sinks get what changed.

Exactly once.  Spark writes down which files a batch has before it hands the batch over, and that it is done
afterwards; a batch that is handed over is known by its number.  1 What Spark wrote down is brought to the
disk.  2 The files of changes are staged.  3 Data and number are committed together in the durable store.
4 The files are published.  5 Spark notes that the batch is done.  Stopped anywhere before 3, nothing has
happened and the batch comes again; after 3 it comes again and is known: only 4 is done.  Facts have no
watermark: late ones are just facts.
"""

from __future__ import annotations

import hashlib
import json
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlog.engine.transaction import Changes
from dlog.errors import DlogError, StoreError
from dlog.io import Rejected
from dlog.ir.check import load_program
from dlog.ir.rules import Program
from dlog.language.source import read_source
from dlog.spark import session
from dlog.spark.stream_files import Params, Rows, read_file
from dlog.spark.stream_progress import Report, Telling
from dlog.spark.stream_sinks import FORMATS, Sinks, outputs_of, sync_file, sync_folder, write_whole
from dlog.spark.stream_sources import File, by_predicate, files_of, find_sources, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dlog.spark.stream_database import StreamDatabase

Progress = Callable[[str, str, int, int], None]
Screen = Callable[[], AbstractContextManager[Progress | None]]
_LOOK_SECONDS = 0.05  # between two looks at whether the stream has ended, or has to


@dataclass(frozen=True)
class Options:
    """What can be chosen besides the places."""

    master: str = "local[2]"
    once: bool = False  # end when all files that are there have been taken
    every: float = 0.2  # seconds between two looks for files
    batch_files: int | None = None  # at most so many files of each predicate in a batch
    batch_bytes: int = 64 << 20  # else at most so many bytes
    operations: str | None = None  # the column that says what a row does
    format: str = "csv"  # of changes
    values_every: float = 5.0  # seconds, at the least, between two writings of all values
    facts: Path = Path(".")


@dataclass(frozen=True)
class Places:
    """The program and the folders of a stream."""

    program: Path
    sources: Sequence[str]
    sink: Path
    checkpoint: Path

    @property
    def spark(self) -> Path:
        """What Spark writes down."""
        return self.checkpoint / "spark"

    @property
    def database(self) -> Path:
        return self.checkpoint / "database"

    @property
    def identity(self) -> Path:
        """What the stream is made of."""
        return self.checkpoint / "stream.json"


def run_stream(
    places: Places,
    options: Options,
    telling: Telling,
    screen: Screen = nullcontext,
    stopping: threading.Event | None = None,
) -> None:
    """Follow the sources until `stopping` is set, or, with `once`, until all is taken.

    Raises what went wrong; the next run goes on from there.  `screen` shows how opening the database goes.
    """
    if options.format not in FORMATS:
        raise DlogError(f"unknown format {options.format}", help=f"one of {', '.join(FORMATS)}")
    program = load_program(read_source(places.program))[1]
    sources = find_sources(program, places.sources)
    _require_same(places, sources)
    _make_folder(places.checkpoint)
    with _opened(places, sources, options, telling, screen) as engine:
        if not places.identity.exists():
            write_whole(places.identity, json.dumps(_identity(places, sources), indent=1) + "\n")
        spark = session.start(options.master)
        frame = watched(spark, sources, options.batch_files, options.batch_bytes)
        _follow(frame, engine, places, options, stopping or threading.Event())


def input_params(program: Program) -> dict[str, Params]:
    """Parameters of each predicate's `.input`."""
    from dlog.engine.loading import directive_params

    return {d.predicate: directive_params(d) for d in program.directives if d.kind == "input"}


# The checkpoint


def _identity(places: Places, sources: Mapping[str, str]) -> dict[str, Any]:
    digest = hashlib.sha256(read_source(places.program).text.encode()).hexdigest()
    return {"program": digest, "sources": dict(sources)}


def _require_same(places: Places, sources: Mapping[str, str]) -> None:
    """Refuses to go on with another program, or other sources, than a checkpoint was made with."""
    if not places.identity.exists():
        others = {p.name for p in places.checkpoint.iterdir()} if places.checkpoint.is_dir() else set()
        if others - {places.database.name}:
            raise StoreError(f"{places.checkpoint} is not the checkpoint of a stream")
        return
    try:
        before = json.loads(places.identity.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise StoreError(f"{places.identity} cannot be read") from None
    given = _identity(places, sources)
    help = "give another --checkpoint and --sink to begin anew"
    if before.get("program") != given["program"]:
        raise StoreError(f"{places.program} has changed since {places.checkpoint} was made", help=help)
    if before.get("sources") != given["sources"]:
        told = ", ".join(f"{name}={place}" for name, place in before.get("sources", {}).items())
        raise StoreError(f"{places.checkpoint} was made with other sources: {told}", help=help)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DlogError(f"cannot make the folder {folder}: {error.strerror}") from None


def _require_in_step(places: Places, last: int | None) -> None:
    """Spark's notes and the database must be of one stream: else files would be left out, or taken twice."""
    planned, done = (_numbers(places.spark / name) for name in ("offsets", "commits"))
    if last is not None and max(planned, default=-1) < last:
        raise StoreError(f"{places.spark} lacks batch {last}, which {places.database} has")
    if max(done, default=-1) > (-1 if last is None else last):
        raise StoreError(f"{places.database} lacks batch {max(done)}, which {places.spark} has")


def _numbers(folder: Path) -> list[int]:
    return [int(p.name) for p in folder.iterdir() if p.name.isdigit()] if folder.is_dir() else []


# One engine


@contextmanager
def _opened(
    places: Places, sources: Mapping[str, str], options: Options, telling: Telling, screen: Screen
) -> Iterator[SingleEngine]:
    from dlog.spark.stream_database import StreamDatabase

    told = {"facts": options.facts, "warn": telling.print}
    with screen() as progress:
        database = StreamDatabase(places.database, places.program, sources, progress=progress, **told)
    with database:
        _require_in_step(places, database.last_number)
        yield SingleEngine(database, places, options, telling)


class SingleEngine:
    """The engine of this process, which takes batches as they come."""

    def __init__(self, database: StreamDatabase, places: Places, options: Options, telling: Telling):
        self.database = database
        self.sinks = Sinks(places.sink, outputs_of(database.program), options.format)
        self._options = options
        self._telling = telling
        self._params = input_params(database.program)
        self._written = self.sinks.values_version()
        self._when = -options.values_every
        if database.last_number is None:
            self.sinks.require_new()

    def take(self, number: int, frame: DataFrame) -> Report:
        """Apply a batch, or finish one that was applied already."""
        started = time.perf_counter()
        last = self.database.last_number
        if last is not None and number <= last:
            self.sinks.publish(number)
            return Report(number, repeated=True)
        files = files_of(frame.toArrow())
        found = {name: self._read(name, some) for name, some in by_predicate(files).items()}
        bad = {name: [b for rows in some for b in rows.bad] for name, some in found.items()}
        commit = self.database.take_batch(number, found, lambda changes: self._stage(number, changes, bad))
        self.sinks.publish(number)
        self._tell_bad(number, bad)
        inserted, erased = self._changed(commit.changes)
        return Report(
            number,
            len(files),
            sum(rows.table.num_rows for some in found.values() for rows in some),
            sum(map(len, bad.values())),
            inserted,
            erased,
            time.perf_counter() - started,
            time.time() - min((file.modified for file in files), default=time.time()),
        )

    def _read(self, name: str, files: Sequence[File]) -> list[Rows]:
        predicate, params = self.database.program.predicates[name], self._params.get(name, {})
        return [read_file(predicate, params, f.name, f.data, self._options.operations) for f in files]

    def _stage(self, number: int, changes: Changes, bad: dict[str, list[Rejected]]) -> None:
        self.sinks.stage(number, changes, bad)

    def _changed(self, changes: Any) -> tuple[int, int]:
        found = [changes[o.predicate.name] for o in self.sinks.outputs if o.predicate.name in changes]
        return sum(len(c.inserted) for c in found), sum(len(c.erased) for c in found)

    def _tell_bad(self, number: int, bad: dict[str, list[Rejected]]) -> None:
        first = {name: (len(rows), str(rows[0])) for name, rows in bad.items() if rows}
        self._telling.bad(number, first)

    def write_values(self, at_once: bool = False) -> None:
        """Current values, if they have changed and, unless at once, were not written a moment ago."""
        if self._written == self.database.version:
            return
        if at_once or time.monotonic() - self._when >= self._options.values_every:
            view = self.database.snapshot()
            self.sinks.write_values(view, self.database.last_number)
            self._written, self._when = view.version, time.monotonic()


# The query


class _Batches:
    """What Spark calls with each batch.  The first error ends the stream, and is kept as it was."""

    def __init__(self, engine: SingleEngine, places: Places, telling: Telling):
        self._engine = engine
        self._places = places
        self._telling = telling
        self._working = threading.Lock()
        self._ending = False
        self.error: BaseException | None = None

    def __call__(self, frame: DataFrame, number: int) -> None:
        with self._working:
            if self._ending:
                raise DlogError("the stream is ending")
            try:
                _sync_notes(self._places.spark)
                self._telling.batch(self._engine.take(number, frame))
            except BaseException as error:
                self.error = error
                raise

    def end(self) -> None:
        """Waits for the batch that is being applied; there will be no other."""
        self._ending = True
        with self._working:
            pass


def _sync_notes(folder: Path) -> None:
    """What Spark wrote down of this batch: it leaves to the system when that reaches the disk."""
    for kind in (folder / "offsets", *(folder / "sources").glob("*")):
        newest = max(
            (p for p in kind.iterdir() if not p.name.startswith(".")),
            key=lambda p: p.stat().st_mtime_ns,
            default=None,
        )
        if newest is not None:
            sync_file(newest)
            sync_folder(kind)


def _follow(
    frame: DataFrame, engine: SingleEngine, places: Places, options: Options, stopping: threading.Event
) -> None:
    logging.getLogger("py4j").addHandler(logging.NullHandler())  # what fails is told by `_raise`, once
    batches = _Batches(engine, places, engine._telling)
    writer = frame.writeStream.foreachBatch(batches).option("checkpointLocation", str(places.spark.resolve()))
    milliseconds = f"{int(options.every * 1000)} milliseconds"
    trigger = {"availableNow": True} if options.once else {"processingTime": milliseconds}
    with _stopped_by_interrupt(stopping):
        query = writer.trigger(**trigger).start()
        try:
            while query.isActive and not stopping.wait(_LOOK_SECONDS):
                engine.write_values()
        finally:
            batches.end()
            query.stop()
        _raise(batches, None if stopping.is_set() else query.exception())
        engine.write_values(at_once=True)


def _raise(batches: _Batches, failed: Exception | None) -> None:
    if batches.error is not None:
        if isinstance(batches.error, DlogError):
            raise batches.error
        raise DlogError(f"the batch failed: {batches.error!r}") from batches.error
    if failed is not None:
        raise DlogError(f"Spark's stream failed: {str(failed).splitlines()[0]}")


@contextmanager
def _stopped_by_interrupt(stopping: threading.Event) -> Iterator[None]:
    """Ctrl-C ends the stream after the batch that is being applied; a second one ends it now."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
