"""Owns reading a table or a view of a SQLite file into typed columns.

Columns are taken by position, as in Soufflé; those of a wider table by name, or with `columns=`.  A number in
a column of texts is read as its text, and a text in another column as a cell of a text file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dlog.errors import DataError, did_you_mean
from dlog.interrupts import poll
from dlog.io import text_cells
from dlog.io.columns import Columns, Loaded, Progress, Rejections, arrow_schema, concatenated, loaded
from dlog.io.options import InputOptions
from dlog.io.source import find_file
from dlog.io.sqlite_file import connect, find_table, quoted, sqlite_errors, table_names
from dlog.values import Type
from dlog.values.arrows import column_of_values
from dlog.values.misfit import Misfit

if TYPE_CHECKING:
    import sqlite3

_ROWS = 1 << 16


def read_sqlite(options: InputOptions, columns: Columns, progress: Progress | None = None) -> Loaded:
    """All rows.  About 0.4 microseconds a cell."""
    if options.path is None:
        raise DataError(
            "a SQLite file cannot be read as a stream of bytes", help="name a file on a local disk"
        )
    path = find_file(options)
    if not columns:
        raise DataError(f"{options.relation} has no columns, and every table of SQLite has some")
    rejections = Rejections(f"{path}:{options.table}", options.keep_rejected)
    tables, done = [], 0
    with sqlite_errors("read", path):
        connection = connect(path, "ro")
        try:
            cursor = connection.execute(_query(connection, path, options, columns))
            while rows := cursor.fetchmany(_ROWS):
                poll()
                tables.append(_typed(rows, columns, done, rejections))
                done += len(rows)
                if progress:
                    progress(done, done)
        finally:
            connection.close()
    return loaded(concatenated(tables, columns), rejections)


def _query(connection: sqlite3.Connection, path: Path, options: InputOptions, columns: Columns) -> str:
    table = find_table(connection, options.table)
    if table is None:
        known = table_names(connection)
        shown = f"its tables are {', '.join(known)}" if known else "it has no tables"
        help = did_you_mean(options.table, known, shown)
        raise DataError(f'"{path}" has no table {options.table}', help=help)
    names = list(table.columns)
    picked = _places(names, options, [name for name, _ in columns], f'the table {options.table} of "{path}"')
    return f"SELECT {', '.join(quoted(names[place]) for place in picked)} FROM {quoted(options.table)}"


def _places(names: list[str], options: InputOptions, wanted: list[str], table: str) -> Sequence[int]:
    """The number of the table's column for each column of the relation."""
    if options.columns is not None:
        if max(options.columns) >= len(names):
            raise DataError(
                f"{table} has {len(names)} columns, columns= asks for number {max(options.columns)}"
            )
        return options.columns
    found = f"its columns are {', '.join(names)}"
    help = f'{found}; choose with columns="0:2", where 0 is the first'
    if len(names) == len(wanted):
        if names != wanted and sorted(names) == sorted(wanted):
            raise DataError(f"{table} has the columns of {options.relation} in another order", help=help)
        return range(len(wanted))
    if len(names) > len(wanted) and set(wanted) <= set(names):
        return [names.index(name) for name in wanted]
    raise DataError(f"{table} has {len(names)} columns, {options.relation} has {len(wanted)}", help=help)


def _typed(rows: list[Any], columns: Columns, rows_before: int, rejections: Rejections) -> pa.Table:
    """The good rows; the others are added to `rejections`, with their number from 1."""
    arrays, reasons = [], dict[int, str]()
    for values, (name, type) in zip(zip(*rows, strict=True), columns, strict=True):
        array, misfits = _column(values, type)
        arrays.append(array)
        for row, why in misfits.items():
            reasons.setdefault(row, f"{name}: {why}")
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(columns))
    if not reasons:
        return table
    for row in sorted(reasons):
        rejections.add(rows_before + row + 1, reasons[row], str(rows[row]))
    good = np.ones(len(rows), bool)
    good[list(reasons)] = False
    return table.filter(pa.array(good))


def _column(values: Sequence[Any], type: Type) -> tuple[pa.Array, dict[int, str]]:
    kinds = {value.__class__ for value in values}
    if kinds == {str} and not type.verbatim:
        array, found = text_cells.convert(pa.array(values, pa.string()), type)
        return array, {place: found.reason(place) or "" for place in found.places.tolist()}
    if type.direct(values):
        return column_of_values(values, type)
    taken, reasons = [], {}
    for row, value in enumerate(values):
        try:
            is_text = isinstance(value, str) and not type.verbatim
            taken.append(text_cells.parse(value, type) if is_text else type.of_sqlite(value))
        except Misfit as misfit:
            taken.append(None)
            reasons[row] = str(misfit)
    array, misfits = column_of_values(taken, type)
    return array, misfits | reasons
