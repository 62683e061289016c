"""The runtime by hand: large batches against DuckDB, rings, functions, limits, and what goes wrong."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dlog.errors import DataError, DlogError
from dlog.m3 import parse, register_function, register_ring
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, Ring, product_ring
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.runtime import Runtime

GROUPS = """
CREATE STREAM R(a int, b int); CREATE STREAM S(b int, c int); CREATE STREAM T(c int, d double);
DECLARE MAP Q(double)[][a: int] := 0;
DECLARE MAP M_R(long)[][a: int, b: int] := 0; DECLARE MAP M_S(long)[][b: int, c: int] := 0;
DECLARE MAP V_T(double)[][c: int] := 0; DECLARE MAP BIG(long)[][] := 0;
DECLARE QUERY Q := Q(double)[][a];
DECLARE QUERY PATHS := AggSum([a, c], M_R(long)[][a, b] * M_S(long)[][b, c]);
DECLARE QUERY SEEN := AggSum([], EXISTS(AggSum([a], M_R(long)[][a, b])));
ON BATCH UPDATE OF R {
  Q[][a] += AggSum([a], (DELTA R)(a, b) * M_S[][b, c] * V_T[][c]);
  M_R[][a, b] += (DELTA R)(a, b);
}
ON BATCH UPDATE OF S {
  Q[][a] += AggSum([a], M_R[][a, b] * V_T[][c] * (DELTA S)(b, c));
  M_S[][b, c] += (DELTA S)(b, c);
}
ON BATCH UPDATE OF T {
  Q[][a] += AggSum([a], AggSum([b, c], (DELTA T)(c, d) * d * M_S[][b, c]) * M_R[][a, b]);
  V_T[][c] += AggSum([c], (DELTA T)(c, d) * d);
}
"""


@pytest.mark.parametrize("batch", [7, 1000, 5000])
def test_oracle_duckdb_large_batches(batch: int) -> None:
    """Batches of many chunks, expansions of many entries, deletions of half of the rows."""
    rng = np.random.default_rng(batch)
    n = 200 if batch == 7 else 6000
    data = {
        "R": rng.integers(0, [30, n // 8], (n, 2)),
        "S": rng.integers(0, [n // 8, n // 8], (n, 2)),
        "T": rng.integers(0, [n // 8, 50], (n, 2)),
    }
    runtime = Runtime(parse(GROUPS))
    for start in range(0, n, batch):
        for name, rows in data.items():
            runtime.apply(name, pa.table({c: rows[start : start + batch, i] for i, c in enumerate("xy")}))
    gone = {name: rows[rng.permutation(n)[: n // 2]] for name, rows in data.items()}
    for name, rows in gone.items():
        runtime.apply(name, pa.table({"x": rows[:, 0], "y": rows[:, 1]}), -1)
    runtime.check()
    left = {name: _without(rows, gone[name]) for name, rows in data.items()}
    with duckdb.connect() as db:
        for name, columns in (("R", "ab"), ("S", "bc"), ("T", "cd")):
            db.register(name.lower(), pa.table({c: left[name][:, i] for i, c in enumerate(columns)}))
        sums = db.sql("SELECT a, sum(d) FROM r NATURAL JOIN s NATURAL JOIN t GROUP BY a").fetchall()
        paths = db.sql("SELECT a, c, count(*) FROM r NATURAL JOIN s GROUP BY a, c").fetchall()
        ((seen,),) = db.sql("SELECT count(DISTINCT a) FROM r").fetchall()
    assert rows_of(runtime, "Q") == {(a,): s for a, s in sums if s}
    assert rows_of(runtime, "PATHS") == {(a, c): s for a, c, s in paths}
    assert rows_of(runtime, "SEEN") == {(): seen}


def _without(rows: np.ndarray, gone: np.ndarray) -> np.ndarray:
    left: dict[tuple[int, ...], int] = {}
    for row in map(tuple, rows.tolist()):
        left[row] = left.get(row, 0) + 1
    for row in map(tuple, gone.tolist()):
        left[row] -= 1
    return np.array([row for row, times in left.items() for _ in range(times)])


def rows_of(runtime: Runtime, name: str) -> dict[tuple[Any, ...], Any]:
    columns = [column.to_pylist() for column in runtime[name].columns]
    return {row[:-1]: row[-1] for row in zip(*columns, strict=True) if row[-1] != 0}


# Rings

RING = """CREATE TYPE {0} FROM FILE 'x'; CREATE STREAM R(a int, b double); CREATE STREAM S(a int, c double);
DECLARE MAP M({0})[][a: int] := 0; DECLARE MAP N({0})[][a: int] := 0; DECLARE MAP Q({0})[][] := 0;
ON BATCH UPDATE OF R {{
  Q({0})[][] += AggSum([], (DELTA R)(a, b) * [lift: {0}](b) * N({0})[][a]);
  M({0})[][a] += AggSum([a], (DELTA R)(a, b) * [lift: {0}](b)); }}
