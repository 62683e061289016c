"""Owns the result of a query that levels of maps maintain: from the maps of a runtime to a table."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from dlog.m3.runtime.runtime import Runtime
from dlog.views.levels.program import Column, Levels
from dlog.views.run.columns import VALUE, looked_up, quotients, sorted_by


def level_result(levels: Levels, runtime: Runtime) -> pa.Table:
    """The columns of the query, one row for each group, in the order of ORDER BY, then of the groups."""
    query = levels.query
    if not query.groups:
        present = query.present is None or bool(runtime[query.present]["value"][0].as_py())
        table = _columns(levels, lambda c: _total(runtime, c))
        return table if present else table.slice(0, 0)
    groups = _entries(runtime, query.present or "")
    keys = list(query.groups)

    def column(one: Column) -> pa.ChunkedArray | pa.Array:
        if one.group is not None:
            return groups[one.group]
        value = looked_up(groups, _entries(runtime, one.value), keys)
        if one.divisor is None:
            return value
        return quotients(value, looked_up(groups, _entries(runtime, one.divisor), keys))

    table = _columns(levels, column)
    return sorted_by(table, query.order, groups.select(keys))


def _columns(levels: Levels, read: Callable[[Column], pa.Array]) -> pa.Table:
    return pa.table([read(column) for column in levels.columns], names=[c.name for c in levels.columns])


def _entries(runtime: Runtime, name: str) -> pa.Table:
    """The entries of a map, or of an M3 query, its value under a name that no key has."""
    table = runtime[name]
    return table.rename_columns([*table.column_names[:-1], VALUE])


def _total(runtime: Runtime, column: Column) -> pa.Array:
    value = runtime[column.value].column(0)
    if column.divisor is None:
        return value
    return quotients(value, runtime[column.divisor].column(0))
