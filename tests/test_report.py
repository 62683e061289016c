"""Lines for people: what a warning about undefined primitives names."""

from __future__ import annotations

import pytest

import dlog
from dlog.report import undefined_warnings

BASE = """
    n(x) -> int(x).  d(x) -> duration(x).  t(x) -> timestamp(x).  s(x) -> string(x).
    n(0).  n(2).  d("P106751991D").  t("9999-12-31T23:00:00Z").  s("1h").
"""


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ("p(y) <- n(x), y = 6 / x + 1.", "6 / x had no value once"),
        ("p(y) <- d(x), y = x + x.", "x + x had no value once"),
        ('p(y) <- t(x), n(k), y = x + k * "P1D".', 'k * "P1D" or x + k * "P1D" had no value once'),
        ("p(y) <- s(x), y = cat(to_string(to_duration(x)), x).", "to_duration(x) had no value once"),
        ("p(y) <- n(x), y = x + 1.", None),
    ],
)
def test_the_primitive_without_a_value_is_named(rule: str, what: str | None) -> None:
    db = dlog.Database(source=BASE + rule)
    expected = (
        [] if what is None else [f"<string>:4: warning: {what}; where it has none the condition is false"]
    )
    assert undefined_warnings(db) == expected