ON BATCH UPDATE OF S {{
  Q({0})[][] += AggSum([], (DELTA S)(a, c) * [lift: {0}](c) * M({0})[][a]);
  N({0})[][a] += AggSum([a], (DELTA S)(a, c) * [lift: {0}](c)); }}"""


def lift_both(_: tuple[int, ...], columns: Any) -> np.ndarray:
    ring = product_ring(INTEGER_RING, FLOAT_RING)
    return ring.column([(1, x) for x in columns[0].tolist()])


def modular(p: int) -> Ring:
    """Numbers modulo p: a ring that kernels do not know."""
    return Ring(
        f"modulo {p}", ("int",), lambda v: (v % p,), lambda w: w[0],
        plus=lambda x, y: (x + y) % p, times=lambda x, y: (x * y) % p, minus=lambda x: -x % p,
        lift=lambda _, columns: columns[0].astype(np.int64)[:, None] % p,
    )  # fmt: skip


def run_ring(name: str, ring: Ring) -> tuple[Runtime, list, list]:
    register_ring(name, ring)
    source = random.Random(3)
    left = [(source.randint(0, 9), float(source.randint(0, 40))) for _ in range(2000)]
    right = [(source.randint(0, 9), float(source.randint(0, 40))) for _ in range(50)]
    runtime = Runtime(parse(RING.format(name)))
    for start in range(0, 2000, 500):
        runtime.apply("R", left[start : start + 500])
        runtime.apply("S", right[start // 40 : start // 40 + 12])
    right = [row for start in range(0, 2000, 500) for row in right[start // 40 : start // 40 + 12]]
    runtime.apply("R", left[:700], -1)
    runtime.check()
    return runtime, left[700:], right


def test_product_of_rings() -> None:
    both = product_ring(INTEGER_RING, FLOAT_RING)
    from dataclasses import replace

    runtime, left, right = run_ring("CountAndSum", replace(both, lift=lift_both))
    pairs = [(b, c) for a, b in left for x, c in right if a == x]
    (row,) = runtime["Q"].to_pylist()
    assert row["value"] == {"1": len(pairs), "2": pytest.approx(sum(b * c for b, c in pairs))}


def test_ring_of_functions_on_columns() -> None:
    runtime, left, right = run_ring("Modulo", modular(97))
    total = sum(int(b) * int(c) for a, b in left for x, c in right if a == x)
    assert rows_of(runtime, "Q") == {(): total % 97}
    runtime.apply("R", left, -1)
    assert rows_of(runtime, "Q") == {} == rows_of(runtime, "M")


# Functions, strings, one row at a time


def test_functions_of_users_get_whole_columns() -> None:
    sizes = []

    def doubled(x: np.ndarray) -> np.ndarray:
        sizes.append(len(x))
        return 2 * x

    register_function("doubled_for_test", doubled, ("number",))
    text = """CREATE STREAM R(s string, n int); DECLARE MAP Q(long)[][s: string] := 0;
    ON BATCH UPDATE OF R { Q[][t] += AggSum([t], (DELTA R)(s, n) * {s >= 'b'} * [doubled_for_test: long](n)
      * (t ^= [substring: string](s, 0, 1))); }"""
    runtime = Runtime(parse(text))
    runtime.apply("R", [("apple", 1), ("bean", 2), ("beet", 3), ("corn", 4)])
    assert rows_of(runtime, "Q") == {("b",): 10, ("c",): 8}
    assert sizes == [3]


def test_one_row_at_a_time_is_the_same_as_many() -> None:
    text = """CREATE STREAM R(a int, x double); DECLARE MAP Q(double)[][a: int] := 0;
    ON + R(a, x) { Q[][a] += x; } ON - R(a, x) { Q[][a] += -1 * x; }"""
    one, many = Runtime(parse(text)), Runtime(parse(text))
    rows = [(i % 5, i / 8) for i in range(3000)]
    for row in rows:
        one.insert("R", *row)
    one.delete("R", 0, 0.0)
    many.apply("R", rows)
    many.apply("R", [(0, 0.0)], [-1])
    assert rows_of(one, "Q") == rows_of(many, "Q")
    many.apply("R", rows, [-2] * len(rows))
    many.apply("R", [(7, 1.0)], [3])
    assert rows_of(many, "Q") == {**{k: -v for k, v in rows_of(one, "Q").items()}, (7,): 3.0}


# What goes wrong


def test_overflow_is_an_error_at_the_statement() -> None:
    text = """CREATE STREAM R(a long); DECLARE MAP Q(long)[][] := 0;
    DECLARE QUERY P := AggSum([], Q[][] * 2);
    ON BATCH UPDATE OF R { Q[][] += AggSum([], (DELTA R)(a) * a * a); }"""
    runtime = Runtime(parse(text))
    runtime.apply("R", [(3_000_000_000,)])
    with pytest.raises(DataError, match="an integer does not fit 64 bits in a value of Q") as error:
        runtime.apply("R", [(3_100_000_000,)])
    assert error.value.line == 3
    with pytest.raises(DlogError, match="the maps are no longer valid"):
        runtime.apply("R", [(1,)])
    for name in ("P", "Q"):  # a query, and a map as it is: neither gives a wrong number
        with pytest.raises(DlogError, match="the maps are no longer valid") as reported:
            runtime[name]
        assert reported.value.help and "restore()" in reported.value.help


def test_recovery_from_an_overflow() -> None:
    text = """CREATE STREAM R(a long, b int);
    DECLARE MAP Q(long)[][] := 0; DECLARE MAP P(long)[][b: int] := 0;
    ON BATCH UPDATE OF R { P[][b] += AggSum([b], (DELTA R)(a, b));
      Q[][] += AggSum([], (DELTA R)(a, b) * a * a); }"""
    runtime = Runtime(parse(text))
    runtime.apply("R", [(3_000_000_000, b) for b in range(1)])
    saved = runtime.save()
    with pytest.raises(DataError, match="does not fit 64 bits"):
        runtime.apply("R", [(3_100_000_000, b) for b in range(100)])
    with pytest.raises(DlogError, match="no longer valid"):
        runtime.save()
    for _ in range(2):  # and it is still there to go back to
        runtime.restore(saved)
        runtime.check()
        assert rows_of(runtime, "Q") == {(): 9 * 10**18} and rows_of(runtime, "P") == {(0,): 1}
        runtime.apply("R", [(5, b) for b in range(100)])
        assert rows_of(runtime, "Q") == {(): 9 * 10**18 + 2500}
        assert rows_of(runtime, "P") == {(b,): 1 + (b == 0) for b in range(100)}


@pytest.mark.parametrize("v", [2**20, 2**21 - 1, 2**31, 3 * 10**9, 2**40])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("rows", [1, 9])  # one by one, and together
def test_products_of_entries_near_the_limit(v: int, sign: int, rows: int) -> None:
    text = """CREATE STREAM R(k int, a long); CREATE STREAM S(k int, a long);
    DECLARE MAP V(long)[][k: int] := 0; DECLARE MAP W(long)[][k: int] := 0; DECLARE MAP Q(long)[][] := 0;
    ON + R(k, a) { V[][k] += a; W[][k] += 3; }
    ON + S(k, a) { Q[][] += a * V[][k] * V[][k] * W[][k]; }"""
    runtime = Runtime(parse(text))
    runtime.apply("R", [(1, sign * v)])
    expected = 5 * v * v * 3 * rows
    if expected < 2**63:
        runtime.apply("S", [(1, 5)] * rows)
        assert rows_of(runtime, "Q") == {(): expected}
    else:
        with pytest.raises(DataError, match="does not fit 64 bits in a value of Q") as error:
            runtime.apply("S", [(1, 5)] * rows)
        assert error.value.line == 4


@pytest.mark.parametrize(
    ("a", "fits"), [(2**31, True), (2**32 - 1, False), (-(2**31), True), (3037000499, True)]
)
def test_products_near_the_limit(a: int, fits: bool) -> None:
    text = """CREATE STREAM R(a long); DECLARE MAP Q(long)[][] := 0;
    ON BATCH UPDATE OF R { Q[][] += AggSum([], (DELTA R)(a) * a * a); }"""
    runtime = Runtime(parse(text))
    if fits:
        runtime.apply("R", [(a,)])
        assert rows_of(runtime, "Q") == {(): a * a}
    else:
        with pytest.raises(DataError, match="does not fit 64 bits"):
            runtime.apply("R", [(a,)])


def test_reserved_number_and_unknown_names() -> None:
    runtime = Runtime(parse("CREATE STREAM R(a long); DECLARE MAP Q(long)[][] := 0;"))
    with pytest.raises(DataError, match="is not between"):
        runtime.apply("R", [(-(2**63),)])
    with pytest.raises(DlogError, match="there is no relation S"):
        runtime.apply("S", [(1,)])
    with pytest.raises(DlogError, match="there is no query or map P"):
        runtime["P"]
    with pytest.raises(DataError, match="2 rows and 1 multiplicities"):
        runtime.apply("R", [(1,), (2,)], [1])


# The order of statements, in batches of several chunks

ORDERED = """CREATE STREAM R(a int, b int); DECLARE MAP M(long)[][a: int] := 0; DECLARE MAP Q(long)[][] := 0;
DECLARE MAP P(long)[][] := 0; DECLARE MAP N(long)[][a: int] := 0; DECLARE MAP D(long)[][a: int] := 0;
ON BATCH UPDATE OF R {{ {} }}"""
BEFORE = "Q[][] += AggSum([], (DELTA R)(a, b) * M[][a]);"
WRITE = "M[][a] += AggSum([a], (DELTA R)(a, b));"
AFTER = "P[][] += AggSum([], (DELTA R)(a, b) * M[][b]);"
ITSELF = "M[][b] += AggSum([b], (DELTA R)(a, b) * M[][a] * {a < 3});"
REPLACE = "D[][a] := AggSum([a], (DELTA R)(a, b) * b);"
USE = "N[][a] += D[][a]; Q[][] += AggSum([], D[][a] * N[][a]);"


@pytest.mark.parametrize(
    "statements",
    [
        (BEFORE, WRITE, AFTER),
        (WRITE, BEFORE, AFTER),
        (WRITE, ITSELF, AFTER),
        (REPLACE, USE, WRITE, REPLACE, USE),
    ],
)
def test_oracle_statements_see_the_effects_of_earlier_ones(statements: tuple[str, ...]) -> None:
    from dlog.m3 import check
    from tests.oracle.m3_naive import Naive

    program = check(parse(ORDERED.format(" ".join(statements))))
    runtime, oracle = Runtime(program, checked=True), Naive(program)
    rng = np.random.default_rng(4)
    for _ in range(3):
        rows = rng.integers(0, 40, (2600, 2))
        counts = rng.choice([1, 1, -1], 2600)
        runtime.apply("R", rows, counts)
        oracle.batch("R", zip(map(tuple, rows.tolist()), counts.tolist(), strict=True))
        for name in ("Q", "P", "M", "N", "D"):
            assert rows_of(runtime, name) == oracle.map(name), name


def test_oracle_single_tuples_in_order() -> None:
    """Rows one after the other where a statement reads what another writes; together where none does."""
    text = """CREATE STREAM R(a int); DECLARE MAP M(long)[][a: int] := 0; DECLARE MAP Q(long)[][] := 0;
    ON + R(a) {{ {} }}"""
    counts = "Q[][] += M[][a]; M[][a] += 1;"
    rows = np.random.default_rng(5).integers(0, 7, 3000)
    runtime = Runtime(parse(text.format(counts)))
    runtime.apply("R", rows)
    times = np.bincount(rows)
    assert rows_of(runtime, "Q") == {(): int((times * (times - 1) // 2).sum())}
    assert not runtime.compiled.together
    other = Runtime(parse(text.format("Q[][] += a; M[][a] += 1;")))
    other.apply("R", rows)
    assert rows_of(other, "Q") == {(): int(rows.sum())} and other.compiled.together


def test_slots_of_later_rows_are_prefetched() -> None:
    """Those of maps whose keys are all columns of the row, once for each map."""
    runtime = Runtime(
        parse("""CREATE STREAM R(v long, a long, b long);
        DECLARE MAP PAIRS(long)[][a: long, b: long] := 0; DECLARE MAP ONE(long)[][b: long] := 0;
        DECLARE MAP OTHER(long)[][c: long] := 0;
        ON + R(v, a, b) {
          ONE[][b] += PAIRS[][a, b];
          PAIRS[][a, b] += v;
          OTHER[][c] += (c ^= a + b) * v; }""")
    )
    compiled = runtime.compiled
    start = compiled.row_entries["R", "insert"]
    op, following, *operands = compiled.code[start:].tolist()
    pairs, one = (compiled.stores.map(name).address for name in ("PAIRS", "ONE"))
    assert op == o.ROW_AHEAD
    found = operands[: following - start - 2]
    assert found == [0, 2, 1, 2, 1, pairs, 1, 2, 1, one, 0]  # keys, columns, maps, which
