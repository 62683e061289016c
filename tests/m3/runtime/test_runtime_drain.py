"""What is drained is the difference of the maps' contents since the last time, whatever statements, sizes of
batches and machines made it; also after going back, and when a few rows are one call of the machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DataError
from dlog.m3 import parse
from dlog.m3.runtime import drain, parts
from dlog.m3.runtime.drain import DrainedMaps
from dlog.m3.runtime.maps import maps
from dlog.m3.runtime.runtime import Runtime
from tests.examples import relaxed

HEAD = """
CREATE STREAM R(a int, b int);
CREATE STREAM S(b int, c int);
"""
# The maps that are drained, with their keys, and the program.
PROGRAMS = {
    "one key": (
        ("Q", "N"),
        ("a",),
        """
        DECLARE MAP Q(long)[][a: int] := 0;
        DECLARE MAP N(long)[][a: int] := 0;
        DECLARE MAP V(long)[][b: int] := 0;
        DECLARE MAP W(long)[][a: int, b: int] := 0;
        ON BATCH UPDATE OF R {
          W(long)[][a, b] += AggSum([a, b], (DELTA R)(a, b));
          Q(long)[][a] += AggSum([a], (DELTA R)(a, b) * V(long)[][b] * b);
          N(long)[][a] += AggSum([a], (DELTA R)(a, b) * V(long)[][b]);
        }
        ON BATCH UPDATE OF S {
          V(long)[][b] += AggSum([b], (DELTA S)(b, c));
          Q(long)[][a] += AggSum([a], (DELTA S)(b, c) * W(long)[][a, b] * b);
          N(long)[][a] += AggSum([a], (DELTA S)(b, c) * W(long)[][a, b]);
        }""",
    ),
    "keys in another order": (
        ("Q", "N"),
        ("c", "a"),
        """
        DECLARE MAP Q(long)[][a: int, c: int] := 0;
        DECLARE MAP N(long)[][c: int, a: int] := 0;
        DECLARE MAP V(long)[][b: int, c: int] := 0;
        DECLARE MAP W(long)[][a: int, b: int] := 0;
        ON BATCH UPDATE OF R {
          W(long)[][a, b] += (DELTA R)(a, b);
          Q(long)[][a, c] += AggSum([a, c], (DELTA R)(a, b) * V(long)[][b, c] * b);
          N(long)[][c, a] += AggSum([c, a], (DELTA R)(a, b) * V(long)[][b, c]);
        }
        ON BATCH UPDATE OF S {
          V(long)[][b, c] += (DELTA S)(b, c);
          Q(long)[][a, c] += AggSum([a, c], (DELTA S)(b, c) * W(long)[][a, b] * b);
          N(long)[][c, a] += AggSum([c, a], (DELTA S)(b, c) * W(long)[][a, b]);
        }""",
    ),
    "four keys": (
        ("Q",),
        ("a", "b", "c", "d"),
        """
        DECLARE MAP Q(long)[][a: int, b: int, c: int, d: int] := 0;
        DECLARE MAP V(long)[][b: int, c: int] := 0;
        DECLARE MAP W(long)[][a: int, b: int] := 0;
        ON BATCH UPDATE OF R {
          W(long)[][a, b] += (DELTA R)(a, b);
          Q(long)[][a, b, c, d] += AggSum([a, b, c, d], (DELTA R)(a, b) * V(long)[][b, c] * (d ^= a + c));
        }
        ON BATCH UPDATE OF S {
          V(long)[][b, c] += (DELTA S)(b, c);
          Q(long)[][a, b, c, d] += AggSum([a, b, c, d], (DELTA S)(b, c) * W(long)[][a, b] * (d ^= a + c));
        }""",
    ),
    "no keys": (
        ("Q", "N"),
        (),
        """
        DECLARE MAP Q(long)[][] := 0;
        DECLARE MAP N(long)[][] := 0;
        DECLARE MAP V(long)[][b: int] := 0;
        DECLARE MAP W(long)[][b: int] := 0;
        ON BATCH UPDATE OF R {
          W(long)[][b] += AggSum([b], (DELTA R)(a, b));
          Q(long)[][] += AggSum([], (DELTA R)(a, b) * V(long)[][b] * b);
          N(long)[][] += AggSum([], (DELTA R)(a, b) * V(long)[][b]);
        }
        ON BATCH UPDATE OF S {
          V(long)[][b] += AggSum([b], (DELTA S)(b, c));
          Q(long)[][] += AggSum([], (DELTA S)(b, c) * W(long)[][b] * b);
          N(long)[][] += AggSum([], (DELTA S)(b, c) * W(long)[][b]);
        }""",
    ),
    "replaced": (
        ("Q", "N"),
        ("a",),
        """
        DECLARE MAP Q(long)[][a: int] := 0;
        DECLARE MAP N(long)[][a: int] := 0;
        DECLARE MAP X(long)[][a: int] := 0;
        DECLARE MAP T(long)[][] := 0;
        DECLARE MAP W(long)[][a: int, b: int] := 0;
        ON BATCH UPDATE OF R {
          W(long)[][a, b] += (DELTA R)(a, b);
          Q(long)[][a] := AggSum([a], W(long)[][a, b] * {b < T(long)[][]});
          N(long)[][a] += AggSum([a], (DELTA R)(a, b));
          X(long)[][a] += AggSum([a], Q(long)[][a]);
        }
        ON BATCH UPDATE OF S {
          T(long)[][] += AggSum([], (DELTA S)(b, c) * c);
          Q(long)[][a] := AggSum([a], W(long)[][a, b] * {b < T(long)[][]});
        }""",
    ),
}
ROW = st.tuples(st.integers(0, 5), st.integers(0, 5))
CHANGE = st.tuples(st.sampled_from("RS"), st.lists(ROW, min_size=1, max_size=6), st.sampled_from((1, 1, -1)))
Rows = dict[tuple[int, ...], tuple[int, ...]]


def program(case: str) -> tuple[Any, DrainedMaps]:
    names, keys, text = PROGRAMS[case]
    return parse(HEAD + text), DrainedMaps(names, keys)


def contents(runtime: Runtime, given: DrainedMaps) -> Rows:
    """All entries of the maps, by key."""
    found: dict[tuple[int, ...], list[int]] = {}
    for number, name in enumerate(given.names):
        for row in runtime[name].to_pylist():
            key = tuple(row[k] for k in given.keys)
            found.setdefault(key, [0] * len(given.names))[number] = row["value"]
    return {key: tuple(values) for key, values in found.items() if any(values)}


def difference(before: Rows, after: Rows, n: int) -> dict[tuple[int, ...], tuple[tuple[int, int], ...]]:
    zeros = (0,) * n
    return {
        key: tuple(zip(before.get(key, zeros), after.get(key, zeros), strict=True))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }


def shown(rows: np.ndarray, given: DrainedMaps) -> dict[tuple[int, ...], tuple[tuple[int, int], ...]]:
    k = len(given.keys)
    found = {tuple(row[:k]): tuple(zip(row[k::2], row[k + 1 :: 2], strict=True)) for row in rows.tolist()}
    assert len(found) == len(rows), "each key once"
    return found


def apply(runtime: Runtime, relation: str, rows: Sequence[tuple[int, ...]], sign: int) -> None:
    runtime.apply_words(relation, np.array([(*row, sign) for row in rows], np.int64).T)


@pytest.mark.parametrize("threads", [None, 2, 3])
@pytest.mark.parametrize("case", PROGRAMS)
@relaxed(25)
@given(data=st.data())
def test_oracle_difference_of_contents(case: str, threads: int | None, data: Any) -> None:
    parsed, given = program(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "WORTH_THREADS", 0)
        patch.setattr(drain, "FEW", data.draw(st.sampled_from((2, 1024)), label="rows at once"))
        patch.setattr(maps, "COUNT_AFTER", data.draw(st.sampled_from((1, 1 << 12)), label="counted after"))
        runtime = Runtime(parsed, threads=threads, drained=given)
        assert (runtime._parts is None) == (threads is None)
        before: Rows = {}
        saved: tuple[Any, Rows] | None = None
        for _ in range(data.draw(st.integers(1, 8), label="steps")):
            for change in data.draw(st.lists(CHANGE, max_size=4), label="changes"):
                apply(runtime, *change)
            after = contents(runtime, given)
            assert shown(runtime.drain(), given) == difference(before, after, len(given.names))
            assert not len(runtime.drain())
            runtime.check()
            before = after
            if saved is not None and data.draw(st.booleans(), label="back"):
                runtime.restore(saved[0])
                before = saved[1]
            elif data.draw(st.booleans(), label="save"):
                saved = runtime.save(), before


@pytest.mark.parametrize("case", PROGRAMS)
@relaxed(25)
@given(data=st.data())
def test_differential_few_rows(case: str, data: Any) -> None:
    parsed, given = program(case)
    one, other = Runtime(parsed, drained=given), Runtime(parsed, drained=given)
    feeds = {relation: one.few_rows(relation, 8) for relation in "RS"}
    for relation, rows, sign in data.draw(st.lists(CHANGE, min_size=1, max_size=12)):
        feed = feeds[relation]
        assert feed is not None
        n = feed.apply(rows, sign)
        apply(other, relation, rows, sign)
        found = feed.changed[: n * feed.drain.width].reshape(n, feed.drain.width)
        assert shown(found, given) == shown(other.drain(), given)
        assert contents(one, given) == contents(other, given)


@pytest.mark.parametrize("case", PROGRAMS)
def test_large_batches(case: str) -> None:
    """Tables grow and shrink while entries are listed as changed."""
    parsed, given = program(case)
    runtime, rng, before = Runtime(parsed, drained=given), np.random.default_rng(4), Rows()
    for n, sign in ((1500, 1), (1, 1), (700, -1), (20, -1), (1, -1), (2, 1)):
        for relation in "RS":
            words = np.vstack([rng.integers(0, 40, (2, n)), np.full((1, n), sign)])
            runtime.apply_words(relation, words)
        after = contents(runtime, given)
        assert shown(runtime.drain(), given) == difference(before, after, len(given.names))
        runtime.check()
        before = after


def test_going_back_after_an_overflow() -> None:
    parsed, given = program("one key")
    runtime = Runtime(parsed, drained=given)
    apply(runtime, "S", [(2**31 - 1, 1)], 1)
    apply(runtime, "R", [(1, 2**31 - 1)], 1)
    runtime.drain()
    saved, before = runtime.save(), contents(runtime, given)
    feed = runtime.few_rows("R", 1)
    assert feed is not None
    with pytest.raises(DataError, match="does not fit"):
        for _ in range(40):
            apply(runtime, "R", [(1, 2**31 - 1), (2, 2**31 - 1)] * 4096, 1)
            apply(runtime, "S", [(2**31 - 1, 1)] * 4096, 1)
            apply(runtime, "S", [(2**31 - 1, 1)] * 4096, 1)
    runtime.restore(saved)
    assert contents(runtime, given) == before
    assert not len(runtime.drain())
    n = feed.apply([(1, 2**31 - 1)], 1)
    assert feed.changed[: n * feed.drain.width].tolist() == [1, 2**31 - 1, 2 * (2**31 - 1), 1, 2]


def test_sums_over_machines_may_not_fit() -> None:
    parsed, given = program("no keys")
    runtime = Runtime(parsed, threads=2, drained=given)
    apply(runtime, "S", [(b, 1) for b in range(1, 9)], 1)
    words = np.array([[0] * 8, range(1, 9), [2**59] * 8], np.int64)
    with pytest.raises(DataError, match="does not fit"):
        for _ in range(3):
            runtime.apply_words("R", words)
            runtime.drain()
