"""Rings against exact arithmetic of Python, and their laws."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlog.errors import DataError, DlogError
from dlog.m3.rings import registry, rings
from dlog.m3.rings.averages import average_ring
from dlog.m3.rings.axioms import check_axioms
from dlog.m3.rings.matrices import matrix_ring
from dlog.m3.rings.rings import FLOAT_RING, INTEGER_RING, PLAIN_FLOAT_RING, Ring, product_ring
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.syntax.parse import parse

MAX, MIN = 2**63 - 1, -(2**63)
integers = st.integers(MIN, MAX) | st.integers(-(2**33), 2**33) | st.sampled_from([MIN, MAX, 0, 1, -1, 2**62])
# As amounts are: what differs by less than 2^50 in size adds without rounding.
amounts = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100) | st.integers(-(2**40), 2**40).map(
    float
)
moderate = st.floats(-1e9, 1e9, allow_subnormal=False)


def binary(ring: Ring, op: str, a: object, b: object) -> object:
    return ring.values(getattr(ring, op)(ring.column([a]), ring.column([b])))[0]


@example(MAX - 1, 1)
@example(MIN + 1, -1)
@example(MAX, 1)
@example(MIN, -1)
@given(integers, integers)
def test_oracle_integers_are_right_or_refused(a: int, b: int) -> None:
    for op, exact in (("add", a + b), ("multiply", a * b)):
        if MIN <= exact <= MAX:
            assert binary(INTEGER_RING, op, a, b) == exact
        else:
            with pytest.raises(DataError, match="out of range"):
                binary(INTEGER_RING, op, a, b)


@given(integers, integers, st.integers(0, 6))
def test_oracle_decimals_are_right_or_refused(a: int, b: int, scale: int) -> None:
    ring, unit = rings.decimal_ring(scale), 10**scale
    exact = Fraction(a, unit) * Fraction(b, unit) * unit
    x, y = np.array([[a]]), np.array([[b]])
    if exact.denominator == 1 and MIN <= exact <= MAX:
        assert ring.multiply(x, y).tolist() == [[int(exact)]]
    else:
        with pytest.raises(DataError, match="out of range"):
            ring.multiply(x, y)


def test_decimals_know_their_digits() -> None:
    ring = rings.decimal_ring(2)
    assert ring.values(ring.column([Decimal("-1.25"), 3])) == [Decimal("-1.25"), Decimal(3)]
    with pytest.raises(DataError, match="digits"):
        ring.column([Decimal("0.001")])


@given(st.lists(amounts, max_size=30), st.lists(amounts, max_size=5))
def test_oracle_floats_come_and_go_without_a_rest(stay: list[float], pass_by: list[float]) -> None:
    """After everything added is subtracted, in another order, the sum is that of what stayed."""
    values = [*stay, *pass_by, *(-v for v in reversed(pass_by))]
    column = FLOAT_RING.column(values)
    total = FLOAT_RING.sums(column, np.array([0, len(values)]))
    exact = sum(map(Fraction, stay))
    assert abs(Fraction(FLOAT_RING.values(total)[0]) - exact) <= abs(exact) * Fraction(2) ** -52
    back = FLOAT_RING.add(
        total, FLOAT_RING.sums(FLOAT_RING.column([-v for v in stay]), np.array([0, len(stay)]))
    )
    assert FLOAT_RING.is_zero(back).all()


@given(moderate, moderate, st.integers(-1000, 1000))
def test_oracle_products_of_floats_are_exact_to_106_bits(a: float, b: float, times: int) -> None:
    ring = FLOAT_RING
    product = ring.multiply(ring.column([a]), ring.column([b]))
    words = product.view(np.float64)[0].tolist()
    exact = Fraction(a) * Fraction(b)
    assert abs(sum(map(Fraction, words)) - exact) <= abs(exact) * Fraction(2) ** -100 + Fraction(2) ** -1074
    scaled = ring.scale(product, np.array([times])).view(np.float64)[0].tolist()
    assert (
        abs(sum(map(Fraction, scaled)) - times * exact) <= abs(times * exact) * Fraction(2) ** -99 + 2**-1060
    )


def test_floats_stay_what_they_are_when_not_finite() -> None:
    for value in (np.inf, -np.inf):
        assert binary(FLOAT_RING, "add", value, 1.0) == value
        assert binary(FLOAT_RING, "multiply", value, -1.0) == -value
    assert binary(FLOAT_RING, "multiply", 1e300, 1e10) == np.inf
    assert np.isnan(binary(FLOAT_RING, "add", np.inf, -np.inf))


def number(source: random.Random) -> int:
    return source.randint(-9, 9)


def real(source: random.Random) -> float:
    return source.uniform(-9, 9)


def cofactor(size: int):  # type: ignore[no-untyped-def]
    def sample(source: random.Random) -> object:
        square = [[0.0] * size for _ in range(size)]
        for i in range(size):
            for j in range(i, size):
                square[i][j] = square[j][i] = real(source)
        return real(source), [real(source) for _ in range(size)], square

    return sample


LAWS = {
    "integer": (INTEGER_RING, number),
    "float": (FLOAT_RING, real),
    "plain float": (PLAIN_FLOAT_RING, real),
    "decimal": (rings.decimal_ring(3), number),
    "count and sum": (product_ring(INTEGER_RING, FLOAT_RING), lambda r: (number(r), real(r))),
    "nested": (
        product_ring(product_ring(INTEGER_RING, rings.decimal_ring(1)), INTEGER_RING),
        lambda r: ((number(r), number(r)), number(r)),
    ),
    "cofactor": (rings.cofactor_ring(3), cofactor(3)),
    "average": (average_ring(), lambda r: (number(r), real(r))),
    "matrices of integers": (
        matrix_ring(2, INTEGER_RING),
        lambda r: [[number(r) for _ in "ab"] for _ in "ab"],
    ),
    "matrices of floats": (matrix_ring(3), None),
    "matrices of matrices": (matrix_ring(2, matrix_ring(2, INTEGER_RING)), None),
    "matrices and integers": (product_ring(matrix_ring(2), INTEGER_RING), None),
    "cofactor and count": (
        product_ring(rings.cofactor_ring(2), INTEGER_RING),
        lambda r: (cofactor(2)(r), number(r)),
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_of_rings(name: str) -> None:
    check_axioms(*LAWS[name])


@given(st.integers(1, 4), st.data())
def test_oracle_matrices(size: int, data: st.DataObject) -> None:
    """Sums, products and multiples against numpy's, over integers of any size; what is beyond 64 bits is
    refused.
    """
    ring = matrix_ring(size, INTEGER_RING)
    a, b = (
        np.array(data.draw(st.lists(integers, min_size=size**2, max_size=size**2)), dtype=object).reshape(
            size, size
        )
        for _ in range(2)
    )
    steps = [a[:, k : k + 1] @ b[k : k + 1] for k in range(size)]
    partial = [*steps, *(sum(steps[: k + 1]) for k in range(size))]
    for op, exact, seen in (("add", a + b, [a + b]), ("multiply", a @ b, partial)):
        if all(MIN <= entry <= MAX for matrix in seen for entry in matrix.reshape(-1)):
            assert binary(ring, op, a.tolist(), b.tolist()) == exact.tolist()
        else:
            with pytest.raises(DataError, match="out of range"):
                binary(ring, op, a.tolist(), b.tolist())


def test_entries_of_matrices_are_what_they_were() -> None:
    ring = matrix_ring(2, INTEGER_RING)
    assert ring.lift is not None
    columns = [np.array([1.0, 2.0**53]), np.array([0.0, -3.0]), np.zeros(2), np.ones(2)]
    assert ring.values(ring.lift((), columns)) == [[[1, 0], [0, 1]], [[2**53, -3], [0, 1]]]
    for bad in (0.5, 2.0**54, np.nan):
        with pytest.raises(DataError, match="not an integer up to"):
            ring.lift((), [np.array([bad]), *(np.zeros(1) for _ in range(3))])
    with pytest.raises(DataError, match="takes 4 values, not 1"):
        ring.lift((), columns[:1])
    with pytest.raises(DataError, match="is not a matrix of 2 rows"):
        ring.column([[[1, 2, 3], [4, 5, 6]]])


REFUSED = {
    "a commuting ring that does not": (
        replace(matrix_ring(2, INTEGER_RING), commutes=True), "breaks a \\* b = b \\* a, for a = \\[\\["
    ),
    "no unit from the left": (
        replace(matrix_ring(1), times=lambda x, y: x, commutes=False), "breaks 1 \\* a = a, for a ="
    ),
    "products with floats": (
        replace(matrix_ring(2), by_float=lambda x, s: x), "breaks 2.0 \\* a = a \\+ a, for a = .*"
    ),
    "one": (replace(INTEGER_RING, one=2), "breaks a \\* 1 = a, for a = 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_rings_are_tested_when_they_are_registered(name: str) -> None:
    ring, message = REFUSED[name]
    with pytest.raises(DlogError, match=message):
        registry.register_ring("Refused", ring)
    registry.register_ring("Tested", lambda types: ring)
    with pytest.raises(DlogError, match=message):
        registry.ring_of(TypeRef("Tested", (1,)))
    with pytest.raises(DlogError, match="no ring is registered for type Refused"):
        registry.ring_of(TypeRef("Refused"))


def test_a_ring_without_samples_is_tested_with_what_it_lifts() -> None:
    """x * x * y is a product only of 0 and 1, which a ring has anyhow."""
    squares = replace(
        modulo(7), times=lambda x, y: x * x * y % 7, commutes=False,
        lift=lambda _, columns: columns[0].astype(np.int64)[:, None] % 7,
    )  # fmt: skip
    with pytest.raises(DlogError, match="breaks"):
        registry.register_ring("Squares", squares)
    tenths = rings.decimal_ring(1).with_lift("lift", lambda _, columns: columns[0].astype(np.int64)[:, None])
    registry.register_ring("PartOfTenths", replace(tenths, sample=None))  # most products have too many digits


def modulo(prime: int) -> Ring:
    """A user's ring: functions on columns, no code for kernels."""
    return Ring(
        f"modulo {prime}", ("int",), lambda v: (v % prime,), lambda w: w[0],
        plus=lambda x, y: (x + y) % prime, times=lambda x, y: x * y % prime, minus=lambda x: -x % prime,
    )  # fmt: skip


