"""Owns Parquet and Arrow files: reading them into exact columns, and writing them.

Columns are matched by name; if the names are different, or with `columns=`, by position.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from dlog.errors import DataError
from dlog.io.columns import (
    Columns,
    Loaded,
    Progress,
    Rejections,
    arrow_schema,
    concatenated,
    loaded,
    nullary_table,
)
from dlog.io.exact import Exact, WrongKind, exact_column
from dlog.io.options import PARQUET, InputOptions, OutputOptions
from dlog.io.source import Source

_FILE_MAGIC = b"ARROW1"
_SPARK = b"org.apache.spark.sql.parquet.row.metadata"  # its schema, as JSON
ROW_GROUP_ROWS = 1 << 20


def read_columnar(
    source: Source, options: InputOptions, columns: Columns, progress: Progress | None = None
) -> Loaded:
    """All rows of a Parquet or Arrow file, part by part; progress counts rows here."""
    try:
        total, names, parts, kinds = (_parquet_parts if options.format == PARQUET else _arrow_parts)(source)
        places = _places(names, options, columns, source.name)
        of_spark = [kinds.get(names[place], "") for place in places]
        rejections = Rejections(source.name, options.keep_rejected)
        tables, done = [], 0
        for part in parts(places):
            tables.append(_exact_table(_of_spark(part, columns, of_spark), columns, done, rejections))
            done += part.num_rows
            if progress:
                progress(done, max(total, done))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f'cannot read "{source.name}": {_first_line(error)}') from None
    if not columns:
        return loaded(nullary_table(done or total), rejections)
    return loaded(concatenated(tables, columns), rejections)


def read_table(table: pa.Table, options: InputOptions, columns: Columns, name: str) -> Loaded:
    """The same for an Arrow table from elsewhere; errors refer to it as `name`."""
    rejections = Rejections(name, options.keep_rejected)
    places = _places(table.column_names, options, columns, name)
    return loaded(_exact_table(table.select(places), columns, 0, rejections), rejections)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]


def _parquet_parts(source: Source) -> tuple[int, list[str], Any, dict[str, str]]:
    """The rows, the column names, the row groups restricted to some columns, and Spark's types of columns."""
    from pyarrow import parquet  # 10 ms: only if there is such a file

    file = parquet.ParquetFile(pa.BufferReader(source.data))
    names, kinds = file.schema_arrow.names, _spark_types(file.schema_arrow.metadata)
    if kinds:  # its oldest format of times has room for nanoseconds, which Spark does not have
        file = parquet.ParquetFile(pa.BufferReader(source.data), coerce_int96_timestamp_unit="us")

    def parts(places: list[int]) -> Iterator[pa.Table]:
        for group in range(file.num_row_groups):
            if places:
                part = file.read_row_group(group, columns=[names[place] for place in places])
                yield part.select([names[place] for place in places])

    return file.metadata.num_rows, names, parts, kinds


