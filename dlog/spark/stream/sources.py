"""Owns where the facts of a stream come from: a folder for each predicate, and how Spark watches them.

A folder holds files, which appear complete (written elsewhere or under a name that begins with `.` or `_`,
then renamed) and are never changed.  Spark reports which files are new and reads their bytes;
`dlog.spark.stream.files` interprets them.  Files of a batch come in the order of their times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from dlog.errors import DataError, DlogError, did_you_mean
from dlog.ir.rules import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SCHEMA = "path string, modificationTime timestamp, length long, content binary"
_NAMED = re.compile(r"([\w:.?]+)=(.+)", re.DOTALL)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


class File(NamedTuple):
    """A file of a batch: the predicate of its rows, its display name, its time and its bytes."""

    predicate: str
    name: str
    modified: float  # seconds since 1970
    data: pa.Buffer


def find_sources(program: Program, given: Sequence[str]) -> dict[str, str]:
    """The folder of each predicate that is streamed, from `DIR`, with a folder `DIR/PREDICATE` for each, and
    from `PREDICATE=URI`.  Sorted by predicate."""
    found: dict[str, str] = {}
    for text in given:
        named = _NAMED.fullmatch(text)
        pairs = {named[1]: named[2]} if named and not Path(text).exists() else _in_folder(program, Path(text))
        for name, place in pairs.items():
            _require_predicate(program, name)
            if name in found:
                raise DlogError(f"{name} has two sources: {found[name]} and {place}")
            found[name] = _absolute(name, place)
    return dict(sorted(found.items()))


def _in_folder(program: Program, folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}", help=_expected(program, folder))
    hidden = (".", "_")
    inside = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(hidden))
    if not inside:
        raise DataError(f"{folder} has no folder of a predicate", help=_expected(program, folder))
    return {path.name: str(path) for path in inside}


def _expected(program: Program, folder: Path) -> str:
    derived = {name for stratum in program.strata for name in stratum.predicates}
    base = [n for n, p in program.predicates.items() if not p.auxiliary and n not in derived]
    example = base[0] if base else "PREDICATE"
    return f"files of facts belong in a folder named after their predicate, as in {folder / example}"


def _require_predicate(program: Program, name: str) -> None:
    if name not in program.predicates or program.predicates[name].auxiliary:
        known = [n for n, p in program.predicates.items() if not p.auxiliary]
        raise DataError(f"a source for {name}, which is not a predicate", help=did_you_mean(name, known))


def _absolute(name: str, place: str) -> str:
    if _URI.match(place):
        return place
    if not Path(place).is_dir():
        raise DataError(f"there is no folder {place} for the facts of {name}")
    return str(Path(place).resolve())


# Spark's side


def watched(
    spark: SparkSession, sources: Mapping[str, str], batch_files: int | None, batch_bytes: int
) -> DataFrame:
    """New files of all sources, as one stream, so that a batch has a number and is one transaction."""
    from pyspark.sql import functions

    frames = []
    for name, place in sources.items():
        # By default Spark forgets files that are a week older than the newest one; late facts count, too.
        reader = spark.readStream.format("binaryFile").schema(_SCHEMA).option("maxFileAge", "36500d")
        if batch_files is not None:
            reader = reader.option("maxFilesPerTrigger", batch_files)
        else:
            reader = reader.option("maxBytesPerTrigger", batch_bytes)
        folder = place if _URI.match(place) else f"file://{place}"
        frames.append(reader.load(folder).withColumn("predicate", functions.lit(name)))
    first, *others = frames
    for other in others:
        first = first.union(other)
    modified = functions.unix_micros("modificationTime").alias("modified")
    return first.select("predicate", "path", modified, "length", "content")


def files_of(table: pa.Table) -> list[File]:
    """The files of a batch, as Spark hands them over, in the order in which they apply."""
    predicates, paths, times = (table.column(n).to_pylist() for n in ("predicate", "path", "modified"))
    contents = (value.as_buffer() for chunk in table.column("content").chunks for value in chunk)
    found = list(map(file_of, predicates, paths, times, contents))
    return sorted(found, key=lambda file: (file.modified, file.name))


def names_of(frame: DataFrame, most: int = 5) -> str:
    """The files of a batch for an error message, a line each; nothing if Spark no longer knows them."""
    with suppress(Exception):
        names = sorted(map(file_name, frame.select("path").toArrow().column(0).to_pylist()))
        more = [f"and {len(names) - most:,} more"] if len(names) > most else []
        return "".join(f"\n  {name}" for name in names[:most] + more)
    return ""


def file_of(predicate: str, path: str, modified: int, data: pa.Buffer) -> File:
    """A file; `modified` are microseconds."""
    return File(predicate, file_name(path), modified / 1e6, data)


def file_name(path: str) -> str:
    """
    >>> file_name("file:///tmp/a%20b.csv"), file_name("s3a://bucket/a.csv")
    ('/tmp/a b.csv', 's3a://bucket/a.csv')
    """
    if not path.startswith("file:"):
        return path
    return "/" + unquote(path.removeprefix("file:")).lstrip("/")


def by_predicate(files: Iterable[File]) -> dict[str, list[File]]:
    found: dict[str, list[File]] = {}
    for file in files:
        found.setdefault(file.predicate, []).append(file)
    return found
