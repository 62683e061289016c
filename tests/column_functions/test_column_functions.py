"""Primitives on columns are compared with what they mean on single Python values."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog import column_functions
from dlog.column_functions import Column, texts
from dlog.column_functions.columns import DECIMAL_DIGITS, distinct
from dlog.errors import LimitError
from dlog.ir.primitives import NEGATED_MATCH, SIGNATURES
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.storage.values import decode, encode
from dlog.values import (
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    UNSIGNED,
    Type,
    decimal,
)

D6, D2, D0 = decimal(18, 6), decimal(9, 2), decimal(18, 0)
WIDE, FINE, WHOLE = Type("decimal", 12, 38), Type("decimal", 30, 38), Type("decimal", 0, 38)
EXACT = Context(prec=1000)

UNDEFINED = object()

# ---- values of each type

MICROSECOND, MOST = dt.timedelta(microseconds=1), 106_751_991 * 86_400_000_000
INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)
TEXTS = st.text("aAbB,;.0 é\u0130ß\u2003\n", max_size=8) | st.sampled_from(
    ["", "12", "-7", "0x1F", "1.5", "PT1.5S", "-P1D"]
)
VALUES: dict[str, st.SearchStrategy] = {
    "int": INTS,
    "unsigned": st.integers(0, 2**64 - 1) | st.integers(0, 20),
    "float": st.floats() | st.integers(-(10**6), 10**6).map(lambda i: i / 128) | st.just(-0.0),
    "string": TEXTS,
    "bool": st.booleans(),
    "date": st.dates() | st.sampled_from([dt.date.min, dt.date.max, dt.date(2024, 2, 29)]),
    "datetime": st.datetimes() | st.sampled_from([dt.datetime.min, dt.datetime.max]),
    "timestamp": (st.datetimes() | st.sampled_from([dt.datetime.min, dt.datetime.max])).map(
        lambda d: d.replace(tzinfo=dt.UTC)
    ),
    "duration": st.integers(-MOST, MOST).map(MICROSECOND.__mul__)
    | st.integers(-(10**6), 10**6).map(MICROSECOND.__mul__)
    | st.sampled_from([MICROSECOND * MOST, MICROSECOND * -MOST]),
}


def values_of(type: Type) -> st.SearchStrategy:
    if not type.is_decimal:
        return VALUES[type.name]
    most = 10**type.precision - 1
    numbers = st.integers(-most, most) | st.integers(-300, 300)
    return numbers.map(lambda i: Decimal(i).scaleb(-type.scale, EXACT))


def column(values: list[Any], type: Type, dictionary: Dictionary) -> Column:
    if type.is_decimal:
        return Column(pa.array(values, pa.decimal256(DECIMAL_DIGITS, type.scale)), type)
    return Column(encode(pa.array(values, _ARROW[type.name]), type, dictionary), type)


_ARROW = {
    "int": pa.int64(),
    "unsigned": pa.uint64(),
    "float": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "duration": pa.duration("us"),
}


def values(result: Column, dictionary: Dictionary) -> list[Any]:
    result.check()
    if result.type.is_decimal:
        return result.values.to_pylist()
    return decode(result.values, result.type, dictionary).to_pylist()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b and (isinstance(a, bool) == isinstance(b, bool))


# ---- what each primitive means


def wrap(number: int, type: Type) -> int:
    bits = number % 2**64
    return bits - 2**64 if type == INT and bits >= 2**63 else bits


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def to_scale(number: Fraction, type: Type) -> Any:
    unscaled = round(number * 10**type.scale)
    return Decimal(unscaled).scaleb(-type.scale, EXACT) if abs(unscaled) < 10**76 else UNDEFINED


def arithmetic_model(name: str, type: Type, a: Any, b: Any) -> Any:
    if name in ("div", "mod") and b == 0:
        return UNDEFINED
    if type.is_decimal:
        x, y = Fraction(a), Fraction(b)
        return to_scale({"add": x + y, "sub": x - y, "mul": x * y, "div": x / y if y else x}[name], type)
    if type == FLOAT:
        with np.errstate(all="ignore"):
            x, y = np.float64(a), np.float64(b)
            return float({"add": x + y, "sub": x - y, "mul": x * y, "div": x / y}[name])
    exact: dict[str, Callable[[], int]] = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "mul": lambda: a * b,
        "div": lambda: truncated(a, b),
        "mod": lambda: a - b * truncated(a, b),
    }
    return wrap(exact[name](), type)


def power(type: Type, a: Any, b: Any) -> Any:
    if a == 0 and b < 0:
        return UNDEFINED
    if type == FLOAT:
        with np.errstate(all="ignore"):
            return float(np.float64(a) ** np.float64(b))
    if b < 0:
        return 0 if abs(a) > 1 else (a if b % 2 else 1)
    return wrap(pow(a, b, 2**64), type)


BITS: dict[str, Callable[[int, int], int]] = {
    "band": lambda a, b: a & b,
    "bor": lambda a, b: a | b,
    "bxor": lambda a, b: a ^ b,
    "bshl": lambda a, b: a << (b % 64),
    "bshr": lambda a, b: a >> (b % 64),
    "bshru": lambda a, b: a % 2**64 >> (b % 64),
    "land": lambda a, b: a != 0 and b != 0,
    "lor": lambda a, b: a != 0 or b != 0,
    "lxor": lambda a, b: (a != 0) != (b != 0),
}


def bits_model(function: Callable[[int, int], int], type: Type, a: int, b: int) -> int:
    return wrap(int(function(a, b)), type)


def order(value: Any) -> Any:
    return (math.isnan(value), value) if isinstance(value, float) else value


def rounding(mode: str) -> Callable[[Type, Any], Any]:
    def model(type: Type, a: Any) -> Any:
        if isinstance(a, float) and not math.isfinite(a):
            return a
        whole = Decimal(a).to_integral_value(mode, EXACT)
        return float(whole) if type == FLOAT else whole

    return model


def float_function(
    function: Callable[..., Any], defined: Callable[[float], bool]
) -> Callable[[Type, Any], Any]:
    def model(_: Type, a: float) -> Any:
        if not (math.isnan(a) or defined(a)):
            return UNDEFINED
        with np.errstate(all="ignore"):
            return float(function(np.float64(a)))

    return model


def to_integer(type: Type, a: Any) -> Any:
    low, high = (-(2**63), 2**63) if type == INT else (0, 2**64)
    if isinstance(a, str):
        if not re.fullmatch(r"[+-]?([0-9]+|0[xX][0-9a-fA-F]+|0[bB][01]+)", a, re.ASCII):
            return UNDEFINED
        sign, digits = (-1 if a[0] == "-" else 1), a.lstrip("+-").lower()
        number = sign * int(digits, {"0x": 16, "0b": 2}.get(digits[:2], 10))
    elif isinstance(a, int):
        return wrap(a, type)
    elif isinstance(a, float) and not math.isfinite(a):
        return UNDEFINED
    else:
        number = int(a)
    return number if low <= number < high else UNDEFINED


def to_float(_: Type, a: Any) -> Any:
    if isinstance(a, str) and not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", a):
        return UNDEFINED
    return float(a)


def to_decimal(type: Type, a: Any) -> Any:
    if isinstance(a, float) and not math.isfinite(a):
        return UNDEFINED
    if isinstance(a, str) and not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", a, re.ASCII):
        return UNDEFINED
    return to_scale(Fraction(a), type)


def to_string(_: Type, a: Any) -> str:
    if isinstance(a, bool):
        return str(a).lower()
    if isinstance(a, float):
        return f"{a:f}"
    if isinstance(a, Decimal):
        whole, _dot, digits = f"{a:f}".partition(".")
        return f"{whole}.{digits.rstrip('0') or '0'}"
    if isinstance(a, dt.timedelta):
        return iso_duration(a)
    return a.isoformat().replace("+00:00", "Z") if isinstance(a, dt.date) else str(a)


def iso_duration(a: dt.timedelta) -> str:
    """From the parts that Python's own normal form has."""
    sign, a = ("-", -a) if a < dt.timedelta(0) else ("", a)
    hours, rest = divmod(a.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    second = f"{seconds}.{a.microseconds:06}".rstrip("0").rstrip(".")
    time = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes) + f"{second}S" * (second != "0")
    date = f"{a.days}D" * bool(a.days)
    return f"{sign}P{date}" + (f"T{time or '0S'}" if time or not date else "")


