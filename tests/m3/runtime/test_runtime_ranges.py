"""Ordered maps: sums and scans of a range of one key against plain loops over dicts, with nodes so small that
trees are high; extremes of keys and bounds; how much is read and stored.
"""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dlog.errors import DataError
from dlog.jit.kernels import Kernel
from dlog.m3 import parse, register_ring
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, Ring, decimal_ring, product_ring
from dlog.m3.runtime import layout as o
from dlog.m3.runtime import worker
from dlog.m3.runtime.machine import machine, row_machine
from dlog.m3.runtime.maps import orders
from dlog.m3.runtime.runtime import Runtime

SMALL_LEAF = 4

# Conditions on k, given e and f, in M3 and in Python.
CONDITIONS: dict[str, tuple[str, Callable[[Any, Any, Any], bool]]] = {
    "ABOVE": ("{k > e}", lambda k, e, f: k > e),
    "FROM": ("{k >= e}", lambda k, e, f: k >= e),
    "BELOW": ("{e > k}", lambda k, e, f: k < e),
    "UP_TO": ("{e >= k}", lambda k, e, f: k <= e),
    "WITHIN": ("{k > e} * {k <= f}", lambda k, e, f: e < k <= f),
    "OPEN": ("{k > e} * {k < e}", lambda k, e, f: False),
    "EQUAL": ("{k = e}", lambda k, e, f: k == e),
    "NEAR": ("{(k + (-1 * e)) > -3} * {(e + (-1 * k)) >= f}", lambda k, e, f: k - e > -3 and e - k >= f),
    "FOUR": (
        "{k > e} * {k >= f} * {k < 12} * {(e + 20) >= k}",
        lambda k, e, f: k > e and k >= f and k < 12 and e + 20 >= k,
    ),
    "EITHER": ("({k < e} + ({k > f} * {k >= e}))", lambda k, e, f: k < e or (k > f and k >= e)),
    "ANY": ("{1 = 1}", lambda k, e, f: True),
}


def program(key: str, value: str, batch: bool) -> str:
    """Sums and entries of M, which has a key before and one after k, and of FLAT, which has only k."""
    maps = {
        "M": f"p: long, k: {key}, x: long",
        "FLAT": f"k: {key}",
        "MOVED": f"id: long, k: {key}",
        "MOVED_SUM": "id: long",
    }
    lines = [
        f"CREATE STREAM R(p long, k {key}, x long, v {value});",
        f"CREATE STREAM ASK(id long, p long, e {key}, f {key});",
    ]
    given = "(DELTA ASK)(id, p, e, f) * " if batch else ""
    moved = "({k < e} + (-1 * {k < f}))"
    body = [
        f"MOVED[][id, k] += AggSum([id, k], {given}M[][p, k, x] * {moved});",
        f"MOVED_SUM[][id] += AggSum([id], {given}FLAT[][k] * {moved});",
    ]
    for name, (condition, _) in CONDITIONS.items():
        maps |= {f"SUM_{name}": "id: long", f"FLAT_{name}": "id: long", f"KEPT_{name}": f"id: long, k: {key}"}
        body += [
            f"SUM_{name}[][id] += AggSum([id], {given}M[][p, k, x] * {condition} * 2);",
            f"FLAT_{name}[][id] += AggSum([id], {given}FLAT[][k] * {condition});",
            f"KEPT_{name}[][id, k] += AggSum([id, k], {given}M[][p, k, x] * {condition});",
        ]
    lines += [f"DECLARE MAP {name}({value})[][{keys}] := 0;" for name, keys in maps.items()]
    if batch:
        rows = "(DELTA R)(p, k, x, v) * v"
        lines.append(f"ON BATCH UPDATE OF R {{ M[][p, k, x] += AggSum([p, k, x], {rows});")
        lines.append(f"FLAT[][k] += AggSum([k], {rows}); }}")
        lines.append(f"ON BATCH UPDATE OF ASK {{ {' '.join(body)} }}")
    else:
        lines.append("ON + R(p, k, x, v) { M[][p, k, x] += v; FLAT[][k] += v; }")
        lines.append("ON - R(p, k, x, v) { M[][p, k, x] += -1 * v; FLAT[][k] += -1 * v; }")
        lines.append(f"ON + ASK(id, p, e, f) {{ {' '.join(body)} }}")
    return "\n".join(lines)


class Model:
    """The same by loops over dicts."""

    def __init__(self) -> None:
        self.m: dict[tuple, Any] = defaultdict(int)
        self.found: dict[str, dict[tuple, Any]] = defaultdict(lambda: defaultdict(int))

    def change(self, row: tuple, sign: int) -> None:
        self.m[row[:3]] += sign * row[3]

    def ask(self, id: int, p: int, e: Any, f: Any) -> None:
        for (q, k, _x), v in self.m.items():
            moved = (k < e) - (k < f)
            self.found["MOVED_SUM"][id,] += v * moved
            if q == p:
                self.found["MOVED"][id, k] += v * moved
            for name, (_, holds) in CONDITIONS.items():
                if holds(k, e, f):
                    self.found[f"FLAT_{name}"][id,] += v
                    if q == p:
                        self.found[f"SUM_{name}"][id,] += 2 * v
                        self.found[f"KEPT_{name}"][id, k] += v


