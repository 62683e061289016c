"""Owns inputs that are many files: folders and URIs, whose files workers read, each into the copies that the
blocks of a run need.

    .input edge(IO="parquet", filename="edges/")              a folder, at the facts folder
    .input edge(IO="csv", filename="s3a://bucket/edges")      a URI, listed and read by Spark

Files are read as `.input` reads one (`dlog.io`): the declaration gives the types, and a row that cannot be
taken is put aside with its file, line and reason.  Hidden files (`.x`, `_SUCCESS`) are none.
"""

from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dlog.engine.loading import directive_params, located
from dlog.errors import DataError, DlogError
from dlog.io import InputOptions, Loaded, read
from dlog.ir.rules import Predicate, Program
from dlog.language import ast
from dlog.spark.copies import Copies
from dlog.spark.shards import Place
from dlog.spark.tables import schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
BYTES_A_ROW = 20  # a guess, for plans
SHOWN = 5  # bad rows of a predicate that are told


@dataclass(frozen=True)
class Source:
    """The files of one predicate's `.input`."""

    predicate: Predicate
    options: InputOptions
    files: tuple[str, ...]
    bytes: int

    @property
    def guessed_rows(self) -> int:
        return self.bytes // BYTES_A_ROW + 1


@dataclass(frozen=True)
class Part:
    """Some files of a source and the copies that their rows go to."""

    number: int
    source: Source
    files: tuple[str, ...]
    places: tuple[Place, ...]
    copies: Copies


@dataclass(frozen=True)
class Read:
    """What a task read of a part: rows taken, and rows that were not, of which the first are kept."""

    predicate: str
    rows: int
    bad: int
    first_bad: tuple[str, ...]
    error: DlogError | None = None


def is_spread(directive: ast.Directive, facts: str | Path) -> bool:
    """Whether an input is a folder or a URI."""
    name = str(directive_params(directive).get("filename", ""))
    return bool(_URI.match(name)) or (bool(name) and (Path(facts) / name).is_dir())


def find_source(
    program: Program, directive: ast.Directive, facts: str | Path, spark: SparkSession | None
) -> Source:
    """The files there are.  Raises where there are none, or parameters are wrong."""
    predicate = program.predicates[directive.predicate]
    params = directive_params(directive)
    name = str(params["filename"])
    try:
        options = InputOptions.from_params(directive.predicate, params, facts)
        found = list(_remote_files(spark, name) if _URI.match(name) else _local_files(Path(facts) / name))
        if not found:
            raise DataError(f'cannot read the facts of {predicate.name}: there is no file in "{name}"')
    except DataError as error:
        raise located(error, directive) from None
    files, sizes = zip(*sorted(found), strict=True)
    return Source(predicate, replace(options, keep_rejected=True), files, sum(sizes))


def _local_files(folder: Path) -> Iterable[tuple[str, int]]:
    for path in folder.rglob("*"):
        if path.is_file() and not any(p.startswith((".", "_")) for p in path.relative_to(folder).parts):
            yield str(path.absolute()), path.stat().st_size


def _remote_files(spark: SparkSession | None, uri: str) -> Iterable[tuple[str, int]]:
    """As Spark lists them; their bytes are not read."""
    if spark is None:
        raise DataError(f'"{uri}" needs Spark', help="dlog run --spark MASTER")
    try:
        frame = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(uri)
        return [(row["path"], row["length"]) for row in frame.select("path", "length").collect()]
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise DataError(f'cannot read "{uri}": {reason}') from None


def parts_of(sources: Iterable[tuple[Source, Iterable[Place]]], copies: Copies, tasks: int) -> list[Part]:
    """Files of each source in about as many parts as tasks run at the same time, large ones first."""
    found: list[Part] = []
    for source, places in sources:
        groups = min(len(source.files), max(tasks, 1))
        for group in range(groups):
            files = source.files[group::groups]
            found.append(Part(len(found), source, files, tuple(sorted(places)), copies))
    return found


def save_parts(parts: list[Part], copies: Copies) -> str:
    path = copies.root / "sources.job"
    path.write_bytes(pickle.dumps(parts))
    return str(path)


def read_all(spark: SparkSession | None, path: str, parts: list[Part]) -> list[Read]:
    """Run all parts on Spark, or here where there is none."""
    if spark is None:
        return [read_part(path, part.number) for part in parts]
    context = spark.sparkContext
    local = [part.number for part in parts if not is_remote(part.source)]
    results: list[Read] = []
    if local:
        numbers = context.parallelize(local, len(local))
        results += numbers.map(partial(read_part, path)).collect()
    for part in parts:
        if is_remote(part.source):
            frame = (
                spark.read.format("binaryFile").load(list(part.files)).select("path", "content").coalesce(1)
            )
            results += frame.rdd.mapPartitions(partial(read_bytes, path, part.number)).collect()
    return results


def read_part(path: str, number: int) -> Read:
    """One task: files of the machine are mapped, those of a URI come as bytes by `read_bytes`."""
    part: Part = pickle.loads(Path(path).read_bytes())[number]
    return _read(part, [(file, None) for file in part.files])


def read_bytes(path: str, number: int, files: Iterable[Any]) -> list[Read]:
    """The same for rows of `path` and `content`, as Spark reads them."""
    part: Part = pickle.loads(Path(path).read_bytes())[number]
    return [_read(part, ((row["path"], bytes(row["content"])) for row in files))]


def _read(part: Part, files: Iterable[tuple[str, bytes | None]]) -> Read:
    predicate, rows, bad = part.source.predicate, 0, []
    try:
        for index, (file, data) in enumerate(files):
            loaded = _loaded(part.source, file, data)
            table = _by_number(predicate, loaded.table)
            for place in part.places:
                part.copies.put(predicate, place, table, f"source{part.number}-{index}")
            rows += table.num_rows
            bad += [
                {"file": file, "line": r.line, "reason": r.reason, "row": r.text} for r in loaded.rejected
            ]
    except DlogError as error:
        return Read(predicate.name, 0, 0, (), error)
    if bad:
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in bad)
        aside = part.copies.root / f"{part.number}.bad"
        aside.write_text(lines, encoding="utf-8")
    shown = tuple(f"{b['file']}:{b['line']}: warning: row not taken: {b['reason']}" for b in bad[:SHOWN])
    return Read(predicate.name, rows, len(bad), shown)


def _loaded(source: Source, file: str, data: bytes | None) -> Loaded:
    columns = [(c.name, c.type) for c in source.predicate.columns]
    if data is None:
        return read(replace(source.options, path=Path(file)), columns)
    return read(replace(source.options, path=None), columns, stdin=pa.BufferReader(data))


def _by_number(predicate: Predicate, table: pa.Table) -> pa.Table:
    schema = schema_of(predicate)
    return table.rename_columns(schema.names).cast(schema)


def is_remote(source: Source) -> bool:
    return bool(_URI.match(source.files[0]))


def keep_bad_rows(copies: Copies, parts: list[Part], folder: Path) -> None:
    """Put the bad rows of all parts into one file for each predicate, as lines of JSON."""
    for part in parts:
        aside = copies.root / f"{part.number}.bad"
        if aside.exists():
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / f"{part.source.predicate.name}.json", "ab") as out:
                out.write(aside.read_bytes())


def clear_bad_rows(folder: Path, sources: Iterable[Source]) -> None:
    for source in sources:
        path = folder / f"{source.predicate.name}.json"
        if os.path.exists(path):
            path.unlink()
