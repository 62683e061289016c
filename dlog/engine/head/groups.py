"""Owns aggregation: rows to groups, and the value of each aggregate for each group.  Knows nothing of rules.

Correct output: one row for each distinct combination of group keys, in the order of the keys' codes; every
row counts, including duplicates.  Sums are exact, so nothing depends on the order of rows; only `concat` has
an order, the one it is given.

1 number the groups, 2 reduce each column over these slots in a kernel, 3 read them in the order of the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dlog.aggregates import Aggregate, aggregate_named, load
from dlog.algebra import float_means, float_sums
from dlog.arithmetic import wide_kernels
from dlog.arithmetic.digit_kernels import POWERS
from dlog.column_functions import Column
from dlog.column_functions.columns import (
    WORDS_PER_DECIMAL,
    Dictionary,
    aligned,
    decimal_words,
    float_codes,
    narrow_words,
    ranks_of,
    taken,
    texts_of,
)
from dlog.column_functions.decimals import widen
from dlog.engine.head.grouping import Grouping, group_rows, sorted_rows
from dlog.engine.head.power_sums import (
    SQUARES,
    SUM,
    SUMS_AT_ONCE,
    SumOverflow,
    float_words,
    mean_of_sums,
    squared_words,
    sum_of_sums,
)
from dlog.heads import grouping_kernels as kernels
from dlog.heads.power_kernels import SQUARE_PARTS, settle_squares, sum_squares
from dlog.jit import Words
from dlog.storage.index.sort import as_words
from dlog.storage.values import encode
from dlog.values import FLOAT, INT, STRING, Type

MIN, MAX = -(2**63), 2**63 - 1
ROWS_LIMIT = 1 << 31
_MOST_FIXED = 1900  # exponent up to which sums of fewer than 2^31 floats, and their halves, are finite
_FEW_SLOTS = 1 << 17  # 2 MB of sums; for a million groups gathering floats is faster
_EXPONENT_OF_ONE = 1023 + 52  # of a float whose last place is 1


def aggregate(
    groups: Sequence[Words],
    n_rows: int,
    aggregates: Sequence[tuple[str, Column | None]],
    dictionary: Dictionary,
    order: Sequence[Words] | None = None,
) -> tuple[list[Words], list[Column]]:
    """The distinct group keys, sorted by code, and a column for each aggregate.  O(n), O(n log n) for concat.

    `aggregates` are (name of the aggregate, argument).  Without group columns all rows are one group; no rows
    are no group.  `order` determines the order of `concat`: columns that
    sort as the values do (strings as ranks).  Raises SumOverflow.
    """
    assert n_rows < ROWS_LIMIT and all(c.dtype == np.int64 and len(c) == n_rows for c in groups)
    if n_rows == 0:
        empty = [np.empty(0, np.int64) for _ in groups]
        return empty, [_no_values(op, argument) for op, argument in aggregates]
    columns = [as_words(c) for c in groups]
    grouping = group_rows(columns, n_rows)
    rows = _Rows(grouping, dictionary, [as_words(c) for c in order or ()])
    keys = grouping.keys or [column[grouping.first] for column in columns]
    return keys, [
        _fold(aggregate_named(op), rows, _argument(argument, n_rows)) for op, argument in aggregates
    ]


def _fold(function: Aggregate, rows: _Rows, column: Column | None) -> Column:
    if function.in_python:
        return load(function.fold or "")(function, rows, column)
    if function.fold is not None:
        return load(function.fold)(rows, column)
    assert column is not None
    return _fold_powers(function, rows, column)


@dataclass(frozen=True)
class Partial:
    """Groups with their number of rows and, for each argument, the words of its exact sum (n, 4)."""

    keys: list[Words]
    counts: Words
    sums: list[Words]


def partial_sums(
    groups: Sequence[Words], n_rows: int, arguments: Sequence[tuple[Column, int]], dictionary: Dictionary
) -> Partial:
    """Counts and sums that others can be added to or subtracted from.  O(n).

    Arguments add up exactly (`Type.adds_up_exactly`); with each is the power that is summed; squares of
    decimals fit 76 digits.  No sum is too large here: whether it fits is checked for a result (`power_sums`).
    """
    if n_rows == 0:
        none: Words = np.empty(0, np.int64)
        no_sums = [np.empty((0, WORDS_PER_DECIMAL), np.int64) for _ in arguments]
        return Partial([none for _ in groups], none, no_sums)
    columns = [as_words(c) for c in groups]
    grouping = group_rows(columns, n_rows)
    rows = _Rows(grouping, dictionary, [])
    keys = grouping.keys or [column[grouping.first] for column in columns]
    sums = [_power_sums(rows, column, power)[0] for column, power in arguments]
    return Partial(keys, rows.counts, sums)


@dataclass(frozen=True)
class _Rows:
    """What every aggregate needs."""

    grouping: Grouping
    dictionary: Dictionary
    order: list[Words]

    @property
    def counts(self) -> Words:
        return self.grouping.counts[self.grouping.present]

    @property
    def bounds(self) -> Words:
        """Where each group begins when rows are ordered by group, and where the last ends."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def values(self, codes: Words) -> Words:
        """One word a row, in the order of the grouping."""
        return self.grouping.in_parts(codes)

    def zeros(self, width: int) -> Words:
        return np.zeros(width * self.grouping.slots, np.int64)

    def read(self, values: npt.NDArray[Any], width: int = 1) -> npt.NDArray[Any]:
        """The values of slots that are present, in order; `width` words each."""
        if width == 1:
            return values[self.grouping.present]
        if width == 2:
            out = np.empty(2 * len(self.grouping.present), np.int64)
            kernels.gather_pairs(values, self.grouping.present, out)
            return out
        return values.reshape(-1, width)[self.grouping.present].reshape(-1)

    def overflow(self, fits: np.ndarray, what: str = SUM[0], room: str = SUM[1]) -> None:
        """Raise for the first group that does not fit."""
        if not fits.all():
            raise SumOverflow(self.grouping.a_row(int(np.flatnonzero(~fits)[0])), what, room)