def time_model(name: str, _: Type, a: Any, b: Any) -> Any:
    """Arithmetic of times and durations; undefined outside their types."""
    try:
        if name == "div":
            unit = 1 if isinstance(b, int) else MICROSECOND
            if not b:
                return UNDEFINED
            quotient = truncated(a // MICROSECOND, b // unit)
            return quotient if unit is MICROSECOND else MICROSECOND * quotient
        result = {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b}[name]()
    except OverflowError:
        return UNDEFINED
    if isinstance(result, dt.timedelta) and abs(result // MICROSECOND) > MOST:
        return UNDEFINED
    return result


def to_date(_: Type, a: Any) -> Any:
    if isinstance(a, dt.datetime):
        return a.date()
    try:
        return dt.datetime.strptime(a, "%Y-%m-%d").date() if len(a) == 10 else UNDEFINED
    except ValueError:
        return UNDEFINED


def to_timestamp(_: Type, a: Any) -> Any:
    if isinstance(a, dt.datetime):
        return a.replace(tzinfo=dt.UTC)
    try:
        return dt.datetime.strptime(a, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=dt.UTC)
    except ValueError:
        return UNDEFINED


def to_datetime(_: Type, a: Any) -> Any:
    if isinstance(a, dt.datetime):
        return a.replace(tzinfo=None)
    if isinstance(a, dt.date):
        return dt.datetime(a.year, a.month, a.day)
    try:
        return dt.datetime.strptime(a, "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return UNDEFINED


def to_duration(_: Type, a: str) -> Any:
    """The texts of VALUES have no other form."""
    return {"PT1.5S": dt.timedelta(seconds=1.5), "-P1D": -dt.timedelta(1)}.get(a, UNDEFINED)


def substr(_: Type, s: str, start: int, count: int) -> Any:
    return s[start : start + count if count >= 0 else None] if 0 <= start <= len(s) else ""


def piece(_: Type, s: str, separator: str, i: int) -> Any:
    parts = s.split(separator) if separator else []
    return parts[i] if 0 <= i < len(parts) else UNDEFINED


def add_days(_: Type, a: Any, days: int) -> Any:
    try:
        return a + dt.timedelta(days)
    except OverflowError:
        return UNDEFINED


def days_between(_: Type, a: Any, b: Any) -> int:
    if not isinstance(a, dt.datetime):
        return (b - a).days
    return truncated((b - a) // dt.timedelta(microseconds=1), 86_400_000_000)


Case = tuple[str, tuple[Type, ...], Type, Callable[..., Any]]


def cases() -> list[Case]:
    out: list[Case] = []
    for name in ("add", "sub", "mul", "div", "mod"):
        model = partial(arithmetic_model, name)
        out += [(name, (type, type), type, model) for type in (INT, UNSIGNED)]
        if name != "mod":
            out.append((name, (FLOAT, FLOAT), FLOAT, model))
            pairs = ((D6, D6), (D6, D2), (INT, D6), (D2, UNSIGNED), (WIDE, D6), (WIDE, WIDE))
            out += [(name, pair, output, model) for pair in pairs for output in (D6, WIDE, FINE)]
    for name, function in BITS.items():
        model = partial(bits_model, function)
        out += [(name, (type, type), type, model) for type in (INT, UNSIGNED)]
    for type in (INT, UNSIGNED):
        out.append(("bnot", (type,), type, lambda t, a: wrap(~a, t)))
        out.append(("lnot", (type,), type, lambda t, a: int(a == 0)))
        out.append(("pow", (type, type), type, power))
        out.append(("as_int", (type,), INT, lambda t, a: wrap(a, t)))
        out.append(("as_unsigned", (type,), UNSIGNED, lambda t, a: wrap(a, t)))
    out.append(("pow", (FLOAT, FLOAT), FLOAT, power))
    for type in (INT, FLOAT, D6, WIDE):
        out.append(
            (
                "neg",
                (type,),
                type,
                lambda t, a: wrap(-a, t) if t == INT else EXACT.minus(a) if t.is_decimal else -a,
            )
        )
        out.append(
            (
                "abs",
                (type,),
                type,
                lambda t, a: wrap(abs(a), t) if t == INT else EXACT.abs(a) if t.is_decimal else abs(a),
            )
        )
    for moment in (DATETIME, TIMESTAMP):
        out.append(("sub", (moment, moment), DURATION, partial(time_model, "sub")))
        out.append(("sub", (moment, DURATION), moment, partial(time_model, "sub")))
        out.append(("add", (moment, DURATION), moment, partial(time_model, "add")))
        out.append(("add", (DURATION, moment), moment, partial(time_model, "add")))
    for name, types, output in (
        ("add", (DURATION, DURATION), DURATION),
        ("sub", (DURATION, DURATION), DURATION),
        ("mul", (DURATION, INT), DURATION),
        ("mul", (INT, DURATION), DURATION),
        ("div", (DURATION, INT), DURATION),
        ("div", (DURATION, DURATION), INT),
    ):
        out.append((name, types, output, partial(time_model, name)))
    out.append(("neg", (DURATION,), DURATION, lambda t, a: -a))
    out.append(("abs", (DURATION,), DURATION, lambda t, a: abs(a)))
    for type in (INT, UNSIGNED, FLOAT, STRING, BOOL, DATE, DATETIME, TIMESTAMP, DURATION, D6, WIDE):
        out.append(("min", (type, type), type, lambda t, a, b: min(a, b, key=order)))
        out.append(("max", (type, type), type, lambda t, a, b: max(a, b, key=order)))
        out.append(("to_string", (type,), STRING, to_string))
        out.append((f"as_{type.name}", (type,), type, lambda t, a: a))
    out.append(("max", (D2, INT), WIDE, lambda t, a, b: max(a, Decimal(b))))
    out.append(("to_string", (D0,), STRING, to_string))
    for type in (FLOAT, D6, WIDE):
        out.append(("floor", (type,), type, rounding(ROUND_FLOOR)))
        out.append(("ceil", (type,), type, rounding(ROUND_CEILING)))
        out.append(("round", (type,), type, rounding(ROUND_HALF_EVEN)))
    out.append(("sqrt", (FLOAT,), FLOAT, float_function(np.sqrt, lambda a: a >= 0)))
    out.append(("exp", (FLOAT,), FLOAT, float_function(np.exp, lambda a: True)))
    out.append(("log", (FLOAT,), FLOAT, float_function(np.log, lambda a: a > 0)))
    for type in (STRING, INT, UNSIGNED, FLOAT, D6, WIDE):
        out.append(("to_number", (type,), INT, to_integer))
        out.append(("to_float", (type,), FLOAT, to_float))
        if type not in (D6, WIDE):
            out.append(("to_unsigned", (type,), UNSIGNED, to_integer))
        out += [("to_decimal", (type,), target, to_decimal) for target in (D6, WIDE, WHOLE, FINE)]
    out += [("to_date", (type,), DATE, to_date) for type in (STRING, DATETIME, TIMESTAMP)]
    out += [("to_datetime", (type,), DATETIME, to_datetime) for type in (STRING, DATE, TIMESTAMP)]
    out += [("to_timestamp", (type,), TIMESTAMP, to_timestamp) for type in (STRING, DATETIME)]
    out.append(("to_duration", (STRING,), DURATION, to_duration))
    out += [
        ("cat", (STRING, STRING), STRING, lambda t, a, b: a + b),
        ("strlen", (STRING,), INT, lambda t, a: len(a)),
        ("substr", (STRING, INT, INT), STRING, substr),
        ("lower", (STRING,), STRING, lambda t, a: a.lower()),
        ("upper", (STRING,), STRING, lambda t, a: a.upper()),
        ("trim", (STRING,), STRING, lambda t, a: a.strip()),
        ("replace", (STRING, STRING, STRING), STRING, lambda t, s, a, b: s.replace(a, b) if a else s),
        ("split", (STRING, STRING, INT), STRING, piece),
    ]
    for type in (DATE, DATETIME, TIMESTAMP):
        for name in ("year", "month", "day"):
            out.append((name, (type,), INT, lambda t, a, n=name: getattr(a, n)))
        out.append(("weekday", (type,), INT, lambda t, a: a.isoweekday()))
        out.append(("add_days", (type, INT), type, add_days))
        out.append(("days_between", (type, type), INT, days_between))
    for type in (DATETIME, TIMESTAMP):
        for name in ("hour", "minute", "second"):
            out.append((name, (type,), INT, lambda t, a, n=name: getattr(a, n)))
    return out


CASES = cases()
MIXED = list({(c[0], c[2].name): c for c in CASES if len(c[1]) > 1}.values())  # one of each name and kind


def case_name(case: Case) -> str:
    return f"{case[0]}({', '.join(map(str, case[1]))})-{case[2]}"


def canonical(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value  # -0.0 is 0.0


def test_every_primitive_with_a_result_is_covered() -> None:
    functions = {(n, k) for (n, k), s in SIGNATURES.items() if s.result is not None and not s.generator}
    assert functions - {(name, len(inputs)) for name, inputs, _, _ in CASES} == {("ord", 1)}


@pytest.mark.parametrize("case", CASES, ids=case_name)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_compute_is_the_meaning_on_each_row(case: Case, data: st.DataObject) -> None:
    name, types, output, model = case
    rows = data.draw(st.lists(st.tuples(*map(values_of, types)), max_size=12))
    rows = [tuple(map(canonical, row)) for row in rows]
    dictionary = Dictionary()
    inputs = [column([r[i] for r in rows], t, dictionary) for i, t in enumerate(types)]
    result, defined = column_functions.compute(name, inputs, output, dictionary)
    assert result.type == output
    got = values(result, dictionary)
    assert len(got) == len(rows)
    assert defined is None or not defined.all()
    for i, row in enumerate(rows):
        expected = model(output, *row)
        assert (expected is UNDEFINED) == (defined is not None and not defined[i]), (row, expected)
        if expected is not UNDEFINED:
            assert same(got[i], canonical(expected)), (row, expected, got[i])


@pytest.mark.parametrize("case", MIXED, ids=case_name)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_column_of_one_row_is_a_constant(case: Case, data: st.DataObject) -> None:
    name, types, output, _ = case
    n = data.draw(st.integers(0, 4))
    constant = data.draw(st.lists(st.booleans(), min_size=len(types), max_size=len(types)))
    short = [
        data.draw(st.lists(values_of(t), min_size=1 if c else n, max_size=1 if c else n))
        for t, c in zip(types, constant, strict=True)
    ]
    n = 1 if all(constant) else n
    dictionary = Dictionary()
    a, a_defined = column_functions.compute(
        name, [column(v, t, dictionary) for v, t in zip(short, types, strict=True)], output, dictionary
    )
    full = [v * n if c else v for v, c in zip(short, constant, strict=True)]
    b, b_defined = column_functions.compute(
        name, [column(v, t, dictionary) for v, t in zip(full, types, strict=True)], output, dictionary
    )
    mask = np.ones(n, bool) if b_defined is None else b_defined
    assert (mask == (np.ones(n, bool) if a_defined is None else a_defined)).all()
    for i in np.flatnonzero(mask):
        assert same(values(a, dictionary)[i], values(b, dictionary)[i])


# ---- relations

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize(
    "types",
    [(t, t) for t in (INT, UNSIGNED, FLOAT, STRING, BOOL, DATE, DATETIME, D6, WIDE)]
    + [(D6, D2), (WIDE, D6), (INT, D6), (WIDE, UNSIGNED)],
    ids=str,
)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_comparisons_go_by_value(types: tuple[Type, Type], data: st.DataObject) -> None:
    a = data.draw(st.lists(values_of(types[0]), max_size=8))
    b = data.draw(st.lists(values_of(types[1]), min_size=len(a), max_size=len(a)))
    if types[0] == types[1] and a:
        b[0] = a[0]
    dictionary = Dictionary()
    inputs = [column(a, types[0], dictionary), column(b, types[1], dictionary)]
    for name, model in COMPARISONS.items():
        got = column_functions.test(name, inputs, dictionary).tolist()
        keys = [(order(canonical(x)), order(canonical(y))) for x, y in zip(a, b, strict=True)]
        keys = [((x[0], 0), (y[0], 0)) if isinstance(x, tuple) and x[0] and y[0] else (x, y) for x, y in keys]
        assert got == [model(x, y) for x, y in keys], name


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8), TEXTS)
def test_relations_of_texts(rows: list[tuple[str, str]], constant: str) -> None:
    models = {
        "contains": lambda part, s: part in s,
        "starts_with": lambda part, s: s.startswith(part),
        "ends_with": lambda part, s: s.endswith(part),
        "match": lambda pattern, s: re.fullmatch(pattern, s) is not None,  # no text here is a bad pattern
    }
    dictionary = Dictionary()
    parts, strings = (column([r[i] for r in rows], STRING, dictionary) for i in (0, 1))
    for name, model in models.items():
        assert column_functions.test(name, [parts, strings], dictionary).tolist() == [
            model(a, b) for a, b in rows
        ]
        one = column_functions.test(name, [column([constant], STRING, dictionary), strings], dictionary)
        assert one.tolist() == [model(constant, s) for _, s in rows]


MATCHES = [
    ("a|b", "b", True),
    ("a|b", "ab", False),
    (".*@.*\\.org", "x@y.org", True),
    ("[[:digit:]]+", "12", True),
    ("(a)\\1", "aa", True),
    ("(?=a)a.", "ab", True),
    ("a{2,3}", "aaaa", False),
    ("é.", "éx", True),
    ("", "", True),
    ("a\n?", "a\n", True),
    ("a", "a\n", False),
    ("(", "(", False),
    ("a)(b", "ab", False),
    ("*", "*", False),
    ("(?<", "", False),
]
BAD_PATTERNS = ("(", "a)(b", "*", "(?<")


@pytest.mark.parametrize(("pattern", "text", "expected"), MATCHES)
def test_match_is_of_the_whole_text_and_false_for_a_bad_pattern(
    pattern: str, text: str, expected: bool
) -> None:
    dictionary = Dictionary()
    both = [column([pattern], STRING, dictionary), column([text, text + "?"], STRING, dictionary)]
    assert column_functions.test("match", both, dictionary)[0] == expected
    varying = [column([pattern, "x"], STRING, dictionary), column([text, "x"], STRING, dictionary)]
    assert column_functions.test("match", varying, dictionary).tolist() == [expected, True]
    is_bad = pattern in BAD_PATTERNS
    for inputs, bad in ((both, 2 * is_bad), (varying, 1 * is_bad)):
        assert column_functions.undefined("match", inputs, dictionary) == bad
        assert column_functions.test(NEGATED_MATCH, inputs, dictionary)[0] == (expected or is_bad)


# ---- generators


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.sampled_from(["", ",", "a", ", ", "é"])), max_size=8), st.booleans())
def test_split_gives_all_parts(rows: list[tuple[str, str]], constant: bool) -> None:
    if constant and rows:
        rows = [(s, rows[0][1]) for s, _ in rows]
    dictionary = Dictionary()
    inputs = [column([r[i] for r in rows], STRING, dictionary) for i in (0, 1)]
    numbers, parts = column_functions.generate("split", inputs, STRING, dictionary)
    expected = [(i, p) for i, (s, by) in enumerate(rows) if by for p in dict.fromkeys(s.split(by))]
    assert list(zip(numbers.tolist(), values(parts, dictionary), strict=True)) == expected


