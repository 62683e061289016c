"""Owns calls of functors: columns of codes go to a function in Python, and what it returns comes back.

    rows      each distinct row of arguments once, as Python values
    numpy     arrays of int64, float64, bool, datetime64 or objects, a part of the rows at a time
    arrow     Arrow arrays in the same way
    numba     as numpy, by a compiled function

None, a null of Arrow and a masked element of numpy say that there is no value.  A function that fails, or
whose result does not fit the declaration, is a FunctionError that has the arguments of the row.  To find that
row among many, a function on arrays is called again with ever fewer of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.column_functions.columns import Column, Dictionary, Mask, Result, distinct, taken, unless_all
from dlog.column_functions.decimals import widen
from dlog.errors import FunctionError
from dlog.implementations import ARROW, NUMBA, ROWS, Function, fitting
from dlog.jit import Words
from dlog.jit.elementwise import elementwise
from dlog.storage.values import BadValue, decode, encode
from dlog.values import Type
from dlog.values.float import float_values

PART = 1 << 16  # rows: their columns stay in the processor's cache, which doubles the speed of a sum
_SHOWN = 60  # characters of a value in a message

# What was computed: codes, and which rows have one (None: all).
_Computed = tuple[Words, Mask | None]


def call(name: str, inputs: Sequence[Column], output: Type, dictionary: Dictionary) -> Result:
    """The values of a functor.  REQUIRES: columns of one length; the functor is bound."""
    function = dictionary.functions.find(name)
    assert isinstance(function, Function), f"{name} has no implementation"
    type = fitting(dictionary.functions.declared[name], output)
    given = [_narrow(column) for column in inputs]
    by = _by_rows if function.way == ROWS else _by_parts
    codes, defined = by(function, given, type, dictionary)
    if output.is_decimal:
        return widen(codes, Type("decimal", type.scale)), defined
    return Column(codes, output), defined


def _narrow(column: Column) -> Column:
    """Decimals as Arrow has them, other columns as codes."""
    if column.type.is_decimal and isinstance(column.values, np.ndarray):
        return widen(column.codes, column.type)
    return column


# ---- row by row


def _by_rows(function: Function, inputs: list[Column], type: Type, dictionary: Dictionary) -> _Computed:
    if not inputs:
        return _results(function, [()], type, dictionary)
    rows, places = _distinct_rows(inputs)
    columns = [python_values(taken(column, rows), dictionary) for column in inputs]
    codes, defined = _results(function, list(zip(*columns, strict=True)), type, dictionary)
    return codes[places], None if defined is None else unless_all(defined[places])


def _distinct_rows(inputs: list[Column]) -> tuple[Words, Words]:
    """(A row for each distinct combination of arguments, the number of its combination for each row)."""
    values, places = distinct(_keys(inputs[0]))
    for column in inputs[1:]:
        own, more = distinct(_keys(column))
        values, places = distinct(places * len(own) + more)
    first = np.empty(len(values), np.int64)
    first[places[::-1]] = np.arange(len(places) - 1, -1, -1)
    return first, places


def _keys(column: Column) -> Words:
    """Numbers that are equal where the values are."""
    if isinstance(column.values, np.ndarray):
        return column.codes
    encoded = column.values.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def python_values(column: Column, dictionary: Dictionary) -> list[Any]:
    return column.type.python_values(_arrow(column, dictionary))


def _results(
    function: Function, rows: list[tuple[Any, ...]], type: Type, dictionary: Dictionary
) -> _Computed:
    found = [_value(function, row) for row in rows]
    return _encoded(function, found, type, dictionary, lambda index: rows[index])


def _value(function: Function, row: tuple[Any, ...]) -> Any:
    try:
        return function.code(*row)
    except Exception as error:
        raise _raised(function, row, error) from error


# ---- on arrays


def _by_parts(function: Function, inputs: list[Column], type: Type, dictionary: Dictionary) -> _Computed:
    n = len(inputs[0]) if inputs else 1
    code = elementwise(function.code) if function.way == NUMBA else function.code
    codes, masks = np.empty(n, np.int64), list[tuple[int, int, Mask]]()
    for start in range(0, n, PART):
        stop = min(start + PART, n)
        rows = _Rows([_part(column, start, stop) for column in inputs], dictionary)
        found = _called(function, code, rows.arrays(function.way), stop - start, rows)
        codes[start:stop], defined = _encoded(function, found, type, dictionary, rows.values)
        if defined is not None:
            masks.append((start, stop, defined))
    if not masks:
        return codes, None
    every = np.ones(n, np.bool_)
    for start, stop, defined in masks:
        every[start:stop] = defined
    return codes, every


class _Rows:
    """The arguments of a part, as arrays, and as Python values where a message shows them."""

    def __init__(self, inputs: list[Column], dictionary: Dictionary):
        self.inputs, self.dictionary = inputs, dictionary

    def arrays(self, way: str) -> list[Any]:
        return [(_arrow if way == ARROW else numpy_values)(column, self.dictionary) for column in self.inputs]

    def values(self, index: int) -> tuple[Any, ...]:
        rows = np.array([index])
        return tuple(python_values(taken(column, rows), self.dictionary)[0] for column in self.inputs)


def _arrow(column: Column, dictionary: Dictionary) -> pa.Array:
    if isinstance(column.values, np.ndarray):
        return decode(column.codes, column.type, dictionary)
    values = column.values
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def numpy_values(column: Column, dictionary: Dictionary) -> np.ndarray:
    """REQUIRES: nobody writes to it, since it may share the memory of a relation."""
    type = column.type
    if type.name == "int":
        found = column.codes.view()
    elif type.name == "unsigned":
        found = _arrow(column, dictionary).to_numpy(zero_copy_only=False).view()
    elif type.name == "bool":
        found = column.codes != 0
    elif type.kernel == "float":
        found = float_values(column.codes)
    elif type.is_record:
        found = np.empty(len(column), object)
        found[:] = python_values(column, dictionary)
    else:
        found = _arrow(column, dictionary).to_numpy(zero_copy_only=False).view()
    found.flags.writeable = False
    return found


def _slice(array: Any, start: int, stop: int) -> Any:
    return array.slice(start, stop - start) if isinstance(array, pa.Array) else array[start:stop]


def _part(column: Column, start: int, stop: int) -> Column:
    return Column(_slice(column.values, start, stop), column.type)


def _called(function: Function, code: Callable[..., Any], arrays: list[Any], n: int, rows: _Rows) -> Any:
    try:
        found = code(*arrays)
    except Exception as error:
        index = _failing(code, arrays, n)
        raise _raised(function, None if index is None else rows.values(index), error) from error
    column = _as_array(found, bool(arrays))
    if column is None:
        raise _fault(function, rows.values(0), f"returned {shown(found)}, not an array of {n:,} values")
    if len(column) != n:
        message = f"returned {len(column):,} values for {n:,} rows"
        raise _fault(function, rows.values(0), message, "the first row is ")
    return column


def _as_array(found: Any, has_arguments: bool) -> Any:
    """What a function on arrays returned; None if it is no column."""
    if isinstance(found, pa.ChunkedArray):
        return found.combine_chunks()
    if isinstance(found, pa.Array):
        return found
    if isinstance(found, list | np.ndarray):
        return found if np.ndim(found) == 1 or isinstance(found, list) else None
    return None if has_arguments else [found]


def _failing(code: Callable[..., Any], arrays: list[Any], n: int) -> int | None:
    """A row for which a function on arrays fails alone, if there is one.  O(log n) calls."""
    start, stop = 0, n
    while stop - start > 1:
        middle = (start + stop) // 2
        if _fails(code, arrays, start, middle):
            stop = middle
        elif _fails(code, arrays, middle, stop):
            start = middle
        else:
            return None
    return start if n == 1 or _fails(code, arrays, start, stop) else None


def _fails(code: Callable[..., Any], arrays: list[Any], start: int, stop: int) -> bool:
    try:
        code(*(_slice(array, start, stop) for array in arrays))
    except Exception:
        return True
    return False


# ---- results


def _encoded(
    function: Function,
    found: Any,
    type: Type,
    dictionary: Dictionary,
    arguments: Callable[[int], tuple[Any, ...]],
) -> _Computed:
    """The codes of what a function returned.  `arguments` has those of a row."""
    defined = _defined(found, type)
    if defined is not None and not defined.all():
        rows = np.flatnonzero(defined)
        codes = np.zeros(len(defined), np.int64)
        codes[rows], _ = _encoded(function, _at(found, rows), type, dictionary, lambda i: arguments(rows[i]))
        return codes, defined
    try:
        return encode(found, type, dictionary), None
    except BadValue as bad:
        message = f"returned a wrong value: {bad.reason}"
        raise _fault(function, arguments(bad.row), message) from None


def _defined(found: Any, type: Type) -> Mask | None:
    if isinstance(found, pa.Array):
        return found.is_valid().to_numpy(zero_copy_only=False) if found.null_count else None
    if isinstance(found, np.ma.MaskedArray):
        return ~np.ma.getmaskarray(found)
    if isinstance(found, np.ndarray) and found.dtype != object:
        return None
    if type.takes_none:
        return None
    return np.fromiter((value is not None for value in found), np.bool_, len(found))


def _at(found: Any, rows: Words) -> Any:
    if isinstance(found, pa.Array):
        return found.take(pa.array(rows))
    if isinstance(found, np.ma.MaskedArray):
        return found.data[rows]
    return found[rows] if isinstance(found, np.ndarray) else [found[i] for i in rows]


# ---- errors


def _raised(function: Function, row: tuple[Any, ...] | None, error: Exception) -> FunctionError:
    return _fault(function, row, f"raised {type(error).__name__}: {error}")


def _fault(function: Function, row: tuple[Any, ...] | None, message: str, before: str = "") -> FunctionError:
    call = f"@{function.name}" if row is None else f"@{function.name}({', '.join(map(shown, row))})"
    if before:
        return FunctionError(f"@{function.name} {message}", help=f"{before}{call}")
    return FunctionError(f"{call} {message}")


def shown(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    text = f'"{plain}"' if isinstance(plain, str) else repr(plain)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
