"""Owns reading JSON rows into typed columns: one row a line, or one array of rows.

A row is an object with the column names (others are ignored) or an array.  Objects on lines are read by
pyarrow, block by block; a block with a bad row, and every other format, row by row in Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from dlog.errors import DataError
from dlog.interrupts import poll
from dlog.io import text_cells
from dlog.io.columns import (
    Columns,
    Loaded,
    Progress,
    Rejections,
    arrow_schema,
    concatenated,
    fits,
    loaded,
    nullary_table,
)
from dlog.io.options import InputOptions
from dlog.io.source import BLOCK_BYTES, Source, count_newlines, is_utf8, line_end
from dlog.values import Type
from dlog.values.arrows import column_of_values

_SPACE = " \t\r\n"

# A parsed row, or the reason why it could not be parsed, with its line and text.
_Parsed = tuple[int, str, Any, str | None]


def read_json(
    source: Source, options: InputOptions, columns: Columns, progress: Progress | None = None
) -> Loaded:
    """All rows.  O(bytes): objects about 0.2 microseconds a cell, other formats 1 to 2."""
    rejections = Rejections(source.name, options.keep_rejected)
    if _is_document(source.data, columns):
        text = _document_text(source)
        tables = [_table(list(_document_rows(text, columns)), options, columns, rejections)]
    else:
        tables = list(_line_tables(source.data, options, columns, rejections, progress))
    if not columns:
        return loaded(nullary_table(sum(table.num_rows for table in tables)), rejections)
    return loaded(concatenated(tables, columns), rejections)


def _is_document(data: pa.Buffer, columns: Columns) -> bool:
    """Whether rows are not one a line: an array of rows, or objects over several lines."""
    text = data[: 1 << 16].to_pybytes().decode(errors="replace").lstrip(_SPACE)
    try:
        first = json.loads(text.split("\n", 1)[0])
    except (ValueError, RecursionError):
        inner = text[1:].lstrip(_SPACE)[:1]
        return _is_object(text) or (text[:1] == "[" and inner in ("[", "{", "]", ""))
    rows_inside = isinstance(first, list) and all(isinstance(row, list | dict) for row in first)
    return rows_inside and (bool(first) or bool(columns))


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.JSONDecoder().raw_decode(text)[0], dict)
    except (ValueError, RecursionError):
        return False


def _document_text(source: Source) -> str:
    try:
        return source.data.to_pybytes().decode()
    except UnicodeDecodeError:
        raise DataError(f'"{source.name}" {text_cells.NOT_UTF8}') from None


def _line_tables(
    data: pa.Buffer,
    options: InputOptions,
    columns: Columns,
    rejections: Rejections,
    progress: Progress | None,
) -> Iterator[pa.Table]:
    start, line = 0, 1
    while start < data.size:
        poll()
        end = line_end(data, start, BLOCK_BYTES)
        block = data[start:end]
        table = _read_objects(block, columns) if columns and options.columns is None else None
        if table is None:
            table = _table(list(_line_rows(block, line, columns)), options, columns, rejections)
        yield table
        line += count_newlines(block)
        start = end
        if progress:
            progress(start, data.size)


def _read_objects(block: pa.Buffer, columns: Columns) -> pa.Table | None:
    """The table by pyarrow, or None when some row is bad or not an object."""
    schema = pa.schema([(name, type.json_arrow()) for name, type in columns])
    parsing = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    if not is_utf8(block):  # pyarrow does not check
        return None
    try:
        table = arrow_json.read_json(pa.BufferReader(block), parse_options=parsing)
    except pa.ArrowInvalid:
        return None
    arrays = []
    for column, (_, type) in zip(table.columns, columns, strict=True):
        if column.null_count:
            return None
        array = _finished(column, type)
        if array is None:
            return None
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns))


def _finished(column: pa.ChunkedArray, type: Type) -> pa.ChunkedArray | pa.Array | None:
    if column.type != type.arrow():
        converted, misfits = text_cells.convert(column.combine_chunks(), type)
        return None if len(misfits.places) else converted
    return column if fits(column, type) is None else None


# Row by row


def _line_rows(block: pa.Buffer, line: int, columns: Columns) -> Iterator[_Parsed]:
    decoder = _decoder(columns)
    for number, raw in enumerate(block.to_pybytes().split(b"\n"), line):
        raw = raw.removesuffix(b"\r")
        if not raw or raw.isspace():
            continue
        try:
            text = raw.decode()
            yield number, text, decoder.decode(text), None
        except (ValueError, RecursionError) as error:
            yield from _odd_line(number, raw, decoder, error)


def _odd_line(number: int, raw: bytes, decoder: json.JSONDecoder, error: Exception) -> Iterator[_Parsed]:
    """A line that is not one value: the reason, or several values."""
    text = raw.decode(errors="replace")
    if isinstance(error, UnicodeDecodeError):
        yield number, text, None, text_cells.NOT_UTF8
        return
    try:
        yield from [(number, text, value, None) for value in _line_values(text, decoder)]
    except (ValueError, RecursionError) as problem:
        yield number, text, None, _malformed(problem)


def _line_values(text: str, decoder: json.JSONDecoder) -> list[Any]:
    """Usually one; pyarrow reads several rows on a line, so they are read here too."""
    position, values = _next_value(text, 0, _SPACE), []
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        values.append(value)
        position = _next_value(text, position, _SPACE)
    return values


def _document_rows(text: str, columns: Columns) -> Iterator[_Parsed]:
    """The rows of one array, or objects one after another; nothing after a broken one can be read."""
    decoder = _decoder(columns)
    position, line, counted = _next_value(text, 0), 1, 0
    array = text[position : position + 1] == "["
    position = _next_value(text, position + 1) if array else position
    while position < len(text) and not (array and text[position] == "]"):
        line += text.count("\n", counted, position)
        counted = position
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            shown = text[position : position + 200].split("\n", 1)[0]
            yield line, shown, None, _malformed(error) + "; nothing after it was read"
            return
        yield line, text[position:end], value, None
        position = _next_value(text, end)


def _next_value(text: str, position: int, skipped: str = _SPACE + ",") -> int:
    while position < len(text) and text[position] in skipped:
        position += 1
    return position


def _decoder(columns: Columns) -> json.JSONDecoder:
    """Keep floats exact where a decimal may need them."""
    return json.JSONDecoder(parse_float=Decimal if _has_decimal(columns) else None)


def _has_decimal(columns: Columns) -> bool:
    return any(type.exact_json for _, type in columns)


def _malformed(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"malformed JSON: {error.msg} at column {error.colno}"
    return "malformed JSON"


def _table(
    parsed: list[_Parsed], options: InputOptions, columns: Columns, rejections: Rejections
) -> pa.Table:
    """The good rows; the others are added to `rejections` in line order."""
    rows: list[list[Any]] = []
    places: list[int] = []
    reasons: dict[int, str] = {}
    for place, (_, _, value, reason) in enumerate(parsed):
        cells, reason = ([], reason) if reason else _cells(value, options, columns)
        if reason:
            reasons[place] = reason
        else:
            rows.append(cells)
            places.append(place)
    arrays, good = [], np.ones(len(rows), bool)
    for i, (name, type) in enumerate(columns):
        array, misfits = column_of_values([row[i] for row in rows], type)
        arrays.append(array)
        for row, why in misfits.items():
            good[row] = False
            reasons.setdefault(places[row], f"{name}: {why}")
    for place in sorted(reasons):
        rejections.add(parsed[place][0], reasons[place], parsed[place][1])
    if not columns:
        return nullary_table(len(rows))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns)).filter(pa.array(good))


def _cells(value: Any, options: InputOptions, columns: Columns) -> tuple[list[Any], str | None]:
    if isinstance(value, dict) and options.columns is None:
        missing = [name for name, _ in columns if name not in value]
        return [value.get(name) for name, _ in columns], f"no column {missing[0]}" if missing else None
    if not isinstance(value, list):
        expected = "an array" if options.columns is not None else "an object or an array"
        return [], f"a row is {expected}"
    if options.columns is not None:
        if len(value) <= max(options.columns):
            return [], f"expected at least {max(options.columns) + 1} columns, found {len(value)}"
        return [value[i] for i in options.columns], None
    if len(value) != len(columns):
        return [], f"expected {len(columns)} columns, found {len(value)}"
    return value, None
