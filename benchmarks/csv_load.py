"""Loading and writing delimited text: dlog.io against DuckDB's read_csv, in one run on one file.

    python benchmarks/csv_load.py [ROWS]          (default 10,000,000)

dlog reads with pyarrow's threads; the last column of the table says what it takes with one thread, which
is what DuckDB gets (threads=1).  Both end with the same Arrow table in memory.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dlog.io import Columns, InputOptions, OutputOptions, read, write
from dlog.types import FLOAT, INT, STRING

REPEATS = 2
DUCKDB_TYPES = {INT: "BIGINT", FLOAT: "DOUBLE", STRING: "VARCHAR"}


def main(rows: int) -> None:
    print(f"{rows:,} rows; seconds, best of {REPEATS}")
    print(f"{'file':<22}{'MB':>7}{'dlog':>8}{'DuckDB':>8}{'ratio':>7}{'dlog, 1 thread':>16}{'write':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, columns, table in cases(rows):
            run(Path(folder) / f"{name}.facts", columns, table)


def cases(rows: int) -> list[tuple[str, Columns, pa.Table]]:
    random = np.random.default_rng(1)
    x, y = random.integers(0, 10_000_000, (2, rows))
    words = pa.array([f"word{i}" for i in range(100_000)])
    s = words.take(pa.array(random.integers(0, len(words), rows)))
    f = pa.array(random.random(rows) * 1000)
    return [
        ("two_ints", [("x", INT), ("y", INT)], pa.table({"x": x, "y": y})),
        ("int_string_float", [("x", INT), ("s", STRING), ("f", FLOAT)], pa.table({"x": x, "s": s, "f": f})),
    ]


def run(path: Path, columns: Columns, table: pa.Table) -> None:
    writing = best(lambda: write(table, OutputOptions.for_path(path), columns))
    ours = report(path, columns, table.num_rows, writing)
    bad = path.with_name(f"{path.stem}_1_bad.facts")
    data = path.read_bytes()
    middle = data.index(b"\n", len(data) // 2) + 1
    bad.write_bytes(data[:middle] + b"not a row\n" + data[middle:])
    seconds = best(lambda: expect(read(bad, columns), table.num_rows, 1))
    print(f"{bad.stem:<22}{len(data) / 1e6:>7.0f}{seconds:>8.2f}{'':>15}   ({seconds / ours:.2f} x without)")


def report(path: Path, columns: Columns, rows: int, writing: float) -> float:
    ours = best(lambda: expect(read(InputOptions.for_path(path), columns), rows, 0))
    theirs = best(lambda: duckdb_rows(path, columns, rows))
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    single = best(lambda: expect(read(path, columns), rows, 0))
    pa.set_cpu_count(threads)
    size = path.stat().st_size / 1e6
    print(
        f"{path.stem:<22}{size:>7.0f}{ours:>8.2f}{theirs:>8.2f}{theirs / ours:>7.2f}"
        f"{single:>16.2f}{writing:>8.2f}"
    )
    return ours


def expect(loaded: Any, rows: int, rejected: int) -> None:
    assert (loaded.table.num_rows, loaded.rejected_count) == (rows, rejected)


def duckdb_rows(path: Path, columns: Columns, rows: int) -> None:
    kinds = ", ".join(f"'{name}': '{DUCKDB_TYPES[type]}'" for name, type in columns)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        query = f"FROM read_csv('{path}', delim = '\t', header = false, quote = '', columns = {{{kinds}}})"
        assert connection.sql(query).to_arrow_table().num_rows == rows


def best(action: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