def entries(runtime: Runtime, name: str) -> dict[tuple, Any]:
    *keys, values = (column.to_pylist() for column in runtime[name].columns)
    return dict(zip(zip(*keys, strict=True), values, strict=True))


def heights(runtime: Runtime) -> set[int]:
    maps, found = runtime.maps, set()
    for address in maps.addresses:
        first, n = int(maps.words[address + o.M_ORDER]), int(maps.words[address + o.M_ORDERS])
        found |= {int(maps.words[first + i * o.T_WORDS + o.T_HEIGHT]) for i in range(n)}
    return found


@pytest.fixture(params=[SMALL_LEAF, orders.LEAF])
def leaf(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(orders, "LEAF", request.param)
    return request.param


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("value", ["long", "double"])
@pytest.mark.parametrize("key", ["long", "double"])
def test_oracle_dict(key: str, value: str, batch: bool, leaf: int) -> None:
    rng, model, seen = random.Random(f"{key} {value} {batch} {leaf}"), Model(), set[int]()
    runtime = Runtime(parse(program(key, value, batch)))
    live: list[tuple] = []
    ids = iter(range(10**6))

    def a_key() -> Any:
        return rng.randint(-99, 99) / (4 if key == "double" else 1)

    for size in (1, 3, 60, 1, 1, 150, 5, 40, 1, 200):
        changes = []
        for _ in range(size):
            if live and rng.random() < 0.3:
                changes.append((live.pop(rng.randrange(len(live))), -1))
            else:
                v = rng.randint(-3, 3) / (2 if value == "double" else 1)
                live.append((rng.randint(0, 2), a_key(), rng.randint(0, 2), v))
                changes.append((live[-1], 1))
        runtime.apply("R", [row for row, _ in changes], [sign for _, sign in changes])
        for row, sign in changes:
            model.change(row, sign)
        asked = [(next(ids), rng.randint(0, 3), a_key(), a_key()) for _ in range(rng.choice((1, 2, 30)))]
        runtime.apply("ASK", asked)
        for row in asked:
            model.ask(*row)
        seen |= heights(runtime)
        runtime.check()
    for name, wanted in model.found.items():
        assert entries(runtime, name) == {k: v for k, v in wanted.items() if v}, name
    runtime.apply("R", live, [-1] * len(live))
    runtime.apply("ASK", [(next(ids), 0, 0, 0)])
    runtime.check()
    assert leaf != SMALL_LEAF or {0, 2, 3, 4} <= seen
    assert not entries(runtime, "M")


SORTED = """
CREATE STREAM R(k long, v long); CREATE STREAM ASK(id long, e long, f long);
DECLARE MAP M(long)[][k: long] := 0;
DECLARE MAP S(long)[][id: long] := 0; DECLARE MAP T(long)[][id: long] := 0;
ON BATCH UPDATE OF R { M[][k] += AggSum([k], (DELTA R)(k, v) * v); }
ON BATCH UPDATE OF ASK {
  S[][id] += AggSum([id], (DELTA ASK)(id, e, f) * M[][k] * {k >= e} * {k < f});
  T[][id] += AggSum([id], (DELTA ASK)(id, e, f) * M[][k] * {k > e});
}
"""


def test_oracle_sorted_arrays(leaf: int) -> None:
    """Many changes at once: they are applied one by one, or trees are made again; sums of a few rows, and of
    so many that one pass serves all.
    """
    rng = np.random.default_rng(leaf)
    runtime = Runtime(parse(SORTED))
    model: dict[int, int] = {}
    id = 0
    for size, asked in ((3000, 40), (50, 700), (2000, 3), (1, 1), (5000, 900), (20, 20)):
        keys, values = rng.integers(-3000, 3000, size), rng.integers(-2, 3, size)
        runtime.apply("R", np.array([keys, values]).T)
        for k, v in zip(keys.tolist(), values.tolist(), strict=True):
            model[k] = model.get(k, 0) + v
        present = np.array(sorted(k for k, v in model.items() if v))
        sums = np.concatenate([[0], np.cumsum([model[k] for k in present.tolist()])])
        bounds = np.sort(rng.integers(-3100, 3100, (asked, 2)))
        rows = [(id + i, e, f) for i, (e, f) in enumerate(bounds.tolist())]
        runtime.apply("ASK", rows)
        within, above = entries(runtime, "S"), entries(runtime, "T")
        runtime.check()
        for i, e, f in rows:
            low, high = np.searchsorted(present, [e, f])
            assert within.get((i,), 0) == sums[high] - sums[low]
            assert above.get((i,), 0) == sums[-1] - sums[np.searchsorted(present, e, "right")]
        id += asked


BIGGEST = 2**63 - 1


def test_extremes() -> None:
    """Keys and bounds at the end of integers; sums whose parts do not fit, but which do; one entry; none."""
    runtime = Runtime(parse(SORTED))
    runtime.apply("ASK", [(0, -BIGGEST, BIGGEST)])
    runtime.apply("R", [(BIGGEST, 1), (-BIGGEST, 2), (0, 4)])
    runtime.apply("ASK", [(1, -BIGGEST, BIGGEST), (2, BIGGEST, BIGGEST), (3, BIGGEST, -BIGGEST), (4, 0, 1)])
    assert entries(runtime, "S") == {(1,): 6, (4,): 4}
    assert entries(runtime, "T") == {(1,): 5, (4,): 1}
    runtime.apply("R", [(k, BIGGEST) for k in (10, 11, 12)] + [(13, -BIGGEST), (14, -BIGGEST)])
    runtime.apply("ASK", [(5, 10, 15), (6, 14, 100)])
    assert entries(runtime, "S")[5,] == BIGGEST
    assert entries(runtime, "S")[6,] == -BIGGEST
    saved = runtime.save()
    with pytest.raises(DataError, match="does not fit 64 bits"):
        runtime.apply("ASK", [(7, 10, 12)])
    runtime.restore(saved)
    runtime.apply("ASK", [(8, 14, 15)])
    assert entries(runtime, "S")[8,] == -BIGGEST
    runtime.check()


def test_a_bound_beyond_64_bits_holds_for_all_or_none() -> None:
    """What is added to a key may be beyond 64 bits; the comparison is still right."""
    text = """CREATE STREAM R(k long); CREATE STREAM ASK(e long);
    DECLARE MAP M(long)[][k: long] := 0; DECLARE MAP LESS(long)[][] := 0; DECLARE MAP MORE(long)[][] := 0;
    ON + R(k) { M[][k] += 1; }
    ON + ASK(e) { LESS[][] += M[][k] * {(k + e) < 10}; MORE[][] += M[][k] * {(e + (-1 * k)) > 10}; }"""
    runtime = Runtime(parse(text))
    runtime.apply("R", [(BIGGEST,), (0,), (5,), (-BIGGEST,)])
    runtime.apply("ASK", [(BIGGEST,)])
    assert runtime["LESS"].to_pylist() == [{"value": 1}]  # -BIGGEST
    assert runtime["MORE"].to_pylist() == [{"value": 3}]


# Conditions on an integer k, given integers e and f and a float x, in M3 and in Python.
AT_THE_END: list[tuple[str, Callable[[int, int, int, float], bool]]] = [
    ("{k < e}", lambda k, e, f, x: k < e),
    ("{k <= e}", lambda k, e, f, x: k <= e),
    ("{k > e}", lambda k, e, f, x: k > e),
    ("{k >= e} * {k <= f}", lambda k, e, f, x: e <= k <= f),
    ("{k = e}", lambda k, e, f, x: k == e),
    ("{(k + f) < e}", lambda k, e, f, x: k + f < e),
    ("{(k + f) >= e}", lambda k, e, f, x: k + f >= e),
    ("{(f + (-1 * k)) > e}", lambda k, e, f, x: f - k > e),
    ("{(f + (-1 * k)) <= e} * {k < e}", lambda k, e, f, x: f - k <= e and k < e),
    ("{k < x}", lambda k, e, f, x: float(k) < x),
    ("{k <= x} * {k > e}", lambda k, e, f, x: float(k) <= x and k > e),
    ("{k > x}", lambda k, e, f, x: float(k) > x),
    ("{x <= k} * {(k + f) <= e}", lambda k, e, f, x: float(k) >= x and k + f <= e),
]


@pytest.mark.parametrize("seed", range(4))
def test_oracle_bounds_of_any_size(leaf: int, seed: int) -> None:
    """Bounds at the ends of integers and of the integers that are floats, behind one key and behind none."""
    names = [f"{kind}{i}" for i in range(len(AT_THE_END)) for kind in ("M", "FLAT")]
    body = [
        f"SUM_{kind}{i}[][id] += AggSum([], {rows} * {condition});"
        for i, (condition, _) in enumerate(AT_THE_END)
        for kind, rows in (("M", "M[][p, k]"), ("FLAT", "FLAT[][k]"))
    ]
    text = f"""CREATE STREAM R(p long, k long, v long);
    CREATE STREAM ASK(id long, p long, e long, f long, x double);
    DECLARE MAP M(long)[][p: long, k: long] := 0; DECLARE MAP FLAT(long)[][k: long] := 0;
    {" ".join(f"DECLARE MAP SUM_{name}(long)[][id: long] := 0;" for name in names)}
    ON + R(p, k, v) {{ M[][p, k] += v; FLAT[][k] += v; }}
    ON + ASK(id, p, e, f, x) {{ {" ".join(body)} }}"""
    rng, runtime = random.Random(seed), Runtime(parse(text))
    ends = [0, 2**53, -(2**53), BIGGEST, -BIGGEST, BIGGEST // 2]
    near = lambda: max(-BIGGEST, min(BIGGEST, rng.choice(ends) + rng.randint(-3, 3)))  # noqa: E731
    reals = [0.0, -0.0, 0.5, -1.5, 2.0**53, -(2.0**53), 2.0**63, -(2.0**63), 1e300, math.inf, -math.inf]
    rows = [(rng.choice((1, BIGGEST, -BIGGEST)), near(), rng.randint(1, 9)) for _ in range(120)]
    runtime.apply("R", rows)
    asked = [(i, rng.choice(rows)[0], near(), near(), rng.choice(reals)) for i in range(80)]
    for ask in asked:
        runtime.apply("ASK", [ask])
    for number, (condition, holds) in enumerate(AT_THE_END):
        behind, flat = entries(runtime, f"SUM_M{number}"), entries(runtime, f"SUM_FLAT{number}")
        for i, p, e, f, x in asked:
            found = [(q, v) for q, k, v in rows if holds(k, e, f, x)]
            assert flat.get((i,), 0) == sum(v for _, v in found), (condition, e, f, x)
            assert behind.get((i,), 0) == sum(v for q, v in found if q == p), (condition, p, e, f, x)
    runtime.check()


def test_floats_as_keys() -> None:
    """-0.0 is 0.0, infinities are ends; what is added to a key is rounded as in a scan."""
    text = """CREATE STREAM R(k double); CREATE STREAM ASK(id long, e double, c double);
    DECLARE MAP M(long)[][k: double] := 0;
    DECLARE MAP S(long)[][id: long] := 0; DECLARE MAP T(long)[][id: long] := 0;
    ON + R(k) { M[][k] += 1; }
    ON + ASK(id, e, c) { S[][id] += AggSum([], M[][k] * {k >= e});
                         T[][id] += AggSum([], M[][k] * {(k + (-1 * e)) > c}); }"""
    runtime = Runtime(parse(text))
    rng = random.Random(7)
    keys = [-0.0, 0.0, math.inf, -math.inf, 1e308, 5e-324, 0.1, 0.3, *(rng.random() for _ in range(300))]
    runtime.apply("R", [(k,) for k in keys])
    asked = [(i, rng.choice(keys), rng.choice((0.1, 0.2, rng.random() / 2))) for i in range(200)]
    asked = [(i, e, c) for i, e, c in asked if math.isfinite(e)]
    runtime.apply("ASK", asked)
    at_least, far = entries(runtime, "S"), entries(runtime, "T")
    for i, e, c in asked:
        assert at_least.get((i,), 0) == sum(k >= e for k in keys)
        assert far.get((i,), 0) == sum(k - e > c for k in keys)


def test_sums_of_floats_leave_nothing_behind() -> None:
    """Sums of inner nodes are made of what is there: large values that went do not disturb small ones."""
    text = """CREATE STREAM R(k long, v double); CREATE STREAM ASK(id long, e long);
    DECLARE MAP M(double)[][k: long] := 0; DECLARE MAP S(long)[][id: long] := 0;
    ON + R(k, v) { M[][k] += v; } ON - R(k, v) { M[][k] += -1 * v; }
    ON + ASK(id, e) { S[][id] += {AggSum([], M[][k] * {k > e}) = 0.75}; }"""
    runtime = Runtime(parse(text))
    huge = [(k, v * (1 + k / 7)) for k in range(1000, 1300) for v in (1e300, -1e290, 3e-300)]
    runtime.apply("R", [(1, 0.5), (2, 0.25)])
    runtime.apply("R", huge)
    runtime.apply("ASK", [(0, 0)])
    runtime.apply("R", huge, [-1] * len(huge))
    runtime.apply("ASK", [(1, 0)])
    runtime.check()
    assert entries(runtime, "S") == {(1,): 1}
    assert runtime.maps.shapes[0].summed == 2  # M is read by a condition: its sums are doubled floats


EXACT = """
CREATE STREAM R(p long, k long, v double); CREATE STREAM ASK(id long, p long, e long, f long);
DECLARE MAP M(double)[][p: long, k: long] := 0;
DECLARE MAP S(double)[][id: long] := 0; DECLARE MAP KEPT(double)[][id: long, k: long] := 0;
ON + R(p, k, v) { M[][p, k] += v; } ON - R(p, k, v) { M[][p, k] += -1 * v; }
"""
ASKED = "S[][id] += AggSum([id], GIVEN 3 * M[][p, k] * {k > e} * {k <= f});"


@pytest.mark.parametrize("batch", [False, True])
def test_exact_sums_of_floats(batch: bool, leaf: int) -> None:
    """As large and as small as floats are, so that sums are wide: each range sum is the nearest float."""
    if batch:
        text = f"ON BATCH UPDATE OF ASK {{ {ASKED.replace('GIVEN', '(DELTA ASK)(id, p, e, f) *')} }}"
    else:
        text = f"ON + ASK(id, p, e, f) {{ {ASKED.replace('GIVEN', '')} }}"
    runtime = Runtime(parse(EXACT + text))
    rng, live, id = random.Random(f"{batch} {leaf}"), list[tuple[int, int, float]](), 0
    saved, before = runtime.save(), list[tuple[int, int, float]]()
    for step in range(14):
        if step == 9:
            runtime.restore(saved)
            live = before[:]
        if step == 5:
            saved, before = runtime.save(), live[:]
        gone = [live.pop(rng.randrange(len(live))) for _ in range(min(len(live), rng.choice((0, 1, 60))))]
        come = [
            (
                rng.randint(0, 1),
                rng.randint(0, 150),
                rng.choice((-1, 1)) * rng.random() * 10.0 ** rng.choice((-300, -3, 0, 2, 290)),
            )
            for _ in range(rng.choice((1, 80)))
        ]
        live += come
        runtime.apply("R", gone + come, [-1] * len(gone) + [1] * len(come))
        asked = [(id + i, rng.randint(0, 1), rng.randint(-1, 150), rng.randint(0, 150)) for i in range(12)]
        id += len(asked)
        runtime.apply("ASK", asked)
        runtime.check()
        found = entries(runtime, "S")
        for i, p, e, f in asked:
            terms = [v for q, k, v in live if q == p and e < k <= f]
            assert found.get((i,), 0.0) == math.fsum(3 * [*terms])
    runtime.apply("R", live, [-1] * len(live))
    runtime.apply("ASK", [(id, 0, -1, 200)])
    runtime.check()
    assert not entries(runtime, "M")


def test_exact_sums_with_infinities() -> None:
    text = f"ON + ASK(id, p, e, f) {{ {ASKED.replace('GIVEN', '')} }}"
    runtime = Runtime(parse(EXACT + text))
    runtime.apply("R", [(0, k, 1.5) for k in range(100)])
    runtime.apply("R", [(0, 50, math.inf)])
    runtime.apply("ASK", [(0, 0, -1, 99), (1, 0, 50, 99), (2, 0, 49, 50)])
    runtime.apply("R", [(0, 50, math.inf)], [-1])
    runtime.apply("ASK", [(3, 0, -1, 99)])
    runtime.check()
    assert entries(runtime, "S") == {(0,): math.inf, (1,): 3 * 49 * 1.5, (2,): math.inf, (3,): 450.0}
    assert list(runtime.compiled.row_entries) == [("R", "insert"), ("R", "delete"), ("ASK", "insert")]


def test_elements_of_rings(leaf: int) -> None:
    """Decimals, and pairs of a count and a sum, are summed part by part; elements of a ring made of functions
    are read one by one.
    """
    pair = product_ring(INTEGER_RING, FLOAT_RING)
    lifts: dict[str, tuple[Ring, Any, Callable[[list[float]], Any]]] = {
        "RangeCents": (
            decimal_ring(2),
            lambda _, columns: (100 * columns[0]).astype(np.int64)[:, None],
            lambda values: Decimal(str(sum(values))),
        ),
        "RangePair": (
            pair,
            lambda _, columns: pair.column([(1, v) for v in columns[0].tolist()]),
            lambda values: {"1": len(values), "2": sum(values)},
        ),
        "RangeModulo": (
            Ring(
                "modulo 97", ("int",), lambda v: (v % 97,), lambda w: w[0],
                plus=lambda x, y: (x + y) % 97, times=lambda x, y: (x * y) % 97, minus=lambda x: -x % 97,
            ),
            lambda _, columns: columns[0].astype(np.int64)[:, None] % 97,
            lambda values: sum(int(v) for v in values) % 97,
        ),
    }  # fmt: skip
    for name, (ring, lift, total) in lifts.items():
        register_ring(name, ring.with_lift("lift", lift))
        text = f"""CREATE TYPE {name} FROM FILE 'x';
        CREATE STREAM R(k long, v double); CREATE STREAM ASK(id long, e long);
        DECLARE MAP M({name})[][k: long] := 0; DECLARE MAP S({name})[][id: long] := 0;
        ON BATCH UPDATE OF R {{ M[][k] += AggSum([k], (DELTA R)(k, v) * [lift: {name}](v)); }}
        ON BATCH UPDATE OF ASK {{ S[][id] += AggSum([id], (DELTA ASK)(id, e) * M[][k] * {{k > e}}); }}"""
        runtime = Runtime(parse(text))
        rows = [(k % 60, k % 7 + 0.25 * (k % 4)) for k in range(1, 150)]
        runtime.apply("R", rows[:100])
        runtime.apply("ASK", [(-1, 3)])
        runtime.apply("R", rows[100:])
        runtime.apply("R", rows[:50], [-1] * 50)
        runtime.apply("ASK", [(e, e) for e in range(50)])
        runtime.check()
        found = entries(runtime, "S")
        for e in range(50):
            assert found.get((e,), total([])) == total([v for k, v in rows[50:] if k > e]), name


def test_trees_are_made_again_after_going_back(leaf: int) -> None:
    runtime = Runtime(parse(SORTED))
    runtime.apply("R", [(i, 1) for i in range(100)])
    before = runtime.save()
    runtime.apply("ASK", [(1, 10, 20)])
    for id, saved in ((10, before), (20, runtime.save())):
        runtime.apply("R", [(15, -1), (200, 5)])
        runtime.apply("ASK", [(id, 10, 20)])
        assert entries(runtime, "S")[id,] == 9
        runtime.restore(saved)
        runtime.check()
        runtime.apply("ASK", [(id, 10, 20), (id + 1, 0, 1000)])
        runtime.check()
        assert entries(runtime, "S")[id,] == 10
        assert entries(runtime, "S")[id + 1,] == 100


def test_a_map_that_is_replaced_is_ordered_anew(leaf: int) -> None:
    """`:=` empties a tree; what comes then goes into it."""
    text = """CREATE STREAM R(k long, v long);
    DECLARE MAP LAST(long)[][k: long] := 0; DECLARE MAP ABOVE(long)[][k: long] := 0;
    ON BATCH UPDATE OF R {
      LAST[][k] := AggSum([k], (DELTA R)(k, v) * v);
      ABOVE[][k] := AggSum([k], (DELTA R)(k, v) * v * AggSum([], LAST[][q] * {q > k}));
    }"""
    runtime = Runtime(parse(text))
    rng = random.Random(3)
    for size in (1, 40, 2, 300, 5):
        rows = [(rng.randint(0, 500), rng.randint(1, 9)) for _ in range(size)]
        runtime.apply("R", rows)
        runtime.check()
        wanted: dict[tuple, int] = defaultdict(int)
        for k, v in rows:
            wanted[k,] += v * sum(w for q, w in rows if q > k)
        assert entries(runtime, "ABOVE") == {k: v for k, v in wanted.items() if v}


def test_parts_give_the_same() -> None:
    """Several machines have trees of their own; a query reads the sum of their maps."""
    text = """CREATE STREAM R(b long, k long, v long);
    DECLARE MAP M(long)[][b: long, k: long] := 0; DECLARE MAP S(long)[][b: long] := 0;
    DECLARE QUERY ABOVE := AggSum([b], M[][b, k] * AggSum([], M[][b, q] * {q > k}));
    ON + R(b, k, v) { S[][b] += v * AggSum([], M[][b, q] * {q > k}); M[][b, k] += v; }"""
    rng = random.Random(11)
    rows = [(rng.randint(0, 9), rng.randint(0, 99), rng.randint(1, 5)) for _ in range(3000)]
    found = []
    for threads in (None, 2):
        runtime = Runtime(parse(text), threads=threads)
        for start in range(0, len(rows), 1000):
            runtime.apply("R", rows[start : start + 1000])
            found.append((runtime["S"].to_pylist(), runtime["ABOVE"].to_pylist()))
        runtime.check()
    assert found[:3] == found[3:]


# ---- vectors: sum of a * d over R(a, b), S(c, d) with b < c; bounds from one sum to another

PAIRS = """
CREATE STREAM R(a long, b long); CREATE STREAM S(c long, d long); CREATE STREAM ASK(x long, y long);
DECLARE MAP Q(long)[][] := 0; DECLARE MAP BY_B(long)[][b: long] := 0; DECLARE MAP BY_C(long)[][c: long] := 0;
DECLARE MAP ABOVE(long)[][x: long] := 0; DECLARE MAP STEP(long)[][x: long, y: long] := 0;
ON + R(a, b) { Q[][] += a * AggSum([], BY_C[][c] * {b < c}); BY_B[][b] += a; }
ON + S(c, d) { Q[][] += d * AggSum([], BY_B[][b] * {b < c}); BY_C[][c] += d; }
ON + ASK(x, y) {
  ABOVE[][x] := AggSum([], BY_C[][c] * {c > x});
  STEP[][x, y] := AggSum([], BY_C[][c] * ({c > y} + (-1 * {c > x})));
}
"""


@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
def test_vectors_of_incremental_initial_values(op: str) -> None:
    """The sum for one bound is that for another plus what lies between, whichever is greater."""
    rows_r, rows_s = [(3, 1), (1, 4), (2, 2)], [(2, 7), (4, 3), (5, 2), (1, 1)]
    flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op]
    text = PAIRS.replace("c > ", f"c {flipped} ").replace("b < c", f"b {op} c")
    runtime = Runtime(parse(text))
    runtime.apply("R", rows_r)
    runtime.apply("S", rows_s)
    holds = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}[op]
    assert runtime["Q"].to_pylist() == [
        {"value": sum(a * d for a, b in rows_r for c, d in rows_s if holds(b, c))}
    ]
    pairs = [(x, y) for x in range(6) for y in range(6)]
    runtime.apply("ASK", pairs)
    above, step = entries(runtime, "ABOVE"), entries(runtime, "STEP")
    for x, y in pairs:
        assert above.get((x,), 0) == sum(d for c, d in rows_s if holds(x, c))
        assert above.get((x,), 0) + step.get((x, y), 0) == above.get((y,), 0)


