"""Maps in kernels against dicts, under random changes, with keys that collide; chains against filtering."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.m3 import parse
from dlog.m3.runtime.maps.map_kernels import MULTIPLIER
from dlog.m3.runtime.runtime import Runtime

# Keys whose hashes begin alike: multiples of the inverse of the hash's multiplier, as far as it is linear.
INVERSE = pow(int(MULTIPLIER) % 2**64, -1, 2**64)
COLLIDING = sorted({(i * INVERSE) % 2**32 for i in range(1, 40)})
keys = st.integers(-3, 3) | st.sampled_from(COLLIDING) | st.integers(-(2**63) + 1, 2**63 - 1)
changes = st.lists(st.tuples(keys, keys, st.integers(-2, 2)), max_size=60)

PROGRAM = """
CREATE STREAM R(a long, b long, n long); CREATE STREAM ASK(a long, b long);
DECLARE MAP M(long)[][a: long, b: long] := 0;
DECLARE MAP BY_A(long)[][a: long, b: long] := 0; DECLARE MAP BY_B(long)[][a: long, b: long] := 0;
DECLARE MAP BOTH(long)[][a: long, b: long] := 0;
ON BATCH UPDATE OF R { M[][a, b] += (DELTA R)(a, b, n) * n; }
ON BATCH UPDATE OF ASK {
  BY_A[][a, c] := (DELTA ASK)(a, b) * M[][a, c];
  BY_B[][c, b] := (DELTA ASK)(a, b) * M[][c, b];
  BOTH[][a, b] := (DELTA ASK)(a, b) * M[][a, b];
}
"""


def as_dict(runtime: Runtime, name: str) -> dict[tuple[int, int], int]:
    table = runtime[name].to_pydict()
    return {(a, b): v for a, b, v in zip(table["a"], table["b"], table["value"], strict=True)}


@settings(max_examples=100)
@given(st.lists(st.tuples(changes, keys, keys), max_size=8))
def test_oracle_dict(steps: list) -> None:
    runtime = Runtime(parse(PROGRAM))
    model: dict[tuple[int, int], int] = {}
    for rows, a, b in steps:
        runtime.apply("R", rows)
        for x, y, n in rows:
            model[x, y] = model.get((x, y), 0) + n
        runtime.apply("ASK", [(a, b)])
        runtime.check()
        live = {key: n for key, n in model.items() if n}
        assert as_dict(runtime, "M") == live
        assert as_dict(runtime, "BY_A") == {k: n for k, n in live.items() if k[0] == a}
        assert as_dict(runtime, "BY_B") == {k: n for k, n in live.items() if k[1] == b}
        assert as_dict(runtime, "BOTH") == {k: n for k, n in live.items() if k == (a, b)}


def test_chains_are_made_again_after_going_back() -> None:
    """To before they were made, and to when they were there."""
    runtime = Runtime(parse(PROGRAM))
    runtime.apply("R", [(i % 5, i, 1) for i in range(50)])
    for saved in (runtime.save(), None):
        runtime.apply("ASK", [(3, 0)])
        assert as_dict(runtime, "BY_A") == {(3, i): 1 for i in range(3, 50, 5)}
        saved = saved or runtime.save()
        runtime.apply("R", [(3, 3, -1), (3, 100, 1)])
        runtime.restore(saved)
        runtime.check()
        runtime.apply("ASK", [(3, 0)])
        runtime.check()
        assert as_dict(runtime, "BY_A") == {(3, i): 1 for i in range(3, 50, 5)}


def test_memory_follows_the_data() -> None:
    """Rows that are inserted and deleted, always new ones, leave no more than a small table."""
    runtime = Runtime(parse(PROGRAM))
    for start in range(0, 400_000, 20_000):
        rows = [(start + i, i % 7, 1) for i in range(20_000)]
        runtime.apply("R", rows)
        runtime.apply("R", rows, [-1] * len(rows))
        runtime.check()
        runtime.apply("ASK", [(start, 3)])
        assert as_dict(runtime, "M") == {} == as_dict(runtime, "BY_A")
    assert runtime.maps.memory() < 20_000_000
    for start in range(0, 40_000, 1000):  # small changes: the table shrinks
        rows = [(start + i, 0, 1) for i in range(1000)]
        runtime.apply("R", rows)
        runtime.apply("R", rows, [-1] * len(rows))
    assert runtime.maps.memory() < 1_000_000


def test_rows_that_are_expected_are_given_memory_in_fewer_steps() -> None:
    """Announced rows change how often tables are rebuilt, and nothing else; also if the number is wrong."""
    sizes: dict[int, set[int]] = {}
    for reported in (0, 60_000, 10**9):
        runtime = Runtime(parse(PROGRAM))
        number = runtime.compiled.stores.map("M").number
        runtime.expect("R", reported)
        sizes[reported] = set()
        for start in range(0, 60_000, 1_000):
            runtime.apply("R", [(start + i, i % 7, 1) for i in range(1_000)])
            sizes[reported].add(len(runtime.maps.table(number)))
        runtime.check()
        assert as_dict(runtime, "M") == {(i, i % 1_000 % 7): 1 for i in range(60_000)}
    assert len(sizes[60_000]) < len(sizes[0])
    assert max(sizes[60_000]) <= max(sizes[0])
    assert max(sizes[10**9]) <= 16 * max(sizes[0])
    with pytest.raises(DlogError, match="there is no relation N"):
        runtime.expect("N", 10)


def test_memory_for_rows_to_come_is_for_the_keys_that_they_bring() -> None:
    """Rows of a few thousand keys, however many are announced, have a table for this many keys."""
    found = []
    for reported in (0, 10**9):
        runtime, rng = Runtime(parse(PROGRAM)), np.random.default_rng(3)
        runtime.expect("R", reported)
        for _ in range(20):
            runtime.apply("R", [(a, 0, 1) for a in rng.integers(0, 5_000, 1_000).tolist()])
        runtime.check()
        found.append(runtime.maps.memory())
    assert found[1] <= 2 * found[0]


WIDE = """
CREATE TYPE RingCofactor FROM FILE 'ring_cofactor.hpp';
CREATE STREAM R(a long, b long, c long, d long);
DECLARE MAP M(RingCofactor<0, double, 3>)[][a: long] := 0;
DECLARE MAP COPY(RingCofactor<0, double, 3>)[][a: long] := 0;
ON BATCH UPDATE OF R {
  M[][a] += AggSum([a], (DELTA R)(a, b, c, d) * [lift<0>: RingCofactor<0, double, 3>](b, c, d));
  COPY[][a] := M[][a];
}
"""


def wide_entries(runtime: Runtime, name: str) -> dict[int, list[float]]:
    words = runtime.maps.entries(runtime.compiled.stores.map(name).number)
    return dict(zip(words[0].tolist(), np.ascontiguousarray(words[1:].T).view(float).tolist(), strict=True))


def wide_model(rows: list[tuple[int, ...]]) -> dict[int, list[float]]:
    """Count, sums and sums of products by the first column."""
    model: dict[int, np.ndarray] = {}
    for a, *x in rows:
        lifted = [1, *x, *(x[i] * x[j] for i in range(3) for j in range(i, 3))]
        model[a] = model.get(a, np.zeros(10)) + lifted
    return {a: value.tolist() for a, value in model.items()}


@settings(max_examples=40)
@given(st.lists(st.tuples(st.lists(st.integers(0, 60) | keys, max_size=40), st.integers(0, 5)), max_size=8))
def test_values_that_lie_apart(steps: list) -> None:
    """Rows come, some of them go again; going back finds what was."""
    runtime, kept = Runtime(parse(WIDE)), []
    assert any(shape.apart for shape in runtime.maps.shapes)
    for new, gone in steps:
        rows = [(a, i % 7, a % 11, 1) for i, a in enumerate(new)]
        saved, before = runtime.save(), list(kept)
        runtime.apply("R", rows)
        runtime.check()
        if gone == 0:
            runtime.restore(saved)
            kept = before
        else:
            leave = [row for i, row in enumerate(kept) if i % gone == 0]
            kept = [row for i, row in enumerate(kept) if i % gone] + rows
            runtime.apply("R", leave, [-1] * len(leave))
        runtime.check()
        assert wide_entries(runtime, "M") == wide_model(kept)
        if gone:
            assert wide_entries(runtime, "COPY") == wide_model(kept)


def test_memory_of_values_that_lie_apart_follows_the_data() -> None:
    runtime = Runtime(parse(WIDE))
    for start in range(0, 60_000, 6_000):
        rows = np.array([(start + i, i % 7, 2, 3) for i in range(6_000)])
        runtime.apply("R", rows)
        runtime.check()
        assert len(wide_entries(runtime, "M")) == 6_000
        runtime.apply("R", rows, [-1] * len(rows))
        runtime.check()
        assert wide_entries(runtime, "M") == {} == wide_entries(runtime, "COPY")
    assert runtime.maps.memory() < 5_000_000
    for start in range(0, 40_000, 500):
        rows = np.array([(start + i, 0, 1, 1) for i in range(500)])
        runtime.apply("R", rows)
        runtime.apply("R", rows, [-1] * len(rows))
    assert runtime.maps.memory() < 1_100_000
    runtime.apply("R", [(5, 1, 2, 3)])
    assert wide_entries(runtime, "M") == wide_model([(5, 1, 2, 3)])
