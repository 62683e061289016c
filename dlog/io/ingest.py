"""Owns turning Python data into exact typed tables: rows, Arrow tables, pandas and polars frames, numpy
arrays, mappings of columns.

A value that does not fit is a `DataError` that names its row (from 0, as Python counts), its column and the
reason.  pandas and polars are never imported here: their frames are recognised by their methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from dlog.errors import DataError
from dlog.io.columns import Columns, arrow_schema, empty_table, nullary_table
from dlog.io.exact import WrongKind, exact_column
from dlog.values.arrows import column_of_values

CHUNK_ROWS = 1 << 16


def to_arrow(data: Any, columns: Columns, relation: str = "") -> pa.Table:
    """The data as a table of exactly these columns.

    Columns with names are matched by name if all are present, otherwise by position.  Data of the right
    type is not copied; rows cost about 0.3 microseconds a value.

    >>> from dlog.values import INT, STRING
    >>> to_arrow([(1, "a"), (2, "b")], [("x", INT), ("s", STRING)]).to_pylist()
    [{'x': 1, 's': 'a'}, {'x': 2, 's': 'b'}]
    """
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return _from_table(data, columns, relation)
    if isinstance(data, np.ndarray):
        return _from_numpy(data, columns, relation)
    if isinstance(data, Mapping):
        return _from_columns({str(name): values for name, values in data.items()}, columns, relation)
    if type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "columns"):
        return _from_pandas(data, columns, relation)
    if hasattr(data, "__arrow_c_stream__"):  # polars frames, DuckDB relations and others
        return _from_table(pa.table(data), columns, relation)
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise DataError(f"{_of(relation)}rows expected, not {type(data).__name__}")
    return _from_rows(data, columns, relation)


def _of(relation: str) -> str:
    return f"{relation}: " if relation else ""


def _misfit(relation: str, row: int, name: str, reason: str) -> DataError:
    return DataError(f"{_of(relation)}row {row}, column {name}: {reason}")


def _check_width(found: int, columns: Columns, relation: str, row: int | None = None) -> None:
    if found != len(columns):
        where = "" if row is None else f"row {row}: "
        expected = f"{len(columns)} column{'' if len(columns) == 1 else 's'}"
        raise DataError(f"{_of(relation)}{where}expected {expected}, found {found}")


def _from_table(table: pa.Table, columns: Columns, relation: str) -> pa.Table:
    if not columns:
        _check_width(table.num_columns, columns, relation)
        return nullary_table(table.num_rows)
    names = table.column_names
    if all(names.count(name) == 1 for name, _ in columns):
        table = table.select([name for name, _ in columns])
    _check_width(table.num_columns, columns, relation)
    exact = [
        _exact(column, name, type, relation)
        for column, (name, type) in zip(table.columns, columns, strict=True)
    ]
    return pa.Table.from_arrays(exact, names=[name for name, _ in columns])


def _exact(column: pa.ChunkedArray, name: str, type: Any, relation: str) -> pa.ChunkedArray:
    try:
        exact = exact_column(column, type)
    except WrongKind as problem:
        raise DataError(f"{_of(relation)}column {name} {problem}") from None
    if len(exact.bad):
        row = int(exact.bad[0])
        raise _misfit(relation, row, name, exact.reason(row))
    return exact.column


def _from_columns(data: Mapping[str, Any], columns: Columns, relation: str) -> pa.Table:
    """Named columns, each an array or a sequence of values."""
    by_name = all(name in data for name, _ in columns)
    chosen = [data[name] for name, _ in columns] if by_name else list(data.values())
    _check_width(len(chosen), columns, relation)
    arrays = [
        _column(values, name, type, relation) for values, (name, type) in zip(chosen, columns, strict=True)
    ]
    if len({len(array) for array in arrays}) > 1:
        raise DataError(f"{_of(relation)}columns of different lengths")
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns]) if arrays else nullary_table(0)


def _column(values: Any, name: str, type: Any, relation: str) -> pa.ChunkedArray:
    """One column of anything; numbers of numpy and pandas are taken unchanged, NaN included."""
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype):
        values = np.asarray(values)
        if values.ndim != 1:
            raise DataError(f"{_of(relation)}column {name} has {values.ndim} dimensions")
        if dtype.kind in "biuf" or (dtype.kind in "mM" and _seconds_or_known(dtype)):
            return _exact(pa.chunked_array([_from_numpy_column(values)]), name, type, relation)
        values = list(values) if dtype.kind in "mM" else values.tolist()
    elif isinstance(values, pa.Array | pa.ChunkedArray) or hasattr(values, "__arrow_array__"):
        array = values if isinstance(values, pa.ChunkedArray) else pa.array(values)
        chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        return _exact(chunked, name, type, relation)
    elif hasattr(values, "__arrow_c_stream__"):  # a column of polars, or of pandas with its own types
        return _exact(pa.chunked_array(values), name, type, relation)
    elif hasattr(dtype, "__from_arrow__"):  # the same for an older pandas
        return _column(pa.array(values, from_pandas=True), name, type, relation)
    return pa.chunked_array([_typed(list(values), name, type, relation, 0)])


# Units of numpy's times that Arrow has, and those that are whole seconds.  Months and years have no fixed
# length; other units are finer than nanoseconds.
_ARROW_UNITS = {"M": ("D", "s", "ms", "us", "ns"), "m": ("s", "ms", "us", "ns")}
_WHOLE_SECONDS = {"M": ("Y", "M", "W", "h", "m"), "m": ("W", "D", "h", "m")}


def _seconds_or_known(dtype: np.dtype) -> bool:
    unit, multiple = np.datetime_data(dtype)
    return multiple == 1 and unit in (*_ARROW_UNITS[dtype.kind], *_WHOLE_SECONDS[dtype.kind])


def _from_numpy_column(values: np.ndarray) -> pa.Array:
    kind = values.dtype.kind
    if kind in "mM" and np.datetime_data(values.dtype)[0] not in _ARROW_UNITS[kind]:
        values = values.astype("datetime64[s]" if kind == "M" else "timedelta64[s]")  # NaT stays a null
    return pa.array(np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False)))


def _from_pandas(frame: Any, columns: Columns, relation: str) -> pa.Table:
    if len(set(frame.columns)) < len(frame.columns):
        named = {str(place): frame.iloc[:, place] for place in range(len(frame.columns))}
    else:
        named = {str(name): frame[name] for name in frame.columns}
    if not columns:
        _check_width(len(named), columns, relation)
        return nullary_table(len(frame))
    return _from_columns(named, columns, relation)


def _from_numpy(array: np.ndarray, columns: Columns, relation: str) -> pa.Table:
    """Two dimensions are rows of columns; one dimension is a column; fields are columns by name."""
    if array.dtype.names is not None:
        return _from_columns({name: array[name] for name in array.dtype.names}, columns, relation)
    if array.ndim == 1 and len(columns) == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise DataError(f"{_of(relation)}an array of 2 dimensions expected, not {array.ndim}")
    _check_width(array.shape[1], columns, relation)
    if not columns:
        return nullary_table(array.shape[0])
    return _from_columns({name: array[:, i] for i, (name, _) in enumerate(columns)}, columns, relation)


def _from_rows(rows: Iterable[Any], columns: Columns, relation: str) -> pa.Table:
    """Chunk by chunk, so that a long generator is never held as Python objects."""
    iterator = iter(rows)
    batches, done = [], 0
    while chunk := list(islice(iterator, CHUNK_ROWS)):
        _check_rows(chunk, columns, relation, done)
        if columns:
            arrays = [
                _typed(values, name, type, relation, done)
                for values, (name, type) in zip(zip(*chunk, strict=True), columns, strict=True)
            ]
            batches.append(pa.record_batch(arrays, schema=arrow_schema(columns)))
        done += len(chunk)
    if not columns:
        return nullary_table(done)
    return pa.Table.from_batches(batches) if batches else empty_table(columns)


def _check_rows(chunk: list[Any], columns: Columns, relation: str, rows_before: int) -> None:
    width = len(columns)
    for place, row in enumerate(chunk):
        if not isinstance(row, tuple | list):
            kind = type(row).__name__
            raise DataError(f"{_of(relation)}row {rows_before + place}: a tuple or list expected, not {kind}")
        if len(row) != width:
            _check_width(len(row), columns, relation, rows_before + place)


def _typed(values: Any, name: str, type: Any, relation: str, rows_before: int) -> pa.Array:
    array, misfits = column_of_values(values, type)
    if misfits:
        row = min(misfits)
        raise _misfit(relation, rows_before + row, name, misfits[row])
    return array
