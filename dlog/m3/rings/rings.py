"""Owns the rings of M3 map values.  Knows no types: see `registry`.

A payload is a fixed number of 64-bit words, so that maps hold payloads in arrays; columns of elements are
arrays of int64 of shape (n, words), floats as their bits.  Rings of dlog come with code for kernels
(`kernels`); rings of users come as functions on whole columns.

`axioms` tests the laws.  Integers are checked: a sum or product beyond 64 bits is an error, never a
wrong number.  Floats are sums of two floats, 106 bits, so that inserting and deleting rows leaves no
remainder; one float is shown.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np

from dlog.errors import DataError
from dlog.jit import Words
from dlog.m3.rings import kernels as kernels
from dlog.m3.rings.kernels import COFACTOR, DECIMAL, FLOAT, INTEGER, PART, PLAIN_FLOAT

INT_WORD, FLOAT_WORD = "int", "float"
Binary = Callable[[Words, Words], Words]
# From parameters, as in lift<1>, and columns of floats to a column of elements.
Lifting = Callable[[tuple[int, ...], Sequence[np.ndarray]], Words]


@dataclass(frozen=True)
class Ring:
    """`layout` says for each word whether it holds an int or the bits of a float.

    `kernel` describes the ring to `kernels`; it is None for a ring that has functions on columns
    instead.  `encode` makes the words of a value, `decode` the value of words.  `lift` makes elements from
    columns of floats, for `[lift<k>: T](..)`, and `lifts` has those with other names.
    `commutes`: a * b is b * a; otherwise products are computed in the order in which they are written.
    `by_float` multiplies elements by a column of floats, and `sample` gives a random value for the test of
    the laws; both may be missing.
    `variables` are those of a ring of cofactors that its elements have numbers for, of `most` in all.
    """

    name: str
    layout: tuple[str, ...]
    encode: Callable[[Any], Sequence[int | float]]
    decode: Callable[[Sequence[int | float]], Any]
    kernel: Words | None = None
    plus: Binary | None = None
    times: Binary | None = None
    minus: Callable[[Words], Words] | None = None
    one: Any = 1
    lift: Lifting | None = None
    is_exact: bool = True
    commutes: bool = True
    by_float: Callable[[Words, np.ndarray], Words] | None = None
    sample: Callable[[random.Random], Any] | None = None
    lifts: Mapping[str, Lifting] = field(default_factory=dict)
    variables: tuple[int, ...] | None = None
    most: int = 0

    @property
    def words(self) -> int:
        return len(self.layout)

    def check(self) -> None:
        """Each part's words lie after those before it; a ring without code has all functions."""
        if self.kernel is None:
            assert self.plus and self.times and self.minus
            return
        parts = self.kernel.reshape(-1, PART)
        assert parts[:, 1].tolist() == np.cumsum([0, *parts[:-1, 2]]).tolist()
        assert parts[:, 2].sum() == self.words

    def lifting(self, name: str) -> Lifting | None:
        """The function that a call `[name: T](..)` makes elements with."""
        return self.lifts.get(name) or (self.lift if name == "lift" else None)

    def with_lift(self, name: str, lifting: Lifting) -> Ring:
        return replace(self, lifts={**self.lifts, name: lifting})

    def lifts_natively(self, name: str) -> bool:
        """Whether kernels make the elements of `[name: T](..)`."""
        return self.variables is not None and name == "lift" and name not in self.lifts

    @property
    def takes_floats(self) -> bool:
        """Whether elements can be multiplied by floats."""
        if self.kernel is None:
            return self.by_float is not None
        return not {INTEGER, DECIMAL} & set(self.kernel.reshape(-1, PART)[:, 0].tolist())

    def narrowed(self, variables: tuple[int, ...]) -> Ring:
        """The ring of those of its elements that have no other variables.  REQUIRES: a ring of cofactors."""
        return replace(cofactor_ring(self.most, variables), lifts=self.lifts)

    # Columns of elements

    def elements(self, *columns: Any) -> Words:
        """Elements from one column of numbers for each word; a single number stands for a column of it.

        >>> FLOAT_RING.values(FLOAT_RING.elements(np.array([1.5, 2.0]), 0))
        [1.5, 2.0]
        """
        shaped = np.broadcast_arrays(*columns)
        out = self.zeros(len(shaped[0]))
        for k, (column, kind) in enumerate(zip(shaped, self.layout, strict=True)):
            out[:, k] = column.astype(np.float64).view(np.int64) if kind == FLOAT_WORD else column
        return out

    def zeros(self, n: int) -> Words:
        return np.zeros((n, self.words), np.int64)

    def ones(self, n: int) -> Words:
        return np.repeat(self.column([self.one]), n, axis=0)

    def column(self, values: Sequence[Any]) -> Words:
        """The elements of values.  O(n) in Python: for constants, results and tests."""
        out = self.zeros(len(values))
        for row, value in zip(out, values, strict=True):
            for k, (word, kind) in enumerate(zip(self.encode(value), self.layout, strict=True)):
                row[k] = np.float64(word).view(np.int64) if kind == FLOAT_WORD else word
        return out

    def values(self, column: Words) -> list[Any]:
        floats = np.ascontiguousarray(column).view(np.float64)
        return [
            self.decode([f.item() if kind == FLOAT_WORD else w.item()
                         for w, f, kind in zip(row, reals, self.layout, strict=True)])
            for row, reals in zip(column, floats, strict=True)
        ]  # fmt: skip

    def add(self, x: Words, y: Words) -> Words:
        if self.kernel is None:
            assert self.plus is not None
            return self.plus(x, y)
        out = np.ascontiguousarray(x).copy()
        y = np.ascontiguousarray(y)
        self._fine(kernels.add_columns(self.kernel, self.words, _flat(out), _flat(y), len(out)))
        return out

    def multiply(self, x: Words, y: Words) -> Words:
        if self.kernel is None:
            assert self.times is not None
            return self.times(x, y)
        x, y, out = np.ascontiguousarray(x), np.ascontiguousarray(y), self.zeros(len(x))
        failed = kernels.multiply_columns(self.kernel, self.words, _flat(x), _flat(y), len(x), _flat(out))
        self._fine(failed)
        return out

    def negate(self, x: Words) -> Words:
        if self.kernel is None:
            assert self.minus is not None
            return self.minus(x)
        out = np.ascontiguousarray(x).copy()
        self._fine(kernels.negate_columns(self.kernel, self.words, _flat(out), len(out)))
        return out

    def scale(self, x: Words, times: Words) -> Words:
        """Each element as often as `times` says."""
        if self.kernel is None:
            return self._scaled(x, np.asarray(times, np.int64))
        out = np.ascontiguousarray(x).copy()
        times = np.ascontiguousarray(times, np.int64)
        self._fine(kernels.scale_columns(self.kernel, self.words, _flat(out), times, len(out)))
        return out

    def multiply_by_floats(self, x: Words, numbers: np.ndarray) -> Words:
        """Each element times a float.  REQUIRES: `takes_floats`."""
        if self.kernel is None:
            assert self.by_float is not None
            return self.by_float(x, numbers)
        factors = self.zeros(len(x))  # the number in the first word of each part stands for itself
        factors[:, self.kernel.reshape(-1, PART)[:, 1]] = np.asarray(numbers, float).view(np.int64)[:, None]
        return self.multiply(x, factors)

    def is_zero(self, x: Words) -> np.ndarray:
        if self.kernel is None:
            floats = np.array([kind == FLOAT_WORD for kind in self.layout])
            words = np.ascontiguousarray(x)
            return np.where(floats, words.view(np.float64) == 0, words == 0).all(axis=1)
        out = np.zeros(len(x), np.bool_)
        kernels.zero_columns(self.kernel, self.words, _flat(np.ascontiguousarray(x)), len(x), out)
        return out

    def sums(self, x: Words, bounds: Words) -> Words:
        """The sum of x[bounds[i]:bounds[i + 1]] for each i.  O(n); for a ring without code, O(n log n)."""
        out = self.zeros(max(len(bounds) - 1, 0))
        if self.kernel is None:
            return self._segments(x, bounds, out)
        x = np.ascontiguousarray(x)
        failed = kernels.sum_segments(self.kernel, self.words, _flat(x), bounds, len(out), _flat(out))
        self._fine(failed)
        return out

    def _scaled(self, x: Words, times: Words) -> Words:
        """By doubling: one addition of columns for each bit."""
        out, power = self.zeros(len(x)), np.where((times < 0)[:, None], self.negate(x), x)
        left = np.abs(times)
        if (left == 1).all():
            return power
        while left.any():
            odd = left & 1 == 1
            out[odd] = self.add(out[odd], power[odd])
            left >>= 1
            more = left > 0  # no element is doubled further than needed: it might be out of range
            power[more] = self.add(power[more], power[more])
        return out

    def _segments(self, x: Words, bounds: Words, out: Words) -> Words:
        """By halving all segments at once: each round adds the second half of each to its first."""
        x, starts, sizes = x.copy(), np.asarray(bounds[:-1]), np.diff(bounds)
        while (sizes > 1).any():
            halves = (sizes + 1) // 2
            rest = sizes - halves
            segments = np.repeat(np.arange(len(rest)), rest)
            offset = np.arange(rest.sum()) - np.repeat(np.cumsum(rest) - rest, rest)
            first = starts[segments] + offset
            x[first] = self.add(x[first], x[first + halves[segments]])
            sizes = halves
        out[sizes == 1] = x[starts[sizes == 1]]
        return out

    def _fine(self, failed: int) -> None:
        if failed >= 0:
            raise DataError(f"a value is out of range for the ring {self.name}")


