"""Owns columns between kernels: the values of one variable, a row for each assignment.

A column of decimals is an Arrow decimal256 array: inside a rule decimals are exact.  All other columns hold
the codes of their values.  Knows nothing of what is computed with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dlog.jit import Floats, Words
from dlog.storage.index.sort import as_words
from dlog.storage.values import decode, encode
from dlog.values import FLOAT, STRING, Type
from dlog.values.heavy import pc

Mask: TypeAlias = npt.NDArray[np.bool_]
Dictionary: TypeAlias = Any  # dlog.storage.dictionary.dictionary.Dictionary

_NO_DICTIONARY: Dictionary = None  # for types other than string
DECIMAL_DIGITS = 76  # what Arrow's decimal256 holds
WORDS_PER_DECIMAL = 4


@dataclass(frozen=True)
class Column:
    """`values` are int64 codes; of decimals, a decimal256 array (stored codes are taken as well)."""

    values: Words | pa.Array
    type: Type

    def __len__(self) -> int:
        return len(self.values)

    @property
    def codes(self) -> Words:
        """REQUIRES: not a column of exact decimals."""
        assert isinstance(self.values, np.ndarray), f"a column of exact {self.type} has no codes"
        return as_words(self.values)

    def check(self) -> None:
        if isinstance(self.values, np.ndarray):
            assert self.values.dtype == np.int64 and self.values.ndim == 1
        else:
            assert self.type.is_decimal and self.values.type == pa.decimal256(DECIMAL_DIGITS, self.type.scale)
            assert self.values.null_count == 0


# The result of a primitive: the values, and which rows have one (None: all).  Other rows are arbitrary.
Result: TypeAlias = tuple[Column, Mask | None]


def aligned(columns: Sequence[Column]) -> list[Column]:
    """Columns of one length: a column of one row represents a constant.  O(1) if there is none."""
    lengths = {len(c) for c in columns}
    if len(lengths) <= 1:
        return list(columns)
    n = (lengths - {1}).pop()
    assert lengths <= {1, n}, f"columns of different lengths: {sorted(lengths)}"
    return [c if len(c) == n else taken(c, np.zeros(n, np.int64)) for c in columns]


def taken(column: Column, rows: npt.NDArray[Any]) -> Column:
    """The given rows (numbers or a mask) of a column."""
    if isinstance(column.values, np.ndarray):
        return Column(column.values[rows], column.type)
    if rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    return decimal_column(decimal_words(column).reshape(-1, WORDS_PER_DECIMAL)[rows].reshape(-1), column.type)


def all_of(masks: Sequence[Mask | None]) -> Mask | None:
    """Where every mask holds; None where that is everywhere."""
    given = [m for m in masks if m is not None]
    if not given:
        return None
    both = np.logical_and.reduce(given)
    return None if both.all() else both


def unless_all(mask: Mask) -> Mask | None:
    return None if mask.all() else mask


# ---- floats


def float_values(codes: Words) -> Floats:
    return decode(codes, FLOAT, _NO_DICTIONARY).to_numpy(zero_copy_only=False)


def float_codes(values: Floats) -> Words:
    return as_words(encode(pa.array(values), FLOAT, _NO_DICTIONARY))


# ---- decimals: four words each, the least significant first, as in Arrow's buffer


def decimal_words(column: Column) -> Words:
    """The words of a column of decimals or integers, four a row.  No copy of an Arrow column."""
    if isinstance(column.values, np.ndarray):
        return _sign_extended(column.codes, column.type)
    if len(column) == 0:
        return np.empty(0, np.int64)
    words = np.frombuffer(column.values.buffers()[1], np.int64)
    start = column.values.offset * WORDS_PER_DECIMAL
    return as_words(words[start : start + len(column) * WORDS_PER_DECIMAL])


def _sign_extended(codes: Words, type: Type) -> Words:
    words = np.empty((len(codes), WORDS_PER_DECIMAL), np.int64)
    if type.kernel == "unsigned":
        words[:, 0] = codes ^ np.int64(-(2**63))
        words[:, 1:] = 0
    else:
        assert type.kernel == "int"
        words[:, 0] = codes
        words[:, 1:] = (codes >> 63)[:, None]
    return words.reshape(-1)


def decimal_column(words: Words, type: Type) -> Column:
    """The column whose values lie in these words, at the type's scale.  No copy."""
    n = len(words) // WORDS_PER_DECIMAL
    arrow = pa.decimal256(DECIMAL_DIGITS, type.scale)
    return Column(pa.Array.from_buffers(arrow, n, [None, pa.py_buffer(words)]), type)


def narrow_words(words: Words) -> Words | None:
    """One word a row, if no value needs more."""
    rows = words.reshape(-1, WORDS_PER_DECIMAL)
    low = np.ascontiguousarray(rows[:, 0])
    sign = low >> 63
    small = all(np.array_equal(rows[:, k], sign) for k in range(1, WORDS_PER_DECIMAL))
    return low if small else None


# ---- strings


def texts_of(column: Column, dictionary: Dictionary) -> tuple[pa.Array, Words]:
    """The distinct texts of a column, and for each row the place of its text.  O(n), and the texts."""
    codes, places = distinct(column.codes)
    return _flat(decode(codes, STRING, dictionary)), places


def row_texts(column: Column, dictionary: Dictionary) -> pa.Array:
    """The text of each row."""
    texts, places = texts_of(column, dictionary)
    return texts.take(pa.array(places))


def text_result(texts: pa.Array, places: Words | None, dictionary: Dictionary) -> Result:
    """Strings for rows whose texts are at `places` (None: in order); null is undefined."""
    codes = np.zeros(len(texts), np.int64)
    valid = pc.is_valid(texts).to_numpy(zero_copy_only=False)
    codes[valid] = encode(texts.drop_null(), STRING, dictionary)
    return at_places(codes, valid, STRING, places)


def at_places(codes: Words, valid: Mask, type: Type, places: Words | None) -> Result:
    """Codes calculated once for each distinct input, expanded to the rows."""
    if places is not None:
        codes, valid = codes[places], valid[places]
    return Column(codes, type), unless_all(valid)


def ranks_of(column: Column, dictionary: Dictionary) -> Words:
    """Numbers in the order of the texts, comparable only with each other."""
    return dictionary.ranks(column.codes)[0]


def distinct(codes: Words) -> tuple[Words, Words]:
    """Distinct codes, ascending, and the position of each row's code among them.

    O(n) if the codes are close together, like those of one dictionary; else O(n log n).

    >>> [a.tolist() for a in distinct(np.array([7, 5, 7]))]
    [[5, 7], [1, 0, 1]]
    """
    if len(codes) == 0:
        return codes, codes
    least, most = int(codes.min()), int(codes.max())
    if most - least > 4 * len(codes) + 1024:
        return np.unique(codes, return_inverse=True)
    seen = np.zeros(most - least + 1, np.bool_)
    seen[codes - least] = True
    places = np.cumsum(seen) - 1
    return np.flatnonzero(seen) + least, places[codes - least]


def _flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
