"""Owns which shard a value belongs to: one hash for Arrow columns and for Spark's expressions.

Correct output: `shards_of(column, type, n)[i]` is what Spark computes for `pmod(hash(value), n)`, whatever
the type, and equal values have equal shards: -0.0 is 0.0, and there is one NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dlog.jit import Words
from dlog.spark.plan import hash_kernels as kernels
from dlog.values import Type

if TYPE_CHECKING:
    from pyspark.sql import Column


def shards_of(values: pa.Array | pa.ChunkedArray, type: Type, shards: int) -> Words:
    """The shard of each value of a column without nulls.  O(n)."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    out = np.zeros(len(values), np.int64)
    if shards == 1 or not len(values):
        return out
    if not type.spark_bytes:
        data, offsets = _bytes_of(values)
        kernels.hash_texts(data, offsets, len(values), shards, out)
    else:
        hash = kernels.hash_ints if type.spark_bytes == 4 else kernels.hash_longs
        hash(_words(values, type), len(values), shards, out)
    return out


def by_shard(owners: Words, shards: int) -> tuple[Words, Words]:
    """Numbers of rows in the order of their shards, and where each shard's begin.  O(n + shards).

    >>> order, bounds = by_shard(np.array([1, 0, 1]), 3)
    >>> order.tolist(), bounds.tolist()
    ([1, 0, 2], [0, 1, 3, 3])
    """
    order, bounds = np.empty(len(owners), np.int64), np.zeros(shards + 1, np.int64)
    kernels.order_by_shard(owners, len(owners), shards, order, bounds)
    return order, bounds


def shard_of_value(value: Any, type: Type, shards: int) -> int:
    """The same for one Python value."""
    return int(shards_of(pa.array([value], type.arrow()), type, shards)[0])


def spark_shard(column: Column, type: Type, shards: int) -> Column:
    """The same as an expression over a Spark column that holds values of a type (see `spark_type`)."""
    from pyspark.sql import functions as F

    if type.spark() == "decimal(20,0)":  # hashed by its 64 bits
        half = F.lit(str(2**63)).cast("decimal(20,0)")
        low = F.when(column >= half, column - half - half).otherwise(column)
        column = low.cast("bigint")
    return F.pmod(F.hash(column), F.lit(shards))


def spark_type(type: Type) -> str:
    """The Spark type of a type of the language, as DDL."""
    return type.spark()


def _bytes_of(values: pa.Array) -> tuple[np.ndarray, Words]:
    """The bytes of texts and where each begins."""
    if not pa.types.is_large_string(values.type):
        values = values.cast(pa.large_string())
    _, offsets, data = values.buffers()
    first, n = values.offset, len(values)
    places = np.frombuffer(offsets, np.int64)[first : first + n + 1].copy()
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return _writable(raw), places


def _words(values: pa.Array, type: Type) -> Words:
    numbers = type.spark_words(values)
    return _writable(numbers.view(np.int64) if numbers.dtype == np.uint64 else numbers.astype(np.int64))


def _writable(array: np.ndarray) -> np.ndarray:
    """Kernels have one signature, for arrays that may be written."""
    return array if array.flags.writeable else array.copy()
