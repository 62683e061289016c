"""Owns writing relations into tables of one SQLite file, in one transaction of SQLite.

A new table has a column for each column of the relation, with its values: integers, floats, and exact texts
of everything else.  Of a table that exists the rows are replaced, and its columns, indices and other
definitions stay; it must have the columns of the relation, with types that do not change their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from dlog.errors import DataError
from dlog.interrupts import poll
from dlog.io.columns import Columns, Progress
from dlog.io.csv_writer import batches
from dlog.io.sqlite_file import Table, connect, find_table, quoted, sqlite_errors

if TYPE_CHECKING:
    import sqlite3

# What SQLite makes of a column with a declared type: the first word that the type contains decides.
_AFFINITIES = {"INT": "INTEGER", "CHAR": "TEXT", "CLOB": "TEXT", "TEXT": "TEXT", "BLOB": "BLOB"}
_AFFINITIES |= dict.fromkeys(("REAL", "FLOA", "DOUB"), "REAL")
# Which columns leave the values of a column alone.
_KEEPING = {
    "INTEGER": ("INTEGER", "NUMERIC", "BLOB"),
    "REAL": ("REAL", "NUMERIC", "BLOB"),
    "TEXT": ("TEXT", "BLOB"),
    "BLOB": ("BLOB",),
}


class TableWriter:
    """The open transaction on one file.  1 `write`, for each table.  2 `commit`, or `abort`."""

    def __init__(self, path: Path):
        self.path = path
        self._is_new = not path.exists()
        self._relations: dict[str, str] = {}  # what is written to each table
        with sqlite_errors("write", path):
            self._connection: sqlite3.Connection = connect(path, "rwc")
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except BaseException:
                self._connection.close()
                raise

    def write(
        self, table: pa.Table, columns: Columns, relation: str, name: str, progress: Progress | None = None
    ) -> None:
        """Replaces the rows of the table `name`."""
        if not columns:
            raise DataError(f"{relation} has no columns, and every table of SQLite has some")
        if self._relations.setdefault(name.lower(), relation) != relation:
            other = self._relations[name.lower()]
            message = f'{other} and {relation} would both be written to the table {name} of "{self.path}"'
            raise DataError(message)
        with sqlite_errors("write", self.path), self._whole():
            found = find_table(self._connection, name)
            if found is None:
                declared = ", ".join(f"{quoted(column)} {type.sqlite}" for column, type in columns)
                self._connection.execute(f"CREATE TABLE {quoted(name)} ({declared})")
            else:
                self._require_fit(found, columns, relation, name)
                self._connection.execute(f"DELETE FROM {quoted(name)}")
            self._insert(table, columns, name, progress)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """A table that failed is as before, so that a later commit cannot show half of it."""
        self._connection.execute("SAVEPOINT one_table")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK TO one_table")
            raise
        finally:
            self._connection.execute("RELEASE one_table")

    def _insert(self, table: pa.Table, columns: Columns, name: str, progress: Progress | None) -> None:
        names = ", ".join(quoted(column) for column, _ in columns)
        marks = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {quoted(name)} ({names}) VALUES ({marks})"
        for batch in batches(table, progress):
            poll()
            values = [
                type.sqlite_values(column) for column, (_, type) in zip(batch.columns, columns, strict=True)
            ]
            self._connection.executemany(sql, zip(*values, strict=True))

    def _require_fit(self, table: Table, columns: Columns, relation: str, name: str) -> None:
        place = f'the table {name} of "{self.path}"'
        advice = "choose another table with name=, or another file"
        if table.is_view:
            raise DataError(f'{name} of "{self.path}" is a view: its rows cannot be replaced', help=advice)
        if set(table.columns) != {column for column, _ in columns}:
            help = f"it has {', '.join(table.columns)}; {relation} has {', '.join(c for c, _ in columns)}; "
            raise DataError(f"{place} has other columns than {relation}", help=help + advice)
        for column, type in columns:
            declared = table.columns[column]
            if affinity(declared) not in _KEEPING[type.sqlite]:
                message = f"{place} would change the values of {column}: it is {declared}, not {type.sqlite}"
                raise DataError(message, help=advice)

    def commit(self) -> None:
        with sqlite_errors("write", self.path):
            self._connection.execute("COMMIT")
            self._connection.close()

    def abort(self) -> None:
        """The file is as before; a new one is removed."""
        self._connection.close()
        if self._is_new:
            self.path.unlink(missing_ok=True)


def affinity(declared: str) -> str:
    """Which values SQLite converts in a column with this declared type.

    >>> affinity("varchar(20)"), affinity("decimal(10, 2)"), affinity("")
    ('TEXT', 'NUMERIC', 'BLOB')
    """
    text = declared.upper() or "BLOB"
    return next((found for word, found in _AFFINITIES.items() if word in text), "NUMERIC")
