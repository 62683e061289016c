"""Owns the current rows while code is written: their frame, its loops, bound variables, the running value.

Code is only ever written for the current frame, so that everything its cache holds was computed whenever the
frame has rows.  Knows no expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dlog.m3.rings.rings import Ring
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.analysis import Names
from dlog.m3.runtime.compile.code import Code, Frame, Label, Word
from dlog.m3.runtime.compile.exact import EXACT_RING
from dlog.m3.runtime.compile.ranges import Ranges
from dlog.m3.runtime.compile.stores import Store
from dlog.m3.runtime.compile.values import (
    INT_KIND,
    Arithmetic,
    Value,
)
from dlog.m3.syntax import ast
from dlog.storage.dictionary.dictionary import Dictionary

# Where a variable's column comes from: ("column", c), ("slot", map, slots, word), ("delta", cursor, c),
# ("input", c).
Origin = tuple


@dataclass(frozen=True)
class Bound:
    """A variable: its kind, the frame that bound it, and where its codes are."""

    kind: str
    frame: Frame
    origin: Origin


class Rows:
    """The state of the current rows."""

    def __init__(self, code: Code, arithmetic: Arithmetic, ranges: Ranges, dictionary: Dictionary):
        self.code, self.arithmetic, self.dictionary = code, arithmetic, dictionary
        self.ranges, self.stores, self.typing = ranges, ranges.stores, ranges.typing
        self.frame = code.frame()
        self.bound: dict[str, Bound] = {}
        self._value: Value | None = None  # None is 1
        self._value_frame = self.frame
        self.leave = Label()  # where to go when no rows are left
        self.loops: list[tuple[Label, Label, int]] = []  # (head, exit, map) of the open ones
        self.product: tuple = (0, -1)  # the last product of look-ups: where it is, and of what
        self.conditions: list[ast.Node] = []  # that come after the factor that is joined next
        self.joins_batch = False  # the batch is read as a map, too
        self.consolidates = False  # batches are read as net changes
        self.exact = False  # what is computed is added to exact sums
        self.repeated: set[tuple[str, tuple[str, ...]]] = set()  # look-ups that several statements do

    @property
    def names(self) -> Names:
        return frozenset(self.bound)

    def child(self, rows: Word, parent: Frame | None = None) -> Frame:
        return self.code.frame(parent or self.frame, rows)

    def open_loop(self, store: int = -1) -> Label:
        """What follows runs once for each chunk, until `close_loops`.  Returns where the loop ends.

        `store` is the address of the map that is read, if it is one.
        """
        loop = (self.code.here(), Label(), store)
        self.loops.append(loop)
        return loop[1]

    def enter(self, frame: Frame) -> None:
        """Continue in the frame of the loop that was opened last."""
        self.frame = frame
        self.leave = self.loops[-1][0]

    def close_loops(self, down_to: int = 0) -> None:
        while len(self.loops) > down_to:
            head, end, _ = self.loops.pop()
            self.code.emit(o.JUMP, head)
            self.code.place(end)

    @contextmanager
    def inner(self) -> Iterator[None]:
        """Code with its own rows and variables; afterwards everything is as before."""
        frame, bound, leave, depth = self.frame, dict(self.bound), self.leave, len(self.loops)
        value, value_frame = self._value, self._value_frame
        self.value, self.leave = None, Label()
        end = self.leave
        yield
        self.close_loops(depth)
        self.frame, self.bound, self.leave = frame, bound, leave
        self._value, self._value_frame = value, value_frame
        self.code.place(end)

    @contextmanager
    def adding_to(self, ring: Ring) -> Iterator[None]:
        """Code for values that are added to elements of a ring."""
        before, self.exact = self.exact, ring is EXACT_RING
        yield
        self.exact = before

    def column(self, frame: Frame, column: Word) -> Word:
        """A column of a frame around the current one, row by row."""
        if frame is self.frame or isinstance(column, Label):  # a constant is the same everywhere
            return column
        key = ("column", frame.word, column)
        if key not in self.frame.cache:
            out = self.code.column()
            if frame.is_single:
                self.code.emit(o.SPREAD, self.frame.word, column, out)
            else:
                self.code.emit(o.GATHER, self.frame.word, column, self.rows_of(frame), out)
            self.frame.cache[key] = out
        return self.frame.cache[key]

    def rows_of(self, frame: Frame) -> Word:
        """For each current row the row of an outer frame that it comes from."""
        at, rows = self.frame, None
        while at is not frame:
            assert at.rows is not None and at.parent is not None
            if rows is None:
                rows = at.rows
            else:
                key = ("rows", at.parent.word)
                if key not in self.frame.cache:
                    out = self.code.column()
                    self.code.emit(o.GATHER, self.frame.word, at.rows, rows, out)
                    self.frame.cache[key] = out
                rows = self.frame.cache[key]
            at = at.parent
        assert rows is not None
        return rows

    def key_of(self, bound: Bound) -> Word:
        """The codes of a variable, in the current frame."""
        if bound.origin[0] == "column":
            return self.column(bound.frame, bound.origin[1])
        key = (bound.frame.word, *bound.origin)
        if key not in self.frame.cache:
            out = self.code.column()
            self._load(bound, out)
            self.frame.cache[key] = out
        return self.frame.cache[key]

    def _load(self, bound: Bound, out: int) -> None:
        own, kind = bound.frame is self.frame, bound.origin[0]
        if kind != "slot":
            self.code.inputs.add(bound.origin[-1])
        if kind == "slot":
            _, store, slots, word = bound.origin
            self.code.emit(o.SLOT_LOAD, self.frame.word, store, self.column(bound.frame, slots), word, out)
        elif kind == "delta":
            _, cursor, column = bound.origin
            if own:
                self.code.emit(o.DELTA_LOAD, self.frame.word, cursor, out, column)
            else:
                rows = self.rows_of(bound.frame)
                self.code.emit(o.DELTA_GATHER, self.frame.word, rows, out, column, bound.frame.word, cursor)
        elif own:
            self.code.emit(o.LOAD, self.frame.word, out, bound.origin[1])
        else:
            self.code.emit(o.INPUT_GATHER, self.frame.word, self.rows_of(bound.frame), out, bound.origin[1])

    def variable(self, name: str) -> Value:
        bound = self.bound[name]
        return self.arithmetic.from_key(self.frame, self.key_of(bound), bound.kind)

    def key(self, name: str, kind: str) -> Word:
        """The codes of a variable as keys of some kind."""
        bound = self.bound[name]
        if bound.kind == kind:
            return self.key_of(bound)
        return self.arithmetic.key(self.frame, self.variable(name), kind)

    def hashed(self, columns: list[Word]) -> Word:
        if not columns:
            return 0
        key = ("hash", *columns)
        if key not in self.frame.cache:
            out = self.code.column()
            self.code.emit(o.HASH, self.frame.word, out, len(columns), *columns)
            self.frame.cache[key] = out
        return self.frame.cache[key]

    def running(self) -> Value | None:
        return None if self.value is None else self.brought(self.value, self._value_frame)

    def brought(self, value: Value, frame: Frame) -> Value:
        """A value of a frame around the current one, row by row."""
        if frame is self.frame:
            return value
        return replace(value, columns=tuple(self.column(frame, c) for c in value.columns))

    @property
    def value(self) -> Value | None:
        return self._value

    @value.setter
    def value(self, value: Value | None) -> None:
        self._value, self._value_frame = value, self.frame

    def multiply(self, value: Value) -> None:
        # The running value is in the frame it was made in: bring it here first.
        multiply = self.arithmetic.weighted if self.exact else self.arithmetic.multiply
        self.value = multiply(self.frame, self.running(), value)

    def keep_nonzero(self) -> None:
        """Continue with the rows whose running value is not 0."""
        value = self.running()
        if value is not None:
            self.keep(self._nonzero(value).column)

    def _nonzero(self, value: Value) -> Value:
        out = self.code.column()
        if value.parts is not None:
            self.arithmetic.nonzero_element(self.frame, value, out)
            return Value(INT_KIND, (out,))
        self.code.emit(o.NONZERO, self.frame.word, len(value.columns), *value.columns, out)
        return Value(INT_KIND, (out,))

    def keep(self, condition: Word) -> None:
        """Continue with the rows where a column is 1."""
        rows = self.code.column()
        frame = self.child(rows)
        frame.is_single = self.frame.is_single  # where none is left, we leave
        self.code.emit(o.FILTER, self.frame.word, condition, frame.word, rows)
        self.code.emit(o.JUMP_EMPTY, frame.word, self.leave)
        self.frame = frame

    def keys_of(self, store: Store, variables: tuple[ast.Variable, ...]) -> list[Word]:
        return [self.key(v.name, kind) for v, kind in zip(variables, store.key_kinds, strict=True)]
