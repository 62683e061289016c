"""Owns splitting delimited text into cells, with line numbers.  Knows no types.

Two methods: `split_plain` for text without quotes, array operations only; `split_quoted`, record by record,
for RFC 4180 text.  Lines end with a newline or a carriage return and a newline, nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dlog.io.source import line_end
from dlog.values.heavy import pc


@dataclass(frozen=True)
class Layout:
    """How a row is written: `width` cells, of which `sources` are taken, in that order.

    Unless `exact`, rows may have any width that includes the columns taken.
    """

    delimiter: bytes
    quoted: bool
    sources: tuple[int, ...]
    width: int
    exact: bool

    def takes(self, width: int) -> bool:
        return width == self.width if self.exact else width > max(self.sources)

    def width_reason(self, found: int) -> str:
        expected = f"{self.width}" if self.exact else f"at least {max(self.sources) + 1}"
        return f"expected {expected} column{'' if expected == '1' else 's'}, found {found}"


@dataclass(frozen=True)
class Rows:
    """The cells of the rows of the right width, as binary arrays, and the lines of all others."""

    cells: list[pa.Array]
    lines: np.ndarray  # of each row, ascending
    broken: np.ndarray  # the lines that are not rows, ascending
    broken_reason: Callable[[int], str]
    line_text: Callable[[int], bytes]
    end: int  # where the text after the last record starts

    def check(self) -> None:
        assert all(len(column) == len(self.lines) for column in self.cells)
        assert (np.diff(self.lines) > 0).all() and (np.diff(self.broken) > 0).all()


def rows_of(data: pa.Buffer, stop: int, first_line: int, layout: Layout, blank_is_a_row: bool) -> Rows:
    """The rows of the records that start before `stop`, which is a record's end if nothing is quoted."""
    if layout.quoted:
        return split_quoted(data, stop, first_line, layout, blank_is_a_row)
    return split_plain(data[:stop], first_line, layout, blank_is_a_row)


def split_plain(data: pa.Buffer, first_line: int, layout: Layout, blank_is_a_row: bool) -> Rows:
    """A few passes of array operations: 0.1 microseconds a cell."""
    lines = _lines(data)
    numbers = np.arange(first_line, first_line + len(lines))
    if not blank_is_a_row:
        filled = pc.greater(pc.binary_length(lines), 0)
        lines, numbers = lines.filter(filled), numbers[filled.to_numpy(zero_copy_only=False)]
    lists = pc.split_pattern(lines, layout.delimiter)
    widths = pc.list_value_length(lists).to_numpy()
    good = widths == layout.width if layout.exact else widths > max(layout.sources)
    starts = lists.offsets.to_numpy()[:-1][good].astype(np.int64)
    cells = [lists.values.take(pa.array(starts + source)) for source in layout.sources]
    broken = numbers[~good]

    def reason(line: int) -> str:
        return layout.width_reason(int(widths[np.searchsorted(numbers, line)]))

    def text(line: int) -> bytes:
        return lines[int(np.searchsorted(numbers, line))].as_py()

    return Rows(cells, numbers[good], broken, reason, text, data.size)


def _lines(data: pa.Buffer) -> pa.Array:
    """The lines without their ends; the newline at the end of the text starts no line."""
    size = data.size - 1 if data[-1:].to_pybytes() == b"\n" else data.size
    offsets = pa.py_buffer(np.array([0, size], np.int64))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, data])
    lines = pc.split_pattern(whole, b"\n").flatten()
    returned = pc.ends_with(lines, b"\r")
    return pc.if_else(returned, pc.binary_slice(lines, 0, -1), lines)


def split_quoted(data: pa.Buffer, stop: int, first_line: int, layout: Layout, blank_is_a_row: bool) -> Rows:
    """Record by record: about 2 microseconds a cell.  After a broken record, continues at the next line."""
    cell = _cell_pattern(layout.delimiter)
    text = data[:stop].to_pybytes()
    rows: list[list[bytes]] = []
    starts: list[
        int
    ] = []  # of each record that is not blank: its position, its line, and whether it is a row
    lines: list[int] = []
    good: list[bool] = []
    position, line = 0, first_line
    while position < stop:
        cells, end = _record(text, position, cell, layout.delimiter)
        if cells is None and len(text) < data.size:  # a quoted cell may continue after this text
            text = data[: line_end(data, len(text), len(text))].to_pybytes()
            continue
        if blank_is_a_row or text[position:end] not in (b"\n", b"\r\n", b"\r"):
            starts.append(position)
            lines.append(line)
            good.append(cells is not None and layout.takes(len(cells)))
            if cells is not None and good[-1]:
                rows.append([cells[source] for source in layout.sources])
        line += text.count(b"\n", position, end)
        position = end
    numbers, are_rows = np.array(lines, np.int64), np.array(good, bool)
    columns = zip(*rows, strict=True) if rows else [()] * len(layout.sources)

    def start_of(line: int) -> int:
        return starts[int(np.searchsorted(numbers, line))]

    def line_text(line: int) -> bytes:
        _, end = _record(text, start_of(line), cell, layout.delimiter)
        return text[start_of(line) : end].rstrip(b"\r\n")

    return Rows(
        cells=[pa.array(column, pa.large_binary()) for column in columns],
        lines=numbers[are_rows],
        broken=numbers[~are_rows],
        broken_reason=lambda line: _broken_reason(text, start_of(line), cell, layout),
        line_text=line_text,
        end=position,
    )


def _cell_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    """A quoted cell (group 1) or an unquoted one (group 2), and what ends it (group 3)."""
    end = re.escape(delimiter)
    quoted, unquoted = rb'"([^"]*(?:""[^"]*)*)"', rb'((?!")(?:(?!' + end + rb")[^\n])*)"
    return re.compile(rb"(?:" + quoted + rb"|" + unquoted + rb")(" + end + rb"|\r?\n|\r?\Z)")


def _record(
    text: bytes, start: int, cell: re.Pattern[bytes], delimiter: bytes
) -> tuple[list[bytes] | None, int]:
    """The cells of the record at `start` and where the next one starts; None where a quote is wrong."""
    newline = text.find(b"\n", start)
    line_stop = len(text) if newline < 0 else newline + 1
    if text.find(b'"', start, line_stop) < 0:
        line = text[start:line_stop].removesuffix(b"\n").removesuffix(b"\r")
        return line.split(delimiter), line_stop
    cells: list[bytes] = []
    ending, position = delimiter, start
    while ending == delimiter:
        match = cell.match(text, position)
        if match is None:
            return None, line_stop
        quoted, unquoted, ending = match.groups()
        cells.append(unquoted if quoted is None else quoted.replace(b'""', b'"'))
        position = match.end()
    if quoted is None:
        cells[-1] = unquoted.removesuffix(b"\r")
    return cells, position


def _broken_reason(text: bytes, start: int, cell: re.Pattern[bytes], layout: Layout) -> str:
    cells, _ = _record(text, start, cell, layout.delimiter)
    if cells is not None:
        return layout.width_reason(len(cells))
    position = start
    while match := cell.match(text, position):
        position = match.end()
    closed = re.compile(rb'"[^"]*(?:""[^"]*)*"(?!")').match(text, position)
    return "text follows a closing quote" if closed else "a quote is not closed"
