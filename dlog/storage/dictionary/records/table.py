"""Owns the records of a database: each distinct one is stored once, in arrays, and has a number.

A record has a shape: the constructor that made it, and what each field holds (a code, a text's code, a
record's code).  Knows nothing of relations; what is collected is up to the caller, who knows what is in use.

Readers take the arrays at once, as one tuple.  Storing only adds to them or makes larger copies, and a
collection makes new ones, so that who reads meanwhile in another thread sees the records that it saw before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dlog.jit import Words
from dlog.storage.dictionary.records.layout import (
    ABSENT,
    ADDRESSES,
    AT_CONSTRUCTORS,
    AT_DIRECTORY,
    AT_HEAP,
    AT_MASK,
    AT_META,
    AT_PLACES,
    AT_SLOTS,
    FIRST_ID,
    HEADER,
    LIVE,
    META,
    NEXT,
    PAGE,
    PAGE_BITS,
    USED,
)
from dlog.storage.dictionary.records.nodes import Nodes
from dlog.storage.dictionary.records.record_kernels import (
    fill_slots,
    mark,
    read_fields,
    restore_rows,
    store_nodes,
    store_rows,
    sweep,
)
from dlog.storage.dictionary.records.structs import record_structs
from dlog.storage.dictionary.records.texts import in_order, record_texts
from dlog.storage.dictionary.records.uses import Holders, alone
from dlog.storage.index.sort import as_words
from dlog.values import RecordType

FIRST_SLOTS = 1 << 10
FIRST_WORDS = 1 << 12
FEW = 1 << 16  # records that are not worth a collection
CHUNK = 1 << 16  # rows that are stored at once: for each there is room, though most may be known
Mask = npt.NDArray[np.bool_]


class Arrays(NamedTuple):
    """See `layout`."""

    slots: Words
    directory: Words
    places: Words
    heap: Words


class _Addresses(NamedTuple):
    """Where arrays are, which lives as long as they do: computed once for as long as they stay the same."""

    arrays: Arrays
    constructors: Words
    words: Words

    @classmethod
    def of(cls, arrays: Arrays, meta: Words, constructors: Words) -> _Addresses:
        slots, directory, places, heap = (array.ctypes.data for array in arrays)
        words = np.empty(ADDRESSES, np.int64)
        words[[AT_SLOTS, AT_DIRECTORY, AT_PLACES, AT_HEAP]] = slots, directory, places, heap
        words[[AT_META, AT_CONSTRUCTORS]] = meta.ctypes.data, constructors.ctypes.data
        words[AT_MASK] = len(arrays.slots) - 1
        return cls(arrays, constructors, words)


class Stored(NamedTuple):
    """Records with their numbers, as they are written to files: fields one after the other."""

    numbers: Words
    shapes: Words
    words: Words


class RecordTable:
    """Records and their codes.

    >>> records = RecordTable()
    >>> pair = records.shape(0, (0, 0))
    >>> a, b = records.store(pair, [np.array([1, 1]), np.array([2, 2])])
    >>> bool(a == b), len(records), records.field(np.array([a, 0]), 0, 1)[0].tolist()
    (True, 1, [2, 0])
    """

    def __init__(self) -> None:
        self._shapes: dict[tuple[int, tuple[int, ...]], int] = {}
        self._constructors = np.empty(0, np.int64)  # of each shape
        self._kinds = np.empty(0, np.int64)  # of the fields of all shapes
        self._starts = np.zeros(1, np.int64)
        self.meta = np.zeros(META, np.int64)
        self.arrays = Arrays(
            np.zeros(FIRST_SLOTS, np.int64), np.empty(0, np.int64), np.empty(0, np.int64),
            np.empty(FIRST_WORDS, np.int64),
        )  # fmt: skip
        self._free: list[int] = []  # blocks of places that no page has
        self._addresses: _Addresses | None = None
        self._lock = threading.RLock()
        self.holders = Holders()
        self.collected_at = 0  # how many records the last collection left

    def __len__(self) -> int:
        return int(self.meta[LIVE])

    @property
    def numbers(self) -> int:
        """How many numbers were given out."""
        return int(self.meta[NEXT])

    @property
    def memory(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def shape(self, constructor: int, kinds: tuple[int, ...]) -> int:
        """The number of a shape, a new one if it is new."""
        with self._lock:
            found = self._shapes.get((constructor, kinds))
            if found is None:
                found = self._shapes[constructor, kinds] = len(self._shapes)
                self._constructors = np.append(self._constructors, constructor)
                self._kinds = np.append(self._kinds, np.array(kinds, np.int64))
                self._starts = np.append(self._starts, len(self._kinds))
            return found

    def shapes(self) -> list[tuple[int, tuple[int, ...]]]:
        """All shapes by number."""
        return list(self._shapes)

    def store(self, shape: int, columns: Sequence[Words]) -> Words:
        """The codes of records of one shape, from columns of their fields.  REQUIRES: at least one.

        O(n) expected.
        """
        n, out = len(columns[0]), np.empty(len(columns[0]), np.int64)
        for first in range(0, n, CHUNK):
            part = [as_words(column[first : first + CHUNK]) for column in columns]
            rows, m = np.concatenate(part), len(part[0])
            with self._lock:
                self._reserve(m, m * (HEADER + len(columns)))
                store_rows(shape, rows, len(columns), m, *self.arrays, self.meta, out[first : first + m])
        return out

    def store_nodes(self, nodes: Nodes) -> Words:
        """The codes of records of any shapes; see `nodes`."""
        out = np.empty(len(nodes.shapes), np.int64)
        if len(out):
            with self._lock:
                self._reserve(len(out), len(out) * HEADER + len(nodes.words))
                store_nodes(*nodes, len(out), *self.arrays, self.meta, out)
        return out

    def codes(self, values: Sequence[Any], type: RecordType, dictionary: Any) -> Words:
        """The codes of Python values (see `dlog.values.record_text`)."""
        return Nodes.encoded(values, type, self, dictionary)

    def texts(self, codes: Words, type: RecordType, dictionary: Any) -> pa.Array:
        """The texts of codes, as programs write them."""
        return record_texts(codes, type, self.arrays, self._constructors, dictionary)

    def structs(self, codes: Words, type: RecordType, dictionary: Any) -> pa.Array:
        """The values of codes, as structs where the type allows that."""
        return record_structs(codes, type, dictionary)

    def ranks(self, codes: Words, type: RecordType, dictionary: Any) -> Words:
        """Numbers in the order of the values."""
        distinct, places = np.unique(codes, return_inverse=True)
        ordered = in_order(distinct, type, self.arrays, self._constructors, dictionary)
        rank = np.empty(len(distinct), np.int64)
        rank[np.searchsorted(distinct, ordered)] = np.arange(len(distinct))
        return rank[places]

    def field(self, codes: Words, constructor: int, index: int) -> tuple[Words, Mask]:
        """A field of records, and which of them have it: those that this constructor made."""
        out, defined = np.empty(len(codes), np.int64), np.empty(len(codes), np.uint8)
        arrays = self.arrays
        read_fields(
            as_words(codes), constructor, index, self._constructors, arrays.directory, arrays.places,
            arrays.heap, out, defined,
        )  # fmt: skip
        return out, defined.view(np.bool_)

    # Room

    @contextmanager
    def addresses(self, room: int) -> Iterator[Words]:
        """The table as one array (see `layout`) with room for so many records, while no other thread stores
        any."""
        with self._lock:
            fields = max((len(kinds) for _, kinds in self._shapes), default=0)
            self._reserve(room, room * (HEADER + fields))
            known = self._addresses
            if (
                known is None
                or known.arrays is not self.arrays
                or known.constructors is not self._constructors
            ):
                known = self._addresses = _Addresses.of(self.arrays, self.meta, self._constructors)
            yield known.words

    def _reserve(self, n: int, words: int) -> None:
        """Room for n more records of so many words."""
        slots, directory, places, heap = self.arrays
        last, used = self.numbers + n, int(self.meta[USED])
        if 2 * (len(self) + n) > len(slots):
            slots = self._slots(len(self) + n, heap, used)
        if used + words > len(heap):
            heap = _longer(heap, used, max(2 * len(heap), used + words))
        pages = -(-last // PAGE)
        if pages > len(directory):
            directory, places = self._with_pages(directory, places, pages)
        found = Arrays(slots, directory, places, heap)
        if any(new is not old for new, old in zip(found, self.arrays, strict=True)):
            self.arrays = found

    def _slots(self, n: int, heap: Words, used: int) -> Words:
        """A hash table with room for twice as many records."""
        slots = np.zeros(max(FIRST_SLOTS, 1 << (4 * n - 1).bit_length()), np.int64)
        fill_slots(heap, used, self._starts, slots)
        return slots

    def _with_pages(self, directory: Words, places: Words, pages: int) -> tuple[Words, Words]:
        """Blocks for new pages, first those that no page has."""
        known, size = len(directory), len(places) >> PAGE_BITS
        while len(self._free) < pages - known:
            more = max(8, size)
            places = np.append(places, np.full(more << PAGE_BITS, ABSENT, np.int64))
            self._free += range(size + more - 1, size - 1, -1)
            size += more
        return np.append(directory, [self._free.pop() for _ in range(pages - known)]).astype(np.int64), places

    # Collection

    @property
    def may_be_garbage(self) -> bool:
        """Whether there are so many more than the last collection left that one is worth its time."""
        return len(self) > 2 * self.collected_at + FEW

    def collect(self, pinned: int = 0) -> bool:
        """Forget all records but those that holders keep, those with smaller numbers than `pinned`, and what
        is in them; False if something is being evaluated.  O(records, and rows that have some)."""
        with alone() as is_alone:
            if is_alone:
                self.keep([np.arange(FIRST_ID, FIRST_ID + pinned), *self.holders.codes()])
            return is_alone

    def keep(self, codes: Iterable[Words]) -> None:
        """Forget all records but those with these codes, and what is in them; other words mean nothing."""
        with self._lock:
            _, directory, places, heap = self.arrays
            used = int(self.meta[USED])
            marked, stack = np.zeros(used + 1, np.uint8), np.empty(len(self) + 1, np.int64)
            for column in codes:
                known = column[(column >= FIRST_ID) & (column < FIRST_ID + self.numbers)]
                mark(as_words(known), self._kinds, self._starts, directory, places, heap, marked, stack)
            self._sweep(directory, places, heap, used, marked)
            self.collected_at = len(self)

    def _sweep(self, directory: Words, places: Words, heap: Words, used: int, marked: Any) -> None:
        new_heap = np.empty(max(FIRST_WORDS, used), np.int64)
        new_places = np.full(len(places), ABSENT, np.int64)
        sweep(heap, used, marked, self._starts, new_heap, directory, new_places, self.meta)
        used = int(self.meta[USED])
        new_heap = new_heap[: max(FIRST_WORDS, 2 * used)].copy()
        directory, new_places = self._without_empty(directory, new_places)
        self.arrays = Arrays(self._slots(len(self), new_heap, used), directory, new_places, new_heap)

    def _without_empty(self, directory: Words, places: Words) -> tuple[Words, Words]:
        """Blocks that are in use, renumbered: those of pages whose records are gone are taken away, and pages
        that no number is on yet.  The page of the next number keeps its block if it has begun."""
        directory = directory[: -(-self.numbers // PAGE)]
        blocks = places.reshape(-1, PAGE)
        held = directory != ABSENT
        held[held] = (blocks[directory[held]] != ABSENT).any(axis=1)
        if self.numbers % PAGE:
            held[self.numbers >> PAGE_BITS] = True
        kept = directory[held]
        renumbered = np.full(len(directory), ABSENT, np.int64)
        renumbered[held] = np.arange(len(kept))
        self._free = []
        return renumbered, np.ascontiguousarray(blocks[kept]).reshape(-1)

    # Files

    def stored(self, first: int, last: int) -> Stored:
        """The records with the numbers from `first` to before `last` that are not gone."""
        with self._lock:
            _, directory, places, heap = self.arrays
            numbers = np.arange(first, last)
            blocks = directory[numbers >> PAGE_BITS] if len(numbers) else numbers
            numbers, blocks = numbers[blocks >= 0], blocks[blocks >= 0]
            at = places[(blocks << PAGE_BITS) + (numbers & (PAGE - 1))]
            numbers, at = numbers[at >= 0], at[at >= 0]
            shapes = heap[at + 1]
            arity = np.diff(self._starts)[shapes]
            ends = np.cumsum(arity)
            within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - arity, arity)
            return Stored(numbers, shapes, heap[np.repeat(at + HEADER, arity) + within])

    def restore(self, stored: Stored, numbers: int) -> None:
        """Put records back; `numbers` were given out when they were stored."""
        with self._lock:
            _, directory, places, heap = self.arrays
            words = len(stored.numbers) * HEADER + len(stored.words)
            used = int(self.meta[USED])
            if used + words > len(heap):
                heap = _longer(heap, used, max(2 * len(heap), used + words))
            pages = -(-numbers // PAGE)
            if pages > len(directory):
                directory, places = self._with_pages(directory, places, pages)
            restore_rows(*stored, self._starts, directory, places, heap, self.meta)
            self.meta[NEXT] = max(self.numbers, numbers)
            used = int(self.meta[USED])
            self.arrays = Arrays(self._slots(len(self), heap, used), directory, places, heap)

    def check(self) -> None:
        """Assert that every record is found under its number, and is distinct.  O(records)."""
        with self._lock:
            slots = self.arrays.slots
            found = self.stored(0, self.numbers)
            assert len(found.numbers) == len(self) == np.count_nonzero(slots)
            assert int(self.meta[USED]) == len(self) * HEADER + len(found.words)
            assert 2 * len(self) <= len(slots)
            ends = np.cumsum(np.diff(self._starts)[found.shapes])
            texts = np.split(found.words, ends[:-1]) if len(ends) else []
            rows = {(int(s), *map(int, w)) for s, w in zip(found.shapes, texts, strict=True)}
            assert len(rows) == len(self), "records are distinct"


def _longer(array: Words, used: int, size: int) -> Words:
    longer = np.empty(size, np.int64)
    longer[:used] = array[:used]
    return longer


__all__ = ["FIRST_ID", "RecordTable", "Stored"]
