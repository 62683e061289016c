"""count and sum by group: dlog against DuckDB on one thread and pyarrow's group_by, in one run.

Keys are either the numbers 0 .. n-1 or spread over 64 bits, where no table can be indexed by them.  dlog's
sums are exact: integers in 128 bits, floats rounded once whatever the order; DuckDB's and Arrow's sums of
floats depend on the order.

    group_by [SCALE]    10 million rows times SCALE

Measured on two busy cores of an AMD EPYC, seconds of CPU time:

    keys    value       groups   dlog s  DuckDB s  pyarrow s  DuckDB/dlog
    small   int          1,000    0.025     0.071      0.091          2.8
    small   float        1,000    0.106     0.071      0.089          0.7
    spread  int          1,000    0.070     0.091      0.090          1.3
    spread  float        1,000    0.132     0.088      0.091          0.7
    small   int        999,969    0.189     0.792      0.876          4.2
    small   float      999,969    0.369     0.726      0.763          2.0
    spread  int        999,969    0.451     0.660      0.973          1.5
    spread  float      999,969    0.626     0.777      1.006          1.2
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

from dlog.engine.batch import Column
from dlog.engine.groups import aggregate
from dlog.storage.dictionary import Dictionary
from dlog.storage.values import encode
from dlog.types import FLOAT, INT

ROWS = 10_000_000
SPREAD = 1_000_003_777  # between neighbouring keys


def main(scale: float = 1.0) -> None:
    print("keys    value       groups   dlog s  DuckDB s  pyarrow s  DuckDB/dlog")
    rng = np.random.default_rng(7)
    n = int(ROWS * scale)
    values = {"int": rng.integers(-(10**6), 10**6, n), "float": rng.standard_normal(n)}
    for groups in (1000, max(1000, int(10**6 * scale))):
        numbers = rng.integers(0, groups, n)
        for kind, keys in (("small", numbers), ("spread", numbers * SPREAD + 17)):
            for name, column in values.items():
                compare(kind, name, keys, column)


def compare(kind: str, name: str, keys: np.ndarray, values: np.ndarray) -> None:
    type = INT if name == "int" else FLOAT
    column = Column(encode(pa.array(values), type, Dictionary()), type)
    arguments = [("count", None), ("sum", column)]
    groups, ours = best(lambda: len(aggregate([keys], len(keys), arguments, Dictionary())[0][0]))
    table = pa.table({"k": keys, "v": values})
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    connection.register("input", table)
    connection.execute("create table t as select * from input")
    query = "select k, count(*), sum(v) from t group by k"
    theirs_groups, theirs = best(lambda: connection.sql(query).to_arrow_table().num_rows)
    assert groups == theirs_groups, (groups, theirs_groups)
    sums = [("v", "count"), ("v", "sum")]
    _, arrow = best(lambda: table.group_by("k", use_threads=False).aggregate(sums).num_rows)
    print(
        f"{kind:8}{name:7}{groups:>11,}{ours:>9.3f}{theirs:>10.3f}{arrow:>11.3f}{theirs / ours:>13.1f}",
        flush=True,
    )


def best(function: Callable[[], int], runs: int = 3) -> tuple[int, float]:
    """(result, least seconds of CPU time): what else the machine does counts less."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        result = function()
        times.append(time.process_time() - started)
    return result, min(times)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
