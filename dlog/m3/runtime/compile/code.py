"""Owns instructions while they are written: addresses, columns, frames, constants.  Knows nothing of M3.

A frame is a set of rows that columns have values for.  The root of a trigger has a row for each row that it
runs for (one, for a batch); expanding or filtering makes a child, each row of which comes from one row of its
parent.  A loop runs what is in it once for each chunk of its frame.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from dlog.jit import Words
from dlog.m3.runtime import layout as o


class Label:
    """An address in the code, or a column, that becomes known later."""

    __slots__ = ("address",)

    def __init__(self, address: int = -1):
        self.address = address


Word = int | Label


@dataclass(eq=False)
class Frame:
    """`rows`: the column with each row's row in the parent; None for a root.

    `cache` has columns that were already computed in this frame, by their definition.
    """

    word: int
    parent: Frame | None = None
    rows: Word | None = None
    is_single: bool = False  # always one row
    cache: dict[Hashable, Word] = field(default_factory=dict)

    def is_within(self, other: Frame) -> bool:
        frame: Frame | None = self
        while frame is not None:
            if frame is other:
                return True
            frame = frame.parent
        return False


class Code:
    """The instructions of a program, being written."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.top = o.STATE_HEADER  # the first free word of the state
        self.columns = 0
        self.inputs: set[int] = set()  # columns of the event's rows that are read
        self._most_columns = 0
        self._constants: dict[int, Label] = {}
        self._data: list[tuple[Label, list[Word]]] = []
        self._work: list[tuple[Label, int]] = []
        self._shared: dict[Hashable, int] = {}

    def emit(self, op: int, *args: Word) -> None:
        """An instruction and its operands; it continues after itself."""
        self.words += [op, len(self.words) + 2 + max(len(args), 4), *args, *[0] * (4 - len(args))]

    def here(self) -> Label:
        return Label(len(self.words))

    def place(self, label: Label) -> None:
        label.address = len(self.words)

    # ---- operands

    def column(self) -> int:
        self.columns += 1
        self._most_columns = max(self._most_columns, self.columns)
        return (self.columns - 1) * o.CHUNK

    def free_columns(self) -> None:
        """Release all columns: nothing that was computed is needed any more."""
        self.columns = 0

    def state(self, words: int) -> int:
        self.top += words
        return self.top - words

    def shared(self, what: Hashable, words: int) -> int:
        """Words of the state that are shared by all requests with the same key, aligned to a cache line."""
        if what not in self._shared:
            self.top = _whole_lines(self.top)
            self._shared[what] = self.state(_whole_lines(words))
        return self._shared[what]

    def frame(self, parent: Frame | None = None, rows: Word | None = None, single: bool = False) -> Frame:
        return Frame(self.state(1), parent, rows, single)

    def constant(self, word: int) -> Label:
        """A column that always has this word in all rows."""
        return self._constants.setdefault(word, Label())

    def data(self, words: list[Word]) -> Label:
        """Words that an instruction reads, after all instructions."""
        self._data.append((Label(), words))
        return self._data[-1][0]

    def work(self, offset: int) -> Label:
        """A word of memory that instructions use while they run, shared by all of them."""
        self._work.append((Label(), offset))
        return self._work[-1][0]

    # ---- the end

    def finish(self) -> tuple[Words, Words]:
        """The code, and the initial columns."""
        columns = np.zeros((self._most_columns + len(self._constants), o.CHUNK), np.int64)
        for i, (word, label) in enumerate(self._constants.items(), self._most_columns):
            label.address = i * o.CHUNK
            columns[i] = word
        self.top = _whole_lines(self.top)
        for label, offset in self._work:
            label.address = self.top + offset
        self.top += max((offset for _, offset in self._work), default=0)
        for label, words in self._data:
            self.place(label)
            self.words += words
        code = np.array([w.address if isinstance(w, Label) else w for w in self.words], np.int64)
        return code, columns.reshape(-1)


def _whole_lines(words: int) -> int:
    return -(-words // o.LINE) * o.LINE
