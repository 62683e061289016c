"""Owns columns of results: quotients, values looked up for groups, and the order of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dlog.views.query import Order

VALUE = "value of the map"


def quotients(totals: pa.ChunkedArray, divisors: pa.ChunkedArray) -> pa.Array:
    """Quotients; 0 where the divisor is 0, as in M3."""
    above, below = (np.asarray(column, np.float64) for column in (totals, divisors))
    return pa.array(np.divide(above, below, out=np.zeros(len(above)), where=below != 0))


def looked_up(groups: pa.Table, entries: pa.Table, keys: list[str]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    if entries.select(keys).equals(groups.select(keys)):  # usually maps of one view
        return entries[VALUE]
    numbered = groups.select(keys).append_column("row", pa.array(np.arange(groups.num_rows)))
    joined = numbered.join(entries, keys, join_type="left outer").sort_by("row")
    zero = pa.scalar(0, entries[VALUE].type)
    return pc.fill_null(joined[VALUE], zero)


def sorted_by(table: pa.Table, order: Sequence[Order], keys: pa.Table) -> pa.Table:
    """The rows in the order of ORDER BY; those that it leaves equal, in the order of their keys."""
    names = [f"column {i}" for i in range(table.num_columns)]
    extra = [f"key {i}" for i in range(keys.num_columns)]
    whole = pa.table([*table.columns, *keys.columns], names=[*names, *extra])
    by = [(names[o.column], "descending" if o.descending else "ascending") for o in order]
    ordered = whole.sort_by([*by, *((name, "ascending") for name in extra)])
    return ordered.select(names).rename_columns(table.column_names)
