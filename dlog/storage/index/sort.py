"""Owns sorting: rows to sorted, distinct rows in the arena.  Knows nothing of trees.

Rows come as columns that are views (data, offset, step): value i is data[offset + i * step], so that
row-major and column-major arrays are read without copying them first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.index.sort_kernels import (
    DIGIT,
    INSERTION_ROWS,
    STRICT,
    UNSORTED,
    column_range,
    drop_repeats,
    gather,
    insertion_sort,
    load_column,
    load_rows,
    order_of,
    pack_column,
    sort_pairs,
    sort_words,
    store_column,
    sum_repeats,
    unpack_column,
)

WORD_BITS = 63
Column = tuple[Words, int, int]  # data, offset, step


@dataclass(frozen=True)
class Rows:
    """n rows of k columns, not yet sorted."""

    columns: list[Column]
    n: int
    row_major: Words | None = None

    @property
    def k(self) -> int:
        return len(self.columns)


@dataclass(frozen=True)
class SortedRows:
    """n sorted, distinct rows in an extent of the arena: column c of row i at base + c * stride + i."""

    owner: int
    base: int
    stride: int
    n: int


@dataclass(frozen=True)
class _Field:
    """Where a column is in its packed word.  bits == 0 and raw: the word is the column."""

    word: int
    shift: int
    bits: int
    least: int
    raw: bool


def as_words(values: Any) -> Words:
    """A contiguous int64 array that kernels take without another signature.  Copies only if necessary."""
    return writable(np.ascontiguousarray(values, dtype=np.int64))


def writable(array: Any) -> Any:
    """The same array for kernels.  A read-only one (as those over Arrow buffers) has another type for the
    compiler: it is passed as a writable view; no kernel writes to its inputs.
    """
    if array.flags.writeable and array.flags.aligned:
        return array
    if array.size == 0 or not array.flags.aligned:
        return array.copy()
    return np.asarray(_Writable(array))


class _Writable:
    """Keeps the array alive and exposes its memory as writable."""

    def __init__(self, array: Any):
        self.array = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def as_rows(rows: Any, arity: int) -> Rows:
    """Rows from an (n, arity) array or nested sequence, or from a list or tuple of `arity` 1-D arrays."""
    if isinstance(rows, (list, tuple)) and len(rows) and all(isinstance(c, np.ndarray) for c in rows):
        return from_columns(rows, arity)
    array = np.asarray(rows, dtype=np.int64)
    if array.size == 0 and array.ndim < 2:
        array = array.reshape(0, arity)
    if array.ndim != 2 or array.shape[1] != arity:
        raise ValueError(f"rows of shape {array.shape} for an index of arity {arity}")
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return from_columns(list(array.T), arity)
    flat = as_words(array).reshape(-1)
    return Rows([(flat, c, arity) for c in range(arity)], len(array), flat)


def from_columns(columns: Sequence[Any], arity: int) -> Rows:
    """Rows from `arity` arrays of one length, or from a (k, n) array."""
    if len(columns) != arity or len({len(c) for c in columns}) > 1:
        raise ValueError(f"{len(columns)} columns for an index of arity {arity}, or of different lengths")
    return Rows([(as_words(c), 0, 1) for c in columns], len(columns[0]) if arity else 0)


def sort_rows(arena: Arena, rows: Rows, extra: int = 0) -> SortedRows:
    """Sorted and distinct, in a new extent with room for `extra` more columns.  O(n) for each varying byte.

    REQUIRES: the arena's lock, n > 0, k > 0.
    """
    if rows.n <= INSERTION_ROWS and rows.row_major is not None:
        owner, base = arena.new_extent(rows.n * (rows.k + extra))
        return SortedRows(
            owner, base, rows.n, load_rows(rows.row_major, rows.n, rows.k, arena.A, base, rows.n)
        )
    fields, words = _pack(rows)
    w, n = fields[-1].word + 1, rows.n
    words, kept = _sort(words, w, n)
    owner, base = arena.new_extent(kept * (rows.k + extra))
    for c, field in enumerate(fields):
        to, start = base + c * kept, field.word * n
        if field.raw:
            store_column(words, start, kept, arena.A, to)
        else:
            unpack_column(words, start, kept, field.shift, field.bits, field.least, arena.A, to)
    return SortedRows(owner, base, kept, kept)


def sorted_words(words: Words) -> Words:
    """The same words in order, in the same array or another one.  O(n) for each byte that varies."""
    return _sort(words, 1, len(words))[0] if len(words) else words


def distinct_words(words: Words) -> Words:
    """The same words in order, each once, in the same array or another one.  As `sorted_words`."""
    if not len(words):
        return words
    words, kept = _sort(words, 1, len(words))
    return words[:kept]


def sorted_columns(columns: Sequence[Words]) -> list[Words]:
    """Rows by columns, sorted, without repeats.  O(n) for each varying byte.

    >>> [c.tolist() for c in sorted_columns([np.array([2, 1, 2]), np.array([5, 7, 4])])]
    [[1, 2, 2], [7, 4, 5]]
    """
    rows = from_columns(columns, len(columns))
    if rows.n < 2:
        return list(columns)
    fields, words = _pack(rows)
    words, kept = _sort(words, fields[-1].word + 1, rows.n)
    out = [np.empty(kept, np.int64) for _ in fields]
    _unpack(fields, words, rows.n, kept, out)
    return out


def sorted_with_last(columns: Words) -> Words:
    """A (k + 1, n) array in the order of its first k columns, which are distinct rows.  As `sorted_columns`.

    >>> sorted_with_last(np.array([[2, 1], [7, 8]])).tolist()
    [[1, 2], [8, 7]]
    """
    n = columns.shape[1]
    if n < 2:
        return columns.copy()
    fields, words = _pack(from_columns(list(columns[:-1]), len(columns) - 1))
    words, last = _sort_weighted(words, fields[-1].word + 1, n, as_words(columns[-1]))
    out = np.empty((len(columns), n), np.int64)
    _unpack(fields, words, n, n, list(out))
    out[-1] = last
    return out


def _pack(rows: Rows) -> tuple[list[_Field], Words]:
    """Columns into as few words as their ranges allow: word w of row i is at w * n + i."""
    n, bounds = rows.n, np.empty(2, np.int64)
    ranges = []
    for data, offset, step in rows.columns:
        column_range(data, offset, step, n, bounds)
        ranges.append((int(bounds[0]), (int(bounds[1]) - int(bounds[0])).bit_length()))
    fields = _fields(ranges)
    words = np.zeros((fields[-1].word + 1) * n, np.int64)
    for field, (data, offset, step) in zip(fields, rows.columns, strict=True):
        word = words[field.word * n : (field.word + 1) * n]
        if field.raw:
            load_column(data, offset, step, n, word)
        else:
            pack_column(data, offset, step, n, field.least, field.bits, word)
    return fields, words


def _unpack(fields: list[_Field], words: Words, n: int, kept: int, out: Sequence[Words]) -> None:
    """The columns of the first rows of n that `_pack` has packed, each to its own array."""
    for field, column in zip(fields, out, strict=False):
        if field.raw:
            store_column(words, field.word * n, kept, column, 0)
        else:
            unpack_column(words, field.word * n, kept, field.shift, field.bits, field.least, column, 0)


def _fields(ranges: list[tuple[int, int]]) -> list[_Field]:
    """From the last column to the first, so that shifts are known; then words are numbered from the front.

    >>> [(f.word, f.shift) for f in _fields([(0, 20), (5, 20), (0, 64), (1, 3)])]
    [(0, 20), (0, 0), (1, 0), (2, 0)]
    """
    fields: list[_Field] = []
    word, used = 0, 0
    for least, bits in reversed(ranges):
        raw = bits > WORD_BITS
        if fields and (raw or fields[-1].raw or used + bits > WORD_BITS):
            word, used = word + 1, 0
        fields.append(_Field(word, used, bits, least, raw))
        used += bits
    fields.reverse()
    return [_Field(word - f.word, f.shift, f.bits, f.least, f.raw) for f in fields]


def _sort(words: Words, w: int, n: int) -> tuple[Words, int]:
    """Sorted words and the number of distinct rows."""
    order = order_of(words, w, n)
    if order == STRICT:
        return words, n
    if order == UNSORTED:
        if n <= INSERTION_ROWS:
            insertion_sort(words, w, n)
        else:
            words = _radix_sort(words, w, n)
    return words, drop_repeats(words, w, n)


def _radix_sort(words: Words, w: int, n: int) -> Words:
    if w == 1:
        counts = np.empty(64 // DIGIT << DIGIT, np.int64)
        other = np.empty_like(words)
        return other if sort_words(words, other, n, counts) else words
    rows = _sorted_places(words, w, n)
    result = np.empty_like(words)
    for c in range(w):
        gather(words, c * n, rows, n, result, c * n)
    return result


def _sorted_places(words: Words, w: int, n: int) -> Words:
    """The numbers of rows of several words, in sorted order."""
    counts = np.empty(64 // DIGIT << DIGIT, np.int64)
    rows, rows2 = np.arange(n), np.empty(n, np.int64)
    keys, keys2 = np.empty(n, np.int64), np.empty(n, np.int64)
    for c in range(w - 1, -1, -1):
        gather(words, c * n, rows, n, keys, 0)
        if sort_pairs(keys, rows, keys2, rows2, n, counts):
            rows, rows2 = rows2, rows
    return rows


def weigh_rows(columns: Sequence[Words], weights: Words | None) -> tuple[list[Words], Words]:
    """(Sorted distinct rows by column, the sum of the weights of each); without weights each row weighs 1.

    O(n) for each varying byte.  REQUIRES: at least one column and one row, and sums that fit.

    >>> columns, sums = weigh_rows([np.array([2, 1, 2]), np.array([5, 6, 5])], None)
    >>> [c.tolist() for c in columns], sums.tolist()
    ([[1, 2], [6, 5]], [1, 2])
    """
    rows = from_columns(columns, len(columns))
    fields, words = _pack(rows)
    w, n = fields[-1].word + 1, rows.n
    if weights is None:
        weights = np.ones(n, np.int64)
        words = words if order_of(words, w, n) != UNSORTED else _radix_sort(words, w, n)
    else:
        words, weights = _sort_weighted(words, w, n, as_words(weights))
    kept = sum_repeats(words, w, n, weights)
    out = [np.empty(kept, np.int64) for _ in columns]
    _unpack(fields, words, n, kept, out)
    return out, weights[:kept].copy()


def _sort_weighted(words: Words, w: int, n: int, weights: Words) -> tuple[Words, Words]:
    """Rows and weights in the order of rows."""
    if order_of(words, w, n) != UNSORTED:
        return words, weights.copy()
    if w > 1:
        rows = _sorted_places(words, w, n)
        result = np.empty_like(words)
        for c in range(w):
            gather(words, c * n, rows, n, result, c * n)
        return result, weights[rows]
    counts = np.empty(64 // DIGIT << DIGIT, np.int64)
    other, weights, weights2 = np.empty_like(words), weights.copy(), np.empty(n, np.int64)
    swapped = sort_pairs(words, weights, other, weights2, n, counts)
    return (other, weights2) if swapped else (words, weights)
