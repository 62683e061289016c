"""Owns values while code is written: which columns hold a value, how kinds convert, ring arithmetic.

Kinds.  `int` is one column; `float` one column of bits, or two of a doubled float; `string` and `date` one
column of codes, which support only = and <; any other kind is an element of a ring, with a column for
each of its words.  `exact` is an integer, the weight, times a doubled float or times exact sums in the slots
of a map: the product is made when it is added to an exact sum.  Keys are always one column of codes.

Rings without kernel code are computed by Python, on whole columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlog.algebra import WORDS_PER_SUM
from dlog.errors import DataError
from dlog.jit import Words
from dlog.m3.rings.kernels import COFACTOR, DECIMAL, INTEGER, PART, PLAIN_FLOAT
from dlog.m3.rings.kernels import FLOAT as FLOAT_PART
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, PLAIN_FLOAT_RING, Ring
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.code import Code, Frame, Word
from dlog.m3.runtime.compile.cofactors import Factor, Target, block_words, new_block, write_sum
from dlog.m3.runtime.compile.exact import EXACT_RING
from dlog.m3.runtime.machine.cofactor_plan import BLOCK, LIFTED
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.types.typing import FLOATS, INTEGERS, TEXTS
from dlog.values import DATE, FLOAT, INT, STRING, Type

INT_KIND, FLOAT_KIND, STRING_KIND, DATE_KIND, RING_KIND = "int", "float", "string", "date", "ring"
EXACT_KIND = "exact"
KEY_TYPES: dict[str, Type] = {INT_KIND: INT, FLOAT_KIND: FLOAT, STRING_KIND: STRING, DATE_KIND: DATE}


def kind_of(type_: TypeRef) -> str:
    if type_.name in INTEGERS:
        return INT_KIND
    if type_.name in FLOATS:
        return FLOAT_KIND
    if type_.name in TEXTS:
        return STRING_KIND
    return DATE_KIND if type_.name == "date" else RING_KIND


@dataclass(frozen=True)
class Value:
    """The columns of a value in the current frame."""

    kind: str
    columns: tuple[Word, ...]
    ring: Ring | None = None
    parts: tuple[Factor, ...] | None = (
        None  # of a cofactor: `columns` are its factor's and those of its parts
    )
    source: int = -1  # of an exact sum in a map: the map; `columns` are weight and slots

    @property
    def column(self) -> Word:
        """The one column; for a doubled float the high one, which is the nearest float."""
        return self.columns[0]


@dataclass(frozen=True)
class PythonCall:
    """A call from the machine to Python: `run` gets all columns, an array each, and the slots' words."""

    frame: int
    run: Callable[..., None]


def word_kinds(ring: Ring) -> tuple[int, ...]:
    """The kinds of a ring's words, for maps.  Rings computed by Python are never added by kernels."""
    if ring is EXACT_RING:
        return (o.EXACT,) + (o.DIGIT,) * o.WINDOW
    if ring.kernel is None:
        return (o.INT,) * ring.words
    kinds: list[int] = []
    for code, _, words, _ in ring.kernel.reshape(-1, PART).tolist():
        if code in (INTEGER, DECIMAL):
            kinds += [o.INT] * words
        elif code == FLOAT_PART:
            kinds += [o.DOUBLED, o.LOW]
        else:
            kinds += [o.FLOAT] * words
    return tuple(kinds)


