"""Exact sums of floats in maps, against fractions: sums over joins with counts, in groups and totals, of maps
that read themselves, in queries; for huge, tiny and infinite values that come and go, in batches and one by
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.errors import DataError
from dlog.m3 import parse
from dlog.m3.runtime.runtime import Runtime

HEAD = """
CREATE STREAM R(a int, x double); CREATE STREAM S(a int, n long);
DECLARE MAP Q(double)[][] := 0; DECLARE MAP BY(double)[][a: int] := 0; DECLARE MAP V(double)[][a: int] := 0;
DECLARE MAP OWN(double)[][a: int] := 0; DECLARE MAP C(long)[][a: int] := 0;
DECLARE MAP N(long)[][a: int, n: long] := 0; DECLARE MAP PAIRS(double)[][a: int, n: long] := 0;
DECLARE MAP LAST(double)[][a: int] := 0;
DECLARE QUERY BY_N := AggSum([n], N(long)[][a, n] * V(double)[][a]);
DECLARE QUERY ALL := AggSum([], BY(double)[][a]) + -1 * Q(double)[][];
DECLARE QUERY SOME := AggSum([a], V(double)[][a] * {V(double)[][a] > 0} * C(long)[][a]);
DECLARE QUERY PAIRS := PAIRS(double)[][a, n];
"""
BATCH = """
ON BATCH UPDATE OF R {
  Q(double)[][] += AggSum([], (DELTA R)(a, x) * x * C(long)[][a]);
  BY(double)[][a] += AggSum([a], (DELTA R)(a, x) * C(long)[][a] * x);
  PAIRS(double)[][a, n] += AggSum([a, n], (DELTA R)(a, x) * x * N(long)[][a, n]);
  V(double)[][a] += AggSum([a], (DELTA R)(a, x) * x);
  OWN(double)[][a] += AggSum([a], (DELTA R)(a, x) * x);
  LAST(double)[][a] := AggSum([a], (DELTA R)(a, x) * x);
}
ON BATCH UPDATE OF S {
  Q(double)[][] += AggSum([], (DELTA S)(a, n) * V(double)[][a] * n);
  BY(double)[][a] += AggSum([a], (DELTA S)(a, n) * n * V(double)[][a]);
  PAIRS(double)[][a, n] += AggSum([a, n], (DELTA S)(a, n) * V(double)[][a]);
  OWN(double)[][a] += AggSum([a], (DELTA S)(a, n) * OWN(double)[][a] * 3);
  C(long)[][a] += AggSum([a], (DELTA S)(a, n) * n);
  N(long)[][a, n] += (DELTA S)(a, n);
}
"""
SINGLE = "".join(
    f"""
