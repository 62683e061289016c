"""Owns files -> rows with multiplicities, and the order in which several streams are read.

Deletions come in two conventions.  `CSV(deletions := 'true')`: rows begin with an order and an event (1
inserts, 0 deletes), and streams are merged by the order.  Else a row may end with one column more than the
relation has, its multiplicity (-1 deletes); the first row of a file shows it.  A delimiter after the last
column is ignored, as database generators write it.

Streams without an order take turns, batch by batch.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from dlog.errors import DataError, DlogError, UnsupportedError
from dlog.io import InputOptions, Loaded, find_file, read
from dlog.io.columns import Rejected
from dlog.jit import Words
from dlog.m3.runtime.encoding import beyond_type, columns_of, one_by_one, said_beyond
from dlog.m3.runtime.runtime import Runtime, Step
from dlog.m3.syntax import ast
from dlog.values import INT

Progress = Callable[[str, str, int, int], None]  # as of `dlog.progress.Screen`

BATCH = 1000
_FIRST_ROWS, _MOST_ROWS = 1 << 10, 1 << 16  # that are given to the machine together
_SECONDS = 0.2  # that they should take at most, so that progress is visible


@dataclass(frozen=True)
class Stream:
    """The rows of one file: (columns + 1, rows), multiplicities last.  `order` is None if it has none."""

    relation: str
    words: Words
    order: Words | None = None


@dataclass
class Reader:
    """How files are found, and what happens to rows that cannot be read: `skipped` counts them, and
    `left_out` has the relations whose file cannot be read.
    """

    folder: Path
    skip_bad_rows: bool = False
    warn: Callable[[str], None] = print
    skipped: int = 0
    left_out: list[str] = field(default_factory=list)

    def read(self, runtime: Runtime, source: ast.Source) -> Stream:
        """All rows of a source.  Raises the first bad row, with file and line, unless they are skipped."""
        width = len(source.columns)
        try:
            options, extra = self._options(source)
            columns = columns_of(source)
            if source.deletions:
                columns = [("order", INT), ("event", INT), *columns]
            elif extra:
                columns = [*columns, ("multiplicity", INT)]
            loaded = read(options, columns)
        except DataError as error:
            self._leave_out(DataError(error.message, span=error.span or source.span, help=error.help), source)
            return Stream(source.name, np.zeros((width + 1, 0), np.int64))
        self._report(loaded)
        table = self._within_types(loaded.table, source, runtime.program.dialect, options)
        if source.deletions:
            order, event = (table.column(j).to_numpy().astype(np.int64) for j in range(2))
            words = runtime.encode_table(source, table.select(list(range(2, 2 + width))), event)
            return self._with_events(Stream(source.name, words, order), options)
        counts = np.ones(table.num_rows, np.int64)
        if extra:
            counts = table.column(width).to_numpy().astype(np.int64)
        return Stream(source.name, runtime.encode_table(source, table, counts))

    def _options(self, source: ast.Source) -> tuple[InputOptions, bool]:
        """How the file is read, and whether its rows end with a multiplicity."""
        if source.format != "csv":
            message = f"{source.name}: only CSV files can be read, not {source.format}"
            raise UnsupportedError(message, span=source.span)
        assert source.file is not None
        path = self.folder / source.file
        if not path.exists() and Path(source.file).exists():
            path = Path(source.file)
        options = InputOptions(source.name, path=path, delimiter=source.delimiter.replace("\\t", "\t"))
        try:
            found = find_file(options)
        except DataError:
            help = "give the folder of the program's files with -F"
            raise DataError(f'cannot read {source.name}: there is no file "{path}"', help=help) from None
        width = len(source.columns) + 2 * source.deletions
        cells = _first_line(found).split(options.delimiter)
        if len(cells) == width + 1 and not cells[-1].strip():
            return replace(options, columns=tuple(range(width))), False
        return options, not source.deletions and len(cells) == width + 1

    def _within_types(
        self, table: pa.Table, source: ast.Source, dialect: str, options: InputOptions
    ) -> pa.Table:
        """Without rows that have a number which its type cannot hold."""
        for j, column in enumerate(source.columns, 2 * source.deletions):
            bad = beyond_type(column, dialect, table.column(j))
            if bad is not None:
                value = table.column(j)[int(np.argmax(bad))]
                line, text = _line_with(options, j, str(value))
                reason = said_beyond(column, dialect, value)
                self._reject(Rejected(str(options.path), line, reason, text), int(bad.sum()))
                table = table.filter(pa.array(~bad))
        return table

    def _with_events(self, stream: Stream, options: InputOptions) -> Stream:
        """Events 1 and 0 as multiplicities 1 and -1."""
        events = stream.words[-1]
        good = (events == 0) | (events == 1)
        if not good.all():
            event = events[int(np.argmin(good))]
            line, text = _line_with(options, 1, str(event))
            reason = f"event: {event} is neither 1 (insert) nor 0 (delete)"
            self._reject(Rejected(str(options.path), line, reason, text), int((~good).sum()))
        words = stream.words[:, good]
        words[-1] = 2 * words[-1] - 1
        assert stream.order is not None
        return Stream(stream.relation, words, stream.order[good])

    def _report(self, loaded: Loaded) -> None:
        if not loaded.rejected_count:
            return
        self._reject(loaded.rejected[0], loaded.rejected_count)
        for rejected in loaded.rejected[1:]:
            self._warn(rejected)

    def _reject(self, rejected: Rejected, count: int) -> None:
        if not self.skip_bad_rows:
            help = "--skip-bad-rows skips such rows"
            raise BadRow(rejected, help)
        self._warn(rejected)
        self.skipped += count

    def _warn(self, rejected: Rejected) -> None:
        self.warn(f"{rejected.file}:{rejected.line}: warning: row rejected: {rejected.reason}")

    def _leave_out(self, error: DataError, source: ast.Source) -> None:
        """A file that cannot be read."""
        if not self.skip_bad_rows:
            raise error
        self.warn(error.render().replace("error:", "warning:", 1))
        self.warn(f"warning: {source.kind} {source.name} has no rows: all results are without it")
        self.left_out.append(source.name)


class BadRow(DataError):
    """A row of a file that the program cannot read."""

    def __init__(self, rejected: Rejected, help: str | None = None):
        super().__init__(rejected.reason, help=help)
        self.rejected = rejected

    def __str__(self) -> str:
        return str(self.rejected)

    def render(self) -> str:
        lines = [f"{self.rejected.file}:{self.rejected.line}: error: {self.rejected.reason}"]
        lines += [self.rejected.text] if self.rejected.text else []
        return "\n".join([*lines, f"help: {self.help}"] if self.help else lines)


def _first_line(path: Path) -> str:
    try:
        with _opened(path) as lines:
            return next((line.rstrip("\r\n") for line in lines if line.strip()), "")
    except (OSError, EOFError, zlib.error) as error:  # a folder, no read permission, a damaged .gz
        raise DataError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _line_with(options: InputOptions, column: int, number: str) -> tuple[int, str]:
    """The number and text of the first line with a number in a column, to show a bad one.  O(lines before
    it).
    """
    with _opened(find_file(options)) as lines:
        for row, line in enumerate(lines, 1):
            cells = line.rstrip("\r\n").split(options.delimiter)
            if len(cells) > column and cells[column].strip().lstrip("+") == number:
                return row, line.rstrip("\r\n")
    return 1, ""


def _opened(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        import gzip

        return gzip.open(path, "rt", errors="replace")
    return path.open(errors="replace")


# ---- running a program over its files


def run_files(runtime: Runtime, reader: Reader, batch: int = BATCH, progress: Progress | None = None) -> None:
    """Load the tables, then read all streams to their ends.  O(rows) and what the triggers cost."""
    sources = [s for s in runtime.program.sources if s.file is not None]
    streams: list[Stream] = []
    for number, source in enumerate(sources):
        if progress is not None:
            progress("load", source.name, number, len(sources))
        stream = reader.read(runtime, source)
        if source.kind == ast.TABLE:
            runtime.load_words(source.name, stream.words)
        else:
            streams.append(_one_by_one(runtime, stream))
    runtime.ready()
    feed(runtime, streams, batch, progress)


def _one_by_one(runtime: Runtime, stream: Stream) -> Stream:
    """For single-tuple triggers a row of multiplicity 3 is three rows."""
    counts = stream.words[-1]
    if runtime.has_batch_trigger(stream.relation) or np.all(np.abs(counts) == 1):
        return stream
    order = None if stream.order is None else np.repeat(stream.order, np.abs(counts))
    return Stream(stream.relation, one_by_one(stream.words), order)


def feed(runtime: Runtime, streams: list[Stream], batch: int, progress: Progress | None = None) -> None:
    """Apply the rows of all streams, in batches."""
    if batch < 1:
        raise DlogError("a batch has at least one row")
    for stream in streams:
        runtime.expect(stream.relation, stream.words.shape[1])
    relation, row, group = _sequence(runtime, streams, batch)
    total, start, at_once = len(relation), 0, _FIRST_ROWS
    while start < total:
        if progress is not None:
            progress("run", f"{total:,} rows", start, total)
        end, began = min(start + max(at_once, batch), total), time.monotonic()
        while end < total and group[end] == group[end - 1]:  # a batch is not split
            end = start + int(np.searchsorted(group[start:], group[end - 1], side="right"))
        steps = []
        for number, stream in enumerate(streams):
            chosen = row[start:end][relation[start:end] == number]
            steps.append(Step(stream.relation, stream.words[:, chosen]))
        runtime.apply_steps(steps, relation[start:end], group[start:end])
        slow = time.monotonic() - began > _SECONDS
        start, at_once = end, max(at_once // 2, 1) if slow else min(2 * at_once, _MOST_ROWS)


def _sequence(runtime: Runtime, streams: list[Stream], batch: int) -> tuple[Words, Words, Words]:
    """For each place in the order of all rows: the stream, the row in it, and the batch's number."""
    sizes = [s.words.shape[1] for s in streams]
    relation = np.repeat(np.arange(len(streams)), sizes)
    row = np.concatenate([np.arange(n) for n in sizes]) if streams else np.zeros(0, np.int64)
    ordered = [s for s in streams if s.order is not None]
    if ordered and len(ordered) == len(streams):
        keys = np.concatenate([s.order for s in streams if s.order is not None])
        places = np.lexsort((relation, keys))
        relation, row = relation[places], row[places]
        group = np.arange(len(row)) // batch
        if all(runtime.has_batch_trigger(s.relation) for s in streams):
            places = np.lexsort((np.arange(len(row)), relation, group))
            relation, row, group = relation[places], row[places], group[places]
        return relation, row, group
    places = np.lexsort((row, relation, row // batch))
    return relation[places], row[places], (row // batch)[places]
