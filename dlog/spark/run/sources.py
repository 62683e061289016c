"""Owns inputs that are many files: folders, URIs and tables, which workers read, each part into the copies
that the blocks of a run need.

    .input edge(IO="parquet", filename="edges/")              a folder, at the facts folder
    .input edge(IO="csv", filename="s3a://bucket/edges")      a URI, listed and read by Spark
    .input edge(IO="table", name="shop.edges")                a table of a Spark catalog

Files are read as `.input` reads one (`dlog.io`): the declaration gives the types, and a row that cannot be
read is written to a file with its file, line and reason.  Hidden files (`.x`, `_SUCCESS`) are ignored.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dlog.engine.loading import directive_params, located
from dlog.errors import DataError, DlogError
from dlog.io import InputOptions, Loaded, read
from dlog.io.columnar import read_table
from dlog.io.options import TABLE
from dlog.ir.rules import Predicate, Program
from dlog.language import ast
from dlog.spark.cluster.reasons import hadoop_version, reason, remedy
from dlog.spark.cluster.session import gave_up, quiet
from dlog.spark.plan.places import UNKNOWN_ROWS, Place
from dlog.spark.run.copies import Copies
from dlog.spark.run.tables import schema_of
from dlog.values import Type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BYTES_A_ROW = 20  # a guess, for plans
_UNKNOWN_BYTES = 1 << 60  # Spark reports this for a table of unknown size
SHOWN = 5  # bad rows of a predicate that are reported


@dataclass(frozen=True)
class Source:
    """The files of one `.input`, or its table."""

    predicate: Predicate
    directive: ast.Directive
    options: InputOptions
    files: tuple[str, ...]
    bytes: int
    table: str | None = None

    @property
    def guessed_rows(self) -> int:
        return self.bytes // BYTES_A_ROW + 1

    @property
    def is_remote(self) -> bool:
        """Whether only Spark can open its files."""
        return self.table is None and self.options.far is not None

    @property
    def columns(self) -> list[tuple[str, Type]]:
        return [(c.name, c.type) for c in self.predicate.columns]


@dataclass(frozen=True)
class ReadTask:
    """Some files of a source and the copies that their rows go to."""

    number: int
    source: Source
    files: tuple[str, ...]
    places: tuple[Place, ...]
    copies: Copies


@dataclass(frozen=True)
class Read:
    """What a task read of a part: rows taken, and rejected rows, of which the first are stored."""

    predicate: str
    rows: int
    bad: int
    first_bad: tuple[str, ...]
    error: DlogError | None = None


def is_spread(directive: ast.Directive, facts: str | Path) -> bool:
    """Whether an input is a folder, a URI or a table."""
    options = _options(directive, facts)
    if options.far is not None:
        return True
    return "filename" in directive_params(directive) and options.path is not None and options.path.is_dir()


def _options(directive: ast.Directive, facts: str | Path) -> InputOptions:
    try:
        return InputOptions.from_params(directive.predicate, directive_params(directive), facts)
    except DataError as error:
        raise located(error, directive) from None


def find_source(
    program: Program, directive: ast.Directive, facts: str | Path, spark: SparkSession | None
) -> Source:
    """The files.  Raises if there are none, or parameters are wrong."""
    predicate = program.predicates[directive.predicate]
    options = replace(_options(directive, facts), keep_rejected=True)
    try:
        if predicate.has_records:
            raise DataError(f"{predicate.name} has records, which Spark cannot read", help="give it one file")
        if options.format == TABLE:
            assert options.far is not None
            return Source(predicate, directive, options, (), _table_bytes(spark, options.far), options.far)
        if options.far is not None:
            found = list(_remote_files(spark, options.far))
        else:
            assert options.path is not None
            found = list(_local_files(options.path))
        if not found:
            name = directive_params(directive)["filename"]
            raise DataError(f'cannot read the facts of {predicate.name}: there is no file in "{name}"')
    except DataError as error:
        raise located(error, directive) from None
    files, sizes = zip(*sorted(found), strict=True)
    return Source(predicate, directive, options, files, sum(sizes))


def _local_files(folder: Path) -> Iterable[tuple[str, int]]:
    for path in folder.rglob("*"):
        if path.is_file() and not any(p.startswith((".", "_")) for p in path.relative_to(folder).parts):
            yield str(path.absolute()), path.stat().st_size


def _remote_files(spark: SparkSession | None, uri: str) -> Iterable[tuple[str, int]]:
    """As listed by Spark; their bytes are not read."""
    session = _needed(spark, uri)
    try:
        frame = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(uri)
        return [(row["path"], row["length"]) for row in frame.select("path", "length").collect()]
    except Exception as error:
        raise _unreadable(session, uri, error) from None


def _table_bytes(spark: SparkSession | None, name: str) -> int:
    """Spark's estimate of a table's size.  Raises if there is none."""
    session = _needed(spark, name)
    try:
        plan: Any = session.table(name)._jdf.queryExecution().optimizedPlan()
        found = int(str(plan.stats().sizeInBytes()))
    except Exception as error:
        raise _unreadable(session, name, error) from None
    return found if found < _UNKNOWN_BYTES else UNKNOWN_ROWS * BYTES_A_ROW


def _needed(spark: SparkSession | None, name: str) -> SparkSession:
    if spark is None:
        raise DataError(f'"{name}" needs Spark', help="dlog run --spark MASTER")
    return spark


def _unreadable(spark: SparkSession, name: str, error: Exception) -> DataError:
    why = reason(error)
    return DataError(f'cannot read "{name}": {why}', help=remedy(why, hadoop_version(spark)))


def parts_of(sources: Iterable[tuple[Source, Iterable[Place]]], copies: Copies, tasks: int) -> list[ReadTask]:
    """Files of each source in about as many parts as tasks run at the same time, large ones first; what only
    Spark can open is one part, which it divides."""
    found: list[ReadTask] = []
    for source, places in sources:
        groups = min(len(source.files), max(tasks, 1))
        if source.options.far is not None:
            groups = 1
        for group in range(groups):
            files = source.files[group::groups]
            found.append(ReadTask(len(found), source, files, tuple(sorted(places)), copies))
    return found


def save_parts(parts: list[ReadTask], copies: Copies) -> str:
    path = copies.root / "sources.job"
    path.write_bytes(pickle.dumps(parts))
    return str(path)


def read_all(spark: SparkSession | None, path: str, parts: list[ReadTask]) -> list[Read]:
    """Run all parts on Spark, or here if there is none."""
    if spark is None:
        return [read_part(path, part.number) for part in parts]
    with quiet():
        results = _read_local(spark, path, parts)
        for part in parts:
            if part.source.options.far is not None:
                try:
                    results += _read_far(spark, path, part)
                except Exception as error:
                    raise _unreadable(spark, part.source.options.far, error) from None
    return results


def _read_local(spark: SparkSession, path: str, parts: list[ReadTask]) -> list[Read]:
    numbers = [part.number for part in parts if part.source.options.far is None]
    if not numbers:
        return []
    try:
        tasks = spark.sparkContext.parallelize(numbers, len(numbers))
        return list(tasks.map(partial(read_part, path)).collect())
    except Exception as error:
        raise gave_up(error) from None


def _read_far(spark: SparkSession, path: str, part: ReadTask) -> list[Read]:
    """A job whose tasks are as Spark divides the files or the table."""
    if part.source.table is not None:
        task: Any = partial(read_batches, path, part.number)
        found = spark.table(part.source.table).mapInArrow(task, "read binary").collect()
        return [pickle.loads(bytes(row["read"])) for row in found]
    frame = spark.read.format("binaryFile").load(list(part.files)).select("path", "content")
    return list(frame.rdd.mapPartitionsWithIndex(partial(read_bytes, path, part.number)).collect())


def read_part(path: str, number: int) -> Read:
    """One task over local files, which are mapped."""
    part = _part(path, number)
    files = ((file, _loaded(part.source, file, None)) for file in part.files)
    return _taken(part, "0", files)


def read_bytes(path: str, number: int, piece: int, files: Iterable[Any]) -> list[Read]:
    """The same over rows of `path` and `content`, as Spark reads files."""
    part = _part(path, number)
    found = ((row["path"], _loaded(part.source, row["path"], bytes(row["content"]))) for row in files)
    return [_taken(part, str(piece), found)]


def read_batches(path: str, number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same over batches of a table."""
    from pyspark import TaskContext

    part, context = _part(path, number), TaskContext.get()
    name = part.source.table or ""

    def loaded(batch: pa.RecordBatch) -> Loaded:
        table = pa.Table.from_batches([batch])
        return read_table(table, part.source.options, part.source.columns, name)

    piece = str(context.partitionId() if context else 0)
    taken = _taken(part, piece, ((name, loaded(batch)) for batch in batches if batch.num_rows))
    yield pa.record_batch({"read": pa.array([pickle.dumps(taken)], pa.binary())})


