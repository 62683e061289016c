"""Owns the strings of a database: each distinct text has a code, in order of arrival.  `records` has those of
its records, which are stored in the same way, and collected.

Knows nothing of relations.  Codes are never given back.  Comparing codes says nothing about texts: kernels
that compare strings use `rank`, whose entry for a code is the text's position among all texts in order of
their UTF-8 bytes (which is that of their code points).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.jit import Words
from dlog.storage.dictionary.byte_kernels import SLACK
from dlog.storage.dictionary.dictionary_kernels import (
    ABSENT,
    AHEAD,
    META,
    N_BYTES,
    N_CODES,
    NEEDED,
    Bytes,
    encode_joined,
    encode_strings,
    find_strings,
    merge_order,
    refill_table,
)
from dlog.storage.dictionary.records.table import RecordTable
from dlog.storage.dictionary.text_sort_kernels import sort_texts, stack_words
from dlog.storage.index.sort import as_words, writable

MERGE_COST = 16  # merging a text takes as long as sorting this many: it is sought in the others
FIRST_SLOTS = 1 << 10
FIRST_BYTES = 1 << 12
MOST_STRING_BYTES = 2**31 - 1  # the reach of 32-bit offsets of an Arrow string array


class Dictionary:
    """Texts and their codes.

    >>> names = Dictionary()
    >>> names.encode(pa.array(["b", "a", "b"])).tolist(), names.encode_one("c"), len(names)
    ([0, 1, 0], 2, 3)
    >>> names.decode(np.array([2, 0])).to_pylist(), names.rank.tolist()
    (['c', 'b'], [1, 0, 2])
    """

    def __init__(self) -> None:
        self._table = np.zeros(FIRST_SLOTS, np.int64)
        self._text: Bytes = np.zeros(FIRST_BYTES, np.uint8)
        self._ends = np.zeros(FIRST_SLOTS, np.int64)
        self._meta = np.zeros(META, np.int64)
        self._order = np.empty(0, np.int64)  # codes in the order of their texts, when rank was last built
        self._rank = np.empty(0, np.int64)
        self._lock = threading.Lock()
        self.records = RecordTable()
        # The implementations of functors, which make values, too: `dlog.implementations.Implementations`.
        self.functions: Any = None

    def __len__(self) -> int:
        return int(self._meta[N_CODES])

    def encode(self, texts: pa.Array | pa.ChunkedArray) -> Words:
        """The codes of an Arrow array of strings without nulls; new texts get new codes.

        No Python call for each value.  O(bytes), expected.
        """
        if isinstance(texts, pa.ChunkedArray):
            parts = [self.encode(chunk) for chunk in texts.chunks]
            return np.concatenate(parts) if parts else np.empty(0, np.int64)
        if pa.types.is_dictionary(texts.type):
            return self.encode(texts.dictionary)[texts.indices.to_numpy(zero_copy_only=False)]
        data, starts = _buffers(texts)
        out, n = np.empty(len(texts), np.int64), len(texts)
        with self._lock:
            done = 0
            while (done := self._encode_from(done, data, starts, n, out)) < n:
                self._grow()
        return out

    def encode_joined(self, columns: Sequence[Words]) -> Words:
        """The codes of texts joined row by row, of any number of columns of codes.  O(bytes), expected.

        Each text is written once, into the dictionary's own bytes.

        >>> names = Dictionary()
        >>> a, b = names.encode(pa.array(["a", "b"]))
        >>> names.decode(names.encode_joined([np.array([a, b, a]), np.array([b, b, b])])).to_pylist()
        ['ab', 'bb', 'ab']
        """
        rows, n, width = np.concatenate(columns), len(columns[0]), len(columns)
        out, places = np.empty(n, np.int64), np.empty(AHEAD + 1, np.int64)
        with self._lock:
            done = 0
            while (done := self._join_from(done, rows, width, n, places, out)) < n:
                self._grow()
        return out

    def encode_one(self, text: str) -> int:
        """The code of one text, a new one if it is new."""
        return int(self.encode(pa.array([text], pa.large_string()))[0])

    def find(self, text: str) -> int | None:
        """The code of a text, or None: looking up adds nothing."""
        data, starts = _buffers(pa.array([text], pa.large_string()))
        out = np.empty(1, np.int64)
        with self._lock:
            find_strings(data, starts, 1, self._table, self._text, self._ends, out)
        return None if out[0] == ABSENT else int(out[0])

    def decode(self, codes: Words) -> pa.Array:
        """The texts of codes, as an Arrow string array.  No Python call for each value."""
        texts = self.texts().take(pa.array(codes))
        return texts.cast(pa.string()) if texts.nbytes < MOST_STRING_BYTES else texts

    def decode_one(self, code: int) -> str:
        """The text of one code."""
        assert 0 <= code < len(self)
        return self._text[self._ends[code] : self._ends[code + 1]].tobytes().decode()

    def texts(self) -> pa.LargeStringArray:
        """All texts by code.  Shares memory with the dictionary: texts never change or move within it."""
        n = len(self)
        ends, text = pa.py_buffer(self._ends[: n + 1]), pa.py_buffer(self._text[: self._meta[N_BYTES]])
        return pa.LargeStringArray.from_buffers(n, ends, text)

    @property
    def rank(self) -> Words:
        """rank[code] = position of its text in order.  Read-only; cached until a text is added."""
        return self.ranking(len(self))[0]

    def ranks(self, *columns: Words) -> list[Words]:
        """Numbers in the order of the texts for each column of codes, comparable only with each other.

        Texts that came after all of these need not be in order yet.

        >>> names = Dictionary()
        >>> codes = names.encode(pa.array(["b", "a", "c"]))
        >>> [ranks.tolist() for ranks in names.ranks(codes[:2], codes[1:2])]
        [[1, 0], [0]]
        """
        rank, _ = self.ranking(codes_of(columns))
        return [rank[column] for column in columns]

    def ranking(self, n: int) -> tuple[Words, Words]:
        """(rank, order) of at least the first n codes: order has the codes in the order of their texts, rank
        is its inverse.

        O(bytes) of all, or of the new texts if they are few, which are merged in O(all + new log all).
        """
        with self._lock:
            known = len(self._order)
            if n > known:
                order, rank = self._merged(n), np.empty(n, np.int64)
                rank[order] = np.arange(n)
                self._rank = rank
                self._order = order  # last: it shows up to where both are done
            return self._rank, self._order

    def _merged(self, n: int) -> Words:
        """The first n codes in the order of their texts, from those whose order is known if they are most."""
        known = len(self._order)
        if (n - known) * MERGE_COST >= known:
            return self.in_order(np.arange(n))
        order = np.empty(n, np.int64)
        new = self.in_order(np.arange(known, n))
        merge_order(self._text, self._ends, self._order, known, new, n - known, order)
        return order

    def since(self, first: int, last: int) -> tuple[Words, bytes]:
        """(Lengths in bytes, all bytes) of the texts with the codes from `first` to before `last`."""
        with self._lock:
            ends = self._ends[first : last + 1]
            return np.diff(ends), self._text[ends[0] : ends[-1]].tobytes()

    def buffers(self) -> tuple[Bytes, Words]:
        """(bytes, ends) of all texts, for kernels: text c is bytes[ends[c]:ends[c + 1]]."""
        return self._text, self._ends

    def in_order(self, codes: Words) -> Words:
        """Distinct codes in the order of their texts.  O(bytes); examines no other texts."""
        n, order = len(codes), codes.copy()
        keys, keys2, order2 = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
        stack = np.empty(stack_words(n), np.int64)
        sort_texts(self._text, self._ends, order, n, keys, keys2, order2, stack)
        return order

    def check(self) -> None:
        """Assert that every text has the code it is stored under, and that texts are distinct.  O(bytes)."""
        n = len(self)
        assert 2 * n <= len(self._table) + 1
        assert np.count_nonzero(self._table) == n
        assert np.all(np.diff(self._ends[: n + 1]) >= 0) and self._ends[n] == self._meta[N_BYTES]
        texts, out = self.texts(), np.empty(n, np.int64)
        find_strings(*_buffers(texts), n, self._table, self._text, self._ends, out)
        assert np.array_equal(out, np.arange(n))

    def _encode_from(self, first: int, data: Bytes, starts: Words, n: int, out: Words) -> int:
        return encode_strings(data, starts, first, n, self._table, self._text, self._ends, self._meta, out)

    def _join_from(self, first: int, rows: Words, width: int, n: int, places: Words, out: Words) -> int:
        arrays = self._table, self._text, self._ends, self._meta
        return encode_joined(rows, width, first, n, *arrays, places, out)

    def _grow(self) -> None:
        """Double what is full, or has no room for AHEAD more; bytes for at least those that are needed."""
        n, used, needed = len(self), int(self._meta[N_BYTES]), int(self._meta[NEEDED])
        if 2 * (n + AHEAD) > len(self._table):
            table = np.zeros(2 * len(self._table), np.int64)
            refill_table(self._table, table)
            self._table = table
        if n + AHEAD + 1 > len(self._ends):
            self._ends = _longer(self._ends, n + 1, 2 * len(self._ends))
        if used + needed + SLACK > len(self._text):
            self._text = _longer(self._text, used, max(2 * len(self._text), used + needed + SLACK))


def codes_of(columns: Sequence[Words]) -> int:
    """How many of a dictionary's first codes have all that occur in some columns."""
    return max((int(column.max()) + 1 for column in columns if len(column)), default=0)


def _longer(array: Any, used: int, size: int) -> Any:
    """A copy of the used part, with more room.  Those who share the old array keep it."""
    longer = np.empty(size, array.dtype)
    longer[:used] = array[:used]
    return longer


def _buffers(texts: pa.Array) -> tuple[Bytes, Words]:
    """(bytes, starts) of an Arrow string array; string i is bytes[starts[i]:starts[i + 1]]."""
    assert texts.null_count == 0
    if not pa.types.is_large_string(texts.type) and not pa.types.is_string(texts.type):
        texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    if offsets is None or len(texts) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    starts = np.frombuffer(offsets, kind)[texts.offset : texts.offset + len(texts) + 1]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return writable(raw), as_words(starts)
