"""Sums are compared with Python's fractions, which share no code with the kernels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.algebra import (
    LIMBS,
    WORDS_PER_SUM,
    add_to_sum,
    exact_float,
    float_means,
    float_sums,
    mean_of_sum,
    merge_sum,
    round_sum,
)

EXTREMES = st.sampled_from(
    [5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, -1.7976931348623157e308, -0.0]
)
FINITE = st.floats(allow_nan=False, allow_infinity=False) | EXTREMES
# Halves of the last place, where rounding must look at everything below.
TIES = st.builds(lambda e, s: s * 2.0**e, st.integers(-1074, 1023), st.sampled_from([-1.0, 1.0, 3.0]))
ANY = FINITE | TIES | st.sampled_from([math.inf, -math.inf, math.nan])


def nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def model_sum(values: list[float], count: int = 1) -> float:
    """The sum divided by count."""
    special = {v for v in values if math.isinf(v)}
    if any(map(math.isnan, values)) or len(special) == 2:
        return math.nan
    if special:
        return special.pop()
    return nearest(sum(map(Fraction, values), Fraction(0)) / count)


def same(a: float, b: float) -> bool:
    """Bit for bit, one NaN, no -0.0."""
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


def segments(parts: list[list]) -> tuple[list, np.ndarray]:
    return [v for part in parts for v in part], np.cumsum([0, *map(len, parts)])


def sum_of(values: list[float]) -> np.ndarray:
    words = np.zeros(WORDS_PER_SUM, np.int64)
    for value in values:
        add_to_sum(words, 0, value, 1)
    return words


@settings(deadline=None)
@given(st.lists(st.lists(ANY, max_size=8), max_size=5))
def test_segment_sums_are_the_nearest_floats(parts: list[list[float]]) -> None:
    values, bounds = segments(parts)
    sums = float_sums(np.array(values, np.float64), bounds)
    for part, total in zip(parts, sums.tolist(), strict=True):
        assert same(total, model_sum(part))


@settings(deadline=None)
@given(st.lists(st.lists(FINITE, max_size=8), max_size=5))
def test_segment_sums_are_those_of_fsum(parts: list[list[float]]) -> None:
    values, bounds = segments(parts)
    for part, total in zip(parts, float_sums(np.array(values, np.float64), bounds).tolist(), strict=True):
        try:
            assert total == math.fsum(part)
        except OverflowError:  # fsum gives up where an intermediate sum is too large
            assert same(total, model_sum(part))


@settings(deadline=None)
@given(st.lists(st.lists(ANY, max_size=8), max_size=5))
def test_segment_means_are_rounded_once(parts: list[list[float]]) -> None:
    values, bounds = segments(parts)
    means = float_means(np.array(values, np.float64), bounds)
    for part, mean in zip(parts, means.tolist(), strict=True):
        assert same(mean, model_sum(part, len(part)) if part else math.nan)


def test_long_segments_settle_their_carries() -> None:
    rng = np.random.default_rng(1)
    huge = np.full(5000, 1.7976931348623157e308)
    mixed = rng.standard_normal(5000) * 10.0 ** rng.integers(-300, 300, 5000)
    values = np.concatenate([huge, -huge, [1.5], mixed, -mixed[::-1], [-5e-324]])
    sums = float_sums(values, np.array([0, 10_001, len(values), len(values)]))
    assert sums.tolist() == [1.5, -5e-324, 0.0]
    assert float_means(huge, np.array([0, 5000])).tolist() == [1.7976931348623157e308]


@settings(deadline=None)
@given(st.lists(ANY, max_size=12), st.randoms(use_true_random=False))
def test_any_order_and_grouping_gives_the_same_words(values: list[float], random) -> None:
    whole = sum_of(values)
    shuffled = values[:]
    random.shuffle(shuffled)
    cut = random.randint(0, len(values))
    left, right = sum_of(shuffled[:cut]), sum_of(shuffled[cut:])
    merge_sum(left, 0, right, 0, 1)
    assert left.tolist() == whole.tolist()
    assert same(round_sum(whole, 0, LIMBS), model_sum(values))


@settings(deadline=None)
@given(st.lists(ANY, max_size=8), st.lists(ANY, max_size=8))
def test_undone_changes_leave_no_trace(kept: list[float], gone: list[float]) -> None:
    words = sum_of(kept + gone)
    for value in reversed(gone):
        add_to_sum(words, 0, value, -1)
    assert words.tolist() == sum_of(kept).tolist()
    words = sum_of(gone + kept)
    merge_sum(words, 0, sum_of(gone), 0, -1)
    assert words.tolist() == sum_of(kept).tolist()


@settings(deadline=None)
@given(st.lists(FINITE, max_size=8), st.integers(1, 2**31 - 1))
def test_quotients_of_sums_are_the_nearest_floats(values: list[float], count: int) -> None:
    work = np.zeros(LIMBS, np.int64)
    mean = mean_of_sum(sum_of(values), 0, LIMBS, count, work)
    assert same(mean + 0.0, model_sum(values, count) + 0.0)
    assert not work.any()


def test_kernels_have_one_signature() -> None:
    words = exact_float(1.5)
    merge_sum(words, 0, exact_float(2), 0, 1)
    assert round_sum(words, 0, LIMBS) == 3.5
    float_sums(np.ones(3), np.array([0, 3]))
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert float_means(frozen, np.array([0, 3])).tolist() == [1.0]