def test_vector_where_a_printed_formula_is_wrong() -> None:
    """S = {(2, 7)}: from bound 1 to bound 2 the sum falls from 7 to 0."""
    runtime = Runtime(parse(PAIRS))
    runtime.apply("S", [(2, 7)])
    runtime.apply("ASK", [(1, 2), (2, 1)])
    assert entries(runtime, "ABOVE") == {(1,): 7}
    assert entries(runtime, "STEP") == {(1, 2): -7, (2, 1): 7}


# ---- a stream of orders


ORDERS = """
CREATE STREAM BIDS(t long, broker long, volume long, price long);
CREATE STREAM ASKS(t long, broker long, volume long, price long);
DECLARE MAP FAR(long)[][b: long] := 0; DECLARE MAP LATER(long)[][b: long] := 0;
DECLARE MAP BID_COUNT(long)[][b: long, p: long] := 0; DECLARE MAP BID_VOLUME(long)[][b: long, p: long] := 0;
DECLARE MAP ASK_COUNT(long)[][b: long, p: long] := 0; DECLARE MAP ASK_VOLUME(long)[][b: long, p: long] := 0;
DECLARE MAP AT(long)[][b: long, t: long] := 0; DECLARE MAP AMOUNT(long)[][b: long, t: long] := 0;
"""
FAR = "({(q + (-1 * p)) > 10} + {(p + (-1 * q)) > 10})"
for _sign, _op in ((1, "+"), (-1, "-")):
    ORDERS += f"""
ON {_op} BIDS(t, b, v, p) {{
  FAR[][b] += {_sign} * AggSum([b], (ASK_VOLUME[][b, q] + (-1 * v * ASK_COUNT[][b, q])) * {FAR});
  LATER[][b] += {_sign} * (
    AggSum([], v * p * AT[][b, s] * {{t > s}}) + (-1 * AggSum([], AMOUNT[][b, s] * {{t > s}})) +
    AggSum([], AMOUNT[][b, s] * {{s > t}}) + (-1 * v * p * AggSum([], AT[][b, s] * {{s > t}})));
  BID_COUNT[][b, p] += {_sign}; BID_VOLUME[][b, p] += {_sign} * v;
  AT[][b, t] += {_sign}; AMOUNT[][b, t] += {_sign} * v * p;
}}
ON {_op} ASKS(t, b, v, q) {{
  FAR[][b] += {_sign} * AggSum([b], ((v * BID_COUNT[][b, p]) + (-1 * BID_VOLUME[][b, p])) * {FAR});
  ASK_COUNT[][b, q] += {_sign}; ASK_VOLUME[][b, q] += {_sign} * v;
}}
"""


