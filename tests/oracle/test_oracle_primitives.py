"""Every primitive and every aggregate of the naive evaluator, against values computed by hand."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

import dlog
from dlog.ir.primitives import SIGNATURES

from .aggregates import DEVIATIONS
from .naive import evaluate
from .primitives import FUNCTIONS, GENERATORS, RELATIONS
from .values import LONGEST, DoesNotFit

BIG = 2**63 - 1
NONE: list = []  # the primitive is undefined

INTS = {
    "7 + 3": 10,
    f"{BIG} + 1": -(2**63),
    "3 - 7": -4,
    f"-{BIG} - 2": BIG,
    "-7 * 3": -21,
    f"{BIG} * 2": -2,
    "7 / 2": 3,
    "-7 / 2": -3,
    "7 / -2": -3,
    f"(-{BIG} - 1) / -1": -(2**63),
    "7 / 0": NONE,
    "7 % 3": 1,
    "-7 % 3": -1,
    "7 % -3": 1,
    "7 % 0": NONE,
    "2 ^ 10": 1024,
    "2 ^ 63": -(2**63),
    "3 ^ 0": 1,
    "2 ^ -1": 0,
    "-1 ^ -3": -1,  # unary minus binds less tightly than a power: -(1 ^ -3)
    "(-1) ^ -3": -1,
    "0 ^ -1": NONE,
    "-(-5)": 5,
    "abs(-5)": 5,
    f"abs(-{BIG} - 1)": -(2**63),
    "12 band 10": 8,
    "12 bor 10": 14,
    "12 bxor 10": 6,
    "bnot 0": -1,
    "1 bshl 63": -(2**63),
    "1 bshl 64": 1,
    "-8 bshr 1": -4,
    "-1 bshru 60": 15,
    "2 land 3": 1,
    "2 land 0": 0,
    "0 lor 0": 0,
    "0 lor 5": 1,
    "2 lxor 3": 0,
    "0 lxor 3": 1,
    "lnot 0": 1,
    "lnot 7": 0,
    "min(3, 1, 2)": 1,
    "max(3, 1, 2)": 3,
    'strlen("äöü𝄞")': 4,
    'to_number("-12")': -12,
    'to_number("12x")': NONE,
    'to_number("")': NONE,
    'to_number("9223372036854775808")': NONE,
    "to_number(2.9)": 2,
    "to_number(-2.9)": -2,
    "to_number(10000000000000000000.0)": NONE,
    "as(18446744073709551615u, number)": -1,
    "range(1, 4)": [1, 2, 3],
    "range(4, 1)": [4, 3, 2],
    "range(1, 1)": NONE,
    "range(0, 7, 3)": [0, 3, 6],
    "range(5, 0, -2)": [5, 3, 1],
    "range(0, 5, -1)": NONE,
    "range(3, 5, 0)": [3],
    f"range({BIG} - 1, {BIG})": [BIG - 1],
    'year(to_date("2024-02-29"))': 2024,
    'month(to_date("2024-02-29"))': 2,
    'day(to_date("2024-02-29"))': 29,
    'weekday(to_date("2024-02-29"))': 4,
    'hour(to_datetime("2024-02-29T13:14:15"))': 13,
    'minute(to_datetime("2024-02-29T13:14:15"))': 14,
    'second(to_datetime("2024-02-29T13:14:15"))': 15,
    'days_between(to_date("2024-02-28"), to_date("2024-03-01"))': 2,
    'days_between(to_date("2024-03-01"), to_date("2024-02-28"))': -2,
}
UNSIGNED = {
    "1u - 2u": 2**64 - 1,
    f"{2**64 - 1}u + 1u": 0,
    f"{2**64 - 1}u / 2u": BIG,
    f"{2**64 - 1}u % 10u": 5,
    f"{2**63}u bshr 63u": 1,
    f"{2**63}u bshru 63u": 1,
    "bnot 0u": 2**64 - 1,
    "2u ^ 64u": 0,
    f"max({2**63}u, 1u)": 2**63,
    "as(-1, unsigned)": 2**64 - 1,
    'to_unsigned("18446744073709551615")': 2**64 - 1,
    'to_unsigned("-1")': NONE,
    "to_unsigned(2.5)": 2,
    "to_unsigned(-1.5)": NONE,
    "range(1u, 3u)": [1, 2],
}
FLOATS = {
    "0.1 + 0.2": 0.1 + 0.2,
    "1.0 / 4.0": 0.25,
    "1.0 / 0.0": NONE,
    "0.0 * -1.0": 0.0,
    "-0.0": 0.0,
    "2.0 ^ 0.5": math.sqrt(2),
    "2.0 ^ -1.0": 0.5,
    "0.0 ^ -1.0": NONE,
    "min(1.5, -1.5)": -1.5,
    "abs(-1.5)": 1.5,
    "floor(-1.5)": -2.0,
    "ceil(-1.5)": -1.0,
    "ceil(-0.5)": 0.0,
    "round(2.5)": 2.0,
    "round(3.5)": 4.0,
    "sqrt(2.25)": 1.5,
    "sqrt(-1.0)": NONE,
    "exp(0.0)": 1.0,
    "log(1.0)": 0.0,
    "log(0.0)": NONE,
    "to_float(7)": 7.0,
    "to_float(9007199254740993)": 9007199254740992.0,
    'to_float("1.5e3")': 1500.0,
    'to_float("one")': NONE,
    "range(0.0, 1.0, 0.5)": [0.0, 0.5],
}
STRINGS = {
    'cat("a", "b", "c")': "abc",
    'substr("abcd", 1, 2)': "bc",
    'substr("äöü", 1, 1)': "ö",
    'substr("abcd", 4, 0)': "",
    'substr("abcd", 2, 9)': "cd",
    'substr("abcd", 5, 1)': "",
    'substr("abcd", -1, 1)': "",
    'substr("abcd", 1, -1)': "bcd",
    'lower("ÄB")': "äb",
    'upper("äb")': "ÄB",
    'trim("  a b ")': "a b",
    'replace("banana", "an", "-")': "b--a",
    'split("a-b--c", "-")': ["a", "b", "", "c"],
    'split("a-b-c", "-", 2)': "c",
    'split("a-b-c", "-", 3)': NONE,
    'split("abc", "")': NONE,
    "to_string(-12)": "-12",
    "to_string(1.5)": "1.500000",
    "to_string(true)": "true",
    'to_string(to_decimal("3.50"))': "3.5",
    'to_string(to_decimal("2"))': "2.0",
    'to_string(to_date("2024-02-29"))': "2024-02-29",
    'to_string(to_datetime("2024-02-29 13:14:15"))': "2024-02-29T13:14:15",
    'to_string(to_timestamp("2024-02-29 13:14:15+01"))': "2024-02-29T12:14:15Z",
    'to_string(to_duration("-PT90061.250S"))': "-P1DT1H1M1.25S",
    'to_string(to_duration("PT0S"))': "PT0S",
    'min("b", "a", "Z")': "Z",
    'max("9", "10")': "9",
}
DECIMALS: dict[str, Any] = {
    "0.1 + 0.2": "0.3",
    "1.5 - 2": "-0.5",
    "1.1 * 1.1": "1.21",
    "0.0011 * 0.0005": "0.000001",  # 0.00000055, rounded at the head
    "0.0005 * 0.001": "0",  # 0.0000005, half to even
    "0.0015 * 0.001": "0.000002",  # 0.0000015, half to even
    "1.0 / 3.0": "0.333333",
    "2.0 / 3.0 * 3.0": "2",  # 1.999999999998..., rounded once
    "1.0 / 0.0": NONE,
    "-(0.5)": "-0.5",
    "abs(-0.5)": "0.5",
    "floor(-0.5)": "-1",
    "ceil(0.25)": "1",
    "round(0.5)": "0",
    "round(1.5)": "2",
    'to_decimal("12.3456785")': "12.345678",
    'to_decimal("x")': NONE,
    "to_decimal(0.1)": "0.1",
}
DATES = {
    'to_date("2024-02-29")': date(2024, 2, 29),
    'to_date("2023-02-29")': NONE,
    'to_date(to_datetime("2024-02-29T13:14:15"))': date(2024, 2, 29),
    'add_days(to_date("2024-02-28"), 2)': date(2024, 3, 1),
    'add_days(to_date("2024-02-28"), 9999999)': NONE,
}
DATETIMES = {
    'to_datetime(to_date("2024-02-29"))': datetime(2024, 2, 29),
    'to_datetime("yesterday")': NONE,
    'to_datetime("2024-02-29T13:14:15Z")': NONE,
    'to_datetime(to_timestamp("2024-02-29T13:14:15+01:00"))': datetime(2024, 2, 29, 12, 14, 15),
    'add_days(to_datetime("2024-02-28T13:00:00"), -1)': datetime(2024, 2, 27, 13),
}
TIMESTAMPS = {
    'to_timestamp("2024-02-29T13:14:15+02:00")': datetime(2024, 2, 29, 11, 14, 15, tzinfo=UTC),
    'to_timestamp(to_datetime("2024-02-29T13:14:15"))': datetime(2024, 2, 29, 13, 14, 15, tzinfo=UTC),
    'to_timestamp("2024-02-29T13:14:15")': NONE,
    'to_timestamp("2024-02-29T13:14:15Z") + "P1D"': datetime(2024, 3, 1, 13, 14, 15, tzinfo=UTC),
    'to_timestamp("9999-12-31T00:00:00Z") + "P1D"': NONE,
}
DURATIONS = {
    'to_duration("P1W1DT1H1M1.5S")': timedelta(8, 3661, 500_000),
    'to_duration("P1Y")': NONE,
    'to_duration("PT")': NONE,
    'to_duration("P106751992D")': NONE,
    'to_timestamp("2024-02-29T00:00:00Z") - "2024-02-28T00:00:01Z"': timedelta(0, 86399),
    'to_datetime("2024-02-29T00:00:00") - "2024-02-29T00:00:01"': timedelta(seconds=-1),
    'to_duration("PT7S") / 2': timedelta(seconds=3.5),
    'to_duration("-PT0.000007S") / 2': timedelta(microseconds=-3),
    'to_duration("PT7S") * 3': timedelta(seconds=21),
    'to_duration("P106751991D") * 2': NONE,
    '-to_duration("PT7S")': timedelta(seconds=-7),
    'abs(to_duration("-PT7S"))': timedelta(seconds=7),
}
TABLES: dict[str, dict[str, Any]] = {
    "int": INTS,
    "unsigned": UNSIGNED,
    "float": FLOATS,
    "string": STRINGS,
    "decimal": {text: value and Decimal(value) for text, value in DECIMALS.items()},
    "date": DATES,
    "datetime": DATETIMES,
    "timestamp": TIMESTAMPS,
    "duration": DURATIONS,
}
CASES = [(type, text, expected) for type, table in TABLES.items() for text, expected in table.items()]

TRUE = [
    *("1 < 2", "2 <= 2", "2 >= 2", "3 > 2", "1 = 1", "1 != 2", "-1 < 0"),
    *('"Z" < "a"', '"10" < "9"', '"" < "a"', '"é" > "z"', '"a" = "a"'),
    *("0.5 < 1.5", "false < true", f"{2**63}u > 1u"),
    *('contains("an", "banana")', 'contains("", "x")', 'match("a+", "aaa")', 'match("a|ab", "ab")'),
    *('starts_with("ba", "banana")', 'ends_with("na", "banana")'),
]
FALSE = [
    *("2 < 2", "2 < 1", "3 <= 2", "1 >= 2", "2 > 2", "1 = 2", "1 != 1"),
    *('"a" < "Z"', 'contains("banana", "an")', 'match("a", "ba")'),
    *('starts_with("banana", "ba")', 'ends_with("ba", "banana")', "1 / 0 = 1", "1 / 0 != 1"),
]


@pytest.mark.parametrize(("type", "text", "expected"), CASES, ids=[f"{t} {x}" for t, x, _ in CASES])
def test_example_function(type: str, text: str, expected: object) -> None:
    facts = evaluate(dlog.check(f"p(v) -> {type}(v).  p(v) <- v = {text}."))
    values = expected if isinstance(expected, list) else [expected]
    assert facts["p"] == {(v,) for v in values}
    assert all(value.__class__ is v.__class__ for (value,) in facts["p"] for v in values)


@pytest.mark.parametrize("text", TRUE)
def test_example_relation_holds(text: str) -> None:
    facts = evaluate(dlog.check(f"p() <- {text}.  q() <- !({text})."))
    assert (facts["p"], facts["q"]) == ({()}, set())


@pytest.mark.parametrize("text", FALSE)
def test_example_relation_fails(text: str) -> None:
    """A comparison with an undefined primitive is false."""
    facts = evaluate(dlog.check(f"p() <- {text}.  q() <- !({text})."))
    assert (facts["p"], facts["q"]) == (set(), {()})


def test_a_bad_pattern_makes_match_false_under_negation_too() -> None:
    rules = """p() <- match("(", "("). q() <- !match("(", "("). r() <- !(match("(", "("), 1 = 1).
    s() <- !!match("(", "("). t() <- !(match("(", "("), 1 = 2).
    u(n) <- !(n = count : { match("(", "(") }), n = 0."""
    facts = evaluate(dlog.check(rules))
    assert {name for name in "pqrst" if facts[name]} == {"t"}
    assert facts["u"] == set()


def test_every_primitive_has_a_meaning() -> None:
    named = {*FUNCTIONS, *RELATIONS, *(name for name, _ in GENERATORS), "ord"}
    assert {name for name, _ in SIGNATURES if not name.startswith("as_")} <= named


def aggregate(op: str, type: str, values: list) -> object:
    """`op` over values, each with a number of its own so that equal ones count."""
    is_float = op in DEVIATIONS or (op == "mean" and type != "duration")
    result = "float" if is_float else "int" if op.startswith("count") else type
    argument = "" if op == "count" else "v"
    declarations = f"q(i, v) -> int(i), {type}(v).  p[] = r -> {result}(r)."
    program = dlog.check(f"{declarations}  p[] = r <- agg<<r = {op}({argument})>> q(i, v).")
    [[value]] = evaluate(program, {"q": set(enumerate(values))})["p"]
    return value


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("op", "type", "values", "expected"),
    [
        ("count", "int", [5, 5, 5], 3),
        ("sum", "int", [5, 5, -1], 9),
        ("sum", "int", [BIG, BIG, -BIG], BIG),
        ("sum", "unsigned", [2**63, 1], 2**63 + 1),
        ("sum", "float", [1e100, 1.0, -1e100, 0.5], 1.5),
        ("sum", "float", [0.1] * 10, 1.0),
        ("sum", "float", [1e308, 1e308, -1e308], 1e308),
        ("sum", "float", [1e308, 1e308], INF),
        ("sum", "float", [INF, 1.0], INF),
        ("sum", "float", [INF, -INF], NAN),
        ("sum", "float", [NAN, 1.0], NAN),
        ("sum", "float", [-0.0, -0.0], 0.0),
        ("sum", "decimal", [Decimal("0.1"), Decimal("0.2")], Decimal("0.3")),
        ("sum", "duration", [timedelta(hours=1), timedelta(hours=-1, microseconds=3)], timedelta(0, 0, 3)),
        ("sum", "duration", [LONGEST, LONGEST, -LONGEST], LONGEST),
        ("mean", "duration", [timedelta(0, 0, 1), timedelta(0, 0, 2)], timedelta(0, 0, 2)),
        ("mean", "duration", [timedelta(0), timedelta(0, 0, -1)], timedelta(0)),
        ("mean", "duration", [timedelta(0), timedelta(0), timedelta(0, 0, -2)], timedelta(0, 0, -1)),
        ("mean", "duration", [LONGEST, LONGEST], LONGEST),
        ("total", "int", [1, 2], 3),
        ("mean", "int", [1, 2], 1.5),
        ("mean", "int", [BIG, BIG - 1], 2.0**63),
        ("mean", "decimal", [Decimal("0.1"), Decimal("0.2"), Decimal("0.3")], 0.2),
        ("mean", "float", [1e308, 1e308], 1e308),
        ("min", "int", [3, -1, 2], -1),
        ("max", "unsigned", [3, 2**63], 2**63),
        ("min", "string", ["b", "Z", "a"], "Z"),
        ("max", "string", ["9", "10"], "9"),
        ("max", "float", [1.0, NAN, INF], NAN),
        ("min", "float", [NAN, INF], INF),
        ("min", "date", [date(2024, 3, 1), date(2024, 2, 29)], date(2024, 2, 29)),
        ("concat", "string", ["c", "a", "b", "a"], "caba"),
        ("variance", "int", [2, 4, 4, 4, 5, 5, 7, 9], 32 / 7),
        ("variance_pop", "int", [2, 4, 4, 4, 5, 5, 7, 9], 4.0),
        ("stddev", "int", [1, 2, 3, 4, 5], math.sqrt(2.5)),
        ("stddev_pop", "int", [2, 4, 4, 4, 5, 5, 7, 9], 2.0),
        ("variance", "unsigned", [2**64 - 1, 2**64 - 3], 2.0),
        ("variance", "int", [BIG, -BIG - 1], 2.0**127),
        ("stddev_pop", "int", [BIG, -BIG - 1], 2.0**63),
        ("variance", "decimal", [Decimal("0.1"), Decimal("0.3")], 0.02),
        ("variance", "float", [1e16, 1e16 + 2, 1e16 + 4], 4.0),
        ("stddev_pop", "float", [1e200, -1e200], 1e200),
        ("variance_pop", "float", [1e200, -1e200], INF),
        ("stddev_pop", "float", [5e-324, -5e-324], 5e-324),
        ("variance_pop", "float", [7.0], 0.0),
        ("variance", "float", [INF, 1.0], NAN),
        ("stddev", "float", [NAN, 1.0], NAN),
        ("count_distinct", "int", [5, 5, 6], 2),
        ("count_distinct", "float", [0.0, NAN, NAN, 1.0], 3),
        ("count_distinct", "string", ["a", "b", "a"], 2),
    ],
)
def test_example_aggregate(op: str, type: str, values: list, expected: object) -> None:
    value = aggregate(op, type, values)
    assert value == expected or (value != value and expected != expected)
    assert value.__class__ is expected.__class__


@pytest.mark.parametrize("op", ["variance", "stddev"])
def test_example_of_one_value_there_is_no_sample(op: str) -> None:
    program = dlog.check(f"q(7). p(r), n(c) <- agg<<r = {op}(x), c = count()>> q(x).")
    facts = evaluate(program)
    assert facts["p"] == set() and facts["n"] == {(1,)}


TOO_LARGE = [
    *(("int", [BIG, 1]), ("int", [-BIG, -2]), ("unsigned", [2**63, 2**63])),
    *(("duration", [LONGEST, timedelta(0, 0, 1)]), ("duration", [-LONGEST, -LONGEST])),
]


@pytest.mark.parametrize(("type", "values"), TOO_LARGE)
def test_example_sum_does_not_fit(type: str, values: list) -> None:
    with pytest.raises(DoesNotFit):
        aggregate("sum", type, values)
