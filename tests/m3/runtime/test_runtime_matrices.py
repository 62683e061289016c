"""M3 programs over matrices: products keep the order in which they are written, whatever order the rows are
joined in.  Against numpy's products of every combination of rows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dlog.errors import DataError, DlogError, UnsupportedError
from dlog.m3 import parse
from dlog.m3.runtime.runtime import Runtime

T = "RingMatrix<2, {0}>"
HEAD = f"""CREATE TYPE RingMatrix FROM FILE 'matrix.hpp' WITH PARAMETER SCHEMA (static, static);
CREATE STREAM R(i int, j int, a int); CREATE STREAM S(j int, k int, c int);
DECLARE MAP V({T})[][i: int, j: int] := 0; DECLARE MAP W({T})[][j: int, k: int] := 0;
DECLARE MAP Q({T})[][i: int, k: int] := 0; DECLARE MAP X({T})[][] := 0;
DECLARE QUERY TWICE := AggSum([], Q({T})[][i, k] * [lift: {T}](i, k, 1, 0));
"""
A, C = "[lift: {T}](a, 1, 0, 2)", "[lift: {T}](1, 0, c, 3)"
# A value stands after what binds more rows, and before it; sums and nested products are factors, too.
BATCHES = """
ON BATCH UPDATE OF R {{
  Q({T})[][i, k] += AggSum([i, k], (DELTA R)(i, j, a) * {A} * W({T})[][j, k]);
  X({T})[][] += AggSum([], (DELTA R)(i, j, a) * (AggSum([i, j], {A}) * AggSum([j], W({T})[][j, k])) * {A});
  V({T})[][i, j] += AggSum([i, j], (DELTA R)(i, j, a) * {A}); }}
ON BATCH UPDATE OF S {{
  Q({T})[][i, k] += AggSum([i, k], (DELTA S)(j, k, c) * V({T})[][i, j] * {C});
  X({T})[][] += AggSum([], (DELTA S)(j, k, c) * V({T})[][i, j] * ({C} * V({T})[][i, j]));
  W({T})[][j, k] += AggSum([j, k], (DELTA S)(j, k, c) * {C}); }}
"""
SINGLE = "".join(
    f"""
ON {event} R(i, j, a) {{{{
  Q({{T}})[][i, k] += AggSum([k], {sign} * {{A}} * W({{T}})[][j, k]);
  V({{T}})[][i, j] += {sign} * {{A}}; }}}}
ON {event} S(j, k, c) {{{{
  Q({{T}})[][i, k] += AggSum([i], V({{T}})[][i, j] * {sign} * {{C}});
  W({{T}})[][j, k] += {sign} * {{C}}; }}}}"""
    for event, sign in (("+", "1"), ("-", "-1"))
)


def text(triggers: str, entries: str) -> str:
    inner = triggers.replace("{A}", A).replace("{C}", C).replace("{{", "{").replace("}}", "}")
    return HEAD.format(entries) + inner.replace("{T}", T.format(entries))


def of(a: int) -> np.ndarray:
    return np.array([[a, 1], [0, 2]], dtype=object)


def other(c: int) -> np.ndarray:
    return np.array([[1, 0], [c, 3]], dtype=object)


def joined(left: Counter, right: Counter) -> dict[tuple[int, int], np.ndarray]:
    out: dict[tuple[int, int], Any] = {}
    for (i, j, a), n in left.items():
        for (x, k, c), m in right.items():
            if j == x:
                out[i, k] = out.get((i, k), 0) + n * m * (of(a) @ other(c))
    return {key: value for key, value in out.items() if np.any(value)}


def found(runtime: Runtime) -> dict[tuple[int, int], list]:
    rows = runtime["Q"].to_pylist()
    return {(row["i"], row["k"]): row["value"] for row in rows if np.any(np.array(row["value"]))}


ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(-9, 9)), max_size=4)
CHANGES = st.lists(st.tuples(st.sampled_from("RS"), ROWS, st.sampled_from([1, 1, -1])), max_size=6)


@pytest.mark.parametrize("entries", ["long", "double"])
@pytest.mark.parametrize("triggers", [BATCHES, SINGLE], ids=["batches", "tuples"])
@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(changes=CHANGES)
def test_oracle_matrices(triggers: str, entries: str, changes: list[Any]) -> None:
    runtime = Runtime(parse(text(triggers, entries)))
    rows: dict[str, Counter] = {"R": Counter(), "S": Counter()}
    for relation, some, sign in changes:
        some = [(row[1], row[0], row[2]) for row in some] if relation == "S" else some
        runtime.apply(relation, some, [sign] * len(some))
        for row in some:
            rows[relation][row] += sign
        wanted = joined(rows["R"], rows["S"])
        assert found(runtime) == {key: value.tolist() for key, value in wanted.items()}
        whole = sum(
            (q @ np.array([[i, k], [1, 0]], dtype=object) for (i, k), q in wanted.items()),
            np.zeros((2, 2), int),
        )
        assert runtime["TWICE"].to_pylist()[0]["value"] == whole.tolist()
        runtime.check()


def test_nested_products_and_sums_keep_their_order() -> None:
    """X: A * W * A for rows of R, V * (C * V) for rows of S."""
    runtime = Runtime(parse(text(BATCHES, "long")))
    runtime.apply("S", [(1, 7, 2), (1, 8, 5)])
    runtime.apply("R", [(4, 1, 3)])
    expected = of(3) @ (other(2) + other(5)) @ of(3)
    assert runtime["X"].to_pylist()[0]["value"] == expected.tolist()
    runtime.apply("S", [(1, 9, -4)])
    expected = expected + of(3) @ other(-4) @ of(3)
    assert runtime["X"].to_pylist()[0]["value"] == expected.tolist()


def test_matrices_are_exact_or_refused() -> None:
    runtime = Runtime(parse(text(BATCHES, "long")))
    runtime.apply("R", [(1, 1, 2**31 - 1)])
    runtime.apply("S", [(1, 1, 2**31 - 1)])
    assert runtime["Q"].to_pylist()[0]["value"][0][0] == 2 * (2**31 - 1)
    with pytest.raises(DataError, match="out of range for the ring integer"):
        for _ in range(70):
            runtime.apply("R", [(1, 1, 2**31 - 1)], [2**62])


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        ("RingMatrix<0, long>", "has no ring"),
        ("RingMatrix<long>", "has no ring"),
        ("RingMatrix<2, date>", "matrices of date are not a ring"),
    ],
)
def test_types_without_a_ring(type_: str, message: str) -> None:
    with pytest.raises(DlogError, match=message):
        Runtime(parse(f"CREATE TYPE RingMatrix FROM FILE 'x'; DECLARE MAP Q({type_})[][] := 0;"))


def test_different_matrices_are_different_rings() -> None:
    maps = "DECLARE MAP Q(RingMatrix<2, long>)[][] := 0; DECLARE MAP P(RingMatrix<3, long>)[][] := 0;"
    with pytest.raises(DlogError, match="are different rings"):
        Runtime(parse("CREATE TYPE RingMatrix FROM FILE 'x'; " + maps))


def test_a_matrix_of_integers_has_no_product_with_a_double() -> None:
    program = parse(
        text("ON BATCH UPDATE OF R { X({T})[][] += AggSum([], (DELTA R)(i, j, a) * {A} * 0.5); }", "long")
    )
    with pytest.raises(UnsupportedError, match="RingMatrix<2, long> has no product with a double") as caught:
        Runtime(program)
    assert caught.value.span is not None and caught.value.span.text() == "0.5"