def _spark_types(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """The types of columns by their names, if Spark wrote a file; none if it is not clear."""
    try:
        fields = json.loads((metadata or {})[_SPARK])["fields"]
        return {field["name"]: field["type"] for field in fields if isinstance(field["type"], str)}
    except (KeyError, TypeError, ValueError):
        return {}


def _of_spark(part: pa.Table, columns: Columns, kinds: Sequence[str]) -> pa.Table:
    """The part with columns as what Spark says they are."""
    if not any(kinds):
        return part
    triples = zip(part.columns, columns, kinds, strict=True)
    arrays = [type.of_spark(kind, column) if kind else column for column, (_, type), kind in triples]
    return pa.Table.from_arrays(arrays, names=part.column_names)


def _arrow_parts(source: Source) -> tuple[int, list[str], Any, dict[str, str]]:
    reader: Any
    if source.data[: len(_FILE_MAGIC)].to_pybytes() == _FILE_MAGIC:
        reader = ipc.open_file(source.data)
        batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
    else:
        reader = ipc.open_stream(source.data)
        batches = list(reader)

    def parts(places: list[int]) -> Iterator[pa.Table]:
        for batch in batches if places else []:
            batch.validate()  # a damaged file must not cause reads outside its bytes
            yield pa.Table.from_batches([batch]).select(places)

    return sum(batch.num_rows for batch in batches), reader.schema.names, parts, {}


def _places(names: list[str], options: InputOptions, columns: Columns, file: str) -> list[int]:
    """The file's column number for each column."""
    wanted = [name for name, _ in columns]
    if options.columns is not None:
        if max(options.columns) >= len(names):
            asked = max(options.columns)
            raise DataError(f'"{file}" has {len(names)} columns, columns= asks for number {asked}')
        return list(options.columns)
    if all(names.count(name) == 1 for name in wanted):
        return [names.index(name) for name in wanted]
    # If no name matches, the columns go by position; a partial match is a mistake.
    if len(names) != len(columns) or any(name in names for name in wanted):
        missing = next(name for name in wanted if name not in names)
        found = ", ".join(names) or "none"
        raise DataError(f'"{file}" has no column {missing} (its columns: {found})')
    return list(range(len(columns)))


def _exact_table(part: pa.Table, columns: Columns, rows_before: int, rejections: Rejections) -> pa.Table:
    exact = [
        _exact(column, name, type, rejections.file)
        for column, (name, type) in zip(part.columns, columns, strict=True)
    ]
    table = pa.Table.from_arrays([_normal(e.column) for e in exact], schema=arrow_schema(columns))
    bad = np.unique(np.concatenate([e.bad for e in exact]))
    if not len(bad):
        return table

    def describe(line: int) -> tuple[str, str]:
        row = line - rows_before - 1
        name, why = next((c[0], e) for c, e in zip(columns, exact, strict=True) if row in e.bad)
        return f"{name}: {why.reason(row)}", "\t".join(_text(column, row) for column in part.columns)

    rejections.add_lines(bad + rows_before + 1, describe)
    good = np.ones(table.num_rows, bool)
    good[bad] = False
    return table.filter(pa.array(good))


def _exact(column: pa.ChunkedArray, name: str, type: Any, file: str) -> Exact:
    try:
        return exact_column(column, type)
    except WrongKind as problem:
        raise DataError(f'column {name} of "{file}" {problem}') from None


def _normal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Parts of one file must agree: strings are `string` here."""
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def _text(column: pa.ChunkedArray, row: int) -> str:
    try:
        return str(column[row].as_py())
    except (ValueError, OverflowError):
        return "?"


def write_parquet(
    table: pa.Table,
    columns: Columns,
    options: OutputOptions,
    sink: BinaryIO,
    progress: Progress | None = None,
) -> None:
    """Row groups of about a million rows, compressed with Snappy, or Zstandard with compress=true."""
    from pyarrow import parquet

    _require_columns(columns, options)
    codec = "zstd" if options.compress else "snappy"
    with parquet.ParquetWriter(sink, table.schema, compression=codec) as writer:
        for start in range(0, table.num_rows, ROW_GROUP_ROWS):
            writer.write_table(table.slice(start, ROW_GROUP_ROWS))
            if progress:
                progress(min(start + ROW_GROUP_ROWS, table.num_rows), table.num_rows)


def write_arrow(
    table: pa.Table,
    columns: Columns,
    options: OutputOptions,
    sink: BinaryIO,
    progress: Progress | None = None,
) -> None:
    """An Arrow IPC file."""
    _require_columns(columns, options)
    write_options = ipc.IpcWriteOptions(compression="zstd" if options.compress else None)
    done = 0
    with ipc.new_file(sink, table.schema, options=write_options) as writer:
        for batch in table.to_batches(max_chunksize=ROW_GROUP_ROWS):
            writer.write_batch(batch)
            done += batch.num_rows
            if progress:
                progress(done, table.num_rows)


def _require_columns(columns: Columns, options: OutputOptions) -> None:
    if not columns:
        raise DataError(
            f"{options.relation} has no columns, which this file format cannot represent",
            help="write it as text or JSON",
        )
