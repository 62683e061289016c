"""Rings beside numbers: a chain of matrices under changes of one entry and of rank 1, against numpy;
relations listed by their factors, against DuckDB.

numpy multiplies the matrices again, in the best order, with one thread of its BLAS: it stores dense arrays,
views store rows in hash tables.  The result is read from neither.  DuckDB computes the join again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa

from benchmarks.harness import DLOG, Row, at_least, compare, duck, faster, timed
from dlog.views.run.listing import Listing
from dlog.views.run.maintained import Maintained
from dlog.views.sql.files import parse_sql

CHAIN = """
    CREATE STREAM A(i int, ai double, j int, aj double);
    CREATE STREAM B(j int, bj double, k int, bk double);
    CREATE STREAM C(k int, ck double, l int, cl double);
    SELECT i, l, SUM(ai * aj * bj * bk * ck * cl) FROM A NATURAL JOIN B NATURAL JOIN C GROUP BY i, l;
"""
NAMES = {"A": ["i", "ai", "j", "aj"], "B": ["j", "bj", "k", "bk"], "C": ["k", "ck", "l", "cl"]}
STAR = """
    CREATE STREAM R(k int, a int); CREATE STREAM S(k int, b int); CREATE STREAM T(k int, c int);
    SELECT DISTINCT k, a, b, c FROM R NATURAL JOIN S NATURAL JOIN T;
"""


def benchmark(scale: float) -> Iterator[Row]:
    yield from matrix_chain(scale)
    yield from listing(scale)


# Matrices


def matrix_chain(scale: float) -> Iterator[Row]:
    """Changes of B, the matrix in the middle, by a column times a row."""
    n = at_least(6, 400 * scale)
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-3, 4, (n, n)) / 2 for _ in range(3))
    kept = Maintained(parse_sql(CHAIN), products={"B": [["j", "bj"], ["k", "bk"]]})
    ones = np.ones(n * n)
    for name, matrix in zip("ABC", (a, b, c), strict=True):
        i, j = np.indices((n, n)).reshape(2, -1)
        kept.apply(name, pa.table([i, matrix.reshape(-1), j, ones], names=NAMES[name]))
    entry = [(n // 2, 1.0)], [(n // 3, 1.5)]
    column, row = (list(enumerate((rng.integers(1, 3, n) / 2).tolist())) for _ in range(2))
    size = f"3 matrices of {n} x {n}"
    for what, left, right in (("one entry changes", *entry), ("a column times a row is added", column, row)):
        change = np.zeros((n, n))
        places = np.ix_([x for x, _ in left], [y for y, _ in right])
        change[places] = np.outer([u for _, u in left], [v for _, v in right])
        product = [(*x, *y) for x in left for y in right]
        done = 0

        def ours(left: list = left, right: list = right) -> None:
            nonlocal done
            done += 1
            kept.apply_product("B", left, right)

        def as_rows(product: list = product) -> None:
            nonlocal done
            done += 1
            kept.apply("B", product)

        def again(whole: np.ndarray = b + change) -> None:
            np.linalg.multi_dot([a, whole, c])

        peers = {"numpy again": again} | ({"as rows": as_rows} if len(product) > 1 else {})
        measured = timed({DLOG: ours, **peers}, runs=2)
        for peer in peers:
            aim = faster(2) if peer == "as rows" else None
            seconds = measured[DLOG].seconds
            yield Row(f"matrix chain: {what}", size, seconds, measured[peer].seconds, peer, aim)
        b += done * change
        assert np.array_equal(dense(kept, n), a @ b @ c)


def dense(kept: Maintained, n: int) -> np.ndarray:
    table, out = kept.result(), np.zeros((n, n))
    i, j, x = (column.to_numpy() for column in table.columns)
    out[i, j] = x
    return out


# Listing


def listing(scale: float) -> Iterator[Row]:
    """A star whose join has 100 to 1,000 times as many rows as its relations: after a row changes, the first
    thousand rows; and all rows.
    """
    keys, fan = at_least(2, 300 * scale), at_least(4, 30 * scale**0.5)
    k, x = np.indices((keys, fan)).reshape(2, -1)
    listed = Listing(parse_sql(STAR))
    tables = {name: pa.table([k, x], names=["k", v]) for name, v in zip("rst", "abc", strict=True)}
    for name, table in tables.items():
        listed.apply(name.upper(), table)
    connection = duck(**tables)
    sql = "SELECT k, a, b, c FROM r NATURAL JOIN s NATURAL JOIN t"  # its rows are distinct
    size = f"{3 * keys * fan:,} rows, {keys * fan**3:,} in the join"
    least = min(1000, keys * fan**3)
    changes = {DLOG: 0, "DuckDB again": 0}

    def changed(whose: str) -> int:
        changes[whose] += 1
        return fan + changes[whose]

    def first() -> bool:
        listed.apply("R", [(0, changed(DLOG))])
        return len(list(islice(listed.rows(), 1000))) >= least

    def first_again() -> bool:
        connection.execute("insert into r values (0, ?)", [changed("DuckDB again")])
        joined = connection.execute(f"{sql} ORDER BY k, a, b, c LIMIT 1000")
        return len(joined.fetchall()) >= least

    def whole() -> bool:
        return sum(words.shape[1] for words in listed.batches()) >= keys * fan**3

    def whole_again() -> bool:
        found = connection.sql(sql).to_arrow_table()
        return found is not None and found.num_rows >= keys * fan**3

    yield from compare(
        "listing: one row, then the first 1,000 in order",
        size,
        first,
        {"DuckDB again": first_again},
        {"DuckDB again": faster(10)},
    )
    yield from compare(
        "listing: all rows", size, whole, {"DuckDB again": whole_again}, {"DuckDB again": faster(2)}
    )
