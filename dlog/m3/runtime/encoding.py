"""Owns rows -> codes: from Arrow tables and Python's rows to the machine's input.  Knows no files.

A number that its column's type cannot hold is refused: the compilers that read the same program would use
another one instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dlog.errors import DataError
from dlog.jit import Words
from dlog.m3.runtime.compile.values import FLOAT_KIND, INT_KIND, KEY_TYPES, kind_of
from dlog.m3.runtime.layout import EMPTY
from dlog.m3.syntax import ast
from dlog.m3.syntax.dialects import RANGES
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import encode, float_codes
from dlog.values import Type
from dlog.values.heavy import pc


def columns_of(source: ast.Source) -> list[tuple[str, Type]]:
    return [(c.name, KEY_TYPES[kind_of(c.type)]) for c in source.columns]


def encode_table(
    source: ast.Source, dialect: str, table: pa.Table, multiplicities: Words, dictionary: Dictionary
) -> Words:
    """(columns + 1, rows): the codes of an Arrow table, and multiplicities.

    Raises DataError for a number that its type cannot hold.
    """
    for j, column in enumerate(source.columns):
        bad = beyond_type(column, dialect, table.column(j))
        if bad is not None:
            row = int(np.argmax(bad))
            raise DataError(f"{source.name}: row {row}: {said_beyond(column, dialect, table.column(j)[row])}")
    out = np.empty((len(source.columns) + 1, table.num_rows), np.int64)
    for j, (_, type_) in enumerate(columns_of(source)):
        out[j] = encode(table.column(j), type_, dictionary)
    out[-1] = multiplicities
    return out


def plain_codes(source: ast.Source, dialect: str, row: tuple[Any, ...]) -> list[int] | None:
    """The codes of a row of plain numbers; None for anything else, which goes through Arrow."""
    if len(source.columns) != len(row):
        return None
    out = []
    for column, value in zip(source.columns, row, strict=True):
        kind = kind_of(column.type)
        if kind == INT_KIND and type(value) is int and _is_within(value, *_range(column, dialect)):
            out.append(value)
        elif kind == FLOAT_KIND and type(value) is float:
            out.append(int(float_codes(np.array([value]))[0]))
        else:
            return None
    return out


# ---- the ranges of integer types


def beyond_type(column: ast.Column, dialect: str, values: pa.ChunkedArray) -> np.ndarray | None:
    """Which values their type cannot hold; None if it holds all.  O(1) passes over the column."""
    if kind_of(column.type) != INT_KIND or len(values) == 0 or not pa.types.is_integer(values.type):
        return None
    least, greatest = _range(column, dialect)
    found = pc.min_max(values)
    if _is_within(found["min"].as_py(), least, greatest) and _is_within(
        found["max"].as_py(), least, greatest
    ):
        return None
    numbers = values.to_numpy()
    return (numbers < least) | (numbers > greatest)


def said_beyond(column: ast.Column, dialect: str, value: Any) -> str:
    least, greatest = _range(column, dialect)
    return f"{column.name}: {value} is not between {least} and {greatest}, the range of {column.type}"


def _range(column: ast.Column, dialect: str) -> tuple[int, int]:
    """Without the least number of a long: it marks empty slots of maps."""
    least, greatest = RANGES[dialect][column.type.name]
    return max(least, EMPTY + 1), greatest


def _is_within(value: int | None, least: int, greatest: int) -> bool:
    return value is None or least <= value <= greatest


# ---- multiplicities


def multiplicities_of(given: Any, n: int) -> Words:
    if given is None:
        return np.ones(n, np.int64)
    out = np.asarray(given, np.int64)
    if out.ndim == 0:
        out = np.full(n, out)
    if out.shape != (n,):
        raise DataError(f"{n} rows and {len(out)} multiplicities")
    return out


def one_by_one(words: Words) -> Words:
    """A row of multiplicity 3 as three rows, for single-tuple triggers."""
    words = np.repeat(words, np.abs(words[-1]), axis=1)
    words[-1] = np.sign(words[-1])
    return words
