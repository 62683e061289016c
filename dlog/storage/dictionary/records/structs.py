"""Owns records as Arrow columns of structs, field by field.  A type that mentions itself has no finite struct
type: its values stay texts, also inside other records (see `dlog.values.record`).

    [from: Pair, length: float]                   struct<from: struct<..>, length: double>; `nil` is null
    Circle {r: float} | Point {}                  struct<branch: string, Circle: struct<r: double>>
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dlog.jit import Words
from dlog.values import RecordType, Type


def record_structs(codes: Words, type: RecordType, dictionary: Any) -> pa.Array:
    """The value of each code.  O(values * fields), and the length of texts."""
    if not type.has_structs:
        return type.decode(codes, dictionary)
    if not type.is_adt:
        return _fields(codes, type, 0, dictionary)
    branches = [c.name for c in type.constructors]
    arrays = [pa.array(branches, pa.string()).take(pa.array(_numbers(codes, type, dictionary)))]
    names = [type.tag]
    for number, constructor in enumerate(type.constructors):
        if constructor.fields:
            arrays.append(_fields(codes, type, number, dictionary))
            names.append(constructor.name)
    return pa.StructArray.from_arrays(arrays, names=names)


def _numbers(codes: Words, type: RecordType, dictionary: Any) -> Words:
    """Which constructor made each value; the code of one without fields is its number."""
    numbers = codes.copy()
    for number, constructor in enumerate(type.constructors):
        if constructor.fields:
            numbers[dictionary.records.field(codes, number, 0)[1]] = number
    return numbers


def _fields(codes: Words, type: RecordType, number: int, dictionary: Any) -> pa.Array:
    """What one constructor made as structs, null elsewhere."""
    arrays, made = [], np.zeros(len(codes), np.bool_)
    for index, (_, of) in enumerate(type.constructors[number].fields):
        words, made = dictionary.records.field(codes, number, index)
        values = _values(words[made], of, dictionary)
        arrays.append(values.take(pa.array(np.cumsum(made) - 1, mask=~made)))
    names = [name for name, _ in type.constructors[number].fields]
    return pa.StructArray.from_arrays(arrays, names=names, mask=pa.array(~made))


def _values(codes: Words, type: Type, dictionary: Any) -> pa.Array:
    if isinstance(type, RecordType):
        return record_structs(codes, type, dictionary)
    return type.decode(codes, dictionary)
