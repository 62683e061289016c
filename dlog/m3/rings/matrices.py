"""Owns rings of square matrices, whose products depend on their order.  Knows no maps and no queries.

An element is the entries of a matrix, row by row; each is an element of another ring, so that integers are
checked, and floats leave no remainder when rows are deleted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlog.errors import DataError, DlogError
from dlog.jit import Words
from dlog.m3.rings.rings import FLOAT_RING, INT_WORD, INTEGER_RING, Ring
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.types.typing import FLOATS, INTEGERS

EXACT = 2.0**53  # lifting functions get floats: greater ones may not be the integers that they were


def matrix_ring(size: int, entries: Ring = FLOAT_RING) -> Ring:
    """Matrices of `size` rows and columns.  `lift(a, b, ..)` is the matrix of these entries, row by row.

    >>> ring = matrix_ring(2, INTEGER_RING)
    >>> a, b = ring.column([[[1, 2], [3, 4]]]), ring.column([[[0, 1], [1, 0]]])
    >>> ring.values(ring.multiply(a, b)), ring.values(ring.multiply(b, a))
    ([[[2, 1], [4, 3]]], [[[3, 4], [1, 2]]])
    """
    cells, w = size * size, entries.words

    def encode(value: Any) -> list[int | float]:
        rows = [list(row) for row in value]
        if [len(row) for row in rows] != [size] * size:
            raise DataError(f"{value} is not a matrix of {size} rows and columns")
        return [word for row in rows for entry in row for word in entries.encode(entry)]

    def decode(words: Sequence[int | float]) -> list[list[Any]]:
        found = [entries.decode(words[k * w : (k + 1) * w]) for k in range(cells)]
        return [found[i * size : (i + 1) * size] for i in range(size)]

    def each(function: Callable[..., Words]) -> Callable[..., Words]:
        """Entry by entry."""
        return lambda *x: function(*(one.reshape(-1, w) for one in x)).reshape(-1, cells * w)

    def times(x: Words, y: Words) -> Words:
        x, y = x.reshape(-1, size, size, w), y.reshape(-1, size, size, w)
        total = None
        for k in range(size):
            pair = np.broadcast_arrays(x[:, :, k : k + 1], y[:, k : k + 1, :])
            part = entries.multiply(*(np.ascontiguousarray(one).reshape(-1, w) for one in pair))
            total = part if total is None else entries.add(total, part)
        assert total is not None
        return total.reshape(-1, cells * w)

    def by_float(x: Words, numbers: np.ndarray) -> Words:
        found = entries.multiply_by_floats(x.reshape(-1, w), np.repeat(numbers, cells))
        return found.reshape(-1, cells * w)

    def lift(_: tuple[int, ...], values: Sequence[np.ndarray]) -> Words:
        if len(values) != cells:
            raise DataError(f"lift of a matrix with {size} rows takes {cells} values, not {len(values)}")
        return np.hstack([_entry(entries, column) for column in values])

    def sample(source: random.Random) -> list[list[Any]]:
        assert entries.sample is not None
        return [[entries.sample(source) for _ in range(size)] for _ in range(size)]

    zero = entries.decode([0] * w)
    return Ring(
        f"{size} x {size} matrices of {entries.name}", entries.layout * cells, encode, decode,
        plus=each(entries.add), times=times, minus=each(entries.negate),
        one=[[entries.one if i == j else zero for j in range(size)] for i in range(size)],
        lift=lift, is_exact=entries.is_exact, commutes=size == 1 and entries.commutes,
        by_float=by_float if entries.takes_floats else None,
        sample=sample if entries.sample is not None else None,
    )  # fmt: skip


def _entry(entries: Ring, column: np.ndarray) -> Words:
    """A column of floats as entries: numbers, or what lifts them into another ring."""
    if entries.lift is not None:
        return entries.lift((), [column])
    if entries.layout == (INT_WORD,):
        if not (np.abs(column) <= EXACT).all() or (column != np.floor(column)).any():
            raise DataError(f"an entry of a matrix of {entries.name} is not an integer up to 2^53")
        return entries.multiply(entries.ones(len(column)), entries.elements(column.astype(np.int64)))
    return entries.multiply_by_floats(entries.ones(len(column)), column)


def matrix_ring_of(types: Sequence[TypeRef]) -> Ring:
    """`RingMatrix<2, long>`: two rows and columns of integers; without a type, of doubles."""
    found = {type_.params for type_ in types}
    first, *others = types
    if len(found) > 1:
        other = next(t for t in others if t.params != first.params)
        raise DlogError(f"{first} and {other} are different rings", span=other.span)
    size = first.params[0] if first.params else None
    kind = first.params[1] if len(first.params) > 1 else TypeRef("double")
    if not isinstance(size, int) or size < 1 or not isinstance(kind, TypeRef) or len(first.params) > 2:
        raise DlogError(f"{first} has no ring", span=first.span, help="RingMatrix<2, long>: rows, and a type")
    if kind.name not in (*INTEGERS, *FLOATS):
        help = f"{', '.join((*INTEGERS, *FLOATS))}"
        raise DlogError(f"matrices of {kind} are not a ring", span=first.span, help=help)
    return matrix_ring(size, INTEGER_RING if kind.name in INTEGERS else FLOAT_RING)
