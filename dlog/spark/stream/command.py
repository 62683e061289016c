"""Owns `dlog stream`: Spark watches folders, the engine applies batch after batch, sinks get what changed.

Exactly once.  Spark records which files a batch has before it hands the batch over, and that it is done
afterwards; a batch that is handed over is identified by its number.  1 Spark's records are synced to the
disk.  2 The files of changes are staged.  3 Data and number are committed together in the durable store.
4 The files are published.  5 Spark records that the batch is done.  If stopped before 3, nothing has
happened and the batch comes again; after 3 it comes again and is recognised: only 4 is done.  Facts have no
watermark: late ones are just facts.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dlog.errors import DlogError
from dlog.ir.check import load_program
from dlog.language.source import read_source
from dlog.spark.cluster import session
from dlog.spark.cluster.reasons import hadoop_version, reason, remedy
from dlog.spark.plan.functors import refuse_functors
from dlog.spark.stream.engine import one_engine
from dlog.spark.stream.placing import place_program
from dlog.spark.stream.progress import Report, Reporter
from dlog.spark.stream.setup import (
    Options,
    Places,
    Screen,
    identity,
    keep_identity,
    make_folder,
    require_same,
    sync_notes,
)
from dlog.spark.stream.sharded import sharded_engine
from dlog.spark.stream.sinks import FORMATS
from dlog.spark.stream.sources import find_sources, names_of, watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Options", "Places", "run_stream"]

_LOOK_SECONDS = 0.05  # between two checks of whether the stream has ended, or has to


class Takes(Protocol):
    """The consumer of a stream's batches: one engine, or shards."""

    def take(self, number: int, frame: DataFrame) -> Report: ...

    def write_values(self, at_once: bool = False) -> None: ...


def run_stream(
    places: Places,
    options: Options,
    reporter: Reporter,
    screen: Screen = nullcontext,
    stopping: threading.Event | None = None,
) -> None:
    """Follow the sources until `stopping` is set, or, with `once`, until everything is processed.

    Raises what went wrong; the next run continues from there.  `screen` shows how opening the database goes.
    """
    _require_possible(places, options)
    program = load_program(read_source(places.program))[1]
    sources = find_sources(program, places.sources)
    if options.shards:
        refuse_functors(program.rules, "--shards")
    placing = place_program(program, sources, options.shards) if options.shards else None
    made_of = identity(places, sources, options.shards, placing.places if placing else {})
    require_same(places, made_of)
    if placing is not None and not places.identity.exists():
        reporter.print("\n".join(placing.describe(program)))
    make_folder(places.checkpoint)
    opened = partial(sharded_engine, program, placing) if placing else one_engine
    with opened(places, sources, options, reporter, screen) as engine:
        keep_identity(places, made_of)
        spark = session.start(options.master, session.read_settings(options.settings))
        try:
            frame = watched(spark, sources, options.batch_files, options.batch_bytes)
        except Exception as error:  # of many kinds: a missing place, or one that Spark cannot read
            listed, why = ", ".join(f"{name}={place}" for name, place in sources.items()), reason(error)
            help = remedy(why, hadoop_version(spark))
            raise DlogError(f"Spark cannot watch {listed}: {why}", help=help) from None
        batches = Batches(engine, places, reporter)
        reporter.waiting()
        _follow(frame, batches, places, options, stopping or threading.Event())


def _require_possible(places: Places, options: Options) -> None:
    for name, folder in (("sink", places.sink), ("checkpoint", places.checkpoint)):
        if folder.resolve() in (Path(source).resolve() for source in places.sources):
            raise DlogError(f"{folder} is both a source and the {name}", help=f"give another --{name}")
    if options.format not in FORMATS:
        raise DlogError(f"unknown format {options.format}", help=f"one of {', '.join(FORMATS)}")
    session.check_master(options.master)
    session.read_settings(options.settings)
    if options.shards and not session.is_local(options.master):
        raise DlogError(
            f"--shards keeps its state in processes of this machine, but {options.master} is elsewhere",
            help="give a local master, as in --spark 'local[4]', or leave --shards out",
        )


class Batches:
    """Spark calls this with each batch.  The first error ends the stream, and is stored unchanged."""

    def __init__(self, engine: Takes, places: Places, reporter: Reporter):
        self.engine = engine
        self._places = places
        self._reporter = reporter
        self._working = threading.Lock()
        self._ending = False
        self.error: BaseException | None = None

    def __call__(self, frame: DataFrame, number: int) -> None:
        with self._working:
            if self._ending:
                raise DlogError("the stream is ending")
            try:
                sync_notes(self._places.spark)
                self._reporter.batch(self.engine.take(number, frame))
            except BaseException as error:
                self.error = error
                if isinstance(error, DlogError) and error.span is not None and error.help is None:
                    files = names_of(frame)
                    advice = "fix or remove its files, then rerun the same command"
                    error.help = f"batch {number} changed nothing: {advice}{files}"
                raise

    def end(self) -> None:
        """Waits for the batch that is being applied; there will be no other."""
        self._ending = True
        with self._working:
            pass


def _follow(
    frame: DataFrame, batches: Batches, places: Places, options: Options, stopping: threading.Event
) -> None:
    logging.getLogger("py4j").addHandler(logging.NullHandler())  # `_raise` reports failures, once
    notes = f"file://{places.spark.resolve()}"
    writer = frame.writeStream.foreachBatch(batches).option("checkpointLocation", notes)
    if options.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{int(options.every * 1000)} milliseconds")
    with _stopped_by_interrupt(stopping):
        query = writer.start()
        try:
            while query.isActive and not stopping.wait(_LOOK_SECONDS):
                batches.engine.write_values()
        finally:
            batches.end()
            query.stop()
        _raise(batches, None if stopping.is_set() else query.exception())
        batches.engine.write_values(at_once=True)


def _raise(batches: Batches, failed: Exception | None) -> None:
    if batches.error is not None:
        if isinstance(batches.error, DlogError):
            raise batches.error
        raise DlogError(f"the batch failed: {batches.error!r}") from batches.error
    if failed is not None:
        raise DlogError(f"Spark's stream failed: {reason(failed)}")


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
