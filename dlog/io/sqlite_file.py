"""Owns what reading and writing SQLite files share: opening them, their tables, and their errors.

sqlite3 is imported when a program names such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dlog.errors import DataError

if TYPE_CHECKING:
    import sqlite3

WAITING_SECONDS = 10.0  # for another process that writes


@dataclass(frozen=True)
class Table:
    """A table or a view: the names of its columns, and the types that it declares for them."""

    is_view: bool
    columns: dict[str, str]


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """`mode` is `ro`, or `rwc` to create a file that does not exist.  Transactions begin where asked."""
    import sqlite3

    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=WAITING_SECONDS, isolation_level=None)


@contextmanager
def sqlite_errors(doing: str, path: Path) -> Iterator[None]:
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise DataError(f'cannot {doing} "{path}": {error}') from None


def find_table(connection: sqlite3.Connection, name: str) -> Table | None:
    sql = "SELECT type FROM sqlite_master WHERE type IN ('table', 'view') AND lower(name) = lower(?)"
    found = connection.execute(sql, (name,)).fetchone()
    if found is None:
        return None
    columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (name,)).fetchall()
    return Table(found[0] == "view", dict(columns))


def table_names(connection: sqlite3.Connection) -> list[str]:
    sql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    return [name for (name,) in connection.execute(sql) if not name.startswith("sqlite_")]


def quoted(name: str) -> str:
    """A name in SQL.

    >>> print(quoted('a "b" c'))
    "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'