ON {event} R(a, x) {{
  Q(double)[][] += {sign} * x * C(long)[][a];
  BY(double)[][a] += {sign} * C(long)[][a] * x;
  PAIRS(double)[][a, n] += {sign} * x * N(long)[][a, n];
  V(double)[][a] += {sign} * x;
  OWN(double)[][a] += {sign} * x;
  LAST(double)[][a] := {sign} * x;
}}
ON {event} S(a, n) {{
  Q(double)[][] += {sign} * V(double)[][a] * n;
  BY(double)[][a] += {sign} * n * V(double)[][a];
  PAIRS(double)[][a, n] += {sign} * V(double)[][a];
  OWN(double)[][a] += {sign} * OWN(double)[][a] * 3;
  C(long)[][a] += {sign} * n;
  N(long)[][a, n] += {sign};
}}"""
    for event, sign in (("+", 1), ("-", -1))
)
MAPS = ("Q", "BY", "V", "OWN", "PAIRS", "BY_N", "ALL", "SOME", "LAST")

FLOATS = st.one_of(
    st.sampled_from(
        [
            0.5,
            1.0,
            -1.0,
            0.1,
            1e25,
            1e60,
            -1e60,
            1e308,
            -1e308,
            1.7976931348623157e308,
            5e-324,
            2.2e-308,
            -0.0,
            0.0,
        ]
    ),
    st.sampled_from([float("inf"), float("-inf"), float("nan")]),
    st.floats(-1000, 1000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-60, 60).map(lambda e: 2.0 ** (16 * e)),
)
COUNTS = st.one_of(
    st.integers(-3, 3), st.sampled_from([1 << 31, (1 << 31) - 1, -(1 << 32), 1 << 40, -(1 << 47)])
)
KEYS = st.integers(0, 3)


class Sum:
    """The definition: a fraction, and how many infinities and NaN there are."""

    def __init__(self, parts: Iterable[tuple[int, float]] = ()):
        self.finite, self.special = Fraction(0), Counter[str]()
        for weight, value in parts:
            self.add(weight, value)

    def add(self, weight: int, value: float) -> None:
        if np.isfinite(value):
            self.finite += weight * Fraction(value)
        else:
            self.special[str(value)] += weight

    def add_sum(self, weight: int, other: Sum) -> None:
        self.finite += weight * other.finite
        for name, n in list(other.special.items()):
            self.special[name] += weight * n

    @property
    def is_zero(self) -> bool:
        return self.finite == 0 and not any(self.special.values())

    def rounded(self) -> float:
        found = {name for name, n in self.special.items() if n > 0}
        if "nan" in found or len(found) == 2:
            return float("nan")
        if found:
            return float(next(iter(found)))
        try:
            return float(self.finite)
        except OverflowError:
            return float("inf") if self.finite > 0 else float("-inf")


class Naive:
    def __init__(self) -> None:
        self.r: list[tuple[int, float, int]] = []  # rows with multiplicities
        self.s: list[tuple[int, int, int]] = []
        self.own: dict[int, Sum] = {}
        self.last: dict[int, Sum] = {}

    def apply(self, relation: str, rows: list[tuple[Any, Any, int]], single: bool) -> None:
        if relation == "R":
            self.r += rows
            for a, x, m in rows:
                self.own.setdefault(a, Sum()).add(m, x)
            if not single:
                self.last = {}
            for a, x, m in rows:
                if single:
                    self.last[a] = Sum()
                self.last.setdefault(a, Sum()).add(m, x)
            return
        self.s += rows
        for parts in [[row] for row in rows] if single else [rows]:
            before = {a: Sum() for a in self.own}
            for a, found in self.own.items():
                before[a].add_sum(1, found)
            for a, _, m in parts:
                if a in before:
                    self.own[a].add_sum(3 * m, before[a])

    def map(self, name: str) -> dict[tuple[int, ...], Sum]:
        if name in ("OWN", "LAST"):
            return {(a,): found for a, found in (self.own if name == "OWN" else self.last).items()}
        if name == "ALL":
            return {}
        found: dict[tuple[int, ...], Sum] = {}
        values: dict[int, Sum] = {}
        for a, x, m in self.r:
            values.setdefault(a, Sum()).add(m, x)
        if name == "V":
            return {(a,): value for a, value in values.items()}
        counts = Counter[int]()
        for a, n, k in self.s:
            counts[a] += n * k
            key: tuple[int, ...] = {"Q": (), "BY": (a,), "PAIRS": (a, n), "BY_N": (n,)}.get(name, ())
            if name != "SOME" and a in values:
                found.setdefault(key, Sum()).add_sum(n * k if name in ("Q", "BY") else k, values[a])
        for a in values if name == "SOME" else ():
            if not values[a].rounded() <= 0:  # NaN is greater than all others
                found.setdefault((a,), Sum()).add_sum(counts[a], values[a])
        return found


def compare(runtime: Runtime, naive: Naive, names: Iterable[str] = MAPS) -> None:
    for name in names:
        table = [tuple(row.values()) for row in runtime[name].to_pylist()]
        seen = {row[:-1]: row[-1] for row in table}
        expected = {key: s.rounded() for key, s in naive.map(name).items() if not s.is_zero}
        if name in ("Q", "ALL"):
            expected = expected or {(): 0.0}
        assert bits(seen) == bits(expected), name


def bits(found: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], str]:
    """Comparable: NaN equals itself; -0.0 is not 0.0."""
    return {key: "nan" if value != value else value.hex() for key, value in found.items()}


R_ROWS = st.lists(st.tuples(KEYS, FLOATS), min_size=1, max_size=6)
S_ROWS = st.lists(st.tuples(KEYS, COUNTS), min_size=1, max_size=3)


@pytest.mark.parametrize("single", [False, True], ids=["batches", "tuples"])
@settings(max_examples=80)
@given(data=st.data())
def test_oracle_exact_sums(single: bool, data: Any) -> None:
    """Rows come and go: what was inserted is deleted again, in another order and in other batches."""
    runtime, naive = Runtime(parse(HEAD + (SINGLE if single else BATCH))), Naive()
    waiting: list[tuple[str, tuple[Any, Any]]] = []
    saved = None
    for _ in range(data.draw(st.integers(1, 6))):
        relation = data.draw(st.sampled_from(["R", "R", "S"]))
        rows: list[tuple[Any, Any]] = data.draw(R_ROWS if relation == "R" else S_ROWS)
        signs = [1] * len(rows)
        waiting += [(relation, row) for row in rows]
        gone = data.draw(st.lists(st.sampled_from(waiting), max_size=4, unique_by=id)) if waiting else []
        for one in gone:
            if one[0] == relation:
                waiting.remove(one)
                rows, signs = [*rows, one[1]], [*signs, -1]
        runtime.apply(relation, rows, signs)
        naive.apply(relation, [(*row, sign) for row, sign in zip(rows, signs, strict=True)], single)
        runtime.check()
        compare(runtime, naive)
        if data.draw(st.booleans()):
            saved = saved or runtime.save()
    for relation in "RS" if data.draw(st.booleans()) else "SR":
        rows = [row for name, row in waiting if name == relation]
        runtime.apply(relation, data.draw(st.permutations(rows)), [-1] * len(rows))
    empty = [name for name in MAPS if name not in ("OWN", "LAST")]
    compare(runtime, Naive(), empty)
    runtime.check()
    if saved is not None:
        before = {name: runtime[name] for name in MAPS}
        now = runtime.save()
        runtime.restore(saved)
        runtime.check()
        runtime.restore(now)
        runtime.check()
        assert all(repr(runtime[name]) == repr(before[name]) for name in MAPS)


@settings(max_examples=20)
@given(data=st.data())
def test_oracle_a_state_that_is_restored(data: Any) -> None:
    """After an aborted change, further changes lead to the same sums."""
    runtime, naive = Runtime(parse(HEAD + BATCH)), Naive()
    for kept in data.draw(st.lists(st.booleans(), min_size=2, max_size=5)):
        saved = runtime.save()
        rows = data.draw(R_ROWS) * data.draw(st.sampled_from([1, 40]))
        runtime.apply("R", rows)
        runtime.apply("S", counts := data.draw(S_ROWS))
        if kept:
            naive.apply("R", [(*row, 1) for row in rows], False)
            naive.apply("S", [(*row, 1) for row in counts], False)
        else:
            runtime.restore(saved)
        runtime.check()
        compare(runtime, naive)


@pytest.mark.parametrize("batch", [1, 3, 1000, 5000])
def test_differential_order_and_batches(batch: int) -> None:
    """The same bits whatever the order and grouping; many rows, of which some have wide sums."""
    rng = np.random.default_rng(batch)
    n = 5000
    a = rng.integers(0, 300, n)
    x = np.where(rng.random(n) < 0.02, 10.0 ** rng.integers(-300, 300, n), rng.uniform(-1000, 1000, n))
    rows, counts = [*zip(a.tolist(), x.tolist(), strict=True)], [(k, int(k % 7) - 3) for k in range(300)]
    expected = Runtime(parse(HEAD + BATCH))
    expected.apply("S", counts)
    expected.apply("R", rows)
    runtime = Runtime(parse(HEAD + (SINGLE if batch == 1 else BATCH)))
    order = rng.permutation(n)
    for start in range(0, n, batch):
        runtime.apply("R", [rows[i] for i in order[start : start + batch]])
    runtime.apply("S", counts)
    runtime.check()
    for name in ("Q", "BY", "V", "PAIRS", "BY_N"):
        assert runtime[name].equals(expected[name])
    by = {row["a"]: row["value"] for row in runtime["V"].to_pylist()}
    for key in range(300):
        assert by[key] == float(sum(Fraction(v) for k, v in rows if k == key))


def test_what_is_exact() -> None:
    """Products of sums of two relations are doubled floats, and so are the maps that only they read."""
    program = parse("""
    CREATE STREAM R(a int, x double); CREATE STREAM S(a int, y double);
    DECLARE MAP Q(double)[][] := 0; DECLARE MAP V_R(double)[][a: int] := 0; DECLARE MAP V_S(double)[][a: int]
    := 0; DECLARE MAP SHOWN(double)[][a: int] := 0; DECLARE QUERY Q := Q(double)[][];
    DECLARE QUERY SHOWN := SHOWN(double)[][a];
    ON + R(a, x) { Q(double)[][] += x * V_S(double)[][a]; V_R(double)[][a] += x; SHOWN(double)[][a] += x; }
    ON + S(a, y) { Q(double)[][] += y * V_R(double)[][a]; V_S(double)[][a] += y; SHOWN(double)[][a] +=
    V_S(double)[][a]; }
    """)
    stores = Runtime(program).compiled.stores
    assert {name: stores.map(name).is_exact for name in ("Q", "V_R", "V_S", "SHOWN")} == {
        "Q": False, "V_R": False, "V_S": True, "SHOWN": True,
    }  # fmt: skip
    assert not any(store.is_exact for store in Runtime(program, floats="plain").compiled.stores.all)


def test_plain_and_doubled_sums() -> None:
    program = "CREATE STREAM R(x double); DECLARE MAP Q(double)[][] := 0; DECLARE QUERY Q := Q(double)[][];"
    program += " ON BATCH UPDATE OF R { Q(double)[][] += AggSum([], (DELTA R)(x) * x); }"
    found = {}
    for floats in ("exact", "doubled", "plain"):
        runtime = Runtime(parse(program), floats=floats)
        runtime.apply("R", [(1e60,), (1e25,), (0.5,)])
        runtime.apply("R", [(1e25,), (1e60,)], [-1, -1])
        found[floats] = runtime["Q"]["value"][0].as_py()
    assert found["exact"] == 0.5 and found["plain"] == 0.0


def test_error_a_weight_beyond_64_bits() -> None:
    runtime = Runtime(parse(HEAD + BATCH))
    runtime.apply("S", [(1, 1 << 40)])
    runtime.apply("R", [(1, 1.0)], [1 << 20])
    with pytest.raises(DataError, match="does not fit 64 bits"):
        runtime.apply("R", [(1, 1.0)], [1 << 30])
