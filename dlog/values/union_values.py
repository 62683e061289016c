"""Owns Arrow columns with unions as Python values: pyarrow leaves out which member of a union a value is."""

from __future__ import annotations

from typing import Any

from dlog.values.heavy import np, pa


def values_of(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """As `to_pylist`, but a value of a union is `{member: value}`."""
    if not _has_union(column.type):
        return list(column.to_pylist())
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [value for chunk in chunks for value in _values(chunk)]


def _has_union(type: pa.DataType) -> bool:
    if pa.types.is_union(type):
        return True
    return pa.types.is_struct(type) and any(_has_union(field.type) for field in type)


def _values(array: pa.Array) -> list[Any]:
    if pa.types.is_union(array.type):
        return _members(array)
    if not _has_union(array.type):
        return list(array.to_pylist())
    names = [field.name for field in array.type]
    columns = [_values(array.field(i)) for i in range(len(names))]
    rows = zip(*columns, strict=True)
    return [
        dict(zip(names, row, strict=True)) if valid else None
        for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)
    ]


def _members(array: pa.UnionArray) -> list[Any]:
    number = {code: i for i, code in enumerate(array.type.type_codes)}
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    members = [_values(array.field(i)) for i in range(len(names))]
    dense = array.type.mode == "dense"
    places = _words(array, 2, "int32") if dense else range(len(array))
    return [
        {names[number[code]]: members[number[code]][place]}
        for code, place in zip(_words(array, 1, "int8"), places, strict=True)
    ]


def _words(array: pa.UnionArray, buffer: int, kind: str) -> list[int]:
    """Its codes or offsets.  pyarrow's properties of these names forget that an array is a slice."""
    words = np.frombuffer(array.buffers()[buffer], kind)
    return list(words[array.offset : array.offset + len(array)].tolist())
