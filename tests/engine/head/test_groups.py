"""Aggregates are compared with a dictionary of lists and Python's exact numbers."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog import jit
from dlog.column_functions import Column, widen
from dlog.column_functions.columns import DECIMAL_DIGITS
from dlog.engine.head import grouping
from dlog.engine.head.grouping import group_rows, sorted_rows
from dlog.engine.head.groups import aggregate
from dlog.engine.head.power_sums import SumOverflow
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import decode, encode
from dlog.values import BOOL, DATE, FLOAT, INT, STRING, UNSIGNED, Type, decimal

D2, WIDE = decimal(9, 2), Type("decimal", 12, 38)
INTS = st.integers(-(2**62), 2**62) | st.integers(-9, 9)
KEYS = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, 2**40])


def decimals(type: Type) -> st.SearchStrategy:
    return st.integers(-(10**30), 10**30).map(lambda i: Decimal(i).scaleb(-type.scale))


VALUES: dict[Type, st.SearchStrategy] = {
    INT: st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9),
    UNSIGNED: st.integers(0, 2**64 - 1) | st.integers(0, 9),
    FLOAT: st.floats() | st.floats(-10, 10),
    STRING: st.text("abé", max_size=3),
    BOOL: st.booleans(),
    DATE: st.dates(),
    D2: st.integers(-(10**9) + 1, 10**9 - 1).map(lambda i: Decimal(i).scaleb(-2)),
    WIDE: decimals(WIDE),
}
ARROW = {INT: pa.int64(), UNSIGNED: pa.uint64(), FLOAT: pa.float64(), STRING: pa.string()}


def column(values: list[Any], type: Type, dictionary: Dictionary) -> Column:
    if type.is_decimal:
        return Column(pa.array(values, pa.decimal256(DECIMAL_DIGITS, type.scale)), type)
    return Column(encode(pa.array(values, ARROW.get(type)), type, dictionary), type)


def values(result: Column, dictionary: Dictionary) -> list[Any]:
    result.check()
    if result.type.is_decimal:
        return result.values.to_pylist()
    return decode(result.values, result.type, dictionary).to_pylist()


def same(a: Any, b: Any) -> bool:
    return (a != a and b != b) or a == b


def number_key(value: Any) -> Any:
    return (math.isnan(value), value) if isinstance(value, float) else value


def nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def model(op: str, members: list[Any]) -> Any:
    """`members` in the order of rows."""
    if op == "count":
        return len(members)
    if op in ("min", "max"):
        return (min if op == "min" else max)(members, key=number_key)
    if op == "concat":
        return "".join(members)
    if op == "count_distinct":
        return len({number_key(member) for member in members})
    if op in DEVIATIONS:
        return deviation(members, *DEVIATIONS[op])
    if isinstance(members[0], float):
        special = {v for v in members if math.isinf(v)}
        if any(map(math.isnan, members)) or len(special) > 1:
            return math.nan
        if special:
            return special.pop()
        total = sum(map(Fraction, members), Fraction(0))
        return nearest(total / (len(members) if op == "mean" else 1))
    total = sum(map(Fraction, members), Fraction(0))
    return nearest(total / len(members)) if op == "mean" else total


DEVIATIONS = {"variance": (1, 1), "variance_pop": (0, 1), "stddev": (1, 2), "stddev_pop": (0, 2)}


def deviation(members: list[Any], freedom: int, root: int) -> float:
    """The mean square deviation, or its root, found by integers; NaN where it has no value."""
    if len(members) <= freedom or not all(math.isfinite(m) for m in members if isinstance(m, float)):
        return math.nan
    numbers = [Fraction(m) for m in members]
    mean = sum(numbers, Fraction(0)) / len(numbers)
    square = sum(((n - mean) ** 2 for n in numbers), Fraction(0)) / (len(numbers) - freedom)
    if root == 1:
        return nearest(square)
    low = Fraction(math.isqrt(square.numerator * 4**1300 // square.denominator), 2**1300)
    return nearest(low if low**2 == square else low + Fraction(1, 2**1301))


def grouped(keys: list[tuple[int, ...]], members: list[Any]) -> dict[tuple[int, ...], list[Any]]:
    out: dict[tuple[int, ...], list[Any]] = {}
    for key, member in zip(keys, members, strict=True):
        out.setdefault(key, []).append(member)
    return out


CASES = [(op, type) for type in VALUES for op in ("min", "max")]
CASES += [(op, type) for type in (INT, UNSIGNED, FLOAT, D2, WIDE) for op in ("sum", "mean", *DEVIATIONS)]
CASES += [("count_distinct", type) for type in VALUES]


@pytest.mark.parametrize(("op", "type"), CASES, ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_aggregates_of_groups(op: str, type: Type, data: st.DataObject) -> None:
    width = data.draw(st.integers(0, 3))
    rows = data.draw(st.lists(st.tuples(st.tuples(*[KEYS] * width), VALUES[type]), max_size=12))
    keys, members = [r[0] for r in rows], [r[1] for r in rows]
    dictionary = Dictionary()
    arrays = [np.array([k[i] for k in keys], np.int64) for i in range(width)]
    expected = {k: model(op, v) for k, v in grouped(keys, members).items()}
    arguments = [(op, column(members, type, dictionary)), ("count", None)]
    limits = {INT: (-(2**63), 2**63), UNSIGNED: (0, 2**64)}.get(type)
    if op == "sum" and limits and not all(limits[0] <= v < limits[1] for v in expected.values()):
        with pytest.raises(SumOverflow) as caught:
            aggregate(arrays, len(rows), arguments, dictionary)
        assert not limits[0] <= expected[keys[caught.value.row]] < limits[1]
        return
    got_keys, (results, counts) = aggregate(arrays, len(rows), arguments, dictionary)
    assert [tuple(k) for k in np.array(got_keys).T.tolist()] == sorted(expected) or width == 0
    assert len(counts) == len(expected)
    for key, got, n in zip(
        sorted(expected), values(results, dictionary), counts.values.tolist(), strict=True
    ):
        assert same(got, expected[key]), (key, got, expected[key])
        assert n == keys.count(key)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(-1074, 823),
    st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**53), 2**53), st.integers(0, 75)), min_size=1),
)
def test_sums_of_floats_of_about_one_size(least: int, rows: list[tuple[int, int, int]]) -> None:
    """Whole numbers of one last place, as far as two words go, and beyond."""
    members = [math.ldexp(number, least + shift) for _, number, shift in rows]
    keys = np.array([key for key, _, _ in rows])
    dictionary = Dictionary()
    argument = column(members, FLOAT, dictionary)
    (found,), (sums,) = aggregate([keys], len(rows), [("sum", argument)], dictionary)
    expected = {k: model("sum", v) for (k,), v in grouped([(k,) for k in keys.tolist()], members).items()}
    assert dict(zip(found.tolist(), values(sums, dictionary), strict=True)) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(KEYS, st.text("abé", max_size=3), st.integers(0, 9), st.text("xyz", max_size=2))),
    st.randoms(use_true_random=False),
)
def test_concat_joins_in_the_given_order(rows: list[tuple[int, str, int, str]], random: Any) -> None:
    expected = grouped([(r[0],) for r in rows], [r[1:] for r in rows])
    joined = {
        k: "".join(t[0] for t in sorted(v, key=lambda t: (t[2], t[1], t[0]))) for k, v in expected.items()
    }
    random.shuffle(rows)
    dictionary = Dictionary()
    argument = column([r[1] for r in rows], STRING, dictionary)
    by_text = column([r[3] for r in rows], STRING, dictionary)
    order = [dictionary.rank[by_text.values], np.array([r[2] for r in rows], np.int64)]
    groups = [np.array([r[0] for r in rows], np.int64)]
    keys, (result,) = aggregate(groups, len(rows), [("concat", argument)], dictionary, order)
    assert dict(zip(keys[0].tolist(), values(result, dictionary), strict=True)) == {
        k: v for (k,), v in joined.items()
    }


def test_min_of_strings_is_by_text_not_by_code() -> None:
    dictionary = Dictionary()
    texts = column(["z", "b", "é", "a"], STRING, dictionary)
    _, results = aggregate([], 4, [("min", texts), ("max", texts)], dictionary)
    assert [values(r, dictionary) for r in results] == [["a"], ["é"]]


def test_no_rows_give_no_group() -> None:
    dictionary = Dictionary()
    no_texts, no_numbers = Column(np.empty(0, np.int64), STRING), widen(np.empty(0, np.int64), D2)
    arguments = [("count", None), ("max", no_texts), ("sum", no_numbers), ("mean", no_numbers)]
    for groups in ([], [np.empty(0, np.int64)]):
        keys, results = aggregate(groups, 0, arguments, dictionary)
        assert [len(c) for c in (*keys, *results)] == [0] * (len(groups) + 4)
        assert [r.type for r in results] == [INT, STRING, Type("decimal", 2, 38), FLOAT]
        for result in results:
            result.check()


def test_a_group_whose_sum_is_zero_exists() -> None:
    keys, (total,) = aggregate(
        [np.array([1, 1, 2])], 3, [("sum", Column(np.array([5, -5, 1]), INT))], Dictionary()
    )
    assert keys[0].tolist() == [1, 2] and total.values.tolist() == [0, 1]


def test_sums_go_beyond_64_bits_on_the_way() -> None:
    numbers = Column(np.array([2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 7]), INT)
    _, (total, mean) = aggregate([], 5, [("sum", numbers), ("mean", numbers)], Dictionary())
    assert total.values.tolist() == [5]
    assert values(mean, Dictionary()) == [1.0]


def test_decimal_sums_of_more_than_76_digits_name_their_group() -> None:
    big = column([Decimal(1), Decimal(6 * 10**75), Decimal(6 * 10**75)], Type("decimal", 0, 38), Dictionary())
    groups = [np.array([1, 2, 2])]
    for op in ("sum", "mean"):
        with pytest.raises(SumOverflow, match="a sum does not fit 76 digits") as caught:
            aggregate(groups, 3, [(op, big)], Dictionary())
        assert groups[0][caught.value.row] == 2


SPREAD_FLOATS = st.builds(
    lambda sign, number, exponent: sign * math.ldexp(number, exponent),
    st.sampled_from([-1, 1]),
    st.integers(0, 2**53),
    st.integers(-1074, 970) | st.sampled_from([-453, -452, -451, 347, 348, 349]),
)


@pytest.mark.parametrize("op", DEVIATIONS)
@settings(max_examples=100, deadline=None)
@given(members=st.lists(SPREAD_FLOATS | st.floats(-1e9, 1e9), min_size=1, max_size=9))
def test_deviations_of_floats_of_any_size(op: str, members: list[float]) -> None:
    """The largest and the smallest, sizes where squares change their scale, and all of them together."""
    dictionary = Dictionary()
    _, (result,) = aggregate([], len(members), [(op, column(members, FLOAT, dictionary))], dictionary)
    assert same(values(result, dictionary)[0], model(op, members))


@pytest.mark.parametrize("type", [INT, UNSIGNED, Type("decimal", 3, 18)], ids=str)
def test_squares_of_whole_columns(type: Type) -> None:
    """More rows than one block, the greatest numbers among them, in several groups."""
    chance = random.Random(3)
    least, most = {INT: (-(2**63), 2**63 - 1), UNSIGNED: (0, 2**64 - 1)}.get(type, (-(10**18), 10**18))
    members = [chance.choice([least, most, chance.randrange(least, most)]) for _ in range(3000)]
    keys = [chance.randrange(3) for _ in members]
    dictionary = Dictionary()
    numbers = [Decimal(m).scaleb(-3) for m in members] if type.is_decimal else members
    argument = column(numbers, type, dictionary)
    _, (result,) = aggregate([np.array(keys)], len(keys), [("variance", argument)], dictionary)
    expected = grouped([(k,) for k in keys], numbers)
    assert values(result, dictionary) == [model("variance", expected[k,]) for k in range(3)]


@pytest.mark.parametrize("digits", [(39, 39, 39), (0, 37, 37)], ids=["a square", "their sum"])
def test_squares_of_more_than_76_digits_name_their_group(digits: tuple[int, ...]) -> None:
    members = [Decimal(9 * 10**n) for n in digits]
    groups = [np.array([1, 2, 2])] if digits[0] == 0 else [np.array([2, 2, 2])]
    argument = column(members, Type("decimal", 0, 38), Dictionary())
    with pytest.raises(SumOverflow, match="sum of squares does not fit 76 digits") as caught:
        aggregate(groups, 3, [("variance", argument)], Dictionary())
    assert groups[0][caught.value.row] == 2


@pytest.mark.parametrize("spread", [1, 10**12 + 39], ids=["direct", "hashed"])
@pytest.mark.parametrize("n_groups", [1, 700, 60_000])
def test_many_rows(spread: int, n_groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that grow and groups that are split, against numpy."""
    if jit.DISABLED:
        monkeypatch.setattr(grouping, "MAX_TABLE", 1 << 7)
        n_groups, n = min(n_groups, 2000), 6000
    else:
        n = 200_000
    rng = np.random.default_rng(n_groups)
    keys = rng.integers(0, n_groups, n) * spread - 7
    numbers = rng.integers(-(2**62), 2**62, n) >> 20
    floats = numbers / 1024
    dictionary = Dictionary()
    (got,), results = aggregate(
        [keys],
        n,
        [
            ("count", None),
            ("sum", Column(numbers, INT)),
            ("min", Column(numbers, INT)),
            ("sum", Column(encode(pa.array(floats), FLOAT, dictionary), FLOAT)),
        ],
        dictionary,
    )
    unique, inverse = np.unique(keys, return_inverse=True)
    assert (got == unique).all()
    assert (results[0].values == np.bincount(inverse)).all()
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, inverse, numbers)
    assert (results[1].values == sums).all()
    least = np.full(len(unique), 2**63 - 1)
    np.minimum.at(least, inverse, numbers)
    assert (results[2].values == least).all()
    assert (np.array(values(results[3], dictionary)) == sums / 1024).all()
    group_rows([keys], n).check()


def test_split_tables_give_the_same_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of several words, each with more groups than one table takes."""
    rng = np.random.default_rng(3)
    n = 3000
    columns = [rng.integers(-(2**62), 2**62, 400)[rng.integers(0, 400, n)] * 2 for _ in range(3)]
    plain = group_rows(columns, n)
    monkeypatch.setattr(grouping, "MAX_TABLE", 100)
    split = group_rows(columns, n)
    assert plain.rows is None and split.rows is not None
    for one in (plain, split):
        one.check()
    rows = np.array(columns).T
    assert (rows[plain.first] == rows[split.first]).all()
    assert (rows[split.first] == np.unique(rows, axis=0)).all()


@settings(deadline=None)
@given(st.integers(1, 3), st.data())
def test_sorted_rows_is_a_stable_order(width: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*[KEYS] * width), max_size=20))
    columns = [np.array([r[i] for r in rows], np.int64) for i in range(width)]
    order = sorted_rows(columns, len(rows)).tolist()
    assert order == sorted(range(len(rows)), key=lambda i: rows[i])
