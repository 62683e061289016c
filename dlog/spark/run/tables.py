"""Owns the conversion of rows between a store and Arrow tables.  Knows nothing of files or places."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from dlog.engine.loading import insert_table
from dlog.engine.state.store import Store
from dlog.ir.rules import Predicate
from dlog.spark.run.copies import PRESENT
from dlog.storage.values import arrow_type, decode


def table_of(store: Store, predicate: Predicate, relation_name: str | None = None) -> pa.Table:
    """All rows of a relation as values, in no particular order.  O(rows)."""
    rows = store.relations[relation_name or predicate.name].rows()
    return rows_table(store, predicate, rows)


def rows_table(store: Store, predicate: Predicate, rows: np.ndarray) -> pa.Table:
    if not predicate.columns:
        return pa.table({PRESENT: pa.array([True] * min(len(rows), 1), pa.bool_())})
    arrays = [
        decode(np.ascontiguousarray(rows[:, i]), c.type, store.dictionary)
        for i, c in enumerate(predicate.columns)
    ]
    return pa.Table.from_arrays(arrays, schema=schema_of(predicate))


def schema_of(predicate: Predicate) -> pa.Schema:
    """Columns are named by their number: a predicate may have the same column name twice."""
    if not predicate.columns:
        return pa.schema([(PRESENT, pa.bool_())])
    return pa.schema([(f"c{i}", arrow_type(c.type)) for i, c in enumerate(predicate.columns)])


def insert_parts(store: Store, name: str, parts: Iterable[pa.Table]) -> None:
    """Add the rows of tables to a relation.  O(rows log rows)."""
    tables = [part for part in parts if part.num_rows]
    if tables:
        insert_table(store, name, pa.concat_tables(tables))
