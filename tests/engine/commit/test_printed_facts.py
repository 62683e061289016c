"""Facts as they are written: reading what is shown gives the fact again."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.engine.commit.printed_facts import fact_text, literal_text
from dlog.ir.check import check_program
from dlog.ir.lower.literals import literal_value
from dlog.language.parse import parse
from dlog.types import BUILTIN_TYPES, decimal

VALUES = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "unsigned": st.integers(0, 2**64 - 1),
    "float": st.floats().map(lambda x: x + 0.0),
    "string": st.text(st.characters(codec="utf-8", exclude_characters="\r")),
    "bool": st.booleans(),
    "date": st.dates(),
    "datetime": st.datetimes(),
}
TYPES = {name: BUILTIN_TYPES[name] for name in VALUES} | {"decimal": decimal(12, 4)}
VALUES["decimal"] = st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-4))
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
