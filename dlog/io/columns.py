"""Owns the Arrow form of dlog's types, and what a reader returns.  Knows no file format.

A column of a dlog type is an Arrow column of exactly one type (`arrow_type`), without nulls, whose values
the type can hold (`fits`).  A predicate without columns is a table without columns and with 0 or 1 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pyarrow as pa

from dlog.values import STRING, TYPES, Type, decimal
from dlog.values.arrows import fits

Columns = Sequence[tuple[str, Type]]
Progress = Callable[[int, int], None]  # (done, total), in bytes when reading and in rows when writing

__all__ = [
    "Columns",
    "Loaded",
    "Progress",
    "Rejected",
    "Rejections",
    "arrow_schema",
    "arrow_type",
    "columns_of",
    "concatenated",
    "empty_table",
    "fits",
    "loaded",
    "nullary_table",
    "type_of_arrow",
]

KEPT_REJECTIONS = 20
KEPT_TEXT = 200


@dataclass(frozen=True)
class Rejected:
    """A rejected row.  `line` counts from 1; for Parquet and Arrow files it is the row."""

    file: str
    line: int
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass
class Rejections:
    """The first rejected rows, or with `all` every one of them, and how many there were."""

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
        """Many rows at once; reason and text are computed only for those that are stored."""
        room = len(lines) if self.all else KEPT_REJECTIONS - len(self.kept)
        for line in lines[:room].tolist():
            self.add(line, *describe(line))
        self.count += len(lines[room:])

    def check(self) -> None:
        assert len(self.kept) == (self.count if self.all else min(self.count, KEPT_REJECTIONS))


@dataclass(frozen=True)
class Loaded:
    """The content of a file: the good rows in file order, and the rejected rows."""

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
    return type.arrow()


def arrow_schema(columns: Columns) -> pa.Schema:
    return pa.schema([(name, arrow_type(type)) for name, type in columns])


def columns_of(table: pa.Table) -> list[tuple[str, Type]]:
    """The columns of a table whose types are dlog's.  O(columns)."""
    return [(column.name, type_of_arrow(column.type)) for column in table.schema]


def type_of_arrow(arrow: pa.DataType) -> Type:
    """The type whose columns have this Arrow type."""
    if pa.types.is_decimal(arrow):
        return decimal(18, arrow.scale)
    return STRING if pa.types.is_large_string(arrow) else _by_arrow()[arrow]


@cache
def _by_arrow() -> dict[pa.DataType, Type]:
    return {type.arrow(): type for type in TYPES if not type.is_decimal}


def nullary_table(rows: int) -> pa.Table:
    """The table of a predicate without columns: it holds (one row) or it does not.

    Arrow's `concat_tables` drops the rows of a table without columns, so such tables are made only here.
    """
    empty_row = pa.array([{}] if rows else [], pa.struct([]))
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(empty_row)])


def empty_table(columns: Columns) -> pa.Table:
    return arrow_schema(columns).empty_table() if columns else nullary_table(0)


def concatenated(tables: list[pa.Table], columns: Columns) -> pa.Table:
    """All rows in order.  REQUIRES: columns, and tables of their types.  Copies nothing."""
    return pa.concat_tables(tables) if tables else empty_table(columns)
