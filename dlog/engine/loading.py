"""Owns the base facts of a program: its own facts, the files it names, and its `+ - ^` statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.engine.maintain.facts import changed
from dlog.engine.state.store import Store
from dlog.errors import DataError, Diagnostics
from dlog.interrupts import poll, uninterrupted
from dlog.io import InputOptions, Loaded, ParameterError, find_file, read, to_arrow
from dlog.ir.rules import FactDelta, Predicate, Program
from dlog.language import ast
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import encode, float_code, float_codes
from dlog.values import FLOAT, INT, STRING

Progress = Callable[[str, int, int], None]
FAR_HELP = "give a master with --spark, see docs/spark.md"


def load_facts(program: Program, store: Store) -> None:
    """The plain facts of the program text."""
    for block in program.facts:
        store.relations[block.predicate].apply_in_place(
            inserts=store.literal_rows(block.predicate, block.rows)
        )


def load_inputs(
    program: Program,
    store: Store,
    facts: str | Path,
    warn: Callable[[str], None],
    progress: Progress | None = None,
) -> None:
    """Every `.input`.  Rejected rows are passed to `warn`, with file, line and reason.

    Raises all errors of directives and files together, and reads nothing if files are missing.
    """
    inputs = [d for d in program.directives if d.kind == "input"]
    diagnostics = Diagnostics()
    for directive in inputs:
        with _collected(diagnostics):
            find_input(directive, facts)
    diagnostics.raise_if_any()
    for number, directive in enumerate(inputs):
        poll()
        if progress is not None:
            progress(directive.predicate, number, len(inputs))
        with _collected(diagnostics):
            loaded = read_input(program.predicates[directive.predicate], directive, facts)
            insert_table(store, directive.predicate, loaded.table)
            report_rejected(directive.predicate, loaded, warn)
    diagnostics.raise_if_any()


@contextmanager
def _collected(diagnostics: Diagnostics) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        diagnostics.add(error)


def find_input(directive: ast.Directive, facts: str | Path) -> InputOptions:
    """How an input is read.  Raises if its parameters are wrong or there is no such file."""
    try:
        options = InputOptions.from_params(directive.predicate, directive_params(directive), facts)
        if options.far is not None:
            raise DataError(f'"{options.far}" is read by Spark', help=FAR_HELP)
        if options.path is not None:
            find_file(options)
    except DataError as error:
        raise located(error, directive) from None
    return options


def read_input(predicate: Predicate, directive: ast.Directive, facts: str | Path) -> Loaded:
    options = find_input(directive, facts)
    try:
        return read(options, [(c.name, c.type) for c in predicate.columns])
    except DataError as error:
        raise located(error, directive) from None


def directive_params(directive: ast.Directive) -> dict[str, str | int | bool]:
    return {p.name: p.value for p in directive.params}


def located(error: DataError, directive: ast.Directive) -> DataError:
    """The error at the directive, or at the parameter that it is about."""
    span = directive.span
    if isinstance(error, ParameterError):
        span = next((p.span for p in directive.params if p.name == error.parameter), span)
    return DataError(error.message, span=error.span or span, help=error.help)


def report_rejected(name: str, loaded: Loaded, warn: Callable[[str], None]) -> None:
    for rejected in loaded.rejected:
        warn(f"{rejected.file}:{rejected.line}: warning: row rejected: {rejected.reason}")
    if loaded.rejected_count:
        rows = "row" if loaded.rejected_count == 1 else "rows"
        warn(f"warning: {loaded.rejected_count:,} {rows} of {name} rejected")


def insert_table(store: Store, name: str, table: pa.Table) -> None:
    """Bulk load of an Arrow table with exactly the predicate's types."""
    store.relations[name].apply_in_place(inserts=table_codes(store, name, table))


def table_codes(store: Store, name: str, table: pa.Table) -> Any:
    """Codes of a table, as a list of columns."""
    predicate = store.predicates[name]
    if not predicate.columns:
        return np.empty((table.num_rows, 0), np.int64)
    return [encode(table.column(i), c.type, store.dictionary) for i, c in enumerate(predicate.columns)]


def python_codes(store: Store, name: str, data: Any) -> Any:
    """Codes of rows, a frame, a table or an array given from Python."""
    predicate = store.predicates[name]
    return table_codes(store, name, to_arrow(data, [(c.name, c.type) for c in predicate.columns], name))


