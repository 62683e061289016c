"""Kept float sums against math.fsum: any order, any grouping, insertions and erasures."""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.engine.head.power_sums import mean_of_sums, sum_of_sums
from dlog.heads.float_sums import apply_floats, check_sums, no_sums, words_of_sums
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation
from dlog.storage.values import decode, encode
from dlog.values import FLOAT

# Huge and tiny ones, such that sums of a few of them stay finite: fsum refuses sums that overflow on the way.
FINITE = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e306, max_value=1e306),
    st.sampled_from(
        [5e-324, -5e-324, 2.2250738585072014e-308, 1e306, -1e306, 1.0, -1.0, 2.0**53, 0.1, 2.0**-1000]
    ),
    st.integers(-(2**60), 2**60).map(float),
)
SPECIAL = st.sampled_from([math.inf, -math.inf, math.nan])


def expected(values: list[float]) -> float:
    """What IEEE arithmetic says of infinities and NaN, math.fsum of all else."""
    special = [v for v in values if not math.isfinite(v)]
    return sum(special) if special else math.fsum(values)


def bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("d", value + 0.0)


def add(state: Relation, keys: list[int], values: list[float], signs: list[int]) -> Relation:
    """One batch of (group, value, sign), sorted by group as the caller must."""
    order = np.argsort(keys, kind="stable")
    codes = encode(values, FLOAT, None)[order]
    distinct, starts = np.unique(np.array(keys)[order], return_index=True)
    bounds = np.append(starts, len(keys))
    return apply_floats(state, distinct[:, None], 0, bounds, codes, np.array(signs)[order])


def read(state: Relation, keys: list[int], counts: list[int] | None = None) -> list[float]:
    words = [words_of_sums(state, np.array(keys)[:, None], 0)]
    finish, divisors = (sum_of_sums, keys) if counts is None else (mean_of_sums, counts)
    codes = finish(FLOAT, np.array(divisors, np.int64), words).codes
    return decode(codes, FLOAT, None).to_pylist()  # type: ignore[no-any-return]


@given(st.lists(st.tuples(st.integers(0, 3), FINITE | FINITE | FINITE | SPECIAL), max_size=30), st.randoms())
@settings(max_examples=150)
def test_oracle_any_order_any_grouping_inserts_and_erases(
    rows: list[tuple[int, float]], rng: random.Random
) -> None:
    """Rows come and go in batches of any size; after each, every group is fsum of what it has."""
    state = no_sums(Arena(1 << 28), 1)
    waiting = [(key, value, 1) for key, value in rows]
    waiting += [(key, value, -1) for key, value in rows if rng.random() < 0.5]
    rng.shuffle(waiting)
    held: dict[int, list[tuple[int, float]]] = {k: [] for k in range(4)}
    while waiting:
        batch, waiting = waiting[: (size := rng.randrange(1, 6))], waiting[size:]
        state = add(state, *(list(column) for column in zip(*batch, strict=True)))  # type: ignore[arg-type]
        check_sums(state)
        for key, value, sign in batch:
            held[key].append((sign, value))
        for key in range(4):
            left = remaining(held[key])
            if left is not None:
                assert bits(read(state, [key])[0]) == bits(expected(left)), left
    for key in range(4):
        final = remaining(held[key])
        assert final is not None
        if final:
            mean = read(state, [key], [len(final)])[0]
            assert bits(mean) == bits(exact_mean(final))
        undo = [(key, value, -sign) for sign, value in held[key]]
        if undo:
            state = add(state, *(list(column) for column in zip(*undo, strict=True)))  # type: ignore[arg-type]
    assert len(state) == 0, "sums of nothing leave no rows"


def remaining(history: list[tuple[int, float]]) -> list[float] | None:
    """What is there after insertions and erasures; None while something was erased before it was inserted."""
    net: Counter[bytes] = Counter()
    shown: dict[bytes, float] = {}
    for sign, value in history:
        net[bits(value)] += sign
        shown[bits(value)] = value
    if min(net.values(), default=0) < 0:
        return None
    return [shown[key] for key, count in net.items() for _ in range(count)]


def exact_mean(values: list[float]) -> float:
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return sum(special)
    return float(sum(map(Fraction, values)) / len(values))


def test_infinities_and_nan_can_be_subtracted() -> None:
    state = add(no_sums(Arena(1 << 28), 1), [7, 7], [0.1, 0.2], [1, 1])
    before = state.rows().tolist()
    for value, shown in ((math.inf, math.inf), (-math.inf, -math.inf), (math.nan, math.nan)):
        later = add(state, [7], [value], [1])
        assert bits(read(later, [7])[0]) == bits(shown)
        both = add(later, [7], [-value], [1])
        assert math.isnan(read(both, [7])[0])
        assert add(add(both, [7], [-value], [-1]), [7], [value], [-1]).rows().tolist() == before


def test_a_small_change_of_a_long_sum_changes_few_words() -> None:
    """2^500 - 1 has two words: no borrow runs through all that lie between."""
    state = add(no_sums(Arena(1 << 28), 1), [1, 1], [2.0**500, -1.0], [1, 1])
    assert len(state) == 2
    assert read(add(state, [1], [2.0**500], [-1]), [1]) == [-1.0]


def test_many_groups_and_many_values() -> None:
    """More groups than one call takes, more values than limbs hold unsettled."""
    rng = np.random.default_rng(3)
    keys = np.concatenate([np.arange(3000), np.zeros(2000, np.int64)])
    values = rng.standard_normal(5000) * 10.0 ** rng.integers(-200, 200, 5000)
    state = add(no_sums(Arena(1 << 28), 1), keys.tolist(), values.tolist(), [1] * 5000)
    found = read(state, list(range(3000)))
    for key in (0, 1, 1023, 1024, 2999):
        assert found[key] == math.fsum(values[keys == key])