def _part(path: str, number: int) -> ReadTask:
    part = pickle.loads(Path(path).read_bytes())[number]
    assert isinstance(part, ReadTask)
    return part


def _taken(part: ReadTask, piece: str, files: Iterable[tuple[str, Loaded]]) -> Read:
    """Rows go to the copies, bad ones to a file.  `piece` distinguishes a task from others of the part."""
    predicate, rows, bad = part.source.predicate, 0, []
    try:
        for index, (file, loaded) in enumerate(files):
            table = by_number(predicate, loaded.table)
            for place in part.places:
                part.copies.put(predicate, place, table, f"source{part.number}-{piece}-{index}")
            rows += table.num_rows
            bad += [
                {"file": file, "line": r.line, "reason": r.reason, "row": r.text} for r in loaded.rejected
            ]
    except DlogError as error:
        found = located(error, part.source.directive) if isinstance(error, DataError) else error
        return Read(predicate.name, 0, 0, (), found)
    if bad:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in bad)
        aside = part.copies.root / f"{part.number}.{piece}.bad"
        aside.write_text(lines, encoding="utf-8")
    shown = tuple(f"{b['file']}:{b['line']}: warning: row rejected: {b['reason']}" for b in bad[:SHOWN])
    return Read(predicate.name, rows, len(bad), shown)


def _loaded(source: Source, file: str, data: bytes | None) -> Loaded:
    options = replace(source.options, far=None)
    if data is None:
        return read(replace(options, path=Path(file)), source.columns)
    return read(replace(options, path=None), source.columns, stdin=pa.BufferReader(data), name=file)


def by_number(predicate: Predicate, table: pa.Table) -> pa.Table:
    """The table with columns named by their number."""
    schema = schema_of(predicate)
    return table.rename_columns(schema.names).cast(schema)


def keep_bad_rows(copies: Copies, parts: list[ReadTask], folder: Path) -> None:
    """Write the bad rows of all parts into one file for each predicate, as lines of JSON."""
    for part in parts:
        for aside in sorted(copies.root.glob(f"{part.number}.*.bad")):
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / f"{part.source.predicate.name}.json", "ab") as out:
                out.write(aside.read_bytes())


def clear_bad_rows(folder: Path, sources: Iterable[Source]) -> None:
    for source in sources:
        path = folder / f"{source.predicate.name}.json"
        if os.path.exists(path):
            path.unlink()
