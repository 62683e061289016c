"""Owns the arena of a database: one reserved range of memory and its large extents.  Knows nothing of rows.

The range is reserved once and never moves, so kernels and views use plain offsets; pages of it cost memory
only when they are touched.  Kernels allocate small memory themselves (`arena_kernels`); extents of
LARGE_WORDS or more are found here, in a list of free ranges that are merged again, and their memory goes
back to the operating system when they are freed.

Threads: `lock` must be held to change the arena.  A version that is dropped by the garbage collector may be
dropped at any moment, also while its own thread holds the lock; it is then only recorded, and released by the
next change of the arena.
"""

from __future__ import annotations

import contextlib
import mmap
import sys
import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dlog.errors import LimitError
from dlog.interrupts import cannot_come
from dlog.jit import Words
from dlog.storage.arena.arena_kernels import (
    BUMP,
    DEAD_LARGE,
    EXTENT_BASE,
    FREE_BLOCKS,
    FREE_EXTENTS,
    HANDED,
    LARGE_WORDS,
    LIMIT,
    LINE,
    MAGIC,
    META_WORDS,
    MOST_HANDED,
    RESULT,
    USED_BLOCKS,
    USED_EXTENTS,
    USED_WORDS,
)
from dlog.storage.arena.kernels import (
    adopt_extent,
    new_extent,
    release_extent,
    release_root,
    release_roots,
    take_dead,
)

DEFAULT_BYTES = 64 << 30
SMALLEST_BYTES = 256 << 20
ARENA_MAGIC = 0x646C6F67  # "dlog"
PAGE_BYTES = mmap.PAGESIZE
PENDING_ROOTS = 32  # versions that are released together
FEW_ROOTS = 8  # versions that are not worth a call by themselves
SMALL_BYTES = 4 << 20  # of an arena, that are allocated in small pages
HUGE_PAGE_BYTES = 2 << 20  # filling a large extent is 3 times as fast with these
KEPT_BYTES = 16 << 20  # of a free range of an arena in large pages
MAP_NORESERVE = 0x4000 if sys.platform == "linux" else 0  # not named by the mmap module before Python 3.13


@dataclass(frozen=True)
class Usage:
    """Allocated and free memory.  Large free ranges are not in `free_extents`."""

    used_blocks: int
    free_blocks: int
    used_extents: int
    free_extents: int
    used_words: int
    reserved_words: int  # below the first word never allocated
    limit_words: int


