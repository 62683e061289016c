"""Owns the sharded stream: processes that run the shards, and the database that merges their parts.

A batch.  1 Spark's tasks read its files and split their rows by shard; each shard takes its rows in one
transaction, with the batch's number, up to its commit.  2 What shards changed of scattered predicates is
merged by the rules of `placing`, in a database of this process.  3 When all that succeeded the
shards commit, then this database, with the batch's number too: it is the last to have it, so a batch that it
has is done everywhere.  If stopped in between, the batch comes again; shards that had it say so, and their
partial changes still exist.
"""

from __future__ import annotations

import json
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from dlog.engine.commit.commits import Changes
from dlog.errors import DlogError
from dlog.ir.rules import Program
from dlog.spark.stream.database import StreamDatabase
from dlog.spark.stream.engine import input_params, latency_of
from dlog.spark.stream.errors import raised
from dlog.spark.stream.files import Rows
from dlog.spark.stream.operations import COLUMN_NAMES
from dlog.spark.stream.placing import Placing, merge_program
from dlog.spark.stream.progress import Report, Reporter
from dlog.spark.stream.setup import Options, Pace, Places, Progress, Screen, require_in_step
from dlog.spark.stream.shard import Setup, ask
from dlog.spark.stream.sinks import CHANGES, Output, Sinks, changed_rows, outputs_of
from dlog.spark.stream.tasks import Pack, ShardAnswer, Task, hand_over

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def sharded_engine(
    program: Program,
    placing: Placing,
    places: Places,
    sources: Mapping[str, str],
    options: Options,
    reporter: Reporter,
    screen: Screen,
) -> Iterator[Sharded]:
    """Shards that are ready.  They end with the block, or with this process."""
    merging = StreamDatabase(places.database, (), source=merge_program(program, placing), warn=reporter.print)
    with merging:
        require_in_step(places, merging.last_number)
        shards = Processes(places, sources, options, placing)
        try:
            with screen() as progress:
                shards.wait(progress)
            yield Sharded(program, placing, merging, shards, places, options, reporter)
        finally:
            shards.end()


