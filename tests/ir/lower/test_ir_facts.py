"""Facts, their literals, and the parameters of directives."""

from __future__ import annotations

import datetime
import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.io import InputOptions, OutputOptions, ParameterError
from dlog.ir.lower.directives import IO_KINDS, PARAMETERS
from dlog.ir.lower.fact_spans import delta_literals, fact_span, literal_span
from dlog.ir.lower.literals import CANDIDATES, literal_value
from dlog.values import (
    BOOL,
    DATE,
    DATETIME,
    DECIMAL,
    DURATION,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    UNSIGNED,
    Type,
    decimal,
)
from tests.ir.helpers import check, messages

UTC = datetime.UTC

# Literals


@pytest.mark.parametrize(
    ("kind", "value", "type", "expected"),
    [
        ("int", 2**63 - 1, INT, 2**63 - 1),
        ("int", 2**64 - 1, UNSIGNED, 2**64 - 1),
        ("unsigned", 7, UNSIGNED, 7),
        ("int", 3, FLOAT, 3.0),
        ("float", "3.50", FLOAT, 3.5),
        ("float", "3.50", decimal(4, 2), Decimal("3.50")),
        ("float", "1.5e3", DECIMAL, Decimal("1500.000000")),
        ("int", 0, DECIMAL, Decimal(0)),
        ("int", -999, decimal(3, 0), Decimal(-999)),
        ("string", "x", STRING, "x"),
        ("bool", True, BOOL, True),
        ("string", "2024-02-29", DATE, datetime.date(2024, 2, 29)),
        ("string", "2024-02-29", DATETIME, datetime.datetime(2024, 2, 29)),
        ("string", "2024-02-29T12:30", DATETIME, datetime.datetime(2024, 2, 29, 12, 30)),
        ("string", "2024-02-29 12:30:01.5", DATETIME, datetime.datetime(2024, 2, 29, 12, 30, 1, 500000)),
        (
            "string",
            "2024-02-29T12:30:00+02:00",
            TIMESTAMP,
            datetime.datetime(2024, 2, 29, 10, 30, tzinfo=UTC),
        ),
        ("string", "2024-02-29T12:30:00Z", TIMESTAMP, datetime.datetime(2024, 2, 29, 12, 30, tzinfo=UTC)),
        ("string", "2024-02-29 12:30-0030", TIMESTAMP, datetime.datetime(2024, 2, 29, 13, tzinfo=UTC)),
        ("string", "P1DT2H3M4.5S", DURATION, datetime.timedelta(1, 4, 500_000, 0, 3, 2)),
        ("string", "-PT90M", DURATION, datetime.timedelta(minutes=-90)),
        ("string", "+P2W", DURATION, datetime.timedelta(14)),
        ("string", "PT0S", DURATION, datetime.timedelta(0)),
    ],
)
def test_literals_denote(kind: str, value: int | str | bool, type: Type, expected: object) -> None:
    found = literal_value(kind, value, type)
    assert found == expected and isinstance(found, expected.__class__)


@pytest.mark.parametrize(
    ("kind", "value", "type"),
    [
        ("int", 2**63, INT),
        ("int", -1, UNSIGNED),
        ("int", 2**64, UNSIGNED),
        ("int", 10**400, FLOAT),
        ("float", "1.0e999", FLOAT),
        ("float", "0.001", decimal(4, 2)),
        ("int", 100, decimal(4, 2)),
        ("int", 10**200, DECIMAL),
        ("float", "1.0e999", DECIMAL),
        ("string", "2023-02-29", DATE),
        ("string", "20240229", DATE),
        ("string", "2024-W01-1", DATE),
        ("string", "2024-02-29T24:01", DATETIME),
        ("string", "9999-12-31T23:59:59-23:00", DATETIME),
        ("string", "noon", DATETIME),
        ("string", "2024-02-29T12:30:00Z", DATETIME),
        ("string", "2024-02-29T12:30:00", TIMESTAMP),
        ("string", "2024-02-29", TIMESTAMP),
        ("string", "9999-12-31T23:59:59-23:00", TIMESTAMP),
        ("string", "P1M", DURATION),
        ("string", "PT", DURATION),
        ("string", "P1DT", DURATION),
        ("string", "PT0.0000001S", DURATION),
        ("string", "1 hour", DURATION),
        ("string", "P106751992D", DURATION),
    ],
)
def test_literals_that_denote_nothing(kind: str, value: int | str, type: Type) -> None:
    with pytest.raises(ValueError, match=r"^(does|is|has) "):
        literal_value(kind, value, type)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**6), max_value=10**6))
def test_decimals_are_taken_exactly_or_not_at_all(number: Decimal) -> None:
    text = f"{number:.3f}"
    fits = number == number.quantize(Decimal("0.01")) and abs(number) < 10**4
    try:
        assert literal_value("float", text, decimal(6, 2)) == number and fits
    except ValueError:
        assert not fits


