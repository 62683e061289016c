"""Owns where output goes: files that appear whole or not at all, and standard output.

1 stage: each output is written next to its destination under another name, or into an open transaction of
SQLite.  2 commit: transactions are committed, files renamed into place, then standard output is printed.
Or abort: what was staged is removed.  A process that dies in between leaves at most hidden `.part` files,
never half an output.  Knows nothing of formats except which function writes each.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import pyarrow as pa

from dlog.errors import DataError
from dlog.io.columnar import write_arrow, write_parquet
from dlog.io.columns import Columns, Progress, columns_of
from dlog.io.csv_writer import printsize_line, write_text, write_to_console
from dlog.io.json_writer import write_json
from dlog.io.options import ARROW, JSON, PARQUET, SQLITE, TEXT, OutputOptions
from dlog.io.sqlite_writer import TableWriter

_SPOOLED_BYTES = 16 << 20  # standard output is buffered in memory up to this size, then in a temporary file

_NUMBERS = count()  # makes the names of staged files differ within a process

Writer = Callable[[pa.Table, Columns, OutputOptions, BinaryIO, Progress | None], None]

_WRITERS: dict[str, Writer] = {
    TEXT: write_text,
    JSON: write_json,
    PARQUET: write_parquet,
    ARROW: write_arrow,
}


def write(
    table: pa.Table,
    options: OutputOptions,
    columns: Columns | None = None,
    *,
    progress: Progress | None = None,
    stdout: BinaryIO | None = None,
) -> None:
    """Writes one relation.  `columns` matter for decimals, whose declared precision Arrow does not store."""
    with OutputSet(stdout=stdout) as outputs:
        outputs.write(table, options, columns, progress=progress)


@dataclass
class _Staged:
    relation: str
    part: Path
    target: Path


class OutputSet:
    """Several outputs that appear together: `with OutputSet() as outputs: outputs.write(...)`.

    Leaving the block commits, an exception aborts.
    """

    def __init__(self, *, stdout: BinaryIO | None = None) -> None:
        self._stdout = stdout
        self._staged: dict[Path, _Staged] = {}  # by target
        self._databases: dict[Path, TableWriter] = {}
        self._printed: list[tuple[Path | None, Any]] = []  # (device or None for stdout, spooled bytes)
        self._made_folders: list[Path] = []
        self._closed = False

    def write(
        self,
        table: pa.Table,
        options: OutputOptions,
        columns: Columns | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """Stages one relation."""
        assert not self._closed
        columns = columns_of(table) if columns is None else columns
        assert len(columns) == table.num_columns
        if options.format == SQLITE:
            self._write_table(table, options, columns, progress)
            return
        writer = _WRITERS[options.format]
        if options.path is None and options.format == TEXT:
            writer = write_to_console
        with self._sink(options) as sink:
            writer(table, columns, options, sink, progress)

    def _write_table(
        self, table: pa.Table, options: OutputOptions, columns: Columns, progress: Progress | None
    ) -> None:
        """Into the open transaction on its SQLite file."""
        assert options.path is not None
        target = Path(os.path.realpath(options.path))
        _refuse_both(target, self._staged)
        if target not in self._databases:
            try:
                self._make_folder(target.parent)
            except OSError as error:
                raise DataError(f'cannot write "{target}": {error.strerror or error}') from None
            self._databases[target] = TableWriter(target)
        self._databases[target].write(table, columns, options.relation, options.name, progress)

    def print_size(self, name: str, rows: int) -> None:
        """Stages the line of `.printsize`."""
        self._spool(None).write(printsize_line(name, rows).encode())

    def commit(self) -> None:
        """Moves every staged output to its destination.  On failure the rest is removed, and a DataError
        raised.
        """
        assert not self._closed
        try:
            for path in list(self._databases):
                self._databases[path].commit()
                del self._databases[path]
            for target, staged in list(self._staged.items()):
                os.replace(staged.part, target)
                del self._staged[target]
            for device, spool in self._printed:
                self._print(device, spool)
        except BrokenPipeError:  # the reader of our standard output has closed it
            self.abort()
            raise
        except OSError as error:
            self.abort()
            raise DataError(
                f"cannot write {error.filename2 or error.filename or 'output'}: {error.strerror}"
            ) from None
        except DataError:
            self.abort()
            raise
        self._forget()

    def abort(self) -> None:
        """Removes what was staged.  Does nothing after a commit."""
        for staged in self._staged.values():
            staged.part.unlink(missing_ok=True)
        for database in self._databases.values():
            database.abort()
        for folder in reversed(self._made_folders):
            if not any(folder.iterdir()):
                folder.rmdir()
        self._forget()

    def check(self) -> None:
        targets = [staged.target for staged in self._staged.values()]
        assert len(set(targets)) == len(targets)
        assert all(staged.part.exists() for staged in self._staged.values())
        assert not (self._closed and (self._staged or self._printed))

    def __enter__(self) -> OutputSet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._closed:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()

    @contextmanager
    def _sink(self, options: OutputOptions) -> Iterator[BinaryIO]:
        """Where the bytes of one output go while staged.  System errors become DataErrors."""
        target = None if options.path is None else Path(os.path.realpath(options.path))
        self._refuse_conflict(options.relation, target)
        _refuse_both(target, self._databases)
        is_device = target is not None and target.exists() and not target.is_file() and not target.is_dir()
        spools = len(self._printed)
        try:
            if target is None or is_device:
                yield self._spool(target)
            else:
                staged = self._stage(options.relation, target)
                with open(staged.part, "wb") as file, _compressed(file, options) as sink:
                    yield sink
        except BaseException as error:
            self._unstage(target, spools)
            if isinstance(error, OSError):
                message = f'cannot write "{options.path}": {error.strerror or error}'
                raise DataError(message) from None
            raise

    def _stage(self, relation: str, target: Path) -> _Staged:
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if target in self._staged:
            return self._staged[target]
        self._make_folder(target.parent)
        part = target.with_name(f".{target.name}.{os.getpid()}.{next(_NUMBERS)}.part")
        # The permissions of any new file.
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if target.exists():
            shutil.copymode(target, part)
        staged = self._staged[target] = _Staged(relation, part, target)
        return staged

    def _refuse_conflict(self, relation: str, target: Path | None) -> None:
        staged = None if target is None else self._staged.get(target)
        if staged is not None and staged.relation != relation:
            raise DataError(f'{staged.relation} and {relation} would both be written to "{target}"')

    def _unstage(self, target: Path | None, spools: int) -> None:
        """Removes an output that failed, so that a later commit cannot show half of it."""
        staged = None if target is None else self._staged.pop(target, None)
        if staged is not None:
            staged.part.unlink(missing_ok=True)
        for _, spool in self._printed[spools:]:
            spool.close()
        del self._printed[spools:]

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for path in reversed(missing):
            try:
                path.mkdir()
            except FileExistsError:  # another process created it first
                if not path.is_dir():
                    raise
            else:
                self._made_folders.append(path)

    def _spool(self, device: Path | None) -> BinaryIO:
        spool: Any = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115 - closed by `_forget`
        self._printed.append((device, spool))
        return spool

    def _print(self, device: Path | None, spool: BinaryIO) -> None:
        spool.seek(0)
        if device is None:
            stream = self._stdout or sys.stdout.buffer
            if self._stdout is None:
                sys.stdout.flush()
            shutil.copyfileobj(spool, stream)
            stream.flush()
        else:
            with open(device, "wb") as stream:
                shutil.copyfileobj(spool, stream)

    def _forget(self) -> None:
        for _, spool in self._printed:
            spool.close()
        self._staged, self._databases, self._printed, self._made_folders = {}, {}, [], []
        self._closed = True


def _refuse_both(target: Path | None, others: Collection[Path]) -> None:
    if target in others:
        raise DataError(f'"{target}" would be written as a SQLite file and as another one')


@contextmanager
def _compressed(file: BinaryIO, options: OutputOptions) -> Iterator[BinaryIO]:
    if not options.compress or options.format not in (TEXT, JSON):
        yield file
        return
    with pa.CompressedOutputStream(file, "gzip") as sink:
        yield sink
