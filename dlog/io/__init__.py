"""Owns files: reading them into typed Arrow tables, and writing tables to them.

Uses pyarrow only; knows nothing of how values are stored or relations evaluated.

    loaded = read(InputOptions.from_params("edge", {"delimiter": ","}, "facts"), [("x", INT), ("y", INT)])
    write(loaded.table, OutputOptions.from_params("reach", {}, "out"))
"""

from __future__ import annotations

import os
from typing import BinaryIO

from dlog.io.columnar import read_columnar
from dlog.io.columns import Columns, Loaded, Progress, Rejected, arrow_schema, arrow_type, nullary_table
from dlog.io.csv_reader import read_text
from dlog.io.csv_writer import printsize_line
from dlog.io.ingest import to_arrow
from dlog.io.json_reader import read_json
from dlog.io.options import JSON, SQLITE, TEXT, InputOptions, OutputOptions, ParameterError
from dlog.io.output import OutputSet, write
from dlog.io.source import find_file, open_source
from dlog.io.sqlite_reader import read_sqlite

__all__ = [
    "Columns",
    "InputOptions",
    "Loaded",
    "OutputOptions",
    "OutputSet",
    "ParameterError",
    "Progress",
    "Rejected",
    "arrow_schema",
    "arrow_type",
    "find_file",
    "nullary_table",
    "printsize_line",
    "read",
    "to_arrow",
    "write",
]


def read(
    source: InputOptions | str | os.PathLike[str],
    columns: Columns,
    *,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
    name: str = "<stdin>",
) -> Loaded:
    """The rows of one input, in the format given by `options` or the file suffix, and the rejected rows.

    Raises DataError if nothing can be read: no such file, no such column, a broken archive.
    """
    options = source if isinstance(source, InputOptions) else InputOptions.for_path(source)
    if options.columns is not None and len(options.columns) != len(columns):
        message = f"columns names {len(options.columns)} columns, {options.relation} has {len(columns)}"
        raise ParameterError(message, "columns")
    if options.format == SQLITE:
        return read_sqlite(options, columns, progress)
    reader = {TEXT: read_text, JSON: read_json}.get(options.format, read_columnar)
    return reader(open_source(options, stdin, name), options, columns, progress)
