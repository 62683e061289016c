"""Safety: grounding, order, quantifiers, keys."""

from __future__ import annotations

import pytest

from tests.ir.helpers import check, messages, rule, rules


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x > 1, g(x)", "g(x), x > 1"),
        ("!f(x, y), e(x, y)", "exists y . e(x, y), !f(x, y)"),
        ("x = y + 1, y = z + 1, g(z)", "exists z, y . g(z), y = z + 1, x = y + 1"),
        ("y = x, x = 1, g(y)", "exists y . x = 1, y = x, g(y)"),
        ("(x = y ; x = y + 1), g(y)", "exists y . g(y), (x = y ; x = y + 1)"),
        ("!(!e(x, y), f(y, x)), g(x)", "g(x), !(exists y . f(y, x), !e(x, y))"),
        ("x = range(0, y), g(y)", "exists y . g(y), x = range(0, y)"),
    ],
)
def test_forms_are_put_in_order(body: str, expected: str) -> None:
    assert rules(f"p(x) <- {body}.") == [f"p(x) <- {expected}."]


# Quantifiers (Fig. 1): in the smallest conjunction that holds all uses


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("e(x, y), f(y, z)", "exists y, z . e(x, y), f(y, z)"),
        ("g(x), !(e(x, y), f(y, z))", "g(x), !(exists y, z . e(x, y), f(y, z))"),
        ("g(x), !(e(x, y), !f(y, z))", "g(x), !(exists y . e(x, y), !(exists z . f(y, z)))"),
        ("g(x), (e(x, y) ; f(x, z))", "g(x), (exists y . e(x, y) ; exists z . f(x, z))"),
        ("g(x), (e(x, y) ; f(x, y))", "exists y . g(x), (e(x, y) ; f(x, y))"),
        ("e(x, y), (f(x, y) ; g(x))", "exists y . e(x, y), (f(x, y) ; g(x))"),
        # Not every branch binds y, so each has its own.
        ("g(x), (e(x, y) ; f(x, y) ; g(x))", "g(x), (exists y . e(x, y) ; exists y . f(x, y) ; g(x))"),
        ("g(x), (e(x, y) ; g(x), !f(x, y))", "g(x), (exists y . e(x, y) ; g(x), !(exists y . f(x, y)))"),
        ("g(x), (e(x, y) ; (f(x, y) ; f(y, x)))", "exists y . g(x), (e(x, y) ; f(x, y) ; f(y, x))"),
        ("g(x), (e(x, y), g(y) ; (f(x, y) ; f(y, x)), g(x))",
         "exists y . g(x), (e(x, y), g(y) ; (f(x, y) ; f(y, x)), g(x))"),
    ],
)  # fmt: skip
def test_quantifiers_are_as_far_inside_as_possible(body: str, expected: str) -> None:
    assert rules(f"p(x) <- {body}.") == [f"p(x) <- {expected}."]


# Keys (1.3.1)


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        ("h[x] = a, h[y] = b, r = a + b", "x y"),
        ("h[x] = a, e(a, y)", "a x y"),
        ("h[x] = a, !g(a)", "a x"),
        ("g(x), y = range(0, x)", "x y"),
        ("g(x), h[x] = y, z = y * 2", "x"),
        ("g(x), (h[x] = a ; x = a)", "a x"),
        ("g(x), (h[x] = a ; x = a), h[x] = a", "x"),
        ("g(x), n = count : { e(x, _) }", "x"),
    ],
)
def test_keys_determine_the_values(body: str, keys: str) -> None:
    assert " ".join(sorted(rule(f"p(x) <- {body}.").keys)) == keys


def test_generators_bind_keys() -> None:
    assert sorted(rule('p(w) <- s(x, _), w = split(x, ",").').keys) == ["_1", "w", "x"]


# What is refused


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("p(x, z) <- g(x).", "z"),
        ("p(x) <- x > 3.", "x"),
        ("p(x) <- !g(x).", "x"),
        ("p(x) <- g(y), x = z + y, z = w * 2.", "w"),
        ("p(x) <- g(x), !(e(x, y), z > y).", "z"),
        ("p(x) <- g(x), !e(x, y), !f(x, y).", "y"),
        ("p(x, y) <- g(x), (e(x, y) ; g(x)).", "y"),
        ("p(x) <- g(x), (e(x, y) ; g(x)), y > 3.", "y"),
        ("p(x) <- g(x), a = b, b = a.", "a"),
        ("p(x) <- g(x), y = y.", "y"),
        ("p(x) <- g(x), u < v.", "u v"),
        ("p(x, n) <- g(y), n = sum z : { e(y, z), z < x }.", "x"),
        ("p[] = n <- agg<<n = sum(y)>> g(x).", "y"),
        ("?- g(x), x < y.", "y"),
        ("g(x) -> x < y.", "y"),
        ("p(x) <- false.", "x"),
    ],
)
def test_ungrounded_variables_are_named_once(text: str, variables: str) -> None:
    assert messages(text) == [f"ungrounded variable {v}" for v in variables.split()]


@pytest.mark.parametrize(
    "text",
    [
        "p(x) <- (g(x) ; e(x, _)), (x > 1 ; x < 0).",
        "p(x) <- g(x), (y = x ; y = 3), e(y, _).",
        "p(x, n) <- n = min y : { e(x, y) }.",
        "p(x) <- x = 3.",
        "p(x) <- g(x), !(e(x, y), (y = z ; y > 3, z = 1), z > 2).",
        "p(x) <- g(x), false.",
        "p(1, 2 + 3).",
    ],
)
def test_grounded_in_other_ways(text: str) -> None:
    assert check(text).rules


def test_deep_alternatives_take_no_exponential_time() -> None:
    """Nested before what grounds it, at every level."""
    nested = "x < y"
    for _ in range(45):
        nested = f"({nested}, g(x) ; e(x, y), f(y, x))"
    assert check(f"p(x) <- {nested}, e(x, y), g(y).").rules