def test_orders_by_formula() -> None:
    """After each of 101 events: sums over far prices of a broker, and over pairs in the order of time."""
    rng = random.Random(1)
    runtime = Runtime(parse(ORDERS))
    live: dict[str, list[tuple]] = {"BIDS": [], "ASKS": []}
    for t in range(101):
        name = rng.choice(("BIDS", "BIDS", "ASKS"))
        if live[name] and rng.random() < 0.3:
            row, sign = live[name].pop(rng.randrange(len(live[name]))), -1
        else:
            row, sign = (t, rng.randint(1, 3), rng.randint(1, 9), rng.randint(100, 140)), 1
            live[name].append(row)
        runtime.apply(name, [row], [sign])
        far: dict[tuple, int] = defaultdict(int)
        later: dict[tuple, int] = defaultdict(int)
        for s, b, v, p in live["BIDS"]:
            for _, c, w, q in live["ASKS"]:
                far[b,] += (w - v) * (b == c and abs(p - q) > 10)
            for r, c, w, q in live["BIDS"]:
                later[b,] += (v * p - w * q) * (b == c and s > r)
        assert entries(runtime, "FAR") == {k: v for k, v in far.items() if v}
        assert entries(runtime, "LATER") == {k: v for k, v in later.items() if v}
    assert set(runtime.compiled.row_entries) == {(n, e) for n in live for e in ("insert", "delete")}
    runtime.check()