def model_range(start: Any, end: Any, step: Any) -> list[Any]:
    if any(isinstance(v, float) and math.isnan(v) for v in (start, end, step)) or start == end:
        return []
    step = (1 if start < end else -1) if step is None else step
    if step == 0:
        return [start]
    out, value = [], start
    while (step > 0 and value < end) or (step < 0 and value > end):
        out.append(value)
        if value + step == value:
            break
        value += step
    return out


@pytest.mark.parametrize("type", [INT, UNSIGNED, FLOAT], ids=str)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_range_is_every_step(type: Type, data: st.DataObject) -> None:
    near = {
        "int": st.integers(-9, 9) | st.integers(2**63 - 9, 2**63 - 1) | st.integers(-(2**63), -(2**63) + 9),
        "unsigned": st.integers(0, 9) | st.integers(2**64 - 9, 2**64 - 1),
        "float": st.integers(-18, 18).map(lambda i: i / 4) | st.just(math.nan),
    }[type.name]
    step = near if type == FLOAT else st.integers(0 if type == UNSIGNED else -9, 9)
    low = data.draw(near)
    close = st.just(low) | near.filter(lambda v: not abs(v - low) > 30)
    rows = data.draw(st.lists(st.tuples(st.just(low), close, step), max_size=5))
    dictionary = Dictionary()
    columns = [column([r[i] for r in rows], type, dictionary) for i in range(3)]
    for inputs, steps in ((columns, [r[2] for r in rows]), (columns[:2], [None] * len(rows))):
        numbers, got = column_functions.generate("range", inputs, type, dictionary)
        expected = [
            (i, canonical(v))
            for i, (r, s) in enumerate(zip(rows, steps, strict=True))
            for v in model_range(r[0], r[1], s)
        ]
        assert list(zip(numbers.tolist(), values(got, dictionary), strict=True)) == expected