class Arithmetic:
    """Writes sums, products and conversions of values in the current frame."""

    def __init__(self, code: Code, calls: list[PythonCall], is_plain: bool = False):
        """`is_plain`: floats have 53 bits everywhere, never 106."""
        self.code, self.calls, self.is_plain = code, calls, is_plain

    # ---- conversions

    def constant(self, kind: str, value: int | float) -> Value:
        if kind == FLOAT_KIND:
            return Value(kind, (self.code.constant(int(np.float64(value).view(np.int64))),))
        return Value(kind, (self.code.constant(int(value)),))

    def one(self) -> Value:
        return self.constant(INT_KIND, 1)

    def doubled(self, frame: Frame, value: Value) -> tuple[Word, Word]:
        """High and low column of a number as a doubled float."""
        if value.kind == INT_KIND:
            value = self.to_float(frame, value)
        return (value.columns[0], value.columns[1] if len(value.columns) > 1 else self.code.constant(0))

    def to_float(self, frame: Frame, value: Value) -> Value:
        if value.kind == FLOAT_KIND:
            return value
        return Value(FLOAT_KIND, (self.convert(frame, o.INT_TO_BITS, value.column),))

    def to_int(self, frame: Frame, value: Value) -> Value:
        if value.kind == INT_KIND:
            return value
        return Value(INT_KIND, (self.convert(frame, o.BITS_TO_INT, value.column),))

    def convert(self, frame: Frame, how: int, column: Word) -> Word:
        key = ("convert", how, column)
        if key not in frame.cache:
            out = self.code.column()
            self.code.emit(o.CONVERT, frame.word, how, column, out)
            frame.cache[key] = out
        return frame.cache[key]

    def key(self, frame: Frame, value: Value, kind: str) -> Word:
        """The code of a value as a key of some kind; if it has no such value, a code that no key has."""
        if kind == FLOAT_KIND:
            how = o.INT_TO_CODE if value.kind == INT_KIND else o.BITS_TO_CODE
            return self.convert(frame, how, value.column)
        if kind == INT_KIND and value.kind == FLOAT_KIND:
            return self.convert(frame, o.CODE_TO_INT, self.convert(frame, o.BITS_TO_CODE, value.column))
        return value.column

    def from_key(self, frame: Frame, column: Word, kind: str) -> Value:
        """The value of a key's code."""
        if kind == FLOAT_KIND:
            return Value(kind, (self.convert(frame, o.CODE_TO_BITS, column),))
        return Value(kind, (column,))

    def as_ring(self, frame: Frame, value: Value, ring: Ring) -> tuple[Word, ...]:
        """The columns of a value as an element of a map's ring."""
        if ring is INTEGER_RING:
            return (self.to_int(frame, value).column,)
        if ring is FLOAT_RING:
            return self.doubled(frame, value)
        if ring is PLAIN_FLOAT_RING and value.kind != RING_KIND:
            return (self.to_float(frame, value).column,)
        assert ring.variables is None
        if value.kind == RING_KIND:
            return value.columns
        ones = tuple(self.code.constant(int(w)) for w in ring.ones(1)[0])
        return self.scale(frame, Value(RING_KIND, ones, ring), value).columns

    # ---- sums and products

    def multiply(self, frame: Frame, a: Value | None, b: Value) -> Value:
        one = self.one().columns
        if a is None or (a.columns == one and a.kind == INT_KIND):
            return b
        if b.columns == one and b.kind == INT_KIND:
            return a
        if a.kind == RING_KIND or b.kind == RING_KIND:
            return self._multiply_rings(frame, a, b)
        if a.kind == INT_KIND and b.kind == INT_KIND:
            return Value(INT_KIND, (self.binary(o.MULTIPLY, frame, o.INT, a.column, b.column),))
        return self._floats(o.MULTIPLY, frame, a, b)

    def add(self, frame: Frame, a: Value, b: Value) -> Value:
        if a.kind == RING_KIND or b.kind == RING_KIND:
            ring = a.ring or b.ring
            assert ring is not None
            if ring.variables is not None:
                return self._add_cofactors(frame, ring, a, b)
            return self._add_rings(frame, ring, self.as_ring(frame, a, ring), self.as_ring(frame, b, ring))
        if a.kind == INT_KIND and b.kind == INT_KIND:
            return Value(INT_KIND, (self.binary(o.ADD, frame, o.INT, a.column, b.column),))
        return self._floats(o.ADD, frame, a, b)

    def _floats(self, op: int, frame: Frame, a: Value, b: Value) -> Value:
        if self.is_plain:
            columns = (self.to_float(frame, v).column for v in (a, b))
            return Value(FLOAT_KIND, (self.binary(op, frame, o.FLOAT, *columns),))
        return Value(FLOAT_KIND, self._doubled(op, frame, self.doubled(frame, a), self.doubled(frame, b)))

    def binary(self, op: int, frame: Frame, how: int, a: Word, b: Word) -> Word:
        """Once for each pair of columns: statements over the same rows often begin with the same product."""
        key = ("binary", op, how, a, b)
        if key not in frame.cache:
            out = self.code.column()
            self.code.emit(op, frame.word, how, a, b, out)
            frame.cache[key] = out
        return frame.cache[key]

    def _doubled(
        self, op: int, frame: Frame, a: tuple[Word, Word], b: tuple[Word, Word]
    ) -> tuple[Word, Word]:
        high, low = self.code.column(), self.code.column()
        self.code.emit(op, frame.word, o.DOUBLED, a[0], b[0], high, a[1], b[1], low)
        return high, low

    # ---- exact sums

    def weighted(self, frame: Frame, a: Value | None, b: Value) -> Value:
        """The product of what is added to an exact sum: integers stay apart from what they multiply."""
        if a is None or (a.kind == INT_KIND and b.kind == INT_KIND):
            return self.multiply(frame, a, b)
        a, b = self.exact(a), self.exact(b)
        weights = (Value(INT_KIND, value.columns[:1]) for value in (a, b))
        weight = self.multiply(frame, *weights).column
        unit = self.exact(self.one()).columns[1:]
        if a.columns[1:] == unit or b.columns[1:] == unit:
            value = b if a.columns[1:] == unit else a
            return replace(value, columns=(weight, *value.columns[1:]))
        factors = (Value(FLOAT_KIND, value.columns[1:]) for value in (a, b))
        return Value(EXACT_KIND, (weight, *self.multiply(frame, *factors).columns))

    def exact(self, value: Value) -> Value:
        """A number as a weight times a doubled float."""
        one, zero = self.code.constant(1), self.code.constant(0)
        if value.kind == INT_KIND:
            return Value(EXACT_KIND, (value.column, self.constant(FLOAT_KIND, 1.0).column, zero))
        if value.kind == FLOAT_KIND:
            return Value(EXACT_KIND, (one, *value.columns, zero)[:3])
        return value

    def exact_sums(self, store: int, slots: Word) -> Value:
        """The exact sums in the slots of a map."""
        return Value(EXACT_KIND, (self.code.constant(1), slots), source=store)

    def rounded_sums(self, frame: Frame, store: int, slots: Word) -> Value:
        """The same as doubled floats."""
        high, low = self.code.column(), self.code.column()
        self.code.work(WORDS_PER_SUM)
        self.code.emit(o.EXACT_LOAD, frame.word, store, slots, high, low, self.code.work(0))
        return Value(FLOAT_KIND, (high, low))

    def add_exact(self, frame: Frame, value: Value, store: int, slots: Word) -> None:
        """Add each value to the exact sum in a slot of a map."""
        value = self.exact(value)
        if value.source >= 0:
            weight, sources = value.columns
            self.code.emit(o.EXACT_MERGE, frame.word, store, slots, weight, value.source, sources)
        else:
            self.code.emit(o.EXACT_ADD, frame.word, store, slots, *value.columns)

    # ---- rings

    def _multiply_rings(self, frame: Frame, a: Value, b: Value) -> Value:
        if a.kind != RING_KIND:
            return self.scale(frame, b, a)
        if b.kind != RING_KIND:
            return self.scale(frame, a, b)
        ring = a.ring
        assert ring is not None
        if a.parts is not None and b.parts is not None:
            factor = self._times_factor(frame, a.columns[0], b.columns[0])
            return Value(RING_KIND, (factor, *a.columns[1:], *b.columns[1:]), ring, a.parts + b.parts)
        if ring.kernel is None:
            return self.python(frame, ring, ring.multiply, a.columns + b.columns, ring.words)
        out: list[Word] = []
        for code, at, words, parameter in ring.kernel.reshape(-1, PART).tolist():
            x, y = a.columns[at : at + words], b.columns[at : at + words]
            out += self._multiply_part(frame, code, parameter, x, y)
        return Value(RING_KIND, tuple(out), ring)

    def _multiply_part(
        self, frame: Frame, code: int, parameter: int, x: tuple[Word, ...], y: tuple[Word, ...]
    ) -> tuple[Word, ...]:
        if code == INTEGER:
            return (self.binary(o.MULTIPLY, frame, o.INT, x[0], y[0]),)
        if code == DECIMAL:
            return (self.binary(o.MULTIPLY_DECIMAL, frame, parameter, x[0], y[0]),)
        if code == FLOAT_PART:
            return self._doubled(o.MULTIPLY, frame, (x[0], x[1]), (y[0], y[1]))
        if code == PLAIN_FLOAT:
            return (self.binary(o.MULTIPLY, frame, o.FLOAT, x[0], y[0]),)
        assert code == COFACTOR
        return self._multiply_cofactors(frame, parameter, x, y)

    def _multiply_cofactors(
        self, frame: Frame, size: int, x: tuple[Word, ...], y: tuple[Word, ...]
    ) -> tuple[Word, ...]:
        """(c, s, Q) * (d, t, R) = (c d, d s + c t, d Q + c R + s t' + t s')."""

        def times(a: Word, b: Word) -> Word:
            return self.binary(o.MULTIPLY, frame, o.FLOAT, a, b)

        def plus(*columns: Word) -> Word:
            total = columns[0]
            for column in columns[1:]:
                total = self.binary(o.ADD, frame, o.FLOAT, total, column)
            return total

        c, d, s, t = x[0], y[0], x[1 : 1 + size], y[1 : 1 + size]
        out = [times(c, d), *(plus(times(d, s[i]), times(c, t[i])) for i in range(size))]
        k = 1 + size
        for i in range(size):
            for j in range(i, size):
                out.append(plus(times(d, x[k]), times(c, y[k]), times(s[i], t[j]), times(t[i], s[j])))
                k += 1
        return tuple(out)

    def scale(self, frame: Frame, element: Value, number: Value) -> Value:
        """An element multiplied by an integer, or by a float where `ring_products` allows it."""
        ring = element.ring
        assert ring is not None
        if element.parts is not None:
            factor = self._times_factor(frame, element.columns[0], self.to_float(frame, number).column)
            return replace(element, columns=(factor, *element.columns[1:]))
        if ring.kernel is None:
            if number.kind == FLOAT_KIND:
                return self._times_float(frame, ring, element, number)

            def scaled(x: Words, times: Words) -> Words:
                return ring.scale(x, np.ascontiguousarray(times[:, 0]))

            return self.python(frame, ring, scaled, (*element.columns, number.column), ring.words)
        out: list[Word] = []
        for code, at, words, _ in ring.kernel.reshape(-1, PART).tolist():
            x = element.columns[at : at + words]
            if code in (INTEGER, DECIMAL):
                out.append(self.binary(o.MULTIPLY, frame, o.INT, x[0], number.column))
            elif code == FLOAT_PART:
                out += self._doubled(o.MULTIPLY, frame, (x[0], x[1]), self.doubled(frame, number))
            else:
                factor = self.to_float(frame, number).column
                out += [self.binary(o.MULTIPLY, frame, o.FLOAT, column, factor) for column in x]
        return Value(RING_KIND, tuple(out), ring)

    def _times_float(self, frame: Frame, ring: Ring, element: Value, number: Value) -> Value:
        def product(x: Words, floats: Words) -> Words:
            return ring.multiply_by_floats(x, np.ascontiguousarray(floats[:, 0]).view(np.float64))

        return self.python(frame, ring, product, (*element.columns, number.column), ring.words)

    # ---- cofactors

    def lifted(self, ring: Ring, first: int, columns: tuple[Word, ...], span: Any) -> Value:
        """lift<first>(x, ..) of columns of floats."""
        if first + len(columns) > ring.most:
            message = f"lift<{first}> of {len(columns)} values exceeds the ring's {ring.most} variables"
            raise DataError(message, span=span)
        part = Factor(LIFTED, tuple(range(first, first + len(columns))))
        return Value(RING_KIND, (self._unit(), *columns), ring, (part,))

    def element(self, ring: Ring, store: int, slots: Word) -> Value:
        """The entries of a map, or of a block, in slots."""
        assert ring.variables is not None
        return Value(RING_KIND, (self._unit(), slots), ring, (Factor(store, ring.variables),))

    def add_elements(
        self, frame: Frame, value: Value, ring: Ring, slots: Word, store: int, is_total: bool = False,
        keeps: bool = False, is_read: bool = True,
    ) -> None:  # fmt: skip
        """Add each value to the element in a slot of a map, or of a block."""
        assert ring.variables is not None
        if value.parts is None:
            value = Value(RING_KIND, (self.to_float(frame, value).column,), ring, ())
        assert value.parts is not None
        target = Target(store, ring.variables, is_total, keeps, is_read)
        write_sum(self.code, frame, value.parts, value.columns, slots, target)

    def nonzero_element(self, frame: Frame, value: Value, out: Word) -> None:
        assert value.parts is not None and value.ring is not None
        variables = tuple(sorted({v for part in value.parts for v in part.variables}))
        block = new_block(self.code, frame, variables)
        self.add_elements(frame, value, value.ring.narrowed(variables), self.own_rows(frame), block)
        self.code.emit(o.BLOCK_NONZERO, frame.word, BLOCK - block, block_words(variables), out)

    def own_rows(self, frame: Frame) -> Word:
        """A column in which each row has its own number."""
        if "own rows" not in frame.cache:
            rows = self.code.column()
            same = self.code.frame(frame, rows)
            self.code.emit(o.FILTER, frame.word, self.code.constant(1), same.word, rows)
            frame.cache["own rows"] = rows
        return frame.cache["own rows"]

    def _add_cofactors(self, frame: Frame, ring: Ring, a: Value, b: Value) -> Value:
        variables = tuple(sorted({v for x in (a, b) for part in x.parts or () for v in part.variables}))
        ring, rows = ring.narrowed(variables), self.own_rows(frame)
        block = new_block(self.code, frame, variables)
        for value in (a, b):
            self.add_elements(frame, value, ring, rows, block)
        return self.element(ring, block, rows)

    def _unit(self) -> Word:
        return self.constant(FLOAT_KIND, 1.0).column

    def _times_factor(self, frame: Frame, a: Word, b: Word) -> Word:
        unit = self._unit()
        if unit in (a, b):
            return b if a is unit else a
        return self.binary(o.MULTIPLY, frame, o.FLOAT, a, b)

    def _add_rings(self, frame: Frame, ring: Ring, a: tuple[Word, ...], b: tuple[Word, ...]) -> Value:
        if ring.kernel is None:
            return self.python(frame, ring, ring.add, a + b, ring.words)
        out: list[Word] = []
        for w, kind in enumerate(word_kinds(ring)):
            if kind == o.DOUBLED:
                out += self._doubled(o.ADD, frame, (a[w], a[w + 1]), (b[w], b[w + 1]))
            elif kind != o.LOW:
                out.append(self.binary(o.ADD, frame, kind, a[w], b[w]))
        return Value(RING_KIND, tuple(out), ring)

    def python(
        self, frame: Frame, ring: Ring, function: Callable[..., Words], columns: tuple[Word, ...], cut: int
    ) -> Value:
        """A function of one or two arrays of shape (rows, words), the second from column `cut` on."""
        out = tuple(self.code.column() for _ in range(ring.words))

        def run(arrays: Callable[[Word], Words]) -> None:
            given = [
                np.stack([arrays(c) for c in part], axis=1) for part in (columns[:cut], columns[cut:]) if part
            ]
            result = function(*given)
            for w, column in enumerate(out):
                arrays(column)[:] = result[:, w]

        self.call(frame, run)
        return Value(RING_KIND, out, ring)

    def call(self, frame: Frame, run: Callable[..., None]) -> None:
        self.code.emit(o.CALL_PYTHON, len(self.calls))
        self.calls.append(PythonCall(frame.word, run))

    def sum_rows(self, frame: Frame, value: Value, rows: Word, out: tuple[Word, ...], ring: Ring) -> None:
        """Add each value to the row of another frame given by `rows`."""
        columns = self.as_ring(frame, value, ring)
        if ring.kernel is None:
            self.call(frame, lambda arrays: _add_at(ring, arrays, columns, rows, out))
            return
        for w, kind in enumerate(word_kinds(ring)):
            if kind == o.DOUBLED:
                self.code.emit(
                    o.ROW_SUM, frame.word, kind, columns[w], rows, out[w], columns[w + 1], out[w + 1]
                )
            elif kind != o.LOW:
                self.code.emit(o.ROW_SUM, frame.word, kind, columns[w], rows, out[w])


def _add_at(
    ring: Ring, arrays: Callable[..., Words], columns: tuple[Word, ...], rows: Word, out: tuple[Word, ...]
) -> None:
    places, sums = segment_sums(ring, np.stack([arrays(c) for c in columns], axis=1), arrays(rows))
    whole = [arrays(c, o.CHUNK) for c in out]
    total = ring.add(np.stack([column[places] for column in whole], axis=1), sums)
    for w, column in enumerate(whole):
        column[places] = total[:, w]


def segment_sums(ring: Ring, elements: Words, groups: Words) -> tuple[Words, Words]:
    """The distinct groups, and the sum of the elements of each.  O(n log n)."""
    order = np.argsort(groups, kind="stable")
    found, starts = np.unique(groups[order], return_index=True)
    return found, ring.sums(elements[order], np.append(starts, len(order)).astype(np.int64))