def _flat(x: Words) -> Words:
    return x.reshape(-1)


# Rings of dlog


def _part(code: int, words: int, parameter: int = 0) -> Words:
    return np.array([code, 0, words, parameter], np.int64)


def _whole(source: random.Random) -> int:
    return source.randint(-9, 9)


def _real(source: random.Random) -> float:
    return source.uniform(-9, 9)


INTEGER_RING = Ring("integer", (INT_WORD,), lambda v: (v,), lambda w: w[0], _part(INTEGER, 1), sample=_whole)
FLOAT_RING = Ring(
    "float", (FLOAT_WORD, FLOAT_WORD), lambda v: (float(v), 0.0), lambda w: w[0] + w[1], _part(FLOAT, 2),
    one=1.0, is_exact=False, sample=_real,
)  # fmt: skip
PLAIN_FLOAT_RING = Ring(
    "plain float", (FLOAT_WORD,), lambda v: (float(v),), lambda w: w[0], _part(PLAIN_FLOAT, 1),
    one=1.0, is_exact=False, sample=_real,
)  # fmt: skip


def decimal_ring(scale: int) -> Ring:
    """Decimals with `scale` digits after the point, in 64 bits; a product with more digits is an error.

    >>> cents = decimal_ring(2)
    >>> cents.values(cents.multiply(cents.column([Decimal("1.5")]), cents.column([Decimal("2.5")])))
    [Decimal('3.75')]
    """
    unit = 10**scale

    def encode(value: Any) -> tuple[int]:
        exact = Decimal(value) * unit
        if exact != int(exact):
            raise DataError(f"{value} has more than {scale} digits after the point")
        return (int(exact),)

    return Ring(
        f"decimal({scale})", (INT_WORD,), encode, lambda w: Decimal(w[0]) / unit,
        _part(DECIMAL, 1, unit), one=Decimal(1), sample=_whole,
    )  # fmt: skip


