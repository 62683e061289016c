"""Owns partial aggregates: what a shard computes for a rule's groups, and how these parts become rows.

Correct output: the rows that the rule derives from all assignments at once, bit by bit.  A part of a count is
a count; of other aggregates it is what their merge classes make (`dlog.spark.run.partial_values`).  A part
has a row for each group; groups may occur in several parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from dlog.aggregates.count import COUNT
from dlog.aggregates.sum import SUM
from dlog.column_functions.columns import Column
from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Table
from dlog.engine.head.groups import aggregate
from dlog.engine.head.heads import (
    argument_column,
    body_outputs,
    group_codes,
    head_rows,
    only_counts,
    sum_overflow,
    with_result,
)
from dlog.engine.head.power_sums import SumOverflow
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.engine.state.store import Store
from dlog.ir.rules import Rule, Var
from dlog.jit import Words
from dlog.planning.pipeline import Join, plan_pipeline
from dlog.spark.run.partial_values import NUMBER, Gathered, Shard, partial_values, stored
from dlog.storage.values import decode
from dlog.values import FLOAT, INT

# In a shard


def partial_table(store: Store, rule: Rule, watch: Watch) -> pa.Table:
    """A row for each group of the rule's body, with its parts."""
    runner = BodyRunner(store, rule, watch, Measures())
    pipeline = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, True)
    first = pipeline.operations[0]
    if only_counts(rule) and len(pipeline.operations) == 1 and isinstance(first, Join):
        n = runner.count(first)
        return pa.table({NUMBER: pa.array([n] if n else [], pa.int64())})
    table = runner.run(pipeline)
    arguments = [argument_column(runner, item, table) for item in rule.aggregates]
    try:
        if table.n and any(_is_infinite(column) for column in arguments):
            return _row_by_row(store, rule, table, arguments)
        return _grouped(store, rule, table, arguments)
    except SumOverflow as error:
        raise sum_overflow(store, rule, table, error) from None


def _grouped(store: Store, rule: Rule, table: Table, arguments: Sequence[Column | None]) -> pa.Table:
    groups, wide = group_codes(rule, table)
    values = partial_values(rule)
    wanted = [value.wanted(column) for value, column in zip(values, arguments, strict=True)]
    everything = [(COUNT.name, None), *chain.from_iterable(wanted)]
    keys, (counts, *results) = aggregate(groups, table.n, everything, store.dictionary)
    columns = {
        f"g{i}": _group_values(store, rule, v, key, wide)
        for i, (v, key) in enumerate(zip(rule.groups, keys, strict=True))
    }
    columns[NUMBER] = pa.array(counts.codes)
    shard = Shard(store, groups, keys, table.n)
    found = iter(results)
    for value, column, own in zip(values, arguments, wanted, strict=True):
        columns |= value.columns(shard, column, [next(found) for _ in own])
    return pa.table(columns)


def _group_values(store: Store, rule: Rule, var: Var, key: Words, wide: dict[str, pa.Array]) -> pa.Array:
    if var.name in wide:
        return wide[var.name].take(pa.array(key))
    return decode(key, rule.types[var.name], store.dictionary)


def _is_infinite(column: Column | None) -> bool:
    """Whether a sum of floats may become infinite, so that it has no parts of this kind."""
    if column is None or column.type != FLOAT or not len(column):
        return False
    floats = decode(column.codes, FLOAT, None).to_numpy()  # type: ignore[arg-type]
    return not bool(np.isfinite(np.abs(floats).sum()))


def _row_by_row(store: Store, rule: Rule, table: Table, arguments: Sequence[Column | None]) -> pa.Table:
    """Every assignment as its own group: merging makes no difference."""
    columns: dict[str, pa.Array] = {}
    for i, var in enumerate(rule.groups):
        values = table.columns[var.name]
        is_wide = table.is_wide(var.name)
        columns[f"g{i}"] = values if is_wide else decode(values, rule.types[var.name], store.dictionary)
    columns[NUMBER] = pa.array(np.ones(table.n, np.int64))
    for value, column in zip(partial_values(rule), arguments, strict=True):
        columns |= value.row_by_row(store, column)
    return pa.table(columns)


# Merging


def merged_rows(store: Store, rule: Rule, parts: Sequence[pa.Table]) -> list[np.ndarray]:
    """Rows for each head of the rule, from the parts of all shards.  O(rows of the parts)."""
    parts = [part for part in parts if part.num_rows]
    if not parts:
        return [np.empty((0, len(head.args)), np.int64) for head in rule.heads]
    whole = pa.concat_tables(parts)
    names = [v.name for v in rule.groups]
    given = {name: stored(store, whole.column(f"g{i}"), rule.types[name]) for i, name in enumerate(names)}
    table = Table(whole.num_rows, given)
    groups, wide = group_codes(rule, table)
    values = partial_values(rule)
    wanted = [value.merged(store, whole) for value in values]
    counted = (SUM.name, Column(whole.column(NUMBER).to_numpy(), INT))
    everything = [counted, *chain.from_iterable(wanted)]
    keys, (counts, *merged) = aggregate(groups, whole.num_rows, everything, store.dictionary)
    columns = {
        name: wide[name].take(pa.array(key)) if name in wide else key
        for name, key in zip(names, keys, strict=True)
    }
    result = Table(len(counts), columns)
    gathered, found = Gathered(store, whole, groups, counts.codes), iter(merged)
    for value, own in zip(values, wanted, strict=True):
        try:
            column = value.finished(gathered, [next(found) for _ in own])
        except SumOverflow as error:
            raise sum_overflow(store, rule, result, error) from None
        result = with_result(result, value.item, column, counts.codes)
    return [head_rows(store, head, result, rule) for head in rule.heads]
