"""Arithmetic, conversions and ranges of the machine against Python's own numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.lftj.assemble import assemble
from dlog.lftj.plan import (
    BINARY_OPS,
    COMPARISONS,
    FLOAT_OPS,
    UNARY_OPS,
    Compare,
    Compute,
    Emit,
    Plan,
    RangeStep,
    Step,
)
from dlog.lftj.triejoin import Join
from tests.lftj.formulas import MAX, MIN, Meaning, encode

RANKS = (2, 0, 3, 1)
INTS = st.one_of(st.integers(MIN, MAX), st.integers(-70, 70), st.sampled_from([MIN, MIN + 1, MAX - 1, MAX]))
FLOATS = st.one_of(
    st.floats(), st.integers(-9, 9).map(float), st.sampled_from([2.0**63, -(2.0**63), 2.0**64, 0.5, -0.5])
)
OPS = BINARY_OPS + UNARY_OPS


def run(step: Step, slots: tuple[int, ...], constants: tuple[int, ...]) -> tuple[list[tuple[int, ...]], int]:
    """(Rows, undefined) of a plan with one step over constants; the same from the formulas must agree."""
    plan = Plan((), (step, Emit(slots)), tuple(enumerate(constants)))
    join = Join(assemble(plan), np.zeros(0, np.int64), (), np.array(RANKS, np.int64))
    rows = [tuple(row) for row in join.rows().tolist()]
    meaning = Meaning(plan, (), RANKS)
    assert (rows, join.counters().undefined) == (meaning.rows(), meaning.undefined)
    return rows, join.counters().undefined


@given(st.sampled_from(OPS), st.sampled_from(["int", "unsigned"]), INTS, INTS)
@settings(max_examples=1000, deadline=None)
def test_oracle_integers(op, kind, a, b):
    run(Compute(op, kind, 2, 0, 1), (2,), (a, b))


@given(st.sampled_from(FLOAT_OPS), FLOATS, FLOATS)
@settings(max_examples=1000, deadline=None)
def test_oracle_floats(op, a, b):
    if op == "pow" and not exact_power(a, b):
        return  # the last bit of pow is the C library's
    run(Compute(op, "float", 2, 0, 1), (2,), (encode(a, "float"), encode(b, "float")))


def exact_power(a: float, b: float) -> bool:
    return a in (0.0, 1.0, -1.0, 0.5, -0.5) or abs(a) == math.inf or a != a or b in (0.0, 1.0) or b != b


@given(FLOATS, FLOATS, st.sampled_from(COMPARISONS))
@settings(deadline=None)
def test_invariant_float_codes_keep_the_order(a, b, op):
    """Comparing codes is comparing floats, where NaN is equal to itself and last, and -0.0 is 0.0."""
    rows, _ = run(Compare(op, 0, 1), (0,), (encode(a, "float"), encode(b, "float")))
    x, y = ((v != v, 0.0 if v != v else v) for v in (a, b))
    truth = {"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
    assert (len(rows) == 1) == truth[op]


@pytest.mark.parametrize(
    ("op", "a", "b", "result"),
    [
        ("div", -7, 3, -2),
        ("mod", -7, 3, -1),
        ("mod", 7, -3, 1),
        ("div", MIN, -1, MIN),
        ("mod", MIN, -1, 0),
        ("add", MAX, 1, MIN),
        ("pow", 2, 62, 2**62),
        ("pow", 3, -1, 0),
        ("pow", -1, -3, -1),
        ("div_half_even", 25, 10, 2),
        ("div_half_even", 35, 10, 4),
        ("div_half_even", -25, 10, -2),
        ("div_half_even", -26, 10, -3),
        ("bshr", -8, 1, -4),
        ("bshru", -1, 63, 1),
        ("bshl", 1, 65, 2),
        ("land", 5, 0, 0),
    ],
)
def test_integer_examples(op, a, b, result):
    assert run(Compute(op, "int", 2, 0, 1), (2,), (a, b)) == ([(result,)], 0)


@pytest.mark.parametrize(
    ("op", "a", "b"), [("div", 1, 0), ("mod", 1, 0), ("div_half_even", 1, 0), ("pow", 0, -1)]
)
@pytest.mark.parametrize("kind", ["int", "unsigned", "float"])
def test_undefined_where_zero_divides(op, a, b, kind):
    if (kind, op) in (("float", "div_half_even"), ("unsigned", "pow")):
        return  # no such operation on floats; no negative exponent
    assert run(Compute(op, kind, 2, 0, 1), (2,), (encode(a, kind), encode(b, kind))) == ([], 1)


@pytest.mark.parametrize(
    ("op", "first", "second", "result"), [("min", 0, 3, 3), ("max", 0, 3, 0), ("max", 2, 1, 2)]
)
def test_strings_by_rank(op, first, second, result):
    assert run(Compute(op, "string", 2, 0, 1), (2,), (first, second))[0] == [(result,)]


@given(st.sampled_from(["int", "unsigned"]), st.data())
@settings(max_examples=300, deadline=None)
def test_oracle_integer_ranges(kind, data):
    low, high = (0, 2**64 - 1) if kind == "unsigned" else (MIN, MAX)
    start = data.draw(st.one_of(st.integers(low, high), st.sampled_from([low, low + 2, high - 2, high])))
    far = st.sampled_from([low, high, high // 2 + 1, 2**62])
    near = st.integers(-9, 9).map(lambda distance: max(low, min(high, start + distance)))
    end = data.draw(st.one_of(near, far))
    step = data.draw(st.one_of(st.none(), st.integers(max(low, -3), 3), far))
    if abs(end - start) > 1000 * abs(step or 1):
        return
    codes = tuple(encode(value, kind) for value in (start, end, step or 0))
    run(RangeStep(3, 0, 1, None if step is None else 2, kind), (3,), codes)


@given(FLOATS, FLOATS, st.one_of(FLOATS, st.none()))
@settings(max_examples=300, deadline=None)
def test_oracle_float_ranges(start, end, step):
    codes = tuple(encode(value, "float") for value in (start, end, step or 0.0))
    plan = RangeStep(3, 0, 1, None if step is None else 2, "float")
    by = step if step is not None else 1.0
    if by and not abs((end - start) / by) > 1000:  # NaN and short ranges
        run(plan, (3,), codes)


def test_long_ranges_come_in_batches():
    """A range is a generator: its first values come without the others."""
    plan = Plan((), (RangeStep(2, 0, 1), Emit((2,))), ((0, 0), (1, MAX)))
    join = Join(assemble(plan), np.zeros(0, np.int64), ())
    first = next(iter(join.batches(rows=5)))
    assert first[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert next(iter(join.batches(rows=2)))[:, 0].tolist() == [5, 6]
