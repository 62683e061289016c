"""Owns the output of a stream: files of changes, of bad rows, and of current values.

    SINK/changes/PREDICATE/batch-00000012.csv   what batch 12 changed: rows and a column op, + or -
    SINK/bad/PREDICATE/batch-00000012.json      rejected rows of batch 12: file, line, reason, text
    SINK/values/PREDICATE.csv                   all rows, as `dlog run -D` writes them; replaced atomically

Lifecycle of a batch.  1 `stage`: its files are written under hidden names and are on the disk.  2 The engine
commits data and number of the batch.  3 `publish`: the files get their names.  Wherever it stops, a batch
that was committed has its staged files, and one that comes again is published from them; staged files of one
that was not committed are written again.  So no change is lost, and none appears twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import pyarrow as pa

from dlog.engine.commit.commits import Change
from dlog.engine.commit.printed_facts import in_order, is_derived
from dlog.engine.loading import directive_params
from dlog.engine.view import View
from dlog.errors import DataError, StoreError
from dlog.io import OutputOptions, OutputSet, Rejected, write
from dlog.io.options import ParameterValue
from dlog.ir.rules import Predicate, Program
from dlog.spark.stream.operations import COLUMN_NAMES, ERASE, INSERT

FORMATS = {"csv": ".csv", "json": ".json", "parquet": ".parquet"}
CHANGES, BAD, VALUES = "changes", "bad", "values"
_SYNCS = 8  # files and folders that are synced at the same time
MARK = "_batch.json"  # in the folder of values: their batch


@dataclass(frozen=True)
class Output:
    """A predicate whose changes and values are written, and in which format."""

    predicate: Predicate
    params: Mapping[str, ParameterValue]


def outputs_of(program: Program) -> list[Output]:
    """Those with an `.output`; in a program without one, all that rules derive."""
    declared = {d.predicate: directive_params(d) for d in program.directives if d.kind == "output"}
    derived = [n for n, p in program.predicates.items() if not p.auxiliary and is_derived(program, n)]
    params = declared or {name: {} for name in derived}
    for given in params.values():
        if str(given.get("IO", "")).startswith("std"):
            del given["IO"]
    return [Output(program.predicates[name], params[name]) for name in in_order(program, params)]


class Sinks:
    """The folder of a stream's results."""

    def __init__(self, folder: Path, outputs: Sequence[Output], format: str = "csv", part: str = ""):
        """`part` is in the names of files if several processes write into the same folders."""
        self.folder = folder
        self.outputs = outputs
        self._format = format
        self._part = part
        self._staged: tuple[int, list[Path]] | None = None  # by this process: the batch and its files

    # A batch

    def stage(
        self, batch: int, changes: Mapping[str, Change], bad: Mapping[str, Sequence[Rejected]] | None = None
    ) -> None:
        """Write all files of a batch, complete and on the disk, under names that readers ignore."""
        self._discard(batch)
        self._staged = (batch, [])
        for output in self.outputs:
            if output.predicate.name in changes:
                table = change_table(changes[output.predicate.name])
                self._write(batch, CHANGES, output.predicate.name, table, self._format)
        for name, rows in (bad or {}).items():
            if rows:
                self._write(batch, BAD, name, rejected_table(rows), "json")
        written = self._staged[1]
        sync_all([*written, *(path.parent for path in written)])

    def publish(self, batch: int) -> list[Path]:
        """Give the staged files of a batch their names; idempotent."""
        found = [published(part) for part in self._staged_files(batch)]
        sync_all(path.parent for path in found)
        return found

    def written(self, batch: int) -> list[Path]:
        """The files of changes of a batch, staged or published."""
        return self._staged_files(batch) + sorted(self.folder.glob(f"{CHANGES}/*/{self._stem(batch)}.*"))

    def _discard(self, batch: int) -> None:
        """What an earlier attempt has staged, in this process or before it."""
        for part in self._staged_files(batch) if self._staged is None or self._staged[0] == batch else ():
            part.unlink()

    def require_new(self) -> None:
        """Raises if there are changes: a stream that begins would mix its own with them."""
        if any(self.folder.glob(f"{CHANGES}/*/batch-*")):
            raise StoreError(
                f"{self.folder} has changes of another stream",
                help="give another --sink, or the --checkpoint that these changes belong to",
            )

    def _staged_files(self, batch: int) -> list[Path]:
        """Those that still exist.  Searched only once in a process: folders of changes grow long."""
        if self._staged is None or self._staged[0] != batch:
            return sorted(self.folder.glob(f"*/*/.{self._stem(batch)}.*.part"))
        return [part for part in self._staged[1] if part.exists()]

    def _stem(self, batch: int) -> str:
        return f"batch-{batch:08}{self._part}"

    def _write(self, batch: int, kind: str, name: str, table: pa.Table, format: str) -> None:
        assert self._staged is not None
        path = self.folder / kind / name / f".{self._stem(batch)}{FORMATS[format]}.part"
        self._staged[1].append(path)
        params: dict[str, ParameterValue] = {"IO": format, "filename": str(path.absolute())}
        if format != "parquet":
            params["precision"] = "full"
        write(table, OutputOptions.from_params(name, params))

    # Current values

    def write_values(self, view: View, batch: int | None) -> None:
        """Replace all files of values, each at once, and record their batch.  O(rows)."""
        self.write_parts(view)
        folder = self.folder / VALUES
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / MARK, json.dumps({"batch": batch, "version": view.version}) + "\n")

    def write_parts(self, view: View) -> None:
        """The same for one of several processes that write, into folders of the predicates: others record
        the batch.
        """
        with OutputSet() as outputs:
            for output in self.outputs:
                result = view[output.predicate.name]
                columns = [(c.name, c.type) for c in result.columns]
                outputs.write(result.exact_table(), self._values_options(output), columns)

    def _values_options(self, output: Output) -> OutputOptions:
        name, folder = output.predicate.name, self.folder / VALUES
        options = OutputOptions.from_params(name, output.params, folder)
        if not self._part or options.path is None:
            return options
        ending = "".join(options.path.suffixes)
        return replace(options, path=folder / name / f"{self._part.removeprefix('-')}{ending}")

    def values_version(self) -> int | None:
        """The version of the files of values."""
        try:
            found = json.loads((self.folder / VALUES / MARK).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found.get("version") if isinstance(found, dict) else None


def changed_rows(changes: Mapping[str, Change], outputs: Sequence[Output]) -> tuple[int, int]:
    """Rows of outputs that were inserted, and deleted."""
    found = [changes[o.predicate.name] for o in outputs if o.predicate.name in changes]
    return sum(len(c.inserted) for c in found), sum(len(c.erased) for c in found)


def change_table(change: Change) -> pa.Table:
    """Inserted and deleted rows, with a column that says which."""
    came, went = change.inserted.exact_table(), change.erased.exact_table()
    names = {column.name for column in change.inserted.columns}
    signs = [pa.repeat(sign, n) for sign, n in ((ERASE, len(went)), (INSERT, len(came)))]
    table = pa.concat_tables([went, came]) if names else pa.table({})
    name = next(name for name in COLUMN_NAMES if name not in names)
    return table.append_column(name, pa.chunked_array(signs))


def rejected_table(rows: Sequence[Rejected]) -> pa.Table:
    columns = zip(*map(astuple, rows), strict=True)
    return pa.table(dict(zip(("file", "line", "reason", "text"), map(list, columns), strict=True)))


# Files


def published(part: Path) -> Path:
    """Give a staged file its name."""
    target = part.with_name(part.name.removeprefix(".").removesuffix(".part"))
    os.replace(part, target)
    return target


def write_whole(path: Path, text: str) -> None:
    """A small file that exists completely or not at all, and is on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        sync(part)
        os.replace(part, path)
        sync(path.parent)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None


def sync_all(paths: Iterable[Path]) -> None:
    """Syncs files and folders, together: one after the other takes many times as long."""
    if wanted := set(paths):
        with ThreadPoolExecutor(min(len(wanted), _SYNCS)) as pool:
            list(pool.map(sync, wanted))


def sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
