"""Delimited text: read into Arrow, loaded into sorted indices, written; against DuckDB on the same file.

Both sides on one thread, pyarrow too.  Reading ends with the same Arrow table in memory on both
sides, loading with sorted and distinct rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

import dlog
from benchmarks.harness import DLOG, Row, at_least, compare, duck, faster, timed, within
from dlog.io import Columns, InputOptions, OutputOptions, read, write
from dlog.values import FLOAT, INT, STRING

ROWS = 10_000_000
DUCKDB_TYPES = {INT: "BIGINT", FLOAT: "DOUBLE", STRING: "VARCHAR"}


def benchmark(scale: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, one_thread():
        for name, columns, table in cases(at_least(1000, ROWS * scale)):
            yield from measure(Path(folder) / f"{name}.facts", columns, table)


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


def measure(path: Path, columns: Columns, table: pa.Table) -> Iterator[Row]:
    name, size = path.stem, f"{table.num_rows:,} rows"
    options = OutputOptions.for_path(path)
    writing = timed({DLOG: lambda: write(table, options, columns)}, 2)[DLOG].seconds
    kinds = ", ".join(f"'{name}': '{DUCKDB_TYPES[type]}'" for name, type in columns)
    source = f"read_csv('{path}', delim = '\t', header = false, quote = '', columns = {{{kinds}}})"
    yield from compare(
        f"read {name}",
        size,
        lambda: read(InputOptions.for_path(path), columns).table.num_rows,
        {"DuckDB": lambda: duck().sql(f"from {source}").to_arrow_table().num_rows},
        {"DuckDB": faster(1)},
        runs=2,
    )
    yield from compare(
        f"load {name} into tries",
        size,
        loading(path, columns),
        {"DuckDB": lambda: sorted_rows(source)},
        {"DuckDB": within(3)},
        runs=2,
    )
    yield from broken(path, columns, table.num_rows)
    target = path.with_suffix(".duck")
    connection = duck(t=table)
    copy = f"copy t to '{target}' (format csv, delimiter '\t', header false)"
    theirs = timed({"DuckDB": lambda: connection.execute(copy)}, 2)["DuckDB"].seconds
    yield Row(f"write {name}", size, writing, theirs, "DuckDB")


def loading(path: Path, columns: Columns) -> Callable[[], int]:
    """`.input` of the file into its own predicate."""
    names = ", ".join(f"{name}: {type.name}" for name, type in columns)
    program = f'.decl r({names})\n.input r(filename="{path.name}")\n'
    return lambda: len(dlog.Database(source=program, facts=path.parent).store.relations["r"])


def sorted_rows(source: str) -> int:
    connection = duck()
    connection.execute(f"create table r as select distinct * from {source} order by all")
    return connection.execute("select count(*) from r").fetchall()[0][0]


def broken(path: Path, columns: Columns, rows: int) -> Iterator[Row]:
    """A line that is not a row, in the middle: it is reported, and the rest is read nearly as fast."""
    bad = path.with_name(f"{path.stem}_bad.facts")
    data = path.read_bytes()
    middle = data.index(b"\n", len(data) // 2) + 1
    bad.write_bytes(data[:middle] + b"not a row\n" + data[middle:])
    measured = timed({"good": lambda: read(path, columns), "bad": lambda: read(bad, columns)}, 2)
    loaded = measured["bad"].result
    assert (loaded.table.num_rows, loaded.rejected_count) == (rows, 1)
    good, with_bad = measured["good"].seconds, measured["bad"].seconds
    yield Row(
        f"read {path.stem} with one bad line", f"{rows:,} rows", with_bad, good, "without it", within(2)
    )


@contextmanager
def one_thread() -> Iterator[None]:
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        yield
    finally:
        pa.set_cpu_count(threads)
