"""Owns writing columns as JSON lines: an object with the column names, or an array, on each line.

Valid JSON always: floats in full precision, those that are not finite as the strings "nan", "inf" and
"-inf", decimals as numbers with all their digits, dates as ISO strings.  Knows nothing of files.
"""

from __future__ import annotations

import json
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from dlog.io.cell_texts import texts
from dlog.io.columns import Columns, Progress
from dlog.io.csv_writer import batches, write_lines
from dlog.io.options import OutputOptions
from dlog.types import DATE, DATETIME, FLOAT, STRING, Type


def write_json(
    table: pa.Table,
    columns: Columns,
    options: OutputOptions,
    sink: BinaryIO,
    progress: Progress | None = None,
) -> None:
    """One line a row, in the table's order, by array operations only."""
    opening, closing = ("[", "]") if options.arrays else ("{", "}")
    if not columns and table.num_rows:
        sink.write(f"{opening}{closing}\n".encode())
    for batch in batches(table, progress):
        parts: list[pa.Array | str] = [opening]
        for column, (name, type) in zip(batch.columns, columns, strict=True):
            if not options.arrays:
                parts.append(json.dumps(name, ensure_ascii=False) + ": ")
            parts += [*_json_parts(column, type), ", "]
        parts[-1] = closing + "\n"
        write_lines(parts, sink)


def _json_parts(column: pa.Array, type: Type) -> list[pa.Array | str]:
    if type == STRING:
        return ['"', _escaped(column), '"']
    cells = texts(column, type, full_precision=True)
    if type in (DATE, DATETIME):
        return ['"', cells, '"']
    if type == FLOAT:
        finite = pc.is_finite(column)
        quote = pc.if_else(finite, "", '"')
        return [quote, cells, quote]
    return [cells]


def _escaped(column: pa.Array) -> pa.Array:
    """Backslashes, quotes and control characters as JSON writes them."""
    column = pc.replace_substring(column, "\\", "\\\\")
    column = pc.replace_substring(column, '"', '\\"')
    if pc.any(pc.match_substring_regex(column, "[\\x00-\\x1f]")).as_py():
        for code in range(32):
            column = pc.replace_substring(column, chr(code), json.dumps(chr(code))[1:-1])
    return column
