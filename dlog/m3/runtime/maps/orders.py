"""Owns the memory of ordered maps: when trees are made, their pages, the log of changed slots.

The trees of a map are made together, when it is first read by range, from its sorted entries; and again when
more changed than its log has room for, which is an eighth of the entries: then sorting is faster than one
change after the other.  They are dropped when the map's table is replaced by another one's copy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime.layout import (
    DOUBLED,
    EXACT,
    FLOAT,
    INT,
    M_APPLIED,
    M_LOG,
    M_LOG_SIZE,
    M_LOGGED,
    M_ORDER,
    M_ORDERS,
    NODE_ITEMS,
    T_ENTRIES,
    T_FREE,
    T_HEIGHT,
    T_INNER,
    T_KEYS,
    T_KINDS,
    T_LEAF,
    T_MAP,
    T_PARTS,
    T_PLACES,
    T_ROOT,
    T_SPARE,
    T_SUM,
    T_VALUES,
    T_WORDS,
)
from dlog.m3.runtime.maps.order_check_kernels import check_tree, list_wide, read_tree
from dlog.m3.runtime.maps.order_kernels import add_pages, apply_changes, build_tree, free_sums
from dlog.storage.arena.regions import Memory

LEAF = 64  # items
FILL = 6  # eighths of a node that has just been made
FEWEST_PAGES = 4  # that are allocated at once
LEAST_LOG = 1 << 10


class Orders:
    """Those of one map, `words[address:]`."""

    def __init__(self, arena: Memory, words: Words, address: int):
        self._arena, self._words, self._address = arena, words, address
        first, n = int(words[address + M_ORDER]), int(words[address + M_ORDERS])
        self._trees = [first + i * T_WORDS for i in range(n)]
        self._chunks: dict[int, list[tuple[int, int]]] = {t: [] for t in self._trees}  # record, pages
        self._log: tuple[int, int] | None = None  # record, words
        words[address + M_LOGGED] = -1
        for t in self._trees:
            words[t + T_MAP] = address

    @property
    def are_made(self) -> bool:
        return bool(self._words[self._address + M_LOGGED] >= 0)

    def make(self, entries: Words) -> None:
        """All trees, of entries as `Maps.entries` gives them.  O(n log n)."""
        words, n = self._words, entries.shape[1]
        self.drop()
        for t in self._trees:
            keys, values = int(words[t + T_KEYS]), int(words[t + T_VALUES])
            places = words[words[t + T_PLACES] :][:keys]
            order = np.lexsort(entries[places[::-1]])
            rows = np.concatenate([entries[places], entries[keys : keys + values]])[:, order]
            self._add_pages(t, _pages(n, int(words[t + T_LEAF]), int(words[t + T_INNER])))
            build_tree(self._arena.A, words, t, np.ascontiguousarray(rows.T).reshape(-1), n, FILL)
        self._make_log(max(n // 8, LEAST_LOG))

    def _make_log(self, size: int) -> None:
        words, address = self._words, self._address
        with self._arena.lock:
            record, base = self._arena.new_extent(size)
        self._log = record, size
        words[address + M_LOG], words[address + M_LOG_SIZE] = base, size
        words[address + M_LOGGED] = words[address + M_APPLIED] = 0

    def give_pages(self) -> None:
        """To each tree that may need some for the next change.  O(pages)."""
        for t in self._trees:
            if self._words[t + T_SPARE] < self._words[t + T_HEIGHT] + 2:
                self._add_pages(t, max(FEWEST_PAGES, self._pages(t) // 16))

    def apply(self) -> None:
        """Bring trees up to date, if they are made.  O(log n) for each change."""
        while self.are_made and not apply_changes(self._arena.A, self._words, self._address):
            self.give_pages()

    def drop(self) -> None:
        """Free all memory; the trees are made again when they are needed."""
        for t in self._trees:
            if self._words[t + T_ROOT]:
                free_sums(self._arena.A, self._words, t)
        records = [record for chunks in self._chunks.values() for record, _ in chunks]
        records += [self._log[0]] if self._log is not None else []
        with self._arena.lock:
            for record in records:
                self._arena.release_extent(record)
        self._chunks, self._log = {t: [] for t in self._trees}, None
        for t in self._trees:
            for word in (T_ROOT, T_HEIGHT, T_ENTRIES, T_FREE, T_SPARE):
                self._words[t + word] = 0
        self._words[self._address + M_LOGGED] = -1
        self._words[self._address + M_LOG_SIZE] = self._words[self._address + M_APPLIED] = 0

    def shrink(self) -> None:
        """Drop trees with far more pages than their entries need."""
        for t in self._trees:
            needed = _pages(int(self._words[t + T_ENTRIES]), int(self._words[t + T_LEAF]), LEAF)
            if self._pages(t) > 4 * needed + FEWEST_PAGES:
                self.drop()
                return

    def memory(self) -> int:
        """Bytes of nodes and log."""
        log = self._log[1] if self._log is not None else 0
        return 8 * (log + sum(self._pages(t) * _page_words(self._words, t) for t in self._trees))

    def wide_sums(self) -> list[int]:
        """Where the wide sums of inner nodes are."""
        found: list[int] = []
        for t in self._trees:
            if self._words[t + T_ROOT]:
                out = np.zeros(self._pages(t) * int(self._words[t + T_INNER]), np.int64)
                found += out[: list_wide(self._arena.A, self._words, t, out)].tolist()
        return found

    def check(self, entries: Words) -> None:
        """Assert that the trees, if they are made, are sound, and have these entries.  O(n log n)."""
        self.apply()
        for t in self._trees if self.are_made else ():
            broken = check_tree(self._arena.A, self._words, t, self._pages(t))
            assert broken == 0, f"the tree at {t} violates rule {broken}"
            keys, values = int(self._words[t + T_KEYS]), int(self._words[t + T_VALUES])
            n = int(self._words[t + T_ENTRIES])
            found = np.zeros(max(n, 1) * (keys + values), np.int64)
            assert read_tree(self._arena.A, self._words, t, found) == n == entries.shape[1]
            places = self._words[self._words[t + T_PLACES] :][:keys]
            wanted = np.concatenate([entries[places], entries[keys : keys + values]])
            wanted = wanted[:, np.lexsort(entries[places[::-1]])]
            assert np.array_equal(found[: n * (keys + values)].reshape(n, keys + values), wanted.T)

    def _pages(self, t: int) -> int:
        return sum(n for _, n in self._chunks[t])

    def _add_pages(self, t: int, n: int) -> None:
        size = _page_words(self._words, t)
        with self._arena.lock:
            record, base = self._arena.new_extent(n * size)
        self._chunks[t].append((record, n))
        add_pages(self._arena.A, self._words, t, base, n, size)


def sum_parts(kinds: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The kind and first word of each part of a value that can be summed; none if one of them cannot."""
    if kinds and kinds[0] == EXACT:
        return ((EXACT, 0),)
    if not set(kinds) <= {INT, FLOAT, DOUBLED, DOUBLED + 1}:
        return ()
    return tuple((kind, w) for w, kind in enumerate(kinds) if kind in (INT, FLOAT, DOUBLED))


