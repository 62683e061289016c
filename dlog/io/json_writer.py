"""Owns writing columns as JSON: an object with the column names, or an array, on each line.

The lines are separate, or in one array as in Soufflé's `jsonfile`.

Always valid JSON: floats in full precision, those that are not finite as the strings "nan", "inf" and
"-inf", decimals as numbers with all their digits, dates and times as ISO strings.  Knows nothing of files.
"""

from __future__ import annotations

import json
from typing import BinaryIO

import pyarrow as pa

from dlog.io.columns import Columns, Progress
from dlog.io.csv_writer import batches, write_lines
from dlog.io.options import OutputOptions


def write_json(
    table: pa.Table,
    columns: Columns,
    options: OutputOptions,
    sink: BinaryIO,
    progress: Progress | None = None,
) -> None:
    """One row a line, in the table's order, by array operations only; a document has brackets around them."""
    first, rest, end, last = ("[", ",\n", "", "]\n") if options.document else ("", "", "\n", "")
    sink.write(first.encode())
    if not columns and table.num_rows:
        sink.write((("[]" if options.arrays else "{}") + end).encode())
    for number, batch in enumerate(batches(table, progress)):
        head = batch.slice(0, 1 if number == 0 else 0)
        write_lines(["", *_row_parts(head, columns, options), end], sink)
        write_lines([rest, *_row_parts(batch.slice(head.num_rows), columns, options), end], sink)
    sink.write(last.encode())


def _row_parts(batch: pa.RecordBatch, columns: Columns, options: OutputOptions) -> list[pa.Array | str]:
    """The texts of a row between its brackets, with names or without."""
    opening, closing = ("[", "]") if options.arrays else ("{", "}")
    parts: list[pa.Array | str] = [opening]
    for column, (name, type) in zip(batch.columns, columns, strict=True):
        if not options.arrays:
            parts.append(json.dumps(name, ensure_ascii=False) + ": ")
        parts += [*type.json(column), ", "]
    return [*parts[:-1], closing]
