"""Owns columns of values as int64 codes and back.  Knows nothing of files, relations or the types themselves:
each type in `dlog.values` has its own coding.

Codes keep the order of values (`code(a) < code(b)` exactly when `a < b`) for every type but string, whose
codes are those of the `Dictionary`.  A value that does not fit its type is a `BadValue`, which says in which
row it is and why.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.jit import Words
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.index.sort import as_words
from dlog.values import Type
from dlog.values.float import float_code, float_codes, float_values
from dlog.values.misfit import BadValue, is_not

__all__ = [
    "BadValue",
    "arrow_type",
    "decode",
    "decode_value",
    "encode",
    "encode_value",
    "float_code",
    "float_codes",
    "float_values",
]


def arrow_type(type: Type) -> pa.DataType:
    """The Arrow type of decoded columns."""
    return type.arrow()


def encode(values: Any, type: Type, dictionary: Dictionary) -> Words:
    """The codes of an Arrow array, a numpy array or a sequence of Python values.

    No Python call for each value unless a sequence mixes types.  An int64 Arrow array is not copied, so the
    result must not be written to.
    """
    if isinstance(values, list) and (own := type.encode_python(values, dictionary)) is not None:
        return own
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    if not isinstance(values, pa.Array):
        values = _as_arrow(values)
        if isinstance(values, list):
            return np.array([_encode_in_row(i, v, type, dictionary) for i, v in enumerate(values)], np.int64)
    if values.null_count:
        raise BadValue(int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))), "there is no value")
    if len(values) == 0:
        return np.empty(0, np.int64)
    return as_words(type.encode(values, dictionary))


def decode(codes: Words, type: Type, dictionary: Dictionary) -> pa.Array:
    """The values of codes, as an Arrow array of `arrow_type`.  An int column shares the codes' memory."""
    return type.decode(as_words(codes), dictionary)


def encode_value(value: Any, type: Type, dictionary: Dictionary) -> int:
    """The code of one Python value."""
    own = type.encode_python([value], dictionary)
    if own is not None:
        return int(own[0])
    try:
        return int(encode(_uniform([_plain(value)]), type, dictionary)[0])
    except (pa.ArrowException, OverflowError, TypeError):
        raise BadValue(0, is_not(value, type)) from None


def decode_value(code: int, type: Type, dictionary: Dictionary) -> Any:
    """The Python value of one code."""
    return type.python_values(decode(np.array([code], np.int64), type, dictionary))[0]


def _as_arrow(values: Any) -> pa.Array | list[Any]:
    """An Arrow array of the type that the values have; the values when they are of several."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return pa.array(np.ascontiguousarray(values))
    values = list(values)
    try:
        return _uniform(values) if _are_alike(values) else values
    except (pa.ArrowException, OverflowError, TypeError):
        return values


def _are_alike(values: list[Any]) -> bool:
    """Beside others of another kind Arrow would take True for 1, cut the time off datetimes, and take times
    without a zone for times of UTC."""
    classes = {v.__class__ for v in values}
    return len(classes) == 1 and (
        not issubclass(next(iter(classes)), dt.datetime) or len({v.tzinfo is None for v in values}) == 1
    )


def _uniform(values: list[Any]) -> pa.Array:
    """An Arrow array of values of one Python type; integers beyond int64 are unsigned."""
    try:
        return pa.array(values)
    except OverflowError:
        return pa.array(values, pa.uint64())


def _encode_in_row(row: int, value: Any, type: Type, dictionary: Dictionary) -> int:
    try:
        return encode_value(value, type, dictionary)
    except BadValue as bad:
        raise BadValue(row, bad.reason) from None


def _plain(value: Any) -> Any:
    """numpy scalars as Python values."""
    return value.item() if isinstance(value, np.generic) else value
