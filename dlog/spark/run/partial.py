"""Owns aggregates in parts: what a shard keeps of a rule's groups, and how these parts become rows.

Correct output: the rows that the rule derives from all assignments at once, bit by bit.  A part of a count is
a count, of a least or greatest value such a value, of a sum of numbers an exact number of 256 bits, and of a
sum of floats a few floats whose exact sum it is: the nearest float, then the one nearest to what is left, and
so on.  A part has a row for each group; groups may occur in several parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Table
from dlog.engine.column_functions.columns import Column, decimal_column, decimal_words, float_codes
from dlog.engine.head.groups import SumOverflow, aggregate, result_of_sums
from dlog.engine.head.heads import (
    argument_column,
    body_outputs,
    group_codes,
    head_rows,
    only_counts,
    sum_overflow,
)
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.store import Store
from dlog.ir.rules import Aggregate, Rule, Var
from dlog.jit import Words
from dlog.planning.pipeline import Join, plan_pipeline
from dlog.spark.run.partial_kernels import means_of_parts
from dlog.storage.values import decode, encode
from dlog.types import FLOAT, INT, Type

_COUNT = "n"
_SUMS = ("sum", "total", "mean")


# In a shard


def partial_table(store: Store, rule: Rule, watch: Watch) -> pa.Table:
    """A row for each group of the rule's body, with its parts."""
    runner = BodyRunner(store, rule, watch, Measures())
    pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, True)
    first = pipeline.operations[0]
    if only_counts(rule) and len(pipeline.operations) == 1 and isinstance(first, Join):
        n = runner.count(first)
        return pa.table({_COUNT: pa.array([n] if n else [], pa.int64())})
    table = runner.run(pipeline)
    arguments = [argument_column(runner, item, table) for item in rule.aggregates]
    if table.n and any(_is_infinite(column) for column in arguments):
        return _row_by_row(store, rule, table, arguments)
    return _grouped(store, rule, table, arguments)


def _grouped(store: Store, rule: Rule, table: Table, arguments: Sequence[Column | None]) -> pa.Table:
    groups, wide = group_codes(rule, table)
    wanted: list[tuple[str, Column | None]] = [("count", None)]
    wanted += [_part(item, column) for item, column in zip(rule.aggregates, arguments, strict=True)]
    keys, (counts, *parts) = aggregate(groups, table.n, wanted, store.dictionary)
    columns = {
        f"g{i}": _group_values(store, rule, v, key, wide)
        for i, (v, key) in enumerate(zip(rule.groups, keys, strict=True))
    }
    columns[_COUNT] = pa.array(counts.codes)
    for i, (item, column, part) in enumerate(zip(rule.aggregates, arguments, parts, strict=True)):
        if _sums_floats(item, column):
            assert column is not None
            columns[f"a{i}"] = _components(store, groups, keys, table.n, column)
        elif item.op != "count":
            columns[f"a{i}"] = _values(store, part)
    return pa.table(columns)


def _part(item: Aggregate, column: Column | None) -> tuple[str, Column | None]:
    if column is None or _sums_floats(item, column):
        return "count", None
    if item.op in _SUMS:
        return "sum", _wide(column)
    return item.op, column


def _wide(column: Column) -> Column:
    """Numbers as exact decimals, whose sums have room."""
    if column.type.is_decimal:
        return column
    return decimal_column(decimal_words(column), Type("decimal", 0, 38))


def _sums_floats(item: Aggregate, column: Column | None) -> bool:
    return item.op in _SUMS and column is not None and column.type == FLOAT


def _group_values(store: Store, rule: Rule, var: Var, key: Words, wide: dict[str, pa.Array]) -> pa.Array:
    if var.name in wide:
        return wide[var.name].take(pa.array(key))
    return decode(key, rule.types[var.name], store.dictionary)


def _values(store: Store, column: Column) -> pa.Array:
    if isinstance(column.values, np.ndarray):
        return decode(column.codes, column.type, store.dictionary)
    return column.values


def _components(store: Store, groups: list[Words], keys: list[Words], n: int, column: Column) -> pa.ListArray:
    """For each group floats whose exact sum is the sum of its floats.  O(n) for each of them, mostly two."""
    size = len(keys[0]) if keys else min(n, 1)
    found: list[np.ndarray] = []
    parts, codes = [groups], [column.codes]
    while True:
        rows = [np.concatenate([part[i] for part in parts]) for i in range(len(groups))]
        values = np.concatenate(codes)
        _, (rest,) = aggregate(rows, len(values), [("sum", Column(values, FLOAT))], store.dictionary)
        floats = decode(rest.codes, FLOAT, store.dictionary).to_numpy() if size else np.empty(0)
        if not floats.any() and found:
            break
        found.append(floats)
        if not size:
            break
        parts.append(keys)
        codes.append(float_codes(-floats))
    offsets = np.arange(size + 1) * len(found)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(np.stack(found, 1).reshape(-1)))


def _is_infinite(column: Column | None) -> bool:
    """Whether a sum of floats may leave the finite ones, so that it has no parts of this kind."""
    if column is None or column.type != FLOAT or not len(column):
        return False
    floats = decode(column.codes, FLOAT, None).to_numpy()  # type: ignore[arg-type]
    return not bool(np.isfinite(np.abs(floats).sum()))


