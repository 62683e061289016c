"""Owns the partial values of aggregates: what a shard stores for each group, and how these merge.

Each aggregate names the class here that makes and merges its parts (`dlog.aggregates`).

    SumValues        exact sums of 256 bits for integers and decimals; for floats a few floats with the same
                     exact sum: the nearest float, then the one nearest to the remainder, and so on
    ExtremeValues    a value
    DistinctValues   the distinct values

Knows nothing of rules beyond the aggregate and its argument, nor of Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from dlog.aggregates import load
from dlog.aggregates.count import COUNT
from dlog.aggregates.minimum import MIN
from dlog.aggregates.sum import SUM
from dlog.column_functions.columns import (
    Column,
    decimal_column,
    decimal_words,
    float_codes,
    float_values,
    taken,
)
from dlog.engine.head.groups import aggregate, value_codes
from dlog.engine.head.power_sums import float_terms, segment_words, squared_words, sums_of_float
from dlog.engine.state.store import Store
from dlog.io.columns import type_of_arrow
from dlog.ir.rules import Aggregate, Rule, Var
from dlog.jit import Words
from dlog.storage.values import decode, encode
from dlog.values import FLOAT, INT, Type
from dlog.values.heavy import pc

NUMBER = "n"  # the column with the number of assignments of each group
Wanted = list[
    tuple[str, Column | None]
]  # names of aggregates with their arguments, as `aggregate` takes them


@dataclass(frozen=True)
class Shard:
    """The rows of one shard: a number for each group key of each row, and the distinct keys."""

    store: Store
    groups: list[Words]
    keys: list[Words]
    n: int

    @property
    def size(self) -> int:
        return len(self.keys[0]) if self.keys else min(self.n, 1)


@dataclass(frozen=True)
class Gathered:
    """The parts of all shards in one table, a number for each group key of each part, and the numbers of
    assignments of the groups."""

    store: Store
    whole: pa.Table
    groups: list[Words]
    counts: Words


class PartialValues(Protocol):
    """The partial values of one aggregate."""

    item: Aggregate

    def wanted(self, column: Column | None) -> Wanted:
        """What a shard folds over its rows for `columns`."""

    def columns(self, shard: Shard, column: Column | None, results: Sequence[Column]) -> dict[str, pa.Array]:
        """The parts of a shard, a row for each group."""

    def row_by_row(self, store: Store, column: Column | None) -> dict[str, pa.Array]:
        """The same with every assignment as its own group."""

    def merged(self, store: Store, whole: pa.Table) -> Wanted:
        """What is folded over all parts for `finished`."""

    def finished(self, gathered: Gathered, results: Sequence[Column]) -> Column:
        """The value of each group.  Raises SumOverflow, whose row is the number of a group."""


def partial_values(rule: Rule) -> list[PartialValues]:
    """REQUIRES: all aggregates of the rule have partial values."""
    return [load(item.function.merge or "")(rule, item, i) for i, item in enumerate(rule.aggregates)]


class SumValues:
    """Aggregates that are determined by the number of assignments and exact sums."""

    def __init__(self, rule: Rule, item: Aggregate, number: int):
        assert item.function.moments is not None
        self.item, self.name = item, f"a{number}"
        self.type = _argument_type(rule, item)
        self.powers = item.function.moments

    def wanted(self, column: Column | None) -> Wanted:
        if column is None or column.type == FLOAT:
            return []
        return [(SUM.name, _power(column, power)) for power in self.powers]

    def columns(self, shard: Shard, column: Column | None, results: Sequence[Column]) -> dict[str, pa.Array]:
        if column is None:
            return {}
        if column.type == FLOAT:
            return {name: _components(shard, *terms) for name, terms in self._terms(column).items()}
        return {self._name(p): values_of(shard.store, r) for p, r in zip(self.powers, results, strict=True)}

    def row_by_row(self, store: Store, column: Column | None) -> dict[str, pa.Array]:
        if column is None:
            return {}
        if column.type == FLOAT:
            return {name: _list_of(*terms) for name, terms in self._terms(column).items()}
        return {self._name(power): values_of(store, _power(column, power)) for power in self.powers}

    def _terms(self, column: Column) -> dict[str, tuple[np.ndarray, int]]:
        """For each float sum the floats that it sums, so many for each row."""
        floats = float_values(column.codes)
        found = {}
        for power in self.powers:
            for number, terms in enumerate(float_terms(floats, power)):
                found[self._name(power, number)] = (terms, power)
        return found

    def _name(self, power: int, number: int = 0) -> str:
        """Of the column of a sum; several sums may make up one of floats."""
        return f"{self.name}p{power}n{number}"

    def merged(self, store: Store, whole: pa.Table) -> Wanted:
        if self.type == FLOAT:
            return []
        found: Wanted = []
        for power in self.powers:
            column = whole.column(self._name(power))
            type = Type("decimal", column.type.scale, 38)
            found.append((SUM.name, Column(stored(store, column, INT), type)))
        return found

    def finished(self, gathered: Gathered, results: Sequence[Column]) -> Column:
        if self.type == FLOAT:
            return self._of_floats(gathered)
        words = [decimal_words(column).reshape(-1, 4) for column in results]
        type = self.type
        if results and type.is_decimal:
            type = Type("decimal", results[0].type.scale, 38)
        assert self.item.function.finish is not None
        return load(self.item.function.finish)(type, gathered.counts, words)

    def _of_floats(self, gathered: Gathered) -> Column:
        sums = []
        for power in self.powers:
            names = [self._name(power, number) for number in range(sums_of_float(power))]
            words = [segment_words(*_in_groups(*_flattened(gathered, name))) for name in names]
            sums.append(words[0] if power == 1 else np.stack(words, axis=1))
        assert self.item.function.finish is not None
        return load(self.item.function.finish)(FLOAT, gathered.counts, sums)


class ExtremeValues:
    """The least or greatest value: of such values it is one of them."""

    def __init__(self, rule: Rule, item: Aggregate, number: int):
        self.item, self.name = item, f"a{number}"

    def wanted(self, column: Column | None) -> Wanted:
        return [(self.item.op, column)]

    def columns(self, shard: Shard, column: Column | None, results: Sequence[Column]) -> dict[str, pa.Array]:
        return {self.name: values_of(shard.store, results[0])}

    def row_by_row(self, store: Store, column: Column | None) -> dict[str, pa.Array]:
        assert column is not None
        return {self.name: values_of(store, column)}

    def merged(self, store: Store, whole: pa.Table) -> Wanted:
        column = whole.column(self.name)
        type = type_of(column.type)
        return [(self.item.op, Column(stored(store, column, type), type))]

    def finished(self, gathered: Gathered, results: Sequence[Column]) -> Column:
        return results[0]


class DistinctValues:
    """The number of distinct values: a part has the values themselves."""

    def __init__(self, rule: Rule, item: Aggregate, number: int):
        self.item, self.name = item, f"a{number}"

    def wanted(self, column: Column | None) -> Wanted:
        return []

    def columns(self, shard: Shard, column: Column | None, results: Sequence[Column]) -> dict[str, pa.Array]:
        """Groups and their values come in the order of the keys."""
        assert column is not None
        codes, dictionary = value_codes(column), shard.store.dictionary
        rows, (first,) = aggregate([*shard.groups, codes], shard.n, [_first_row(shard.n)], dictionary)
        _, (counts,) = aggregate(rows[:-1], len(first), [(COUNT.name, None)], dictionary)
        offsets = np.concatenate([[0], np.cumsum(counts.codes)])
        values = values_of(shard.store, taken(column, first.codes))
        return {self.name: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)}

    def row_by_row(self, store: Store, column: Column | None) -> dict[str, pa.Array]:
        assert column is not None
        offsets = np.arange(len(column) + 1)
        return {self.name: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values_of(store, column))}

    def merged(self, store: Store, whole: pa.Table) -> Wanted:
        return []

    def finished(self, gathered: Gathered, results: Sequence[Column]) -> Column:
        rows, values = _elements(gathered, self.name)
        type = type_of(values.type)
        column = Column(stored(gathered.store, pa.chunked_array([values]), type), type)
        wanted: Wanted = [(self.item.op, column)]
        return aggregate(rows, len(column), wanted, gathered.store.dictionary)[1][0]


def _first_row(n: int) -> tuple[str, Column]:
    """What gives the number of a row of each group."""
    return MIN.name, Column(np.arange(n), INT)


# Columns of parts


def values_of(store: Store, column: Column) -> pa.Array:
    """The values of a column, as they are written to a part."""
    if isinstance(column.values, np.ndarray):
        return decode(column.codes, column.type, store.dictionary)
    return column.values


def stored(store: Store, column: pa.ChunkedArray, type: Type) -> Words | pa.Array:
    """Codes, or exact decimals unchanged."""
    values = _one_chunk(column)
    return values if pa.types.is_decimal256(values.type) else encode(values, type, store.dictionary)


def type_of(arrow: pa.DataType) -> Type:
    """The type of the language whose values an Arrow column holds."""
    if pa.types.is_decimal256(arrow):
        return Type("decimal", arrow.scale, 38)
    return type_of_arrow(arrow)


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    return values.chunk(0) if isinstance(values, pa.ChunkedArray) else values


def _argument_type(rule: Rule, item: Aggregate) -> Type:
    if item.argument is None:
        return INT
    type = rule.types[item.argument.name] if isinstance(item.argument, Var) else item.argument.type
    assert type is not None
    return type


def _power(column: Column, power: int) -> Column:
    """Numbers to this power as exact decimals, whose sums have room; squares without their point.

    Raises SumOverflow where a square has no room."""
    if power == 2:
        return decimal_column(squared_words(decimal_words(column)), Type("decimal", 0, 38))
    if column.type.is_decimal:
        return column
    return decimal_column(decimal_words(column), Type("decimal", 0, 38))


# Exact sums of floats


def _components(shard: Shard, terms: np.ndarray, each: int) -> pa.ListArray:
    """For each group floats whose exact sum is the sum of its terms, of which a row has `each`.

    O(n) for each of these floats, usually two."""
    size = shard.size
    if not terms.any():
        return _list_of(np.zeros(size), 1)
    groups = [np.repeat(group, each) for group in shard.groups]
    found: list[np.ndarray] = []
    parts, codes = [groups], [float_codes(terms)]
    while True:
        rows = [np.concatenate([part[i] for part in parts]) for i in range(len(groups))]
        values = np.concatenate(codes)
        wanted: Wanted = [(SUM.name, Column(values, FLOAT))]
        _, (rest,) = aggregate(rows, len(values), wanted, shard.store.dictionary)
        floats = decode(rest.codes, FLOAT, shard.store.dictionary).to_numpy() if size else np.empty(0)
        if not floats.any() and found:
            break
        found.append(floats)
        if not size:
            break
        parts.append(shard.keys)
        codes.append(float_codes(-floats))
    return _list_of(np.stack(found, 1).reshape(-1), len(found))


def _list_of(values: np.ndarray, each: int) -> pa.ListArray:
    """Lists of `each` floats."""
    offsets = np.arange(len(values) // each + 1) * each
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values))


def _flattened(gathered: Gathered, name: str) -> tuple[list[Words], np.ndarray]:
    """The numbers of group keys, and the floats, of all elements of a column of lists."""
    rows, values = _elements(gathered, name)
    return rows, np.array(values.to_numpy(zero_copy_only=False), np.float64)


def _elements(gathered: Gathered, name: str) -> tuple[list[Words], pa.Array]:
    """The same of any values."""
    parts = _one_chunk(gathered.whole.column(name))
    parents = pc.list_parent_indices(parts).to_numpy()
    return [group[parents] for group in gathered.groups], pc.list_flatten(parts)


def _in_groups(rows: list[Words], values: np.ndarray) -> tuple[np.ndarray, Words]:
    """Values group by group, in the order of the keys' numbers, and where each group begins.

    REQUIRES: every group has values.
    """
    order = np.lexsort(rows[::-1]) if rows else np.arange(len(values))
    change = np.zeros(max(len(values) - 1, 0), bool)
    for row in rows:
        ordered = row[order]
        change |= ordered[1:] != ordered[:-1]
    bounds = np.concatenate([[0], np.flatnonzero(change) + 1, [len(values)]])
    return values[order], bounds
