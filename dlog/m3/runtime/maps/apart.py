"""Owns the memory of elements that are stored apart from the slots of their map: chunks, which never move.

So growing a table of wide values moves a few words for each entry, and the memory of an element is
touched when it is first used.  Chunks are freed when most of their elements are no longer used.
"""

from __future__ import annotations

from dlog.jit import Words
from dlog.m3.runtime.layout import EMPTY, LINE, M_APART, M_FRESH, M_KEYS, M_SPARE
from dlog.m3.runtime.maps.apart_kernels import keep_rest, move_elements
from dlog.storage.arena.regions import Memory

FEWEST = 8  # elements of a chunk


class Elements:
    """Those of one map, `words[address:]`."""

    def __init__(self, arena: Memory, words: Words, address: int, values: int):
        self._arena, self._words, self._address = arena, words, address
        more = -values % LINE
        self._width = values + more if 4 * more <= values else values
        self._chunks: list[tuple[int, int, int]] = []  # record, base, elements
        self.number = 0  # of elements
        words[address + M_APART] = self._width

    def provide(self, wanted: int, most: int) -> None:
        """At least this many elements in all, not many more than `most`.  O(1), and O(a chunk of rows)."""
        if wanted <= self.number:
            return
        if self._chunks:
            _, base, n = self._chunks[-1]
            keep_rest(self._arena.A, self._words, self._address, base + n * self._width)
        missing = wanted - self.number
        base = self._new_chunk(max(missing, min(max(self.number, FEWEST), most - self.number)))
        self._words[self._address + M_FRESH] = base

    def pack(self, wanted: int) -> None:
        """Free memory: no more than this many elements.  REQUIRES: no more slots are used."""
        old, self._chunks, self.number = self._chunks, [], 0
        base = self._new_chunk(max(wanted, FEWEST))
        move_elements(self._arena.A, self._words, self._address, base)
        self._release(old)

    def begin_anew(self) -> None:
        """Drop all.  REQUIRES: the table is about to be replaced by an empty one."""
        old, self._chunks, self.number = self._chunks, [], 0
        self._words[self._address + M_SPARE] = self._words[self._address + M_FRESH] = 0
        self._release(old)

    def memory(self) -> int:
        return 8 * self._width * self.number

    def check(self, table: Words) -> None:
        """Assert that every slot has its own element, and that no other is lost."""
        keys = int(self._words[self._address + M_KEYS])
        found = table[table[:, 0] != EMPTY, keys].tolist()
        spare = int(self._words[self._address + M_SPARE])
        while spare:
            found.append(spare)
            assert len(found) <= self.number
            spare = int(self._arena.A[spare])
        fresh = int(self._words[self._address + M_FRESH])
        every: set[int] = set()
        for number, (_, base, n) in enumerate(self._chunks, 1):
            end = base + n * self._width
            every.update(range(base, end, self._width))
            if number == len(self._chunks):
                found += range(fresh, end, self._width)
        assert len(found) == self.number and set(found) == every

    def _new_chunk(self, n: int) -> int:
        with self._arena.lock:
            record, base = self._arena.new_extent(n * self._width)
        self._chunks.append((record, base, n))
        self.number += n
        return base

    def _release(self, chunks: list[tuple[int, int, int]]) -> None:
        with self._arena.lock:
            for record, _, _ in chunks:
                self._arena.release_extent(record)