# ---- aggregates


def fold_count(rows: _Rows, _: Column | None) -> Column:
    return Column(rows.counts, INT)


def fold_sum(rows: _Rows, column: Column | None) -> Column:
    assert column is not None
    if column.type == FLOAT:
        return Column(float_codes(_float_sums(rows, column)), FLOAT)
    if column.type.is_decimal:
        words = _decimal_sums(rows, column).reshape(-1, WORDS_PER_DECIMAL)
    else:
        words = _int_sums(rows, column.codes, column.type).reshape(-1, 2)[:, ::-1]
    return _finished(sum_of_sums, column.type, rows, [words])


def _finished(finish: Any, type: Type, rows: _Rows, sums: Sequence[Words]) -> Column:
    """The result that power sums determine: see `power_sums`."""
    try:
        column: Column = finish(type, rows.counts, sums)
        return column
    except SumOverflow as error:  # of a group: name one of its rows
        raise SumOverflow(rows.grouping.a_row(error.row), error.what, error.room) from None


def _int_sums(rows: _Rows, values: Words, type: Type) -> Words:
    """128 bits for each group: high word, low word."""
    out = rows.zeros(2)
    bias = 1 << 31 if type.kernel == "unsigned" else 0  # its codes are less by 2^63
    grouping = rows.grouping
    kernels.sum_ints(grouping.ids, grouping.base, rows.values(values), len(values), bias, out)
    sums = rows.read(out, 2)
    kernels.settle_ints(sums, len(sums) // 2)
    return sums


def _power_sums(rows: _Rows, column: Column, power: int) -> tuple[Words, np.ndarray]:
    """The sum of this power of what adds up exactly for each group, (n, 4) words, and which of them
    have at most 76 digits.  Raises SumOverflow where a square has more."""
    if power == 2:
        sums, fits = _square_sums(rows, column)
    elif column.type.is_decimal:
        sums, fits = _wide_sums(rows, decimal_words(column))
    else:
        sums = _widened(_int_sums(rows, column.codes, column.type))
        fits = np.ones(len(sums) // WORDS_PER_DECIMAL, bool)
    return sums.reshape(-1, WORDS_PER_DECIMAL), fits


def _square_sums(rows: _Rows, column: Column) -> tuple[Words, np.ndarray]:
    """256 bits for each group: numbers of one word are squared as they are added up."""
    small = column.codes if column.type == INT else narrow_words(decimal_words(column))
    if small is None:
        return _wide_sums(rows, squared_words(decimal_words(column)))
    parts, grouping = rows.zeros(SQUARE_PARTS), rows.grouping
    sum_squares(grouping.ids, grouping.base, rows.values(small), len(small), parts)
    parts = as_words(rows.read(parts, SQUARE_PARTS))
    n = len(parts) // SQUARE_PARTS
    out = np.empty(n * WORDS_PER_DECIMAL, np.int64)
    settle_squares(parts, n, out)
    return out, np.ones(n, bool)


def _fold_powers(function: Aggregate, rows: _Rows, column: Column) -> Column:
    """An aggregate that its moments determine."""
    assert function.finish is not None and function.moments is not None
    finish = load(function.finish)
    if column.type == FLOAT:
        return _fold_floats(finish, function.moments, rows, column)
    sums = []
    for power in function.moments:
        words, fits = _power_sums(rows, column, power)
        rows.overflow(fits, *(SQUARES if power == 2 else SUM))
        sums.append(words)
    return _finished(finish, column.type, rows, sums)


def _fold_floats(finish: Any, powers: Sequence[int], rows: _Rows, column: Column) -> Column:
    """The same for floats, some groups at a time: the words of a sum take much more space than a float."""
    values, bounds = _segments(rows, column)
    out = np.empty(rows.grouping.slots, np.int64)
    for start in range(0, len(out), SUMS_AT_ONCE):
        own = bounds[start : start + SUMS_AT_ONCE + 1]
        part, ends = values[own[0] : own[-1]], own - own[0]
        sums = [float_words(part, ends, power) for power in powers]
        out[start : start + SUMS_AT_ONCE] = finish(FLOAT, np.diff(ends), sums).codes
    return Column(rows.read(out), FLOAT)


def _decimal_sums(rows: _Rows, column: Column) -> Words:
    """256 bits for each group, all of at most 76 digits."""
    sums, fits = _wide_sums(rows, decimal_words(column))
    rows.overflow(fits)
    return sums


def _wide_sums(rows: _Rows, words: Words) -> tuple[Words, np.ndarray]:
    """256 bits for each group of such numbers, and which of them have at most 76 digits."""
    small = narrow_words(words)
    if small is not None:
        sums = _widened(_int_sums(rows, small, INT))
        return sums, np.ones(len(sums) // WORDS_PER_DECIMAL, bool)
    limbs = rows.zeros(8)
    wide_kernels.sums(words, rows.grouping.in_rows(), len(words) // WORDS_PER_DECIMAL, limbs)
    limbs = rows.read(limbs, 8)
    n = len(limbs) // 8
    out, fits = np.empty(n * WORDS_PER_DECIMAL, np.int64), np.empty(n, np.int64)
    wide_kernels.settle_sums(limbs, n, POWERS, out, fits)
    return out, fits == 1


def _widened(pairs: Words) -> Words:
    """128 bits (high, low) to 256 bits, the least significant word first."""
    high, low = pairs.reshape(-1, 2).T
    sign = high >> 63
    return np.stack([low, high, sign, sign], axis=1).reshape(-1)


def fold_mean(rows: _Rows, column: Column | None) -> Column:
    """The exact mean, rounded once."""
    assert column is not None
    if column.type == FLOAT:
        return Column(float_codes(rows.read(float_means(*_segments(rows, column)))), FLOAT)
    if column.type.is_decimal:
        sums = _decimal_sums(rows, column)
    else:
        sums = _widened(_int_sums(rows, column.codes, column.type))
    return _finished(mean_of_sums, column.type, rows, [sums.reshape(-1, WORDS_PER_DECIMAL)])


def _float_sums(rows: _Rows, column: Column) -> np.ndarray:
    """Exact, rounded once.  Floats of about one size in few groups are summed as whole numbers of two words,
    in place; others are gathered group by group.  O(n).
    """
    sums = _fixed_sums(rows, column) if rows.grouping.slots <= _FEW_SLOTS else None
    return rows.read(float_sums(*_segments(rows, column))) if sums is None else sums


def _fixed_sums(rows: _Rows, column: Column) -> np.ndarray | None:
    """Sums as whole numbers of the last place of the smallest float; None if two words are too few.

    A number has 53 bits and as many more as its exponent is above the least.  It is cut into two, of `bits`
    bits at most, so that as many as the largest group has can be added up.
    """
    exponents = np.empty(2, np.int64)
    kernels.float_exponents(column.codes, len(column), exponents)
    least, greatest = (int(e) for e in exponents)
    bits = 62 - int(rows.grouping.counts.max()).bit_length()
    if greatest > _MOST_FIXED or bits < 32 or greatest - least > min(bits, 2 * bits - 53):
        return None
    least = least if greatest else 1
    out, grouping = rows.zeros(2), rows.grouping
    codes = rows.values(column.codes)
    kernels.sum_floats(grouping.ids, grouping.base, codes, len(codes), least, bits, out)
    high, low = rows.read(out, 2).reshape(-1, 2).T
    halves = np.stack([high >> 32, high & kernels.LOW, low >> 32, low & kernels.LOW], axis=1)
    places = np.array([bits + 32, bits, 32, 0]) + (least - _EXPONENT_OF_ONE)
    pieces = np.ldexp(halves.astype(np.float64), places)
    return float_sums(pieces.reshape(-1), 4 * np.arange(len(high) + 1))


def _segments(rows: _Rows, column: Column) -> tuple[np.ndarray, Words]:
    """The floats of a column, slot by slot, and where each slot begins."""
    grouping = rows.grouping
    bounds = np.concatenate([[0], np.cumsum(grouping.counts)])
    values, codes = np.empty(len(column)), rows.values(column.codes)
    kernels.floats_by_group(grouping.ids, grouping.base, codes, len(codes), bounds[:-1].copy(), values)
    return values, bounds


def fold_distinct(rows: _Rows, column: Column | None) -> Column:
    """How many distinct values each group has.  O(n)."""
    assert column is not None
    slots, codes = rows.grouping.in_rows(), value_codes(column)
    pairs = group_rows([as_words(slots), codes], len(codes))
    found = pairs.keys[0] if pairs.keys else slots[pairs.first]
    return Column(rows.read(np.bincount(found, minlength=rows.grouping.slots)), INT)


def value_codes(column: Column) -> Words:
    """A number for each row, equal for equal values."""
    if isinstance(column.values, np.ndarray):
        return column.codes
    small = narrow_words(decimal_words(column))
    if small is not None:
        return small
    return as_words(column.values.dictionary_encode().indices.to_numpy(zero_copy_only=False))


def fold_least(rows: _Rows, column: Column | None) -> Column:
    return _extreme(rows, column, 1)


def fold_greatest(rows: _Rows, column: Column | None) -> Column:
    return _extreme(rows, column, -1)


def _extreme(rows: _Rows, column: Column | None, sign: int) -> Column:
    """The least (1) or greatest (-1) value."""
    assert column is not None
    if column.type == STRING:
        return taken(column, _extreme_rows(rows, ranks_of(column, rows.dictionary), 1, sign))
    if not column.type.is_decimal:
        return Column(_extreme_codes(rows, column.codes, sign), column.type)
    words = decimal_words(column)
    small = narrow_words(words)
    if small is not None:
        return widen(_extreme_codes(rows, small, sign), column.type)
    return taken(column, _extreme_rows(rows, words, WORDS_PER_DECIMAL, sign))


def _extreme_codes(rows: _Rows, codes: Words, sign: int) -> Words:
    out = np.full(rows.grouping.slots, MAX if sign > 0 else MIN)
    reduce = kernels.least if sign > 0 else kernels.greatest
    reduce(rows.grouping.ids, rows.grouping.base, rows.values(codes), len(codes), out)
    return rows.read(out)


def _extreme_rows(rows: _Rows, keys: Words, width: int, sign: int) -> Words:
    out = np.full(rows.grouping.slots, -1)
    ids = rows.grouping.in_rows()
    kernels.extreme_rows(ids, 0, as_words(keys), width, sign, len(ids), out)
    return rows.read(out)


def fold_concat(rows: _Rows, column: Column | None) -> Column:
    """Texts joined in the given order, ties by text; the bytes of a group are then adjacent."""
    assert column is not None
    grouping = rows.grouping
    place = np.empty(grouping.slots, np.int64)
    place[grouping.present] = np.arange(len(grouping.present))
    ranks = as_words(ranks_of(column, rows.dictionary))
    order = sorted_rows([place[grouping.in_rows()], *rows.order, ranks], len(column))
    return Column(joined_texts(column.codes[order], rows.bounds, rows.dictionary), STRING)


def joined_texts(codes: Words, bounds: Words, dictionary: Dictionary) -> Words:
    """The codes of texts that are joined from codes[bounds[i]:bounds[i + 1]].  O(bytes)."""
    return encode(join_texts(codes, bounds, dictionary), STRING, dictionary)


def join_texts(codes: Words, bounds: Words, dictionary: Dictionary) -> pa.Array:
    """The texts themselves, which do not enter the dictionary."""
    texts, places = texts_of(Column(codes, STRING), dictionary)
    joined = texts.cast(pa.large_string()).take(pa.array(places))
    offsets = np.frombuffer(joined.buffers()[1], np.int64)[: len(joined) + 1]
    buffers = [None, pa.py_buffer(offsets[bounds]), joined.buffers()[2]]
    return pa.Array.from_buffers(pa.large_string(), len(bounds) - 1, buffers)


def _argument(column: Column | None, n_rows: int) -> Column | None:
    if column is None or len(column) == n_rows:
        return column
    return aligned([column, Column(np.zeros(n_rows, np.int64), INT)])[0]


def _no_values(op: str, argument: Column | None) -> Column:
    type = aggregate_named(op).result_type(None if argument is None else argument.type)
    none = np.empty(0, np.int64)
    return widen(none, type) if type.is_decimal else Column(none, type)