def order_words(keys: int, parts: int, sums: int, values: int, places: int, kinds: int) -> list[int]:
    """The words of an order without a tree; `sums` is the words of a part's sum, `places` and `kinds` are
    where these are listed.
    """
    words = [0] * T_WORDS
    page = LEAF * (keys + values)
    words[T_KEYS], words[T_PLACES], words[T_PARTS], words[T_KINDS] = keys, places, parts, kinds
    words[T_VALUES], words[T_LEAF], words[T_SUM] = values, LEAF, sums
    words[T_INNER] = max(page // (keys + 1 + sums * parts), 4)
    return words


def _page_words(words: Words, t: int) -> int:
    keys, parts = int(words[t + T_KEYS]), int(words[t + T_PARTS])
    leaf = int(words[t + T_LEAF]) * (keys + int(words[t + T_VALUES]))
    return NODE_ITEMS + max(leaf, int(words[t + T_INNER]) * (keys + 1 + int(words[t + T_SUM]) * parts))


def _pages(entries: int, leaf: int, inner: int) -> int:
    """As many as `build_tree` takes, and the first changes."""
    nodes = total = max(-(-entries // max(leaf * FILL // 8, 1)), 1)
    height = 0
    while nodes > 1:
        nodes = -(-nodes // max(inner * FILL // 8, 2))
        total, height = total + nodes, height + 1
    return total + height + 2