def test_laws_of_a_users_ring() -> None:
    check_axioms(modulo(7), number)
    check_axioms(product_ring(modulo(5), INTEGER_RING), lambda r: (number(r), number(r)))


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        ({"plus": lambda x, y: np.maximum(x, y)}, "a \\+ -a = 0"),
        ({"plus": lambda x, y: (x - y) % 7}, "a \\+ b = b \\+ a"),
        ({"times": lambda x, y: (x * y + 1) % 7}, "\\(a \\* b\\) \\* c"),
        ({"times": lambda x, y: x * x * y % 7}, "a \\* b = b \\* a"),
        ({"one": 2}, "a \\* 1 = a"),
        ({"encode": lambda v: ((v + 1) % 7,)}, "decode"),
    ],
)
def test_broken_laws_are_found(broken: dict, law: str) -> None:
    with pytest.raises(DlogError, match=law):
        check_axioms(replace(modulo(7), **broken), number)


@pytest.mark.parametrize(
    ("times", "reason"),
    [(lambda x, y: 1 // 0, "ZeroDivisionError: "), (lambda x, y: (x, y), "[A-Z][a-z]+Error: ")],
)
def test_a_function_that_fails_is_named_with_the_law(times: Any, reason: str) -> None:
    message = f"ring modulo 7 cannot be tested for .* \\* .*: {reason}"
    with pytest.raises(DlogError, match=message) as found:
        check_axioms(replace(modulo(7), times=times), number)
    assert found.value.help is not None and "one column for each word" in found.value.help


@given(st.lists(st.lists(st.integers(-50, 50), max_size=9), max_size=6), st.integers(-20, 20))
def test_differential_users_rings_sum_segments_as_kernels_do(segments: list[list[int]], times: int) -> None:
    ring = modulo(97)
    values = [v for segment in segments for v in segment]
    bounds = np.cumsum([0, *map(len, segments)]).astype(np.int64)
    assert ring.values(ring.sums(ring.column(values), bounds)) == [sum(s) % 97 for s in segments]
    sums = INTEGER_RING.sums(INTEGER_RING.column(values), bounds)
    assert INTEGER_RING.values(sums) == [sum(s) for s in segments]
    scaled = ring.scale(ring.column(values), np.full(len(values), times))
    assert ring.values(scaled) == [v * times % 97 for v in values]


def test_types_mean_rings() -> None:
    text = """CREATE TYPE RingCofactor FROM FILE 'r.hpp' WITH PARAMETER SCHEMA (static, dynamic_sum);
    CREATE TYPE Average FROM FILE 'a.hpp';
    DECLARE MAP A(RingCofactor<0, double, 2>)[][] := 0;  DECLARE MAP B(RingCofactor<2, double, 3>)[][] := 0;
    DECLARE MAP C(Average)[][] := 0;  DECLARE MAP D(int)[][] := 0;"""
    program = parse(text)
    with pytest.raises(DlogError, match="no ring is registered for type Average") as caught:
        registry.rings_of(program)
    assert caught.value.line == 4
    assert caught.value.help == "register one with dlog.m3.register_ring, in a file for --functions"
    with pytest.raises(DlogError) as caught:
        registry.ring_of(TypeRef("Ring"))
    assert str(caught.value.help).startswith("did you mean RingAvg? Otherwise register one with")
    registry.register_ring("Average", product_ring(INTEGER_RING, FLOAT_RING))
    found = registry.rings_of(program)
    assert (found["RingCofactor"].name, found["Average"].words) == ("cofactor(5)", 3)
    assert found["int"] is INTEGER_RING
    with pytest.raises(DlogError, match="already"):
        registry.register_ring("long", INTEGER_RING)
    assert registry.ring_of(TypeRef("float")) is FLOAT_RING


LISTING = """CREATE TYPE Ring FROM FILE 'ring.hpp';
CREATE STREAM R(a int, b int, f int); CREATE STREAM T(a int, c int);
DECLARE MAP DELTA_AGG_VIEW_B(Ring)[][a: int]; DECLARE MAP AGG_VIEW_B(Ring)[][a: int];
DECLARE MAP AGG_VIEW_C(Ring)[][a: int];
DECLARE MAP DELTA_AGG_VIEW_A(Ring)[][]; DECLARE MAP AGG_VIEW_A(Ring)[][];
DECLARE QUERY Q := AGG_VIEW_A(Ring)[][];
ON BATCH UPDATE OF R {
  DELTA_AGG_VIEW_B(Ring)[][A] := AggSum([A], ((DELTA R)(A, B, F) * ([f_B: Ring](B) * [f_F: Ring](F))));
  AGG_VIEW_B(Ring)[][A] += DELTA_AGG_VIEW_B(Ring)[][A];
  DELTA_AGG_VIEW_A(Ring)[][] := AggSum([],
    ((DELTA_AGG_VIEW_B(Ring)[][A] * AGG_VIEW_C(Ring)[][A]) * [f_A: Ring](A)));
  AGG_VIEW_A(Ring)[][] += DELTA_AGG_VIEW_A(Ring)[][];
}
ON BATCH UPDATE OF T { AGG_VIEW_C(Ring)[][a] += AggSum([a], (DELTA T)(a, c) * [f_F: Ring](c)); }
"""


def test_paper_batch_trigger_with_functions_of_a_ring() -> None:
    """The trigger of example 4.8.2, over counts and sums of b: f_B is (1, b), all others are 1."""
    from dlog.m3.runtime.runtime import Runtime

    plain = product_ring(INTEGER_RING, FLOAT_RING)
    ring = plain.with_lift("f_B", lambda _, columns: plain.elements(1, columns[0], 0))
    for name in ("f_F", "f_A"):
        ring = ring.with_lift(name, lambda _, columns: plain.elements(np.ones(len(columns[0])), 1, 0))
    registry.register_ring("Ring", ring)
    runtime = Runtime(parse(LISTING))
    runtime.apply("T", [(1, 7), (1, 8), (2, 9)])
    runtime.apply("R", [(1, 10, 0), (2, 30, 0), (3, 99, 0)])
    runtime.apply("R", [(1, 5, 1), (2, 30, 0)], [1, -1])
    # R joined with T: (1, 10) and (1, 5), twice each
    assert list(runtime["Q"].to_pylist()[0]["value"].values()) == [4, 30.0]