class Arena:
    """One reserved range of memory.  Making one is cheap (50 us); the garbage collector unmaps it."""

    __slots__ = ("A", "__weakref__", "_first", "_free_ranges", "_map", "_page", "_pending", "lock", "words")

    def __init__(
        self,
        size: int = DEFAULT_BYTES,
        in_large_pages: bool = False,
        within: tuple[mmap.mmap, int] | None = None,
    ):
        """`in_large_pages`: for extents that are often allocated and freed.  Memory is then taken and given
        back in large pages only: a part of one that was given back comes again in small pages, at ten times
        the cost.  And free ranges below KEPT_BYTES stay with the process, since the next extent would have
        them cleared again.  `within`: a reserved range, and the byte of it from which on to use `size`.
        """
        self._page = HUGE_PAGE_BYTES if in_large_pages else PAGE_BYTES
        self._map, self._first = within or (reserve(size, 0 if in_large_pages else SMALL_BYTES), 0)
        used = memoryview(self._map)[self._first : self._first + size]
        self.A: Words = np.frombuffer(used, dtype=np.int64)
        self.words = used.cast("q")  # reads and writes one word 4 times as fast as numpy
        self.lock = threading.Lock()
        self._pending: deque[int] = deque()  # roots that were dropped and are not yet released
        self._free_ranges: list[tuple[int, int]] = []  # (start, words) of large free memory, by start
        self.words[MAGIC] = ARENA_MAGIC
        self.words[BUMP] = META_WORDS
        self.words[LIMIT] = len(self.words)

    def usage(self) -> Usage:
        """Counts of used and free memory, after releasing dropped versions.  O(1 + dropped)."""
        with self.lock:
            self.release_dropped()
        w = self.words
        return Usage(
            w[USED_BLOCKS], w[FREE_BLOCKS], w[USED_EXTENTS], w[FREE_EXTENTS], w[USED_WORDS], w[BUMP], w[LIMIT]
        )

    def reserve(self, words: int) -> None:
        """Make sure that `words` fresh words can be allocated.  REQUIRES: lock held."""
        if self.words[LIMIT] - self.words[BUMP] < words:
            raise LimitError(f"the database needs more than its {self.words[LIMIT] * 8 >> 20} MiB of memory")

    def new_extent(self, words: int, count: int = 1) -> tuple[int, int]:
        """(record, base) of an extent with `count` references.  REQUIRES: lock held."""
        if words < LARGE_WORDS:
            self.reserve(2 * LARGE_WORDS)
            record = new_extent(self.A, words, count)
        else:
            words = -(-words // LINE) * LINE
            start = self._find_range(words)
            self._advise("MADV_HUGEPAGE", start, words, HUGE_PAGE_BYTES)
            record = adopt_extent(self.A, start, words, count)
        return record, self.words[record + EXTENT_BASE]

    def release_extent(self, record: int, count: int = 1) -> None:
        """REQUIRES: lock held."""
        release_extent(self.A, record, count)
        self.reclaim()

    def forget_root(self, root: int) -> None:
        """Release a version with some others, at the next change at the latest.  Safe in a finalizer."""
        self._pending.append(root)
        if len(self._pending) >= PENDING_ROOTS:
            self._release_soon()

    def forget_roots(self, roots: Iterable[int]) -> None:
        """The same for several."""
        self._pending.extend(roots)
        if len(self._pending) >= PENDING_ROOTS:
            self._release_soon()

    def drop_root(self, root: int) -> None:
        """Release a version now, or soon if the arena is busy."""
        self._pending.append(root)
        self._release_soon()

    def _release_soon(self) -> None:
        """Now, or with the next change: if the arena is busy, or if Ctrl-C could come in the middle."""
        if cannot_come() and self.lock.acquire(False):
            try:
                self.release_dropped()
            finally:
                self.lock.release()

    def hand_over(self) -> None:
        """Leave dropped versions to the kernel that is called next, which releases them (`release_handed`)
        more cheaply than a separate call.  REQUIRES: lock held."""
        pending, words = self._pending, self.words
        if pending:
            n = words[HANDED]
            more = min(len(pending), MOST_HANDED - n)  # finalizers may add some at any moment
            for place in range(HANDED + n + 1, HANDED + n + more + 1):
                words[place] = pending.popleft()
            words[HANDED] = n + more
        if words[DEAD_LARGE]:
            self.reclaim()

    def release_many(self) -> None:
        """Release dropped versions, but a few may stay pending: releasing them costs a call.

        REQUIRES: lock held."""
        if len(self._pending) >= FEW_ROOTS:
            self.release_dropped()

    def release_dropped(self) -> None:
        """REQUIRES: lock held."""
        pending = self._pending
        n = len(pending)  # finalizers may add more at any moment
        if n == 1:
            release_root(self.A, pending.popleft())
        elif n:
            release_roots(self.A, np.array([pending.popleft() for _ in range(n)], np.int64), n)
        if self.words[DEAD_LARGE]:
            self.reclaim()

    def reclaim(self) -> None:
        """Reclaim large extents without references.  REQUIRES: lock held."""
        while self.words[DEAD_LARGE]:
            take_dead(self.A)
            self._free_range(self.words[RESULT], self.words[RESULT + 1])

    def _find_range(self, words: int) -> int:
        """The first free range that is long enough, else fresh memory.  O(free ranges)."""
        for i, (start, length) in enumerate(self._free_ranges):
            if length >= words:
                if length == words:
                    del self._free_ranges[i]
                else:
                    self._free_ranges[i] = (start + words, length - words)
                return start
        self.reserve(words + LARGE_WORDS)
        start = self.words[BUMP]
        self.words[BUMP] = start + words
        return start

    def _free_range(self, start: int, words: int) -> None:
        """Give the range to its free neighbours and the memory back to the system."""
        ranges = self._free_ranges
        i = bisect_left(ranges, (start, 0))
        if i < len(ranges) and start + words == ranges[i][0]:
            words += ranges.pop(i)[1]
        if i > 0 and sum(ranges[i - 1]) == start:
            start, words = ranges[i - 1][0], ranges[i - 1][1] + words
            del ranges[i - 1]
        if self._page == PAGE_BYTES or 8 * words >= KEPT_BYTES:
            self._advise("MADV_DONTNEED", start, words, self._page)
        if start + words == self.words[BUMP]:
            self.words[BUMP] = start
        else:
            insort(ranges, (start, words))

    def _advise(self, advice: str, start: int, words: int, page: int) -> None:
        """Advise the system about the whole pages of a range, if it takes such advice."""
        first = -(-(self._first + start * 8) // page) * page
        last = (self._first + (start + words) * 8) // page * page
        if last > first and hasattr(mmap, advice):
            with contextlib.suppress(OSError):
                self._map.madvise(getattr(mmap, advice), first, last - first)

    def check(self) -> None:
        """Assert that free ranges are sorted, apart and inside the allocated part.  O(free ranges)."""
        assert self.words[MAGIC] == ARENA_MAGIC
        end = META_WORDS
        for start, words in self._free_ranges:
            assert start > end or (start == end == META_WORDS), "free ranges touch"
            assert words > 0
            end = start + words
        assert end <= self.words[BUMP] <= self.words[LIMIT]


def reserve(size: int, small: int) -> mmap.mmap:
    """The largest anonymous map of at most `size` bytes that the system grants, the first in small pages."""
    flags = {}
    if hasattr(mmap, "MAP_ANONYMOUS"):
        flags = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE}
    while True:
        try:
            return _with_huge_pages(mmap.mmap(-1, size, **flags), small)
        except (OSError, OverflowError, ValueError):
            # A limit on address space, or a system that does not overcommit.
            if size <= SMALLEST_BYTES:
                raise LimitError(f"cannot reserve {size >> 20} MiB of memory") from None
            size //= 2


def _with_huge_pages(memory: mmap.mmap, small: int) -> mmap.mmap:
    """Leaves are small and scattered: without large pages, looking rows up and copying leaves costs twice
    the time.  The first megabytes are excluded, for arenas of which little is used."""
    if hasattr(mmap, "MADV_HUGEPAGE") and len(memory) > small:
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE, small, len(memory) - small)
    return memory