def test_a_range_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_functions, "MAX_GENERATED", 1000)
    dictionary = Dictionary()
    inputs = [column([0, 0], INT, dictionary), column([600, 2**60], INT, dictionary)]
    with pytest.raises(LimitError, match="1,000 rows"):
        column_functions.generate("range", inputs, INT, dictionary)


# ---- stored codes


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_narrow_rounds_half_to_even_and_checks_the_range(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([D0, D2, D6, WIDE, Type("decimal", 30, 38)]))
    target = data.draw(st.sampled_from([D0, D2, D6, decimal(18, 18), decimal(3, 1)]))
    numbers = st.integers(-(10**76) + 1, 10**76 - 1) | st.integers(-(10**20), 10**20) | st.integers(-999, 999)
    unscaled = data.draw(st.lists(numbers, max_size=8))
    exact = [Decimal(i).scaleb(-source.scale, EXACT) for i in unscaled]
    codes, fits = column_functions.narrow(column(exact, source, Dictionary()), target)
    for value, code, fit in zip(exact, codes.tolist(), fits.tolist(), strict=True):
        expected = round(Fraction(value) * 10**target.scale)
        assert fit == (abs(expected) < 10**target.precision)
        assert code == (expected if fit else 0)


def test_widen_and_narrow_are_inverse() -> None:
    codes = np.array([0, -1, 10**17, -(10**18) + 1])
    wide = column_functions.widen(codes, D6)
    assert wide.values.to_pylist() == [Decimal(int(c)).scaleb(-6, EXACT) for c in codes]
    back, fits = column_functions.narrow(wide, D6)
    assert fits.all() and (back == codes).all()
    again, fits = column_functions.narrow(Column(codes, D6), D6)  # stored codes are taken as they are
    assert fits.all() and (again == codes).all()
    strings, fits = column_functions.narrow(column_functions.widen(codes, STRING), STRING)
    assert fits.all() and (strings == codes).all()


