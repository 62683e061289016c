"""Owns arrays of int64 codes as bytes: each in as few bytes a value as its range needs.

A packed array is a header (how many bytes a value, whether differences are stored, the least value, how many)
and its values minus the least one.  For a sorted array, such as the first column of a predicate, the
differences of neighbours are stored if these are smaller.  O(n), at the speed of memory.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from dlog.jit import Words

_HEADER = struct.Struct("<BBqQ")  # bytes a value, 1 for differences, the least value, values
_WIDTHS = (0, 1, 2, 4, 8)
_TYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype("<u1"),
    2: np.dtype("<u2"),
    4: np.dtype("<u4"),
    8: np.dtype("<u8"),
}


def pack(values: Words) -> list[bytes]:
    """Parts that follow each other.

    >>> data = b"".join(pack(np.array([7, 300, 9])))
    >>> len(data), unpack(memoryview(data), 0)[0].tolist()
    (24, [7, 300, 9])
    """
    n = len(values)
    if n < 2:
        return [_HEADER.pack(8, 0, 0, n), np.ascontiguousarray(values, "<i8").tobytes()]
    least, greatest = int(values.min()), int(values.max())
    width = _width(greatest - least)
    if width > 1 and greatest - least < 1 << 63 and bool((values[1:] >= values[:-1]).all()):
        steps = np.diff(values, prepend=values[:1])
        narrower = _width(int(steps.max()))
        if narrower < width:
            return [_HEADER.pack(narrower, 1, least, n), _narrow(steps, narrower)]
    return [_HEADER.pack(width, 0, least, n), _narrow(values - np.int64(least) if least else values, width)]


def unpack(data: memoryview, at: int) -> tuple[Words, int]:
    """(Values, the offset after them)."""
    width, stepwise, least, n = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    end = at + width * n
    if width == 0:
        return np.full(n, least, np.int64), end
    values = np.frombuffer(data, _TYPES[width], n, at).astype(np.int64)
    if stepwise:
        values[0] = least
        np.cumsum(values, out=values)
    elif least:
        values += np.int64(least)
    return values, end


def _width(spread: int) -> int:
    """Bytes for a value between 0 and the spread."""
    return next(w for w in _WIDTHS if spread < 1 << (8 * w))


def _narrow(values: Words, width: int) -> bytes:
    return b"" if width == 0 else values.astype(_TYPES[width]).tobytes()
