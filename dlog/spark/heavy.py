"""Owns heavy values: those that have so many rows of a predicate that their shard would do most of the work.

They are found in samples of base facts, so a value that is nearly heavy may be found or not: that changes who
does the work, and never an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dlog.engine.store import Store
from dlog.ir.rules import Predicate
from dlog.storage.values import arrow_type, decode

LEAST_ROWS = 100_000  # of a predicate, below which no shard waits long for another
SAMPLE = 1 << 13
LEAST_SEEN = 16  # times in a sample
SHARE = 0.5  # of what a shard has on average, from which on a value is heavy


@dataclass
class Heavy:
    """Columns with heavy values, and these, by type and scale."""

    columns: set[tuple[str, int]] = field(default_factory=set)
    values: dict[tuple[str, int], set[object]] = field(default_factory=dict)

    def arrays(self, predicates: Iterable[Predicate]) -> dict[tuple[str, int], pa.Array]:
        types = {(c.type.name, c.type.scale): arrow_type(c.type) for p in predicates for c in p.columns}
        return {key: pa.array(sorted(values, key=repr), types[key]) for key, values in self.values.items()}


def find_heavy(store: Store, names: Iterable[str], shards: int, least: int = LEAST_ROWS) -> Heavy:
    """Heavy values of base facts in a store.  O(sample) for each column."""
    heavy = Heavy()
    if shards == 1:
        return heavy
    random = np.random.default_rng(0)
    for name in names:
        rows = store.relations[name].rows()
        if len(rows) < max(least, 1):
            continue
        sample = rows[random.integers(0, len(rows), SAMPLE)] if len(rows) > SAMPLE else rows
        for number, column in enumerate(store.predicates[name].columns):
            codes, counts = np.unique(sample[:, number], return_counts=True)
            many = (counts >= LEAST_SEEN) & (counts * shards >= SHARE * len(sample))
            if many.any():
                found = decode(codes[many], column.type, store.dictionary).to_pylist()
                heavy.columns.add((name, number))
                heavy.values.setdefault((column.type.name, column.type.scale), set()).update(found)
    return heavy