TUPLE_ROWS = 16
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def quick_codes(
    predicate: Predicate, rows: Any, dictionary: Dictionary
) -> tuple[tuple[int, ...], ...] | np.ndarray | None:
    """Codes of rows of integers, floats and strings, or of an array of integers; None for anything else,
    which `python_codes` reads.

    One row costs 1 us here, and 150 us as an Arrow table.
    """
    arity = len(predicate.columns)
    if type(rows) is not list:
        if type(rows) is not np.ndarray or rows.dtype != np.int64 or rows.shape[1:] != (arity,):
            return None
        if not arity or not predicate.has_only_ints:
            return None
        return rows.copy() if len(rows) > TUPLE_ROWS or not len(rows) else tuple(map(tuple, rows.tolist()))
    if not predicate.has_only_ints:
        if not rows or not predicate.has_plain_columns:
            return None
        return (_plain_codes if len(rows) <= TUPLE_ROWS else _plain_rows)(predicate, rows, dictionary)
    if len(rows) > TUPLE_ROWS:
        return _int_rows(rows, arity) if arity else None
    for row in rows:
        if type(row) is not tuple or len(row) != arity:
            return None
        for value in row:
            if type(value) is not int or not _LEAST <= value <= _GREATEST:
                return None
    return tuple(rows) or None


@uninterrupted
def _plain_codes(
    predicate: Predicate, rows: list[Any], dictionary: Dictionary
) -> tuple[tuple[int, ...], ...] | None:
    """The same if some columns are floats or strings, which take nothing else here."""
    kinds = [_PYTHON[column.type] for column in predicate.columns]
    for row in rows:
        if type(row) is not tuple or [type(value) for value in row] != kinds:
            return None
    columns = [
        _column_codes(kind, c, dictionary) for kind, c in zip(kinds, zip(*rows, strict=True), strict=True)
    ]
    return None if None in columns else tuple(zip(*columns, strict=True))


_PYTHON = {INT: int, FLOAT: float, STRING: str}


def _column_codes(kind: type, values: Sequence[Any], dictionary: Dictionary) -> Sequence[int] | None:
    if kind is float:
        return [float_code(value) for value in values]
    if kind is str:
        try:
            return dictionary.encode(pa.array(values, pa.string())).tolist()
        except (UnicodeEncodeError, pa.ArrowException):  # half of a pair of surrogates
            return None
    return values if min(values) >= _LEAST and max(values) <= _GREATEST else None


@uninterrupted
def _plain_rows(predicate: Predicate, rows: list[Any], dictionary: Dictionary) -> np.ndarray | None:
    """As `_plain_codes`, for many rows: without a Python step for each."""
    if set(map(type, rows)) != {tuple} or set(map(len, rows)) != {len(predicate.columns)}:
        return None
    kinds, columns = [_PYTHON[column.type] for column in predicate.columns], list(zip(*rows, strict=True))
    if any(set(map(type, values)) != {kind} for kind, values in zip(kinds, columns, strict=True)):
        return None
    codes = np.empty((len(rows), len(columns)), np.int64)
    for c, (kind, values) in enumerate(zip(kinds, columns, strict=True)):
        if kind is float:
            codes[:, c] = float_codes(np.array(values))
            continue
        found = _column_codes(kind, values, dictionary)
        if found is None:
            return None
        codes[:, c] = found
    return codes


def _int_rows(rows: list[Any], arity: int) -> np.ndarray | None:
    """Tuples of ints as an array; None if some are not.  Without a Python step for each row."""
    if set(map(type, rows)) != {tuple} or set(map(len, rows)) != {arity}:
        return None
    if set(map(type, chain.from_iterable(rows))) != {int}:
        return None
    try:
        return np.fromiter(chain.from_iterable(rows), np.int64, arity * len(rows)).reshape(-1, arity)
    except OverflowError:
        return None


def apply_deltas(deltas: tuple[FactDelta, ...], store: Store) -> None:
    """`+ - ^` in program order: the last statement on a row counts.  O(m log n)."""
    statements: dict[str, list[tuple[str, Any]]] = {}
    for (name, op), run in groupby(deltas, lambda delta: (delta.predicate, delta.op)):
        statements.setdefault(name, []).append((op, store.literal_rows(name, [delta.row for delta in run])))
    for name, ops in statements.items():
        relations, n_keys = store.relations, store.predicates[name].n_keys
        relations[name], _ = changed(relations[name], ops, n_keys)
