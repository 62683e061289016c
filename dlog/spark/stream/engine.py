"""Owns the stream of one engine: every batch is a transaction of a durable database in this process.

Knows only one thing of Spark: a batch comes as a frame of files.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dlog.engine.loading import directive_params
from dlog.engine.view import View
from dlog.io import Rejected
from dlog.ir.rules import Program
from dlog.spark.stream.database import StreamDatabase
from dlog.spark.stream.files import Params, Rows, read_file
from dlog.spark.stream.progress import Report, Reporter
from dlog.spark.stream.setup import Options, Pace, Places, Screen, require_in_step
from dlog.spark.stream.sinks import Sinks, changed_rows, outputs_of
from dlog.spark.stream.sources import File, by_predicate, files_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def one_engine(
    places: Places, sources: Mapping[str, str], options: Options, reporter: Reporter, screen: Screen
) -> Iterator[Engine]:
    with screen() as progress:
        settings = {"facts": options.facts, "warn": reporter.print, "progress": progress}
        database = StreamDatabase(places.database, sources, program=places.program, **settings)
    with database:
        require_in_step(places, database.last_number)
        yield Engine(database, places, options, reporter)


class Engine:
    """The engine of this process, which takes batches as they come."""

    def __init__(self, database: StreamDatabase, places: Places, options: Options, reporter: Reporter):
        self.database = database
        self.sinks = Sinks(places.sink, outputs_of(database.program), options.format)
        self._options = options
        self._reporter = reporter
        self._params = input_params(database.program)
        self._written = self.sinks.values_version()
        self._pace = Pace(options.values_every)
        if database.last_number is None:
            self.sinks.require_new()

    def take(self, number: int, frame: DataFrame) -> Report:
        """Apply a batch, or finish one that was applied already."""
        started = time.perf_counter()
        last = self.database.last_number
        if last is not None and number <= last:
            self.sinks.publish(number)
            return Report(number, repeated=True)
        files = files_of(frame.drop("length").toArrow())
        found = {name: self._read(name, some) for name, some in by_predicate(files).items()}
        bad = {name: [b for rows in some for b in rows.bad] for name, some in found.items()}
        commit = self.database.take_batch(number, found, lambda c: self.sinks.stage(number, c, bad))
        self.sinks.publish(number)
        self._reporter.bad(number, first_bad(bad))
        for name, some in found.items():
            self._reporter.notice(name, next((rows.notice for rows in some if rows.notice), ""))
        inserted, erased = changed_rows(commit.changes, self.sinks.outputs)
        rows = sum(rows.table.num_rows for some in found.values() for rows in some)
        bad_rows = sum(map(len, bad.values()))
        seconds, latency = time.perf_counter() - started, latency_of([file.modified for file in files])
        return Report(number, len(files), rows, bad_rows, inserted, erased, seconds, latency)

    def _read(self, name: str, files: Sequence[File]) -> list[Rows]:
        predicate, params = self.database.program.predicates[name], self._params.get(name, {})
        return [read_file(predicate, params, f.name, f.data, self._options.operations) for f in files]

    def write_values(self, at_once: bool = False) -> None:
        """Write current values, if they have changed and, unless at once, were not written a moment ago."""
        if self._written == self.database.version:
            return
        if at_once or self._pace.due():
            with self._pace.working():
                batch, view = self._last_state()
                self.sinks.write_values(view, batch)
            self._written = view.version

    def _last_state(self) -> tuple[int | None, View]:
        """A state and its batch, while other batches are applied."""
        while True:
            batch, view = self.database.last_number, self.database.snapshot()
            if batch == self.database.last_number:  # which waits for a commit in progress
                return batch, view


def input_params(program: Program) -> dict[str, Params]:
    """Parameters of each predicate's `.input`."""
    return {d.predicate: directive_params(d) for d in program.directives if d.kind == "input"}


def first_bad(bad: Mapping[str, Sequence[Rejected]]) -> dict[str, tuple[int, str]]:
    return {name: (len(rows), str(rows[0])) for name, rows in bad.items() if rows}


def latency_of(times: Sequence[float]) -> float:
    """Seconds since the earliest file."""
    return time.time() - min(times) if times else 0.0