def product_ring(*rings: Ring) -> Ring:
    """Tuples that add and multiply part by part: several aggregates maintained together.

    >>> both = product_ring(INTEGER_RING, FLOAT_RING)          # count and sum
    >>> both.values(both.add(both.column([(1, 2.5)]), both.column([(1, 0.5)])))
    [(2, 3.0)]
    """
    bounds = np.cumsum([0, *(ring.words for ring in rings)]).tolist()

    def encode(value: Any) -> list[int | float]:
        return [word for ring, part in zip(rings, value, strict=True) for word in ring.encode(part)]

    def decode(words: Sequence[int | float]) -> tuple[Any, ...]:
        return tuple(
            ring.decode(words[start:end])
            for ring, start, end in zip(rings, bounds[:-1], bounds[1:], strict=True)
        )

    layout = tuple(kind for ring in rings for kind in ring.layout)
    result = Ring(
        f"({' x '.join(ring.name for ring in rings)})", layout, encode, decode,
        one=tuple(ring.one for ring in rings), is_exact=all(ring.is_exact for ring in rings),
        commutes=all(ring.commutes for ring in rings), sample=_sample_of_each(rings),
    )  # fmt: skip
    if all(ring.kernel is not None for ring in rings):
        return replace(result, kernel=_joined(rings, bounds))
    cuts = list(zip(rings, bounds[:-1], bounds[1:], strict=True))

    def by_float(x: Words, numbers: np.ndarray) -> Words:
        return np.hstack([r.multiply_by_floats(x[:, a:b], numbers) for r, a, b in cuts])

    return replace(
        result,
        by_float=by_float if all(ring.takes_floats for ring in rings) else None,
        plus=lambda x, y: np.hstack([r.add(x[:, a:b], y[:, a:b]) for r, a, b in cuts]),
        times=lambda x, y: np.hstack([r.multiply(x[:, a:b], y[:, a:b]) for r, a, b in cuts]),
        minus=lambda x: np.hstack([r.negate(x[:, a:b]) for r, a, b in cuts]),
    )