def _row_by_row(store: Store, rule: Rule, table: Table, arguments: Sequence[Column | None]) -> pa.Table:
    """Every assignment as a group of its own: merging makes no difference."""
    columns: dict[str, pa.Array] = {}
    for i, var in enumerate(rule.groups):
        values = table.columns[var.name]
        is_wide = table.is_wide(var.name)
        columns[f"g{i}"] = values if is_wide else decode(values, rule.types[var.name], store.dictionary)
    columns[_COUNT] = pa.array(np.ones(table.n, np.int64))
    for i, (item, column) in enumerate(zip(rule.aggregates, arguments, strict=True)):
        if column is None:
            continue
        if _sums_floats(item, column):
            floats = decode(column.codes, FLOAT, store.dictionary)
            columns[f"a{i}"] = pa.ListArray.from_arrays(pa.array(range(table.n + 1), pa.int32()), floats)
        else:
            columns[f"a{i}"] = _values(store, _wide(column) if item.op in _SUMS else column)
    return pa.table(columns)


# Merging


def merged_rows(store: Store, rule: Rule, parts: Sequence[pa.Table]) -> list[np.ndarray]:
    """Rows for each head of the rule, from the parts of all shards.  O(rows of the parts)."""
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return [np.empty((0, len(head.args)), np.int64) for head in rule.heads]
    whole = pa.concat_tables(parts)
    names = [v.name for v in rule.groups]
    given = {name: _stored(store, whole.column(f"g{i}"), rule.types[name]) for i, name in enumerate(names)}
    table = Table(whole.num_rows, given)
    groups, wide = group_codes(rule, table)
    wanted: list[tuple[str, Column | None]] = [("sum", Column(whole.column(_COUNT).to_numpy(), INT))]
    wanted += [_merge(store, item, whole, i) for i, item in enumerate(rule.aggregates)]
    keys, (counts, *sums) = aggregate(groups, whole.num_rows, wanted, store.dictionary)
    columns = {
        name: wide[name].take(pa.array(key)) if name in wide else key
        for name, key in zip(names, keys, strict=True)
    }
    result = Table(len(counts), columns)
    for i, (item, column) in enumerate(zip(rule.aggregates, sums, strict=True)):
        column = _finished(store, rule, item, result, groups, whole, i, counts.codes, column)
        result = result.with_column(item.result.name, column.values)
    return [head_rows(store, head, result, rule) for head in rule.heads]


def _stored(store: Store, column: pa.ChunkedArray, type: Type) -> Words | pa.Array:
    """Codes, or exact decimals as they are."""
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0)
    return values if pa.types.is_decimal256(values.type) else encode(values, type, store.dictionary)


def _merge(store: Store, item: Aggregate, whole: pa.Table, i: int) -> tuple[str, Column | None]:
    if item.op == "count":
        return "sum", Column(whole.column(_COUNT).to_numpy(), INT)
    column = whole.column(f"a{i}")
    if pa.types.is_list(column.type):
        return "count", None
    if item.op in _SUMS:
        return "sum", Column(_stored(store, column, INT), Type("decimal", column.type.scale, 38))
    type = _type_of(column.type)
    return item.op, Column(_stored(store, column, type), type)


def _type_of(arrow: pa.DataType) -> Type:
    """The type of the language whose values an Arrow column holds."""
    from dlog.types import BOOL, DATE, DATETIME, STRING, UNSIGNED

    if pa.types.is_decimal(arrow):
        return Type("decimal", arrow.scale, 38 if pa.types.is_decimal256(arrow) else 18)
    known = {"int64": INT, "uint64": UNSIGNED, "double": FLOAT, "string": STRING, "bool": BOOL}
    return known.get(str(arrow)) or (DATE if pa.types.is_date(arrow) else DATETIME)


def _finished(
    store: Store,
    rule: Rule,
    item: Aggregate,
    result: Table,
    groups: list[Words],
    whole: pa.Table,
    i: int,
    counts: Words,
    column: Column,
) -> Column:
    if item.op not in _SUMS:
        return column
    parts = whole.column(f"a{i}")
    if pa.types.is_list(parts.type):
        return _float_result(item.op, groups, parts.combine_chunks(), counts, store)
    type = _argument_type(rule, item, column.type)
    words = decimal_words(column).reshape(-1, 4)
    try:
        return result_of_sums(item.op, type, counts, words)
    except SumOverflow as error:
        raise sum_overflow(store, rule, result, error.row) from None


def _argument_type(rule: Rule, item: Aggregate, summed: Type) -> Type:
    """What was summed: ints and unsigneds are decimals only on the way."""
    assert item.argument is not None
    type = rule.types[item.argument.name] if isinstance(item.argument, Var) else item.argument.type
    assert type is not None
    return type if type.name in ("int", "unsigned") else Type("decimal", summed.scale, 38)


def _float_result(op: str, groups: list[Words], parts: pa.ListArray, counts: Words, store: Store) -> Column:
    if isinstance(parts, pa.ChunkedArray):
        parts = parts.chunk(0)
    parents = pc.list_parent_indices(parts).to_numpy()
    values = np.array(pc.list_flatten(parts).to_numpy(zero_copy_only=False), np.float64)
    rows = [group[parents] for group in groups]
    if op != "mean":
        column = Column(float_codes(values), FLOAT)
        return aggregate(rows, len(values), [("sum", column)], store.dictionary)[1][0]
    order = np.lexsort(rows[::-1]) if rows else np.arange(len(values))
    change = np.zeros(max(len(values) - 1, 0), bool)
    for row in rows:
        ordered = row[order]
        change |= ordered[1:] != ordered[:-1]
    bounds = np.concatenate([[0], np.flatnonzero(change) + 1, [len(values)]])
    out = np.empty(len(bounds) - 1)
    means_of_parts(values[order], bounds, np.array(counts), len(out), out)
    return Column(float_codes(out), FLOAT)
