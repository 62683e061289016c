"""Facts as they are written: reading what is shown gives the fact again."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.engine.commit.printed_facts import fact_text, literal_text
from dlog.ir.check import check_program
from dlog.ir.lower.literals import literal_value
from dlog.language.parse import parse
from dlog.values import BUILTIN_TYPES, decimal

VALUES = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "unsigned": st.integers(0, 2**64 - 1),
    "float": st.floats().map(lambda x: x + 0.0),
    "string": st.text(st.characters(codec="utf-8", exclude_characters="\r")),
    "bool": st.booleans(),
    "date": st.dates(),
    "datetime": st.datetimes(),
    "timestamp": st.datetimes(timezones=st.just(datetime.UTC)),
    "duration": st.timedeltas(-datetime.timedelta(106_751_991), datetime.timedelta(106_751_991)),
}
TYPES = {name: BUILTIN_TYPES[name] for name in VALUES} | {"decimal": decimal(12, 4)}
VALUES["decimal"] = st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-4))
# Values whose texts have no fraction, or leave parts out.
ROUND: dict[str, list[Any]] = {
    "date": [datetime.date(2024, 2, 29)],
    "datetime": [datetime.datetime(2024, 2, 29, 10)],
    "timestamp": [datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC)],
    "duration": [datetime.timedelta(seconds=n) for n in (0, 10, -60, 3600, -86_400, 90_000, 0.25)],
}
DECLARED = {"decimal": "decimal[12, 4]"}


@settings(max_examples=400, derandomize=True, deadline=None)
@given(st.data())
def test_shown_text_is_read_back(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(VALUES)))
    value = data.draw(VALUES[name])
    program = check_program(parse(f"p(x) -> {DECLARED.get(name, name)}(x)."))
    text = fact_text(program.predicates["p"], (value,))
    checked = check_program(parse(f"p(x) -> {DECLARED.get(name, name)}(x).\n{text}."))
    (row,) = [row for block in checked.facts for row in block.rows]
    read = literal_value(*row[0], TYPES[name])
    assert read == value or (math.isnan(read) and math.isnan(value)), text  # type: ignore[arg-type]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.data())
def test_times_are_shown_as_files_have_them(data: st.DataObject) -> None:
    """Facts and tables print one value at a time, files whole columns."""
    type = TYPES[data.draw(st.sampled_from(["date", "datetime", "timestamp", "duration"]))]
    value = data.draw(VALUES[type.name] | st.sampled_from(ROUND[type.name]))
    (text,) = type.texts(pa.array([value], type.arrow())).to_pylist()
    assert literal_text(value, type) == f'"{text}"'
    assert type.shown(value) == text


def test_floats_that_are_not_finite_are_texts_where_a_float_is_expected() -> None:
    assert [literal_text(x, TYPES["float"]) for x in (math.inf, -math.inf, math.nan)] == [
        '"inf"',
        '"-inf"',
        '"nan"',
    ]
    program = check_program(
        parse('f(1.5). f("nan"). s("nan"). s("tea"). t("inf"). u(x) <- t(x), x != "nan".')
    )
    types = {name: predicate.columns[0].type.name for name, predicate in program.predicates.items()}
    assert types == {"f": "float", "s": "string", "t": "string", "u": "string"}
    assert literal_text(datetime.date(2024, 2, 29), TYPES["date"]) == '"2024-02-29"'