def _sample_of_each(rings: Sequence[Ring]) -> Callable[[random.Random], Any] | None:
    samples = [ring.sample for ring in rings if ring.sample is not None]
    return (lambda source: tuple(s(source) for s in samples)) if len(samples) == len(rings) else None


def _joined(rings: Sequence[Ring], bounds: Sequence[int]) -> Words:
    parts = []
    for ring, start in zip(rings, bounds, strict=False):
        assert ring.kernel is not None
        moved = ring.kernel.reshape(-1, PART).copy()
        moved[:, 1] += start
        parts.append(moved)
    return np.concatenate(parts).reshape(-1)


def cofactor_ring(size: int, variables: tuple[int, ...] | None = None) -> Ring:
    """Count, sums and sums of products of `size` variables: what a linear regression needs, in one ring.

    An element is (count, [sums], [[sums of products]]); lift<k>(x, ..) is that of variables k, k + 1, ..
    If only some `variables` are not 0, the others take no words.

    >>> ring = cofactor_ring(2)
    >>> a, b = ring.lift((0,), [np.array([2.0])]), ring.lift((1,), [np.array([3.0])])
    >>> ring.values(ring.multiply(a, b))
    [(1.0, [2.0, 3.0], [[4.0, 6.0], [6.0, 9.0]])]
    """
    variables = tuple(range(size)) if variables is None else variables
    n = len(variables)
    triangle = np.triu_indices(n)
    rows, columns = (np.array(variables, int)[places] for places in triangle)
    words = 1 + n + len(rows)

    def encode(value: Any) -> list[float]:
        count, sums, products = value
        return [
            float(count),
            *(float(sums[v]) for v in variables),
            *(float(products[i][j]) for i, j in zip(rows, columns, strict=True)),
        ]

    def decode(w: Sequence[int | float]) -> tuple[Any, ...]:
        sums, square = np.zeros(size), np.zeros((size, size))
        sums[list(variables)] = w[1 : 1 + n]
        square[rows, columns] = square[columns, rows] = w[1 + n :]
        return w[0], sums.tolist(), square.tolist()

    def lift(parameters: tuple[int, ...], values: Sequence[np.ndarray]) -> Words:
        first = parameters[0] if parameters else 0
        if first + len(values) > size:
            raise DataError(f"lift<{first}> of {len(values)} values exceeds the ring's {size} variables")
        length = len(values[0]) if values else 1
        out = np.zeros((length, words))
        out[:, 0] = 1.0
        full = np.zeros((length, size))
        for k, column in enumerate(values):
            full[:, first + k] = column
        out[:, 1 : 1 + n] = full[:, list(variables)]
        out[:, 1 + n :] = full[:, rows] * full[:, columns]
        return out.view(np.int64)

    def sample(source: random.Random) -> Any:
        square = np.zeros((size, size))
        square[rows, columns] = square[columns, rows] = [_real(source) for _ in rows]
        sums = [_real(source) if v in variables else 0.0 for v in range(size)]
        return _real(source), sums, square.tolist()

    zero = [0.0] * size
    return Ring(
        f"cofactor({size})", (FLOAT_WORD,) * words, encode, decode, _part(COFACTOR, words, n),
        one=(1.0, zero, [zero] * size), lift=lift, is_exact=False, sample=sample, variables=variables,
        most=size,
    )  # fmt: skip
