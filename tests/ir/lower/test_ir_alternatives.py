"""An aggregate ranges over the assignments of all variables of its body, those of alternatives too."""

from __future__ import annotations

import pytest

from tests.ir.helpers import check, rules
from tests.oracle.naive import evaluate

FACTS = "g(1). g(2). e(1, 1). e(1, 2). e(2, 2). f(1, 2). f(1, 3). f(2, 9)."


def count(body: str) -> dict[int, int]:
    return dict(evaluate(check(f"{FACTS} p[x] = n <- agg<<n = count()>> {body}."))["p"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # One variable of both branches: an assignment that satisfies both counts once.
        ("(e(x, y) ; f(x, y))", {1: 3, 2: 2}),
        # A variable each: different assignments, whatever their values.
        ("(e(x, y) ; f(x, z))", {1: 4, 2: 2}),
        ("(e(x, _) ; f(x, _))", {1: 4, 2: 2}),
        # No variable of its own: one assignment for both.
        ("g(x), (x > 0 ; x < 9)", {1: 1, 2: 1}),
        # Undefined in the second branch: one more assignment.
        ("g(x), (e(x, y) ; x > 0)", {1: 3, 2: 2}),
        ("g(x), (e(x, y) ; x > 0 ; x < 9)", {1: 3, 2: 2}),
        # y is bound outside, so the second branch says nothing of it.
        ("e(x, y), (f(x, y) ; y > 0)", {1: 2, 2: 1}),
        # Alternatives in alternatives.
        ("g(x), (e(x, y) ; x > 1, (f(x, z) ; x > 0))", {1: 2, 2: 3}),
        # A name that the second branch uses for something else, under a negation.
        ("g(x), (e(x, y) ; x > 0, !e(y, x))", {1: 2, 2: 1}),
        ("g(x), (f(x, y) ; x > 0, !f(y, 1))", {1: 3, 2: 2}),
        # What is computed is no variable of the body.
        ("g(x), (e(x, x) ; x + 1 > 1)", {1: 1, 2: 1}),
        ("g(x), (x > 0 ; count : { e(x, _) } > 0)", {1: 1, 2: 1}),
        ("g(x), (x > 0 ; x < 9, (x * 2 > 1 ; x - 1 < 9))", {1: 1, 2: 1}),
        ("g(x), (e(x, y), y + 1 > 2 ; e(x, y) ; y = x + 1)", {1: 2, 2: 2}),
        # A variable that has the computed value, and one for each value of a generator.
        ("g(x), (x > 0 ; y = x + 1, y > 1)", {1: 2, 2: 2}),
        ("g(x), (x + 1 > 1 ; y = x + 1, y > 1)", {1: 2, 2: 2}),
        # Alternatives in alternatives count once, too.
        ("g(x), (x > 0, (x > 1 ; y = x) ; x < 9, (x > 1 ; y = x))", {1: 1, 2: 2}),
        ("g(x), (y = x ; x < 9, (x > 1 ; y = x))", {1: 1, 2: 2}),
        ("g(x), (x > 0 ; range(0, x) >= 0)", {1: 2, 2: 3}),
    ],
)
def test_every_assignment_counts_once(body: str, expected: dict[int, int]) -> None:
    assert count(body) == expected


def test_inline_aggregates_count_the_same() -> None:
    text = f"{FACTS} p(x, n) <- g(x), n = count : {{ e(x, _) ; f(x, _) }}."
    assert evaluate(check(text))["p"] == {(1, 4), (2, 2)}


def test_sums_over_alternatives() -> None:
    text = f"{FACTS} p[x] = s <- agg<<s = sum(y)>> g(x), (e(x, y) ; f(x, y), g(z))."
    # e gives 1 and 2; f gives 2 and 3 for each of the two z.
    assert evaluate(check(text))["p"] == {(1, 1 + 2 + 2 * (2 + 3)), (2, 2 + 2 * 9)}


def test_a_conversion_to_the_digits_of_a_column_is_no_variable() -> None:
    text = """
    a(x) -> decimal[6, 2](x).  b(x) -> decimal[6, 1](x).  a(0.50).  a(1.25).  b(0.5).
    p[] = n <- agg<<n = count()>> a(x), (x > 0.0 ; b(x)).
    """
    assert evaluate(check(text))["p"] == {(2,)}


def test_every_type_has_a_value_for_undefined() -> None:
    for type in (
        "int",
        "unsigned",
        "float",
        "decimal",
        "decimal[6, 2]",
        "string",
        "bool",
        "date",
        "datetime",
        "timestamp",
        "duration",
    ):
        text = f"w(x, y) -> int(x), {type}(y). p[x] = n <- agg<<n = count()>> g(x), (w(x, y) ; e(x, _))."
        assert evaluate(check(f"{FACTS} {text}"))["p"] == {(1, 2), (2, 1)}, type


def test_plain_rules_are_left_alone() -> None:
    assert rules("p(x) <- g(x), (e(x, y) ; f(x, z)).") == [
        "p(x) <- g(x), (exists y . e(x, y) ; exists z . f(x, z))."
    ]


def test_the_default_of_a_count_is_left_alone() -> None:
    lowered = rules("p[] = t <- agg<<t = sum(n)>> g(x), n = count : { e(x, _) }.")
    body = "g(x), (p'count1[x] = n ; !(exists _2 . p'count1[x] = _2), n = 0)"
    assert lowered[1] == f"p[] = t <- agg<<t = sum(n)>> exists x, n . {body}."
