"""Owns numbers for groups: which rows have equal keys.  Knows nothing of types and aggregates.

Keys whose ranges are small together are their own numbers; others go through a hash table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlog.heads import grouping_kernels as kernels
from dlog.heads.grouping_kernels import PARTS
from dlog.jit import Words
from dlog.storage.index.sort_kernels import DIGIT, column_range, gather, pack_column, sort_pairs

WORD_BITS = 63
SMALL_TABLE = 1 << 16  # slots that are always cheap
MAX_TABLE = 1 << 15  # groups of one hash table: 1 MB
_SAMPLE = 1 << 10


@dataclass(frozen=True)
class Grouping:
    """Row rows[i] (row i, where rows is None) has the slot ids[i] - base.

    `counts` has the number of rows of each slot; `present` are the slots that have rows, in the order of
    their keys.  Either the keys are known, or a row of each present slot is.
    """

    ids: Words
    base: int
    rows: Words | None
    counts: Words
    present: Words
    keys: list[Words]
    first: Words
    split: tuple[Words, Words] | None = None  # the words that were split by hash, and where parts begin

    @property
    def slots(self) -> int:
        return len(self.counts)

    def a_row(self, number: int) -> int:
        """Some row of a group.  O(1), or O(n) if no rows are stored for groups."""
        if len(self.first):
            return int(self.first[number])
        return int(np.flatnonzero(self.ids == self.present[number] + self.base)[0])

    def in_parts(self, values: Words) -> Words:
        """Values of rows in the order of `ids`.  O(n)

        By the hash once more: reading them by `rows` took three times as long for 10 million.
        """
        if self.split is None:
            return values if self.rows is None else values[self.rows]
        words, bounds = self.split
        out = np.empty_like(values)
        kernels.split_along(words, len(words), bounds, values, out)
        return out

    def in_rows(self) -> Words:
        """The slot of each row, in the order of rows."""
        slots = self.ids - self.base
        if self.rows is None:
            return slots
        out = np.empty_like(slots)
        out[self.rows] = slots
        return out

    def check(self) -> None:
        slots = self.in_rows()
        assert (np.bincount(slots, minlength=self.slots) == self.counts).all()
        assert sorted(self.present.tolist()) == np.flatnonzero(self.counts).tolist()
        assert len(self.first) == 0 or (slots[self.first] == self.present).all()


@dataclass(frozen=True)
class _Field:
    """A column in its word, as value - least in this many bits; alone in its word it is unchanged."""

    column: Words
    least: int
    bits: int


def group_rows(columns: list[Words], n: int) -> Grouping:
    """O(n): one pass for the ranges of the columns, one to pack them, one or two to number the words."""
    if not columns:
        zeros = np.zeros(n, np.int64)
        return Grouping(zeros, 0, None, np.array([n]), np.zeros(1, np.int64), [], np.zeros(1, np.int64))
    fields = _fields(columns, n)
    bits = sum(field.bits for field in fields[0])
    if len(fields) == 1 and bits < 32 and 1 << bits <= max(n // 2, SMALL_TABLE):
        return _direct(fields[0], bits, n)
    words = _word(fields[0], n)
    ids, rows, first, bounds = _numbered(words, n)
    for members in fields[1:]:
        # A number for the words so far and one for the next word make one word again.
        words = _in_order(ids, rows) << 31 | _in_order(*_numbered(_word(members, n), n)[:2])
        ids, rows, first, bounds = _numbered(words, n)
    counts = np.zeros(len(first), np.int64)
    kernels.count_rows(ids, 0, n, counts)
    first = first if rows is None else rows[first]
    present = sorted_rows([column[first] for column in columns], len(first))
    split = None if bounds is None else (words, bounds)
    return Grouping(ids, 0, rows, counts, present, [], first[present], split)


def _direct(fields: list[_Field], bits: int, n: int) -> Grouping:
    """Small keys are slots themselves; a single column is not even copied."""
    ids, base = _word(fields, n), fields[0].least if len(fields) == 1 else 0
    counts = np.zeros(1 << bits, np.int64)
    kernels.count_rows(ids, base, n, counts)
    present = np.flatnonzero(counts)
    keys, left = [], present
    for field in reversed(fields):
        keys.append((left & ((1 << field.bits) - 1)) + field.least)
        left = left >> field.bits
    return Grouping(ids, base, None, counts, present, keys[::-1], np.empty(0, np.int64))


def _numbered(words: Words, n: int) -> tuple[Words, Words | None, Words, Words | None]:
    """(numbers of words, the rows they represent, first place of each number, bounds of parts).

    The second and the last are None where there is one part: rows are in order.

    Many groups are split by hash first, so that each part's table stays in the cache: a million groups in 10
    million rows took 2.2 s with one table.
    """
    ids, first = np.empty(n, np.int64), np.empty(n, np.int64)
    groups = kernels.number_words(words, np.array([0, n]), 1, MAX_TABLE, ids, first)
    if groups >= 0:
        return ids, None, first[:groups].copy(), None
    bounds, parts, rows = np.empty(PARTS + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    kernels.split_by_hash(words, n, bounds, parts, rows)
    groups = kernels.number_words(parts, bounds, PARTS, n, parts, first)  # a word is read before its number
    return parts, rows, first[:groups].copy(), bounds


def _in_order(ids: Words, rows: Words | None) -> Words:
    if rows is None:
        return ids
    out = np.empty_like(ids)
    out[rows] = ids
    return out


def _fields(columns: list[Words], n: int) -> list[list[_Field]]:
    """Neighbouring columns whose ranges fit one word together."""
    if len(columns) == 1 and _is_spread(columns[0], n):
        return [[_Field(columns[0], 0, WORD_BITS)]]
    bounds = np.empty(2, np.int64)
    words: list[list[_Field]] = []
    room = 0
    for column in columns:
        column_range(column, 0, 1, n, bounds)
        field = _Field(column, int(bounds[0]), (int(bounds[1]) - int(bounds[0])).bit_length())
        if field.bits > room or not words:
            words.append([])
            room = WORD_BITS
        words[-1].append(field)
        room -= field.bits
    return words


def _is_spread(column: Words, n: int) -> bool:
    """Whether a sample shows that the column cannot be a slot: then its range is not needed."""
    sample = column[: min(n, _SAMPLE)]
    return n > _SAMPLE and int(sample.max()) - int(sample.min()) > max(n, SMALL_TABLE)


def _word(fields: list[_Field], n: int) -> Words:
    """Columns as one word, which sorts as they do.  A single column is not copied."""
    if len(fields) == 1:
        return fields[0].column
    word = np.zeros(n, np.int64)
    for field in fields:
        pack_column(field.column, 0, 1, n, field.least, field.bits, word)
    return word


def sorted_rows(columns: list[Words], n: int) -> Words:
    """The order of rows that sorts the columns, the first one first; equal rows stay in order.  O(n)."""
    counts = np.empty(64 // DIGIT << DIGIT, np.int64)
    rows, rows2 = np.arange(n), np.empty(n, np.int64)
    keys, keys2 = np.empty(n, np.int64), np.empty(n, np.int64)
    for fields in reversed(_fields(columns, n)) if n else ():
        gather(_word(fields, n), 0, rows, n, keys, 0)
        if sort_pairs(keys, rows, keys2, rows2, n, counts):
            rows, rows2 = rows2, rows
    return rows
