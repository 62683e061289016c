"""Owns reading delimited text into typed columns.  Knows nothing of files, and of types only their readers.

Correct output: the rows of all good lines in order, and each bad line once, with its number and reason.

The text is cut into blocks that end at a line end.  A block is read by pyarrow's CSV reader; when that
fails, it is cut into pieces, until the piece with the bad row is small.  That one is split by `csv_splitter`,
which finds the bad rows (about 10 times slower, but still without Python code per row if nothing is
quoted).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dlog.interrupts import in_thread, poll
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
from dlog.io.csv_splitter import Layout, Rows, rows_of
from dlog.io.options import InputOptions
from dlog.io.source import BLOCK_BYTES, NEWLINE, Source, byte_array, count_newlines, find_byte, line_end
from dlog.io.text_cells import Misfits
from dlog.values.bool import FALSE_TEXTS, TRUE_TEXTS

_PIECES = 16  # of a block with a bad row
_SMALL = 1 << 16  # bytes that are split carefully in one step
_QUOTE, _RETURN = ord('"'), ord("\r")


def read_text(
    source: Source, options: InputOptions, columns: Columns, progress: Progress | None = None
) -> Loaded:
    """All rows of a delimited text.  O(bytes); 10 million rows of two ints take about a second."""
    rejections = Rejections(source.name, options.keep_rejected)
    data, line = _without_header(source.data, options.header)
    if not columns:
        return _read_nullary(data, line, rejections)
    layout = _layout(options, columns, data)
    tables, start = [], 0
    while start < data.size:
        poll()
        block = _next_block(data, start, line, layout)
        table, end = _read_block(block, layout, columns, rejections)
        tables.append(table)
        line += count_newlines(data[start:end])
        start = end
        if progress:
            progress(start, data.size)
    return loaded(concatenated(tables, columns), rejections)


@dataclass(frozen=True)
class _Block:
    """A piece of the text that starts at a record.

    `simple` means that pyarrow's reader and dlog's see the same records in it; then, and whenever nothing
    is quoted, a record ends at `end`.
    """

    data: pa.Buffer
    start: int
    end: int
    line: int
    simple: bool
    plain: bool  # nothing is quoted, so that every line end ends a record

    def text(self) -> pa.Buffer:
        return self.data[self.start : self.end]


def _without_header(data: pa.Buffer, header: bool) -> tuple[pa.Buffer, int]:
    if not header:
        return data, 1
    end = find_byte(data, NEWLINE)
    return (data[end + 1 :], 2) if end >= 0 else (data[data.size :], 2)


def _layout(options: InputOptions, columns: Columns, data: pa.Buffer) -> Layout:
    """How a row is laid out; with `columns=`, the first line shows how many columns the file has."""
    delimiter = options.delimiter.encode()
    if options.columns is None:
        return Layout(delimiter, options.quoted, tuple(range(len(columns))), len(columns), exact=True)
    end = find_byte(data, NEWLINE)
    first_line = (data[:end] if end >= 0 else data).to_pybytes()
    return Layout(delimiter, options.quoted, options.columns, first_line.count(delimiter) + 1, exact=False)


# Blocks


def _next_block(data: pa.Buffer, start: int, line: int, layout: Layout) -> _Block:
    """The records at `start`, about BLOCK_BYTES of them."""
    end = line_end(data, start, BLOCK_BYTES)
    piece = byte_array(data[start:end])
    simple = not _has_bare_return(piece)
    quotes = np.flatnonzero(piece == _QUOTE) if layout.quoted else np.empty(0, np.int64)
    if len(quotes):
        length = _quoted_length(piece, quotes, end == data.size, layout.delimiter)
        simple = simple and length > 0
        end = start + (length or len(piece))
    return _Block(data, start, end, line, simple, plain=not len(quotes))


def _quoted_length(piece: np.ndarray, quotes: np.ndarray, last: bool, delimiter: bytes) -> int:
    """How many bytes of the piece are whole records, by counting quotes; 0 if the quotes may be wrong."""
    if len(delimiter) > 1 or not _are_rfc4180(piece, quotes, delimiter[0]):
        return 0
    if last:
        return len(piece) if len(quotes) % 2 == 0 else 0
    newlines = np.flatnonzero(piece == NEWLINE)
    ends = newlines[np.searchsorted(quotes, newlines) % 2 == 0]
    return int(ends[-1]) + 1 if len(ends) else 0


def _has_bare_return(piece: np.ndarray) -> bool:
    """A carriage return that does not end a line: text for Soufflé, a line end for pyarrow."""
    following = np.flatnonzero(piece == _RETURN) + 1
    following = following[following < len(piece)]  # the last byte of a text ends its line for both
    return bool((piece[following] != NEWLINE).any())


def _are_rfc4180(piece: np.ndarray, quotes: np.ndarray, delimiter: int) -> bool:
    """Whether each quote is where RFC 4180 allows it: around a cell, or doubled inside one.

    A run of quotes outside a quoted cell must start a cell, and end it too if it is even; inside, an odd
    run must end the cell.  In such a text a place is outside iff the number of quotes before it is even.
    pyarrow accepts other texts as well, `"a"b` as `ab`: those go to the careful splitter.
    """
    first = np.flatnonzero(np.diff(quotes, prepend=-2) != 1)
    lengths = np.diff(first, append=len(quotes))
    before, after = quotes[first] - 1, quotes[first] + lengths
    starts = (before < 0) | np.isin(piece[before], [NEWLINE, delimiter])
    inside_piece = np.minimum(after, len(piece) - 1)
    ends = (after == len(piece)) | np.isin(piece[inside_piece], [NEWLINE, _RETURN, delimiter])
    outside, even = first % 2 == 0, lengths % 2 == 0
    return bool(np.where(outside, starts & (ends | ~even), ends | even).all())


# One block


def _read_block(
    block: _Block, layout: Layout, columns: Columns, rejections: Rejections
) -> tuple[pa.Table, int]:
    """The rows of the block, and where the next one starts."""
    table = _read_fast(block, layout, columns) if block.simple else None
    if table is not None:
        return table, block.end
    size = block.end - block.start
    if block.simple and block.plain and size > _SMALL:
        size //= _PIECES
        if line_end(block.data, block.start, size) < block.end:  # more than one long line
            return _read_pieces(block, size, layout, columns, rejections), block.end
    return _read_carefully(block, layout, columns, rejections)


def _read_pieces(
    block: _Block, size: int, layout: Layout, columns: Columns, rejections: Rejections
) -> pa.Table:
    """A block with a bad row, in pieces of a size or of one line: the others are read fast.

    If every piece has a bad row, the attempts add the time of one or two fast reads to the careful one.
    """
    tables, start, line = [], block.start, block.line
    while start < block.end:
        end = min(line_end(block.data, start, size), block.end)
        piece = _Block(block.data, start, end, line, simple=True, plain=True)
        tables.append(_read_block(piece, layout, columns, rejections)[0])
        line += count_newlines(block.data[start:end])
        start = end
    return pa.concat_tables(tables)


def _read_fast(block: _Block, layout: Layout, columns: Columns) -> pa.Table | None:
    """The table by pyarrow, or None when it cannot be used or some row is bad."""
    sources = layout.sources
    if len(layout.delimiter) != 1 or len(set(sources)) < len(sources) or max(sources) >= layout.width:
        return None
    names = [f"c{i}" for i in range(layout.width)]
    wanted = [names[i] for i in sources]
    types = {name: type.csv_arrow() for name, (_, type) in zip(wanted, columns, strict=True)}
    try:
        read = partial(
            csv.read_csv,
            pa.BufferReader(block.text()),
            csv.ReadOptions(column_names=names),
            _parse_options(layout, columns),
            csv.ConvertOptions(
                column_types=types,
                include_columns=wanted,
                null_values=[],
                strings_can_be_null=False,
                true_values=list(TRUE_TEXTS),
                false_values=list(FALSE_TEXTS),
            ),
        )
        table = in_thread(read)
    except pa.ArrowInvalid:
        return None
    finished = _finished(table, columns)
    return finished if finished is not None and _all_fit(finished, columns) else None


def _finished(table: pa.Table, columns: Columns) -> pa.Table | None:
    """Convert the columns that pyarrow reads as text; None when a cell is bad."""
    arrays = []
    for column, (_, type) in zip(table.columns, columns, strict=True):
        if type.csv_arrow() != type.arrow():
            column, misfits = text_cells.convert(column.combine_chunks(), type)
            if len(misfits.places):
                return None
        arrays.append(column)
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])


def _parse_options(layout: Layout, columns: Columns) -> csv.ParseOptions:
    return csv.ParseOptions(
        delimiter=layout.delimiter.decode(),
        quote_char='"' if layout.quoted else False,
        double_quote=layout.quoted,
        escape_char=False,
        newlines_in_values=layout.quoted,
        ignore_empty_lines=not _blank_is_a_row(layout, columns),
    )


def _blank_is_a_row(layout: Layout, columns: Columns) -> bool:
    """A blank line is the empty string where a row is one string, and nothing elsewhere."""
    return layout.width == 1 and layout.sources == (0,) and columns[0][1].verbatim


def _all_fit(table: pa.Table, columns: Columns) -> bool:
    for column, (_, type) in zip(table.columns, columns, strict=True):
        if fits(column, type) is not None:
            return False
        if type.doubtful(column):
            return False
    return True


def _read_carefully(
    block: _Block, layout: Layout, columns: Columns, rejections: Rejections
) -> tuple[pa.Table, int]:
    """The good rows, with the bad ones added to `rejections` in line order."""
    rest, stop = block.data[block.start :], block.end - block.start
    rows = rows_of(rest, stop, block.line, layout, _blank_is_a_row(layout, columns))
    arrays, misfits = [], []
    good = np.ones(len(rows.lines), bool)
    for cells, (_, type) in zip(rows.cells, columns, strict=True):
        array, column_misfits = text_cells.convert(cells, type)
        arrays.append(array)
        misfits.append(column_misfits)
        good[column_misfits.places] = False
    _reject(rows, ~good, columns, misfits, rejections)
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(columns))
    return (table if good.all() else table.filter(pa.array(good))), block.start + rows.end


def _reject(
    rows: Rows, bad: np.ndarray, columns: Columns, misfits: list[Misfits], rejections: Rejections
) -> None:
    """Reasons are formatted only for the lines that are shown."""
    lines = np.sort(np.concatenate([rows.lines[bad], rows.broken]))

    def reason(line: int) -> str:
        at = int(np.searchsorted(rows.broken, line))
        if at < len(rows.broken) and rows.broken[at] == line:
            return rows.broken_reason(line)
        row = int(np.searchsorted(rows.lines, line))
        found = ((name, m.reason(row)) for (name, _), m in zip(columns, misfits, strict=True))
        return next(f"{name}: {why}" for name, why in found if why)

    rejections.add_lines(lines, lambda line: (reason(line), rows.line_text(line).decode(errors="replace")))


def _read_nullary(data: pa.Buffer, line: int, rejections: Rejections) -> Loaded:
    """A predicate without columns: the line `()` means that it holds."""
    found = 0
    for number, text in enumerate(data.to_pybytes().split(b"\n"), line):
        text = text.removesuffix(b"\r")
        if text == b"()":
            found = 1
        elif text:
            rejections.add(number, "expected () or nothing", text.decode(errors="replace"))
    return loaded(nullary_table(found), rejections)
