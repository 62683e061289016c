"""count and sum by group: dlog against DuckDB on one thread and pyarrow's group_by.

Keys are either the numbers 0 .. n-1 or spread over 64 bits, where they cannot index a table.  dlog's
sums are exact: integers in 128 bits, floats rounded once whatever the order; DuckDB's and Arrow's sums of
floats depend on the order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.harness import Row, at_least, compare, duck, faster
from dlog.column_functions import Column
from dlog.engine.head.groups import aggregate
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import encode
from dlog.values import FLOAT, INT

ROWS = 10_000_000
SPREAD = 1_000_003_777  # between neighbouring keys
QUERY = "select k, count(*), sum(v) from t group by k"


def benchmark(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(7)
    n = at_least(1000, ROWS * scale)
    values = {"int": rng.integers(-(10**6), 10**6, n), "float": rng.standard_normal(n)}
    for groups in (1000, at_least(1000, 10**6 * scale)):
        numbers = rng.integers(0, groups, n)
        for kind, keys in (("small", numbers), ("spread", numbers * SPREAD + 17)):
            for name, column in values.items():
                yield from group(f"sum of {name}s by {kind} keys", keys, column)


def group(name: str, keys: np.ndarray, values: np.ndarray) -> Iterator[Row]:
    type = INT if values.dtype == np.int64 else FLOAT
    column = Column(encode(pa.array(values), type, Dictionary()), type)
    table = pa.table({"k": keys, "v": values})
    connection = duck(t=table)
    sums = [("v", "count"), ("v", "sum")]
    yield from compare(
        name,
        f"{len(keys):,}, {len(np.unique(keys)):,} groups",
        lambda: len(aggregate([keys], len(keys), [("count", None), ("sum", column)], Dictionary())[0][0]),
        {
            "DuckDB": lambda: connection.sql(QUERY).to_arrow_table().num_rows,
            "pyarrow": lambda: table.group_by("k", use_threads=False).aggregate(sums).num_rows,
        },
        {"DuckDB": faster(1)} if type is INT else {},
    )
