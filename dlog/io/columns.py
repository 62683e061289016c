"""Owns the Arrow form of dlog's types, and what a reader hands back.  Knows no file format.

A column of a dlog type is an Arrow column of exactly one type (`arrow_type`), without nulls, whose values
the type can hold (`fits`).  A predicate without columns is a table without columns and with 0 or 1 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.types import BOOL, DATE, DATETIME, FLOAT, INT, STRING, UNSIGNED, Type, decimal

Columns = Sequence[tuple[str, Type]]
Progress = Callable[[int, int], None]  # (done, total), in bytes when reading and in rows when writing

KEPT_REJECTIONS = 20
KEPT_TEXT = 200

_ARROW = {
    INT: pa.int64(),
    UNSIGNED: pa.uint64(),
    FLOAT: pa.float64(),
    STRING: pa.string(),
    BOOL: pa.bool_(),
    DATE: pa.date32(),
    DATETIME: pa.timestamp("us"),
}
_BY_ARROW = {arrow: type for type, arrow in _ARROW.items()} | {pa.large_string(): STRING}

# Years 1 to 9999: what four digits and Python's dates can show, so that every value has a text.
_FIRST_DAY = int(np.datetime64("0001-01-01", "D").astype(np.int64))
_LAST_DAY = int(np.datetime64("9999-12-31", "D").astype(np.int64))
_MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True)
class Rejected:
    """A row that was not taken.  `line` counts from 1; for Parquet and Arrow files it is the row."""

    file: str
    line: int
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass
class Rejections:
    """The first rows that were not taken, or with `all` every one of them, and how many there were."""

    file: str
    all: bool = False
    kept: list[Rejected] = field(default_factory=list)
    count: int = 0

    def add(self, line: int, reason: str, text: str) -> None:
        self.count += 1
        if self.all or len(self.kept) < KEPT_REJECTIONS:
            shown = text if self.all or len(text) <= KEPT_TEXT else text[:KEPT_TEXT] + "..."
            self.kept.append(Rejected(self.file, line, reason, shown))

    def add_lines(self, lines: np.ndarray, describe: Callable[[int], tuple[str, str]]) -> None:
        """Many rows at once; reason and text are asked only for those that are kept."""
        room = len(lines) if self.all else KEPT_REJECTIONS - len(self.kept)
        for line in lines[:room].tolist():
            self.add(line, *describe(line))
        self.count += len(lines[room:])

    def check(self) -> None:
        assert len(self.kept) == (self.count if self.all else min(self.count, KEPT_REJECTIONS))


@dataclass(frozen=True)
class Loaded:
    """What a file held: the good rows in file order, and the rows that were not taken."""

    table: pa.Table
    rejected: list[Rejected]
    rejected_count: int

    def check(self) -> None:
        assert len(self.rejected) in (self.rejected_count, KEPT_REJECTIONS)
        for column in self.table.columns:
            assert column.null_count == 0


def loaded(table: pa.Table, rejections: Rejections) -> Loaded:
    return Loaded(table, rejections.kept, rejections.count)


def arrow_type(type: Type) -> pa.DataType:
    """The one Arrow type of a dlog type (strings may be `large_string` as well).

    >>> arrow_type(decimal(10, 2))
    Decimal128Type(decimal128(18, 2))
    """
    return pa.decimal128(18, type.scale) if type.is_decimal else _ARROW[type]


def arrow_schema(columns: Columns) -> pa.Schema:
    return pa.schema([(name, arrow_type(type)) for name, type in columns])


def columns_of(table: pa.Table) -> list[tuple[str, Type]]:
    """The columns of a table whose types are dlog's.  Cost: that of the schema."""
    return [(column.name, _dlog_type(column.type)) for column in table.schema]


def _dlog_type(arrow: pa.DataType) -> Type:
    if pa.types.is_decimal(arrow):
        return decimal(18, arrow.scale)
    return _BY_ARROW[arrow]


def nullary_table(rows: int) -> pa.Table:
    """The table of a predicate without columns: it holds (one row) or it does not.

    Arrow's `concat_tables` forgets the rows of a table without columns, so such tables are made only here.
    """
    empty_row = pa.array([{}] if rows else [], pa.struct([]))
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(empty_row)])


def empty_table(columns: Columns) -> pa.Table:
    return arrow_schema(columns).empty_table() if columns else nullary_table(0)


def concatenated(tables: list[pa.Table], columns: Columns) -> pa.Table:
    """All rows in order.  REQUIRES: columns, and tables of their types.  Copies nothing."""
    return pa.concat_tables(tables) if tables else empty_table(columns)


def fits(column: pa.ChunkedArray | pa.Array, type: Type) -> pa.BooleanArray | None:
    """Which values of an Arrow column lie inside the dlog type, or None when all do.

    Only decimals, dates and datetimes can be outside: Arrow's types reach further there than dlog's.
    One pass over the column, and none for the other types.
    """
    low, high, numbers = _limits(column, type)
    if numbers is None or not len(numbers):
        return None
    inside = (numbers >= low) & (numbers <= high)
    if type.is_decimal:
        inside &= _high_halves_are_signs(column)
    return None if inside.all() else pa.array(inside)


def _limits(column: pa.ChunkedArray, type: Type) -> tuple[int, int, np.ndarray | None]:
    if type.is_decimal:
        limit = 10**type.precision - 1
        return -limit, limit, unscaled(column)
    if type == DATE:
        return _FIRST_DAY, _LAST_DAY, _numbers(column, pa.int32())
    if type == DATETIME:
        last = (_LAST_DAY + 1) * _MICROSECONDS_A_DAY - 1
        return _FIRST_DAY * _MICROSECONDS_A_DAY, last, _numbers(column, pa.int64())
    return 0, 0, None


def _numbers(column: pa.ChunkedArray | pa.Array, stored: pa.DataType) -> np.ndarray:
    """The integers behind dates; a null (never inside) becomes the smallest one."""
    smallest = np.iinfo(stored.to_pandas_dtype()).min
    return pc.fill_null(column.cast(stored), smallest).to_numpy()


def unscaled(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """The integers behind a decimal128 column, as int64: the value times 10^scale.  Nulls give 0.

    REQUIRES: they fit an int64 (`fits` says whether they do).
    """
    return _halves(column)[:, 0]


def decimals_of(numbers: np.ndarray, scale: int) -> pa.ChunkedArray:
    """The decimal128(18, scale) column with these int64 numbers as its unscaled values.

    >>> decimals_of(np.array([150, -1]), 2)[1].as_py()
    Decimal('-0.01')
    """
    halves = np.column_stack([numbers, numbers >> 63])
    buffer = pa.py_buffer(np.ascontiguousarray(halves))
    return pa.chunked_array([pa.Array.from_buffers(pa.decimal128(18, scale), len(numbers), [None, buffer])])


def _high_halves_are_signs(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    halves = _halves(column)
    return halves[:, 1] == halves[:, 0] >> 63


def _halves(column: pa.ChunkedArray | pa.Array) -> np.ndarray:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_halves_of_array(chunk) for chunk in chunks]
    return np.concatenate(parts) if parts else np.empty((0, 2), np.int64)


def _halves_of_array(array: pa.Array) -> np.ndarray:
    if not len(array):
        return np.empty((0, 2), np.int64)
    whole = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    halves = whole[array.offset : array.offset + len(array)]
    if array.null_count:
        halves = np.where(array.is_valid().to_numpy(zero_copy_only=False)[:, None], halves, 0)
    return halves
