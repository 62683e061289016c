"""Owns the trie iterator of the paper as a Python object: for tests, explanations and tools, not for speed.

It uses the same kernels as the machine, so it shows what a join reads.
"""

from __future__ import annotations

from dlog.jit import Words
from dlog.storage.index.trie_kernels import end_position, key_at, run_end, seek_lub
from dlog.storage.layout import ARITY


class TrieIterator:
    """A place in the trie of an index: a depth, and at each depth a key among its siblings.

    >>> import numpy as np
    >>> words = np.array([0, 3, 2, 8, 3, 0, 0, 0,  1, 1, 4,  5, 7, 6])   # {(1, 5), (1, 7), (4, 6)}, flat
    >>> i = TrieIterator(words, 0)
    >>> i.open(); i.key()
    1
    >>> i.open(); i.key(); i.next(); i.key(); i.next(); i.at_end()
    5
    7
    True
    >>> i.up(); i.seek_lub(2); i.key()
    4
    """

    def __init__(self, words: Words, root: int):
        self.words = words
        self.root = root
        self.arity = int(words[root + ARITY])
        # For each open depth (position, end of the key's run, end of the siblings); first, the root itself.
        self._stack: list[tuple[int, int, int]] = [(0, int(end_position(words, root)), 0)]

    @property
    def depth(self) -> int:
        """The number of open levels: 0 above the first column."""
        return len(self._stack) - 1

    def open(self) -> None:
        """Go down to the first key below this one.  O(log run).  REQUIRES: not at_end, depth < arity."""
        assert self.depth < self.arity and not self.at_end()
        lo, hi, _ = self._stack[-1]
        self._stack.append((lo, lo, hi))
        self._place(lo)

    def up(self) -> None:
        """Go back to the key above.  O(1).  REQUIRES: depth > 0."""
        assert self.depth > 0
        self._stack.pop()

    def next(self) -> None:
        """Go to the next sibling.  O(log run).  REQUIRES: depth > 0, not at_end."""
        assert not self.at_end()
        self._place(self._stack[-1][1])

    def seek_lub(self, key: int) -> None:
        """Go to the first sibling from here on of at least `key`.  O(log distance).  REQUIRES: depth > 0."""
        position, _, end = self._stack[-1]
        self._place(int(seek_lub(self.words, self.root, self.depth - 1, position, end, key)))

    def at_end(self) -> bool:
        """Whether it is past all siblings.  O(1)."""
        position, _, end = self._stack[-1]
        return self.depth > 0 and position >= end

    def key(self) -> int:
        """The key here.  O(1).  REQUIRES: depth > 0, not at_end."""
        assert self.depth > 0 and not self.at_end()
        return int(key_at(self.words, self.root, self.depth - 1, self._stack[-1][0]))

    def check(self) -> None:
        """Assert that each level is within the run of the key above.  O(depth)."""
        for (_, run, _), (position, stop, end) in zip(self._stack, self._stack[1:], strict=False):
            assert position <= stop <= end == run

    def _place(self, position: int) -> None:
        end = self._stack[-1][2]
        stop = position
        if position < end:
            stop = int(run_end(self.words, self.root, self.depth - 1, position, end))
        self._stack[-1] = (position, stop, end)