def test_slices_of_arrow_arrays_are_read_where_they_begin() -> None:
    numbers = pa.array([Decimal(i) for i in range(5)], pa.decimal256(DECIMAL_DIGITS, 0)).slice(2, 2)
    total, _ = column_functions.compute("add", [Column(numbers, D0), Column(numbers, D0)], D0, Dictionary())
    assert total.values.to_pylist() == [4, 6]


def test_results_of_more_than_76_digits_are_undefined() -> None:
    big = column([Decimal(10**40), Decimal(10**36)], Type("decimal", 0, 38), Dictionary())
    product, defined = column_functions.compute("mul", [big, big], Type("decimal", 0, 38), Dictionary())
    assert defined is not None and defined.tolist() == [False, True]
    assert product.values[1].as_py() == Decimal(10**72)


def test_ord_is_the_code_and_the_same_for_the_same_text() -> None:
    dictionary = Dictionary()
    codes, defined = column_functions.compute(
        "ord", [column(["b", "a", "b"], STRING, dictionary)], INT, dictionary
    )
    assert defined is None and codes.type == INT
    a, b, c = codes.values.tolist()
    assert a == c != b


def test_trim_knows_every_space() -> None:
    spaces = "".join(c for c in map(chr, range(0x110000)) if c.isspace())
    assert spaces == texts._SPACES


@settings(deadline=None)
@given(st.lists(INTS | st.integers(0, 3)))
def test_distinct_rebuilds_the_codes(codes: list[int]) -> None:
    array = np.array(codes, np.int64)
    unique, places = distinct(array)
    assert unique.tolist() == sorted(set(codes))
    assert unique[places].tolist() == codes


def test_undefined_texts_leave_nothing_in_the_dictionary() -> None:
    dictionary = Dictionary()
    inputs = [column(["abc"], STRING, dictionary), column([9], INT, dictionary), column([1], INT, dictionary)]
    _, defined = column_functions.compute(
        "split", [inputs[0], column([","], STRING, dictionary), inputs[1]], STRING, dictionary
    )
    assert defined is not None and not defined.any()
    assert len(dictionary) == 2