# ---- work and memory


class Counted:
    """An array that counts how often its words are read or written."""

    def __init__(self, words: np.ndarray):
        self.words, self.count = words, 0

    def __getitem__(self, at: int) -> Any:
        self.count += 1
        return self.words[at]

    def __setitem__(self, at: int, word: int) -> None:
        self.count += 1
        self.words[at] = word


def run_counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on the machine runs as Python; how many words it reads and writes in each run."""
    counts: list[int] = []
    for name, module in list(sys.modules.items()):
        if name.startswith(("dlog.m3.runtime.", "dlog.m3.rings.", "dlog.lftj.primitives", "dlog.algebra")):
            for attribute, found in list(vars(module).items()):
                if isinstance(found, Kernel) and not found.is_entry:
                    monkeypatch.setattr(module, attribute, found.py_func)
            if hasattr(module, "prefetch"):
                monkeypatch.setattr(module, "prefetch", lambda *_: None)

    def run(arena: Any, maps: Any, code: Any, state: Any, columns: Any, registers: Any, inputs: Any,
            selected: Any, events: Any, ranks: Any, _drained: Any, _changed: Any, n_events: int,
            budget: int) -> int:  # fmt: skip
        state[o.BUDGET], status = budget, o.SWITCH
        given = (arena, maps, code, state, columns, registers, inputs, selected, events, ranks)
        counted = [Counted(words) for words in given]
        arena, maps, code, state, columns, registers, inputs, selected, events, ranks = counted
        with np.errstate(over="ignore"):
            while status == o.SWITCH:
                if state[o.BY_ROW]:
                    rest = (registers, inputs, events, ranks, n_events)
                    status = row_machine.run_rows(arena, maps, code, state, *rest)
                else:
                    rest = (columns, inputs, selected, events, ranks, n_events)
                    status = machine.run_columns(arena, maps, code, state, *rest)
        counts.append(sum(words.count for words in counted))
        return int(status)

    monkeypatch.setattr(worker, "run", run)
    return counts


MANY = "CREATE STREAM MANY(t long, b long, v long, p long);"
LOADED = """
ON BATCH UPDATE OF MANY {
  AT[][b, t] += AggSum([b, t], (DELTA MANY)(t, b, v, p));
  AMOUNT[][b, t] += AggSum([b, t], (DELTA MANY)(t, b, v, p) * v * p);
}
"""


def filled(n: int) -> Runtime:
    """As many bids, half of them before maps are first read by range."""
    rng = np.random.default_rng(n)
    runtime = Runtime(parse(MANY + ORDERS + LOADED))
    for count in (n // 2, *[n // 20] * 10):
        rows = [rng.integers(0, high, count) for high in (10**8, 5, 10, 10**6)]
        runtime.apply_words("MANY", np.array([*rows, np.ones(count, np.int64)], np.int64))
        runtime.apply("BIDS", [(0, 1, 1, 1)])
    return runtime


def test_work_and_memory_of_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that the machine reads and writes for a row that sums four ranges and changes four ordered maps:
    with 10^6 entries at most 1.5 times as many as with 10^4.  Trees take at most 40 bytes an entry.
    """
    runtimes = {n: filled(n) for n in (10**4, 10**6)}
    number = runtimes[10**6].compiled.stores.map("AT").number
    maps = runtimes[10**6].maps
    assert maps.order_memory(number) <= 40 * maps.entries(number).shape[1]
    if not isinstance(row_machine.run_rows, Kernel):
        return  # these are no kernels: Python would be counted anyway
    counts = run_counted(monkeypatch)
    work = []
    for runtime in runtimes.values():
        rng, first = random.Random(0), len(counts)
        for _ in range(50):
            row = (rng.randrange(10**8), rng.randint(0, 4), rng.randint(1, 9), rng.randint(1, 10**6))
            runtime.apply("BIDS", [row])
        work.append(sum(counts[first:]))
    assert work[1] <= 1.5 * work[0]


