"""M3's functions on columns against the oracle's on single values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.m3.types import functions
from tests.oracle.m3_naive import FUNCTIONS

numbers = st.integers(-100, 100) | st.floats(-100, 100).filter(lambda x: x == 0 or abs(x) > 1e-6)
texts = st.text("abcé ", max_size=6)
dates = st.dates()
ARGUMENTS: dict[str, st.SearchStrategy] = {
    functions.NUMBER: numbers,
    functions.STRING: texts,
    functions.DATE: dates,
}


def in_space(points: tuple[int, ...]) -> bool:
    """Whether vectors, or edges between points, span the space, or the plane: an angle is then exact."""
    rows = np.array(points).reshape(-1, 3)
    if len(rows) == 4:
        rows = np.diff(rows, axis=0)
    return np.linalg.matrix_rank(rows) == len(rows)


def points(number: int) -> st.SearchStrategy:
    return st.tuples(*(st.integers(-5, 5) for _ in range(3 * number))).filter(in_space)


SPECIAL: dict[str, st.SearchStrategy] = {
    "vector_angle": points(2),
    "dihedral_angle": points(4),
    "date_part": st.tuples(st.sampled_from(["year", "MONTH", "day"]), dates),
    "substring": st.tuples(texts, st.integers(-1, 7), st.integers(-1, 7)),
    "regexp_match": st.tuples(st.sampled_from(["^a", "b+", "[ac]$", ""]), texts),
    "pow": st.tuples(st.floats(0.1, 10), st.floats(-3, 3)),
}


def column(values: list[Any]) -> np.ndarray:
    if isinstance(values[0], str):
        return np.array(values, object)
    return np.array(values, "datetime64[D]" if not isinstance(values[0], int | float) else None)


@pytest.mark.parametrize("name", [name for name in functions.BUILTIN if name != "lift"])
@settings(max_examples=25)
@given(data=st.data())
def test_oracle_functions_on_columns(name: str, data: st.DataObject) -> None:
    function = functions.BUILTIN[name]
    number = data.draw(st.integers(function.least, len(function.takes) + function.more))
    kinds = [function.kind_of(i) or "" for i in range(number)]
    plain = st.tuples(*(ARGUMENTS[kind] for kind in kinds))
    rows = data.draw(st.lists(SPECIAL.get(name, plain), min_size=1, max_size=6))
    assert function.compute is not None
    found = function.compute(*(column(list(values)) for values in zip(*rows, strict=True)))
    for row, value in zip(rows, found.tolist(), strict=True):
        expected = FUNCTIONS[name](*row)
        same = value == expected if isinstance(value, str) else math.isclose(value, expected, rel_tol=1e-12)
        assert same, (row, value, expected)


def test_functions_of_users() -> None:
    found = functions.register_function("plus_one", lambda x: x + 1, ("number",))
    assert functions.lookup("plus_one") is found and "plus_one" in functions.known()
    assert functions.lookup("ABS") is functions.BUILTIN["abs"] and functions.lookup("nothing") is None
    sine = functions.register_function("sin", lambda x: x, ("number",))  # a program's own
    assert functions.lookup("sin") is sine
    del functions._registered["sin"]
    with pytest.raises(DlogError, match="already"):
        functions.register_function("abs", np.abs, ("number",))
    with pytest.raises(DlogError, match="unknown kind"):
        functions.register_function("f", np.abs, ("int",))
