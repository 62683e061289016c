"""Owns samples of inputs that are many files: some rows of each, so that heavy values are found before all
are read.  A sample never affects answers, only who does the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from dlog.io import read
from dlog.io.columnar import read_table
from dlog.io.options import ARROW, PARQUET
from dlog.spark.run.sources import Source, by_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, WINDOWS = 4, 4  # how many files, and places in each
WINDOW_BYTES = 1 << 16
MOST_BYTES = 16 << 20  # of files that can only be read as a whole


def sample(source: Source, spark: SparkSession | None, rows: int) -> pa.Table | None:
    """About this many rows, from places spread over the files; None if they cannot be read cheaply."""
    random = np.random.default_rng(0)
    try:
        if source.table is not None:
            parts = [_of_table(source, spark, rows)]
        elif source.is_remote:
            parts = list(_of_remote(source, spark))
        else:
            files = random.permutation(np.array(source.files, object))[:FILES]
            parts = [part for file in files for part in _of_file(source, file, random)]
    except Exception:  # whatever it is, it is reported when everything is read
        return None
    found = pa.concat_tables([by_number(source.predicate, part) for part in parts]) if parts else None
    if found is None or found.num_rows <= rows:
        return found
    return found.take(pa.array(random.choice(found.num_rows, rows, replace=False)))


def _of_file(source: Source, file: str, random: np.random.Generator) -> Iterator[pa.Table]:
    if source.options.format == PARQUET:
        groups = parquet.ParquetFile(file)
        if groups.num_row_groups:
            yield _exact(source, groups.read_row_group(int(random.integers(groups.num_row_groups))))
    elif source.options.format == ARROW or file.endswith(".gz"):
        if Path(file).stat().st_size <= MOST_BYTES:
            yield read(replace(source.options, path=Path(file), far=None), source.columns).table
    else:
        yield _exact_text(source, _windows(Path(file), source.options.header, random))


def _windows(file: Path, header: bool, random: np.random.Generator) -> bytes:
    """Complete lines from some places of a file."""
    size = file.stat().st_size
    with open(file, "rb") as opened:
        found = [opened.readline()] if header else []
        if size <= WINDOWS * WINDOW_BYTES:
            return b"".join([*found, opened.read()])
        for place in random.integers(0, size - WINDOW_BYTES, WINDOWS):
            opened.seek(int(place))
            opened.readline()
            found.append(opened.read(WINDOW_BYTES).rpartition(b"\n")[0] + b"\n")
    return b"".join(found)


def _of_remote(source: Source, spark: SparkSession | None) -> Iterator[pa.Table]:
    """Files that are not large: their bytes are read as a whole."""
    assert spark is not None
    for file in source.files[:FILES]:
        frame = spark.read.format("binaryFile").load(file)
        found = frame.filter(f"length <= {MOST_BYTES // FILES}").select("content").collect()
        for row in found:
            yield _exact_text(source, bytes(row["content"]))


def _of_table(source: Source, spark: SparkSession | None, rows: int) -> pa.Table:
    assert spark is not None and source.table is not None
    frame = spark.table(source.table)
    share = min(1.0, 8 * rows / source.guessed_rows)
    return _exact(source, frame.sample(False, share, 0).limit(rows).toArrow())


def _exact(source: Source, table: pa.Table) -> pa.Table:
    return read_table(table, source.options, source.columns, source.predicate.name).table


def _exact_text(source: Source, data: bytes) -> pa.Table:
    return read(
        replace(source.options, path=None, far=None), source.columns, stdin=pa.BufferReader(data)
    ).table