class Processes:
    """One process for each shard."""

    def __init__(self, places: Places, sources: Mapping[str, str], options: Options, placing: Placing):
        self.key = secrets.token_hex(32)
        self.ports: tuple[int, ...] = ()
        self._started = [
            subprocess.Popen(
                [sys.executable, "-m", "dlog.spark.stream.shard"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is for the stream, which ends them between batches
            )
            for _ in range(options.shards)
        ]
        for number, process in enumerate(self._started):
            setup = _setup(number, self.key, places, sources, options, placing)
            assert process.stdin is not None
            process.stdin.write(json.dumps(setup._asdict()) + "\n")
            process.stdin.flush()

    def wait(self, progress: Progress | None) -> None:
        """Until all are ready."""
        ports: list[int] = []
        for number, process in enumerate(self._started):
            if progress is not None:
                progress("recover", f"shard {number}", number, len(self._started))
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise DlogError(f"the process of shard {number} ended before it was ready")
            ready: dict[str, Any] = json.loads(line)
            if "error" in ready:
                raise raised(ready["error"])
            ports.append(ready["port"])
        self.ports = tuple(ports)

    def ended(self) -> int | None:
        """A shard whose process has ended."""
        found = [number for number, process in enumerate(self._started) if process.poll() is not None]
        return found[0] if found else None

    def commit(self) -> list[dict[str, Any]]:
        """Commit the batch that all shards have prepared."""
        return self._ask_all("commit")

    def drop(self) -> None:
        """Drop the same batch."""
        with suppress(DlogError):  # of a shard that has ended, which has dropped it as well
            self._ask_all("drop")

    def write_values(self) -> None:
        self._ask_all("values")

    def _ask_all(self, do: str) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(len(self.ports)) as pool:
            return list(pool.map(lambda port: ask(port, self.key, {"do": do}), self.ports))

    def end(self) -> None:
        for process in self._started:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._started:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _setup(
    number: int, key: str, places: Places, sources: Mapping[str, str], options: Options, placing: Placing
) -> Setup:
    def where(path: Path) -> str:
        return str(path.absolute())

    return Setup(
        number,
        options.shards,
        key,
        where(places.shard(number)),
        str(places.program),  # as errors show it
        where(options.facts),
        list(sources),
        dict(placing.places),
        where(places.sink),
        where(places.partials),
        options.format,
    )


class Sharded:
    """Hands batches to the shards, and merges what they have of scattered predicates."""

    def __init__(
        self,
        program: Program,
        placing: Placing,
        merging: StreamDatabase,
        shards: Processes,
        places: Places,
        options: Options,
        reporter: Reporter,
    ):
        self.merging = merging
        self.shards = shards
        scattered = [o for o in outputs_of(program) if placing.places[o.predicate.name] is None]
        self.sinks = Sinks(places.sink, scattered, options.format)
        self._partials = places.partials
        self._task = Task(
            {name: program.predicates[name] for name in program.predicates},
            input_params(program),
            options.operations,
            placing.places,
            shards.ports,
            shards.key,
        )
        self._reporter = reporter
        self._between = threading.Lock()  # of batches, and of values, which are of one batch
        self._written: int | None = -1
        self._pace = Pace(options.values_every)
        if merging.last_number is None and not places.spark.exists():
            self.sinks.require_new()

    def take(self, number: int, frame: DataFrame) -> Report:
        """Apply a batch, or finish one that was applied already."""
        with self._between:
            return self._take(number, frame)

    def _take(self, number: int, frame: DataFrame) -> Report:
        started = time.perf_counter()
        last = self.merging.last_number
        if last is not None and number <= last:
            self.sinks.publish(number)
            return Report(number, repeated=True)
        try:
            reports = self._by_tasks(number, frame)
            inserted, erased = self._put_together(number, reports)
        except BaseException:
            self.shards.drop()
            raise
        packs = [pack for report in reports for pack in report.packs]
        self._tell_bad(number, packs)
        files = {(pack.predicate, pack.name) for pack in packs}
        rows, bad = sum(pack.rows for pack in packs), sum(pack.bad for pack in packs)
        seconds, latency = time.perf_counter() - started, latency_of([pack.modified for pack in packs])
        return Report(number, len(files), rows, bad, inserted, erased, seconds, latency)

    def _put_together(self, number: int, reports: Sequence[ShardAnswer]) -> tuple[int, int]:
        """Commits everywhere.  Returns how many rows of outputs were inserted, and deleted."""
        self._forget_partials(number)
        paths = [Path(path) for report in reports for path in report.answer["partials"]]
        found = {f"{o.predicate.name}__part": _parts(paths, o) for o in self.sinks.outputs}
        counts: list[tuple[int, int]] = []

        def stage(changes: Changes) -> None:
            self.sinks.stage(number, changes)
            counts.extend((answer["inserted"], answer["erased"]) for answer in self.shards.commit())

        commit = self.merging.take_batch(number, {n: rows for n, rows in found.items() if rows}, stage)
        self.sinks.publish(number)
        counts.append(changed_rows(commit.changes, self.sinks.outputs))
        came, went = zip(*counts, strict=True)
        return sum(came), sum(went)

    def _by_tasks(self, number: int, frame: DataFrame) -> list[ShardAnswer]:
        try:
            found = hand_over(self._task, number, frame)
        except Exception as error:
            raise DlogError(f"a task failed: {_last_line(error)}") from error
        if (ended := self.shards.ended()) is not None:
            raise DlogError(
                f"the process of shard {ended} has ended", help="rerun the same command to resume"
            )
        for report in found:
            if "error" in report.answer:
                raise raised(report.answer["error"])
        return found

    def _tell_bad(self, number: int, packs: Sequence[Pack]) -> None:
        first: dict[str, tuple[int, str]] = {}
        for pack in packs:
            if pack.bad:
                count, reason = first.get(pack.predicate, (0, pack.reason))
                first[pack.predicate] = (count + pack.bad, reason)
            self._reporter.notice(pack.predicate, pack.notice)
        self._reporter.bad(number, first)

    # Merging

    def _forget_partials(self, number: int) -> None:
        """Those of earlier batches, which are merged."""
        for path in self._partials.glob(f"{CHANGES}/*/batch-*"):
            if int(path.name.split("-")[1]) < number:
                path.unlink()

    def write_values(self, at_once: bool = False) -> None:
        """Current values of all shards and of merged predicates, if a batch has come since."""
        if self._written == self.merging.last_number:
            return
        if at_once or self._pace.due():
            with self._between, self._pace.working():
                last = self.merging.last_number
                self.shards.write_values()
                self.sinks.write_values(self.merging.snapshot(), last)
                self._written = last


def _parts(paths: Sequence[Path], output: Output) -> list[Rows]:
    """What all shards changed of a scattered predicate in a batch."""
    found = []
    for path in sorted(path for path in paths if path.parent.name == output.predicate.name):
        table = pa.parquet.read_table(path)
        shard = int(path.name.split("-shard-")[1].split(".")[0])
        column = next(name for name in COLUMN_NAMES if name in table.column_names[-1:])
        signs = table.column(column).to_numpy().astype("U1")
        facts = table.drop_columns([column])
        names = ["shard", *(f"c{i}" for i in range(facts.num_columns))]
        columns = [pa.array(np.full(len(signs), shard)), *facts.columns]
        found.append(Rows(pa.table(columns, names=names), signs, []))
    return found


def _last_line(error: Exception) -> str:
    """The last line of Python's error in a task, which Spark shows between its own lines."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    ready = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return (ready or lines or [repr(error)])[-1 if ready else 0].strip()