def test_every_kind_has_a_reader() -> None:
    samples = {"int": 1, "unsigned": 1, "float": "1.0", "bool": True, "string": "2024-01-01"}
    own = {"timestamp": "2024-01-01T00:00Z", "duration": "P1D"}
    for kind, names in CANDIDATES.items():
        for name in names:
            assert (
                literal_value(
                    kind, own.get(name, samples[kind]), DECIMAL if name == "decimal" else Type(name)
                )
                is not None
            )


# Where they are


@given(
    st.lists(
        st.lists(st.sampled_from(["1", "-2", '"a.b"', '"x, (y"', "2.5", "true"]), min_size=1), min_size=1
    )
)
def test_places_of_literals(rows: list[list[str]]) -> None:
    """Whatever surrounds a literal, its span is its text."""
    width = len(rows[0])
    rows = [row for row in rows if len(row) == width]
    text = "  ".join(f"w({' , '.join(row)})." for row in rows)
    (block,) = dlog.parse(text).statements
    for index, row in enumerate(rows):
        assert fact_span(block, index).text() == f"w({' , '.join(row)})"  # type: ignore[arg-type]
        for place, literal in enumerate(row):
            assert literal_span(block, index, place).text() == literal  # type: ignore[arg-type]


def test_places_of_functions_and_deltas() -> None:
    program = check('w["a=b", 2] = 3.5.  k.w[] = 1.  +w["c", 4] = 6.5.')
    block = program.facts[0]
    assert [literal_span(block, 0, i).text() for i in range(3)] == ['"a=b"', "2", "3.5"]
    assert literal_span(program.facts[1], 0, 0).text() == "1"
    spans = [literal.span for literal in delta_literals(program.deltas[0])]
    assert [s.text() for s in spans if s] == ['"c"', "4", "6.5"]


# Functions have one value


@pytest.mark.parametrize(
    ("text", "conflicts"),
    [
        ("w[1] = 2. w[1] = 2.", 0),
        ("w[1] = 2. w[1] = 3.", 1),
        ("w[1] = 2. g(1). w[1] = 3.", 1),
        ("w[1] = 2. w[1] = 3. w[1] = 4. w[2] = 1. w[2] = 2.", 2),
        ("w[1] = 2. +w[1] = 3.", 1),
        ("w[1] = 2. ^w[1] = 3.", 0),
        ("w[1] = 2. w[1] = 3. ^w[1] = 4.", 0),
        ("w[1] = 2. -w[1] = 2. +w[1] = 3.", 0),
        ("w[1] = 2. +w[1] = 3. -w[1] = 2.", 0),
        ("^w[1] = 2. ^w[1] = 3.", 0),
        ("w[1] = 2. w[1] = 2.0.", 0),
        ("w[] = 1. w[] = 2.", 1),
    ],
)
def test_the_net_effect_has_one_value_for_each_key(text: str, conflicts: int) -> None:
    found = messages(text)
    assert len(found) == conflicts and all(m.startswith("two values for one key") for m in found)


# Directives


OF_KIND = {"format": {"IO": "json"}, "dbname": {"IO": "sqlite"}}  # parameters of some files only


def test_directives_and_options_know_the_same_parameters() -> None:
    """The front end accepts what `dlog.io` can do, and nothing else."""
    samples = {"IO": "file", "filename": "a.csv", "name": "a", "delimiter": ";", "columns": "0:1", "n": 3}
    samples |= {"rfc4180": True, "headers": True, "header": False, "compress": True, "precision": "full"}
    samples |= {"dbname": "a.db", "format": "list", "attributeNames": "a,b"}
    for kind, options in (("input", InputOptions), ("output", OutputOptions)):
        for name in PARAMETERS[kind]:
            params = {name: samples[name]} | OF_KIND.get(name, {})
            options.from_params("w", params)  # type: ignore[arg-type]
        for name in set(samples) - set(PARAMETERS[kind]):
            with pytest.raises(ParameterError):
                options.from_params("w", {name: samples[name]})  # type: ignore[arg-type]
        for value in {*itertools.chain(*IO_KINDS.values())}:
            accepted = value in IO_KINDS[kind]
            try:
                options.from_params("w", {"IO": value})
                assert accepted, value
            except ParameterError:
                assert not accepted, value


@pytest.mark.parametrize(
    ("parameter", "accepted"),
    [
        ('filename="a.csv"', True), ('filename=""', False), ("filename=true", False), ("header=1", True),
        ("header=True", True), ("header=2", False), ('delimiter="\\t"', True), ('delimiter=""', False),
        ('delimiter="\\n"', False), ('columns="0:2"', True), ('columns="a"', False), ("columns=1", True),
    ],
)  # fmt: skip
def test_directives_and_options_take_the_same_values(parameter: str, accepted: bool) -> None:
    text = f"w(x) -> int(x).\n.input w({parameter})\n"
    assert (messages(text) == []) == accepted
    parsed = dlog.parse(text).statements[1].params  # type: ignore[attr-defined]
    params = {p.name: p.value for p in parsed}
    try:
        InputOptions.from_params("w", params)
        assert accepted
    except ParameterError:
        assert not accepted
