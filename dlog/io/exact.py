"""Owns converting any Arrow column to the exact type of a dlog column.  Knows nothing of files.

Correct output: the same values in the type's own Arrow type, and which rows hold a value the type refuses.
The rules are those of each type (`dlog.values`): nothing is rounded, except that an integer becomes the
nearest float and a float the decimal it prints as.  A column that already has the type is not copied.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyarrow import types as kinds

from dlog.values import TYPES, Type
from dlog.values.arrows import bad_cell, fits
from dlog.values.heavy import pc


class WrongKind(ValueError):
    """The column as a whole is of another kind: no row can be converted."""


@dataclass(frozen=True)
class Exact:
    """A column of the exact type, and the rows (ascending) that it cannot hold; their values mean nothing."""

    column: pa.ChunkedArray
    bad: np.ndarray
    source: pa.ChunkedArray
    type: Type

    def reason(self, row: int) -> str:
        """Why a bad row is bad."""
        return bad_cell(self.source[row], self.type)


def exact_column(column: pa.ChunkedArray, type: Type) -> Exact:
    """A few passes over the column, none if it has the type and no nulls.

    >>> from dlog.values import INT
    >>> exact = exact_column(pa.chunked_array([[1.0, 2.5, None]]), INT)
    >>> [exact.reason(row) for row in exact.bad]
    ['2.5 has a fraction, int expected', 'is null, int expected']
    """
    column = _plain(column)
    if kinds.is_null(column.type):
        column = column.cast(type.arrow())
    kind = _kind(column.type)
    conversion = type.conversions().get(kind)
    if conversion is None:
        raise WrongKind(type.refusal(kind))
    values, good = conversion(column)
    wants_values = column.null_count and not type.takes_none
    for inside in (fits(values, type), column.is_valid() if wants_values else None):
        if inside is not None:
            good = inside if good is None else pc.and_(good, inside)
    bad = np.empty(0, np.int64) if good is None else _places_of_others(good)
    return Exact(values, bad, column, type)


def _places_of_others(good: pa.ChunkedArray | pa.Array) -> np.ndarray:
    return pc.indices_nonzero(pc.invert(pc.fill_null(good, False))).to_numpy().astype(np.int64)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without dictionaries, run ends and views."""
    kind = column.type
    if kinds.is_dictionary(kind):
        return pa.chunked_array([_decoded(chunk) for chunk in column.chunks], _plain_type(kind.value_type))
    if kinds.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(column))
    if kinds.is_string_view(kind):
        return column.cast(pa.large_string())
    if kinds.is_float16(kind):
        return column.cast(pa.float32())
    return column


def _decoded(chunk: pa.DictionaryArray) -> pa.Array:
    return _plain(pa.chunked_array([chunk.dictionary])).combine_chunks().take(chunk.indices)


def _plain_type(arrow: pa.DataType) -> pa.DataType:
    return _plain(pa.chunked_array([], arrow)).type


def _kind(arrow: pa.DataType) -> str:
    """The name of the kind, or the Arrow type if no dlog type has such columns."""
    return next((name for type in TYPES for name, test in type.kinds().items() if test(arrow)), str(arrow))