@pytest.mark.parametrize(("name", "most"), [("vwap", 250), ("missed_trades", 900), ("order_book", 20)])
def test_work_of_programs_is_at_most_in_proportion_to_prices(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that the machine reads and writes for a row, by price; scans would need many times as many."""
    if not isinstance(row_machine.run_rows, Kernel):
        pytest.skip("these are no kernels")
    runtime = Runtime(parse(Path(f"programs/m3/{name}.m3").read_text()))
    prices = 150
    for source in runtime.program.sources:
        rows = [(broker, 10 + p % 7, 100.0 + p) for p in range(prices) for broker in (1, 2)]
        runtime.apply(source.name, rows)
    counts = run_counted(monkeypatch)
    runtime.apply("BIDS", [(1, 5, 120.0)])
    assert sum(counts) <= most * prices


FREE = """
    CREATE STREAM R(a int, b int, x int);
    DECLARE MAP M(long)[][a: long, b: long, x: long] := 0;
    DECLARE MAP N(long)[][a: long, k: long] := 0;
    DECLARE MAP O(long)[][x: long, d: long] := 0;
    DECLARE MAP Q(long)[][d: long] := 0;
    DECLARE QUERY Q := Q(long)[][d];
    ON BATCH UPDATE OF R {
      M[][a, b, x] += (DELTA R)(a, b, x);
      N[][b, x] += AggSum([b, x], (DELTA R)(a, b, x));
      O[][a, x] += AggSum([a, x], (DELTA R)(a, b, x));
      Q[][d] := %s;
    }
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # x is bound by M first: the comparison with it cannot come before what else binds x.
        (
            "AggSum([d], M[][a, b, x] * N[][a, k] * {k > b} * {k >= x} * O[][x, d])",
            lambda m, n, o: [
                d for a, b, x in m for a2, k in n for x2, d in o if (a, x) == (a2, x2) and k > b and k >= x
            ],
        ),
        # v is bound by N: the sum is that of v, also if O is read by a range of what it is compared with.
        (
            "AggSum([d], O[][x, d] * N[][u, v] * {AggSum([], N[][w, v] * {w != 2}) < x})",
            lambda m, n, o: [
                d for x, d in o for _, v in n if sum(w != 2 for w, v2 in n if v2 == v) < x
            ],
        ),
        # w is summed out where it is compared, and bound by O after it.
        (
            "AggSum([d], N[][u, v] * {v > AggSum([], M[][w, 1, 2])} * O[][w, d])",
            lambda m, n, o: [d for _, v in n if v > sum(b == 1 and x == 2 for _, b, x in m) for _, d in o],
        ),
    ],
)  # fmt: skip
def test_oracle_conditions_find_bound_what_they_found_where_they_are_written(expression, expected) -> None:
    rng = random.Random(7)
    for _ in range(10):
        runtime = Runtime(parse(FREE % expression.replace("1, 2]", "one, two] * {one = 1} * {two = 2}")))
        rows = [tuple(rng.randint(0, 3) for _ in range(3)) for _ in range(6)]
        runtime.apply("R", rows)
        counts: dict[int, int] = defaultdict(int)
        for d in expected(rows, [row[1:] for row in rows], [(a, x) for a, _, x in rows]):
            counts[d] += 1
        assert entries(runtime, "Q") == {(d,): count for d, count in counts.items()}
