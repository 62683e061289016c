"""Owns the files of a stream: from the bytes of one to typed rows, their operations, and bad rows.

The readers are those of `.input`: a file means the same in a stream and in a run.  Knows nothing of Spark,
and of databases only a predicate's columns.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from dlog.errors import DataError
from dlog.io import Columns, InputOptions, Rejected, read
from dlog.io.columns import empty_table
from dlog.io.options import ARROW, JSON, PARQUET, TEXT, ParameterValue
from dlog.ir.rules import Predicate
from dlog.spark.stream.operations import COLUMN_NAMES, INSERT, UNKNOWN, UPSERT, meanings
from dlog.values import INT, STRING, Type

Params = Mapping[str, ParameterValue]

_KIND_BY_SUFFIX = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_OF_TEXT = ("IO", "delimiter", "rfc4180")
_HEAD_BYTES = 1 << 16  # where the first row of a file is searched for


@dataclass(frozen=True)
class Rows:
    """The content of a file: good rows in order, their operations (`stream_operations`), and rejected rows.

    `notice` is a warning about columns that may have been meant otherwise.
    """

    table: pa.Table
    signs: np.ndarray
    bad: list[Rejected]
    notice: str = ""


def read_file(predicate: Predicate, params: Params, name: str, data: pa.Buffer, column: str | None) -> Rows:
    """The rows of a file of a predicate; `params` are those of its `.input`, `column` names the operations.

    A file that cannot be read is one bad row, of line 0.  O(bytes).
    """
    columns = [(c.name, c.type) for c in predicate.columns]
    try:
        options = file_options(predicate.name, params, name)
        operations = _operations(options, columns, data, column)
        wanted = columns if operations is None else [*columns, operations]
        found = read(options, wanted, stdin=pa.BufferReader(data))
    except DataError as error:
        reason = error.message.replace('"<stdin>"', "the file")
        return Rows(empty_table(columns), np.empty(0, "U1"), [Rejected(name, 0, reason, "")])
    bad = [replace(rejected, file=name) for rejected in found.rejected]
    if operations is None:
        notice = _notice(_named(options.format, data), columns, column) if options.columns is None else ""
        signs = np.full(found.table.num_rows, INSERT)
        return Rows(found.table, signs, bad, f"{name}: {notice}" if notice else "")
    return _with_operations(predicate, found.table, bad, options.header, name)


def file_options(relation: str, params: Params, name: str) -> InputOptions:
    """How a file is read: its ending gives the format, `.input` how text is written.

    >>> file_options("p", {}, "a/b.csv").delimiter, file_options("p", {"delimiter": ";"}, "b.csv").delimiter
    (',', ';')
    """
    path = PurePosixPath(name.lower())
    suffix = PurePosixPath(path.stem).suffix if path.suffix == ".gz" else path.suffix
    given = {k: v for k, v in params.items() if k not in ("filename", "dbname", "name")}
    if str(given.get("IO", "")).startswith(("std", "sqlite")):
        del given["IO"]
    if suffix in _KIND_BY_SUFFIX:
        columns = {k: v for k, v in given.items() if k == "columns"}
        given = {"IO": _KIND_BY_SUFFIX[suffix], **columns}
    elif suffix == ".csv" and not any(param in given for param in _OF_TEXT):
        given["IO"] = "csv"
    options = InputOptions.from_params(relation, {"IO": "file", **given})
    return replace(options, path=None, keep_rejected=True)


# The column of operations


def _operations(
    options: InputOptions, columns: Columns, data: pa.Buffer, column: str | None
) -> tuple[str, Type] | None:
    """Name and type of the column of operations; None if the file has none.

    In files without names it is one column more than the predicate has, the last.
    """
    taken = {name for name, _ in columns}
    names = [name for name in ((column,) if column else COLUMN_NAMES) if name not in taken]
    if not names or not columns or options.columns is not None:
        return None
    if options.format == TEXT:
        return (names[0], STRING) if _width(options, data) == len(columns) + 1 else None
    if options.format == JSON and isinstance(row := _first_json(data), list):
        return (names[0], _json_type(row[-1])) if len(row) == len(columns) + 1 else None
    found = _named(options.format, data)
    return next(((name, found[name]) for name in names if name in found), None)


def _named(format: str, data: pa.Buffer) -> dict[str, Type]:
    """The columns of a file that names them, and the type each would have as the column of operations."""
    if format == TEXT:
        return {}
    if format == JSON:
        row = _first_json(data)
        return {name: _json_type(row[name]) for name in row} if isinstance(row, dict) else {}
    try:
        schema = _schema(format, data)
    except (pa.ArrowException, OSError):
        return {}  # the reader will report what is wrong
    kinds = {field.name: INT if pa.types.is_integer(field.type) else STRING for field in schema}
    return {name: kind for name, kind in kinds.items() if schema.names.count(name) == 1}


def _notice(named: Mapping[str, Type], columns: Columns, column: str | None) -> str:
    """The warning for a file whose rows are all inserts, since it has no column of operations.

    >>> _notice({"x": INT, "kind": STRING}, [("x", INT)], None)
    'kind is not a column of the predicate: ignored; rows are inserts (--op kind if it has the operations)'
    >>> _notice({"x": INT}, [("x", INT)], "kind"), _notice({"x": INT}, [("x", INT)], None)
    ('has no column kind, which --op names: its rows are inserts', '')
    """
    taken = {name for name, _ in columns}
    others = [name for name in named if name not in taken]
    if column and named and column not in taken:
        return f"has no column {column}, which --op names: its rows are inserts"
    if column or not others:
        return ""
    are = "is not a column" if len(others) == 1 else "are not columns"
    left_out = f"{', '.join(others)} {are} of the predicate: ignored"
    return f"{left_out}; rows are inserts (--op {others[0]} if it has the operations)"


def _head(data: pa.Buffer) -> str:
    head = data[:_HEAD_BYTES]
    if head[:2].to_pybytes() == b"\x1f\x8b":
        stream = pa.CompressedInputStream(pa.BufferReader(data), "gzip")
        try:
            return str(stream.read(_HEAD_BYTES), "utf-8", "replace")
        except OSError:
            return ""
    return head.to_pybytes().decode(errors="replace")


def _width(options: InputOptions, data: pa.Buffer) -> int:
    """Columns of the first row of a text."""
    lines = _head(data).splitlines()[int(options.header) :]
    if not lines:
        return 0
    if options.quoted and len(options.delimiter) == 1:
        return len(next(csv.reader(lines[:100], delimiter=options.delimiter), []))
    return lines[0].count(options.delimiter) + 1


def _first_json(data: pa.Buffer) -> Any:
    """The first row of JSON text, or None."""
    text = _head(data).lstrip()
    decoder = json.JSONDecoder()
    for rest in (text, text[1:].lstrip()):  # a row a line, or an array of rows
        try:
            value, _ = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, list) and value and isinstance(value[0], dict | list):
            return value[0]
        return value
    return None


def _json_type(value: Any) -> Type:
    return INT if isinstance(value, int) else STRING


def _schema(format: str, data: pa.Buffer) -> pa.Schema:
    if format == PARQUET:
        return parquet.read_schema(pa.BufferReader(data))
    assert format == ARROW
    is_file = data[:6].to_pybytes() == b"ARROW1"
    return (ipc.open_file if is_file else ipc.open_stream)(data).schema


def _with_operations(
    predicate: Predicate, table: pa.Table, bad: list[Rejected], header: bool, name: str
) -> Rows:
    """Removes the column of operations; rows whose operation is unknown are bad."""
    signs = meanings(table.column(table.num_columns - 1))
    wrong = signs == UNKNOWN
    if not predicate.is_functional:
        wrong |= signs == UPSERT
    facts = table.select(range(table.num_columns - 1))
    if not wrong.any():
        return Rows(facts, signs, bad)
    places = np.flatnonzero(wrong)
    lines = _lines(places, [rejected.line for rejected in bad], int(header))
    for line, row in zip(lines.tolist(), table.take(places).to_pylist(), strict=True):
        why = _wrong_operation(predicate, str(list(row.values())[-1]))
        bad.append(Rejected(name, line, why, "\t".join(map(str, row.values()))))
    bad.sort(key=lambda rejected: rejected.line)
    return Rows(facts.filter(pa.array(~wrong)), signs[~wrong], bad)


def _wrong_operation(predicate: Predicate, word: str) -> str:
    if meanings(pa.chunked_array([[word]]))[0] == UPSERT:
        return f"{word} replaces the value of a function, but {predicate.name} is a relation"
    return f"{word} is not an operation: write + or -"


def _lines(places: np.ndarray, rejected: list[int], before: int) -> np.ndarray:
    """Lines of good rows by their number, counted as one line a row.

    >>> _lines(np.array([0, 1, 2]), [2, 3], 0).tolist()
    [1, 4, 5]
    """
    numbers = places + 1 + before
    gaps = np.sort(np.array(rejected, np.int64)) - np.arange(len(rejected))
    return numbers + np.searchsorted(gaps, numbers, side="right")
