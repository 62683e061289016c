"""Owns heavy values: those that have so many rows of a predicate that their shard would do most of the work.

They are found in samples of base facts, so a value that is nearly heavy may be found or not: that changes who
does the work, but never an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dlog.engine.state.store import Store
from dlog.ir.rules import Predicate
from dlog.spark.run.tables import rows_table
from dlog.storage.values import arrow_type
from dlog.values.heavy import pc

LEAST_ROWS = 100_000  # of a predicate, below which no shard waits long for another
SAMPLE = 1 << 13
LEAST_SEEN = 16  # times in a sample
SHARE = 0.5  # of a shard's average, from which on a value is heavy


@dataclass
class Heavy:
    """Columns with heavy values, and these, by type and scale."""

    columns: set[tuple[str, int]] = field(default_factory=set)
    values: dict[tuple[str, int], set[object]] = field(default_factory=dict)

    def arrays(self, predicates: Iterable[Predicate]) -> dict[tuple[str, int], pa.Array]:
        types = {(c.type.name, c.type.scale): arrow_type(c.type) for p in predicates for c in p.columns}
        return {key: pa.array(sorted(values, key=repr), types[key]) for key, values in self.values.items()}


def find_heavy(samples: Mapping[str, pa.Table], predicates: Mapping[str, Predicate], shards: int) -> Heavy:
    """Heavy values by samples of predicates, columns in the order of the predicate's.  O(sample)."""
    heavy = Heavy()
    for name, sample in samples.items():
        for number, column in enumerate(predicates[name].columns):
            counted = pc.value_counts(sample.column(number).combine_chunks())
            counts = counted.field("counts").to_numpy()
            many = (counts >= LEAST_SEEN) & (counts * shards >= SHARE * sample.num_rows)
            if many.any():
                found = counted.field("values").filter(pa.array(many)).to_pylist()
                heavy.columns.add((name, number))
                heavy.values.setdefault((column.type.name, column.type.scale), set()).update(found)
    return heavy


def store_samples(
    store: Store, names: Iterable[str], shards: int, least: int = LEAST_ROWS
) -> dict[str, pa.Table]:
    """Samples of base facts in a store, if there are so many that a heavy value would matter."""
    random = np.random.default_rng(0)
    found = {}
    for name in names if shards > 1 else ():
        rows = store.relations[name].rows()
        if len(rows) >= max(least, 1):
            chosen = rows[random.integers(0, len(rows), SAMPLE)] if len(rows) > SAMPLE else rows
            found[name] = rows_table(store, store.predicates[name], chosen)
    return found
