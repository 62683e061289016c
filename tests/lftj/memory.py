"""Owns indices laid out by hand in a plain array, flat or paged: readers are tested without the writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from dlog.storage.layout import ENTRY, FANOUT, FOLD, NODE_FIRST, ROOT_HEADER

Words = npt.NDArray[np.int64]
Row = tuple[int, ...]


class Memory:
    """Words of an arena in the making: `words()` when all indices are in."""

    def __init__(self) -> None:
        self._words: list[int] = [-7] * 3  # no root is at offset 0

    def words(self) -> Words:
        return np.array(self._words, np.int64)

    def flat(self, rows: Iterable[Row], arity: int) -> int:
        """Lay out rows contiguously, with a stride longer than needed; return the root."""
        ordered = sorted(set(rows))
        stride = len(ordered) + 2
        base = self._leaf(ordered, arity, stride)
        return self._root([0, len(ordered), arity, base, stride])

    def paged(self, rows: Iterable[Row], arity: int, fills: Sequence[int], node_fills: Sequence[int]) -> int:
        """Cut rows into leaves and leaves into nodes, both of the given sizes in turn; return the root."""
        ordered = sorted(set(rows))
        leaves = []
        for part in _cut(ordered, fills):
            stride = len(part) + len(leaves) % 3
            leaves.append((self._leaf(part, arity, stride), stride, len(part)))
        nodes = []
        for entries in _cut(leaves, node_fills):
            nodes.append(len(self._words))
            self._words += [len(entries), sum(fill for _, _, fill in entries), 0, 0]
            for base, stride, fill in entries:
                self._words += [base, stride, fill, -9]
            self._words += [-7] * (ENTRY * (FANOUT - len(entries)))
            self._words += [self._words[base] if arity else -7 for base, _, _ in entries]
        folds = self._folds([self._words[node + 1] for node in nodes])
        firsts = [self._words[node + NODE_FIRST] for node in nodes]
        return self._root([len(nodes), len(ordered), arity, -1, 0, len(nodes), 0, 0, folds], nodes, firsts)

    def _root(self, header: list[int], *lists: list[int]) -> int:
        root = len(self._words)
        self._words += header + [0] * (ROOT_HEADER - len(header))
        for words in lists:
            self._words += words
        return root

    def _folds(self, rows: list[int]) -> int:
        """Numbers of rows below FOLD nodes, below FOLD of these, and so on; return where they begin."""
        start = len(self._words)
        while len(rows) >= FOLD:
            rows = [sum(part) for part in _cut(rows, [FOLD])]
            self._words += rows
        return start

    def _leaf(self, rows: Sequence[Row], arity: int, stride: int) -> int:
        base = len(self._words)
        self._words += [-8] * (arity * stride)
        for c in range(arity):
            for i, row in enumerate(rows):
                self._words[base + c * stride + i] = row[c]
        return base


def _cut(items: Sequence, sizes: Sequence[int]) -> list[Sequence]:
    parts = []
    start = 0
    while start < len(items):
        size = sizes[len(parts) % len(sizes)]
        parts.append(items[start : start + size])
        start += size
    return parts
