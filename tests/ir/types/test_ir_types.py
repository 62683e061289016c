"""Types: inference, literals, mixed arithmetic, decimals, named types."""

from __future__ import annotations

import pytest

import dlog
from dlog.errors import SourceError
from tests.ir.helpers import check, columns, messages, rule, rules, types
from tests.oracle.naive import evaluate


def test_types_flow_through_rules_both_ways() -> None:
    assert columns("p(x) <- q(x). q(y) <- p(y), s(y, _).", "p") == ["string"]
    assert columns("q(x) -> . p(x, y) <- q(x), r(x, y).", "q") == ["string"]
    assert columns("q(x) -> . p(x) <- q(x), strlen(x) > 2.", "q") == ["string"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ("w(1).", "int"),
        ("w(1). w(2.5).", "float"),
        ("w(1u). w(2).", "unsigned"),
        ('w("2024-01-31").', "string"),
        ("w(true).", "bool"),
        ('w("2024-01-31"). p(x) <- w(x), t(_, x).', "date"),
        ("w(2.5). p(x) <- w(x), m(_, x).", "decimal"),
        ("w(1). p(x) <- w(x), n(_, x).", "unsigned"),
        ("w(1). p(x) <- w(x), r(_, x).", "float"),
        ("+w(1). +w(2.5).", "float"),
    ],
)
def test_literals_have_the_expected_types(facts: str, expected: str) -> None:
    assert columns(facts, "w") == [expected]


def test_literals_in_rules() -> None:
    assert [c.type.name for c in _constants("p(x) <- m(x, 3.50).")] == ["decimal"]
    assert [c.type.name for c in _constants("p(x) <- r(x, 3).")] == ["float"]
    assert [c.type.name for c in _constants('p(x) <- t(x, d), d > "2024-01-31".')] == ["date"]
    assert [c.type.name for c in _constants("p(x) <- n(x, y), y > 3.")] == ["unsigned"]
    assert types("p(y) <- g(x), y = 3.5.")["y"] == "float"


def _constants(text: str) -> list:
    from dlog.ir.rules import Atom, Const, Primitive

    forms = [f for f in rule(text).body.walk() if isinstance(f, Atom | Primitive)]
    return [a for f in forms for a in f.args if isinstance(a, Const)]


# Mixed arithmetic


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("g(x), z = x * 2", "int"),
        ("g(x), z = x * 2.5", "float"),
        ("g(x), z = 2.5 * x + 1", "float"),
        ("r(_, x), z = x * 2", "float"),
        ("r(_, x), g(y), z = x * y", "float"),
        ("m(_, x), g(y), z = x * y", "decimal(38, 2)"),
        ("m(_, x), z = x * 0.5", "decimal(38, 3)"),
        ("m(_, x), z = x * 2", "decimal(38, 2)"),
        ("n(_, x), z = x + 1", "unsigned"),
        ("g(x), r(_, y), z = max(x, y)", "float"),
        ("m(_, x), z = max(x, 3)", "decimal(38, 2)"),
        ("s(x, _), z = min(x, \"b\")", "string"),
        ("w(x), v(y), z = x + y", "int"),
        ("w(x), r(_, y), z = x + y", "float"),
        ("w(x), v(y), u = x + y, r(_, u), z = x", "float"),
    ],
)  # fmt: skip
def test_integers_widen(body: str, expected: str) -> None:
    assert types(f"w(x) -> . v(x) -> . p(z) <- {body}.")["z"] == expected


def test_widening_is_explicit_for_floats() -> None:
    assert "_w0 = to_float(x), z = _w0 * y" in rules("p(z) <- g(x), r(_, y), z = x * y.")[0]


@pytest.mark.parametrize(
    "body",
    [
        "m(_, x), r(_, y), z = x * y",
        "n(_, x), g(y), z = x + y",
        "s(x, _), g(y), z = x + y",
        "r(_, x), z = x % 2.0",
        "g(x), r(_, z), z = x + 1, z = x",
        "m(_, x), z = x ^ 2",
    ],
)
def test_numbers_that_do_not_mix(body: str) -> None:
    assert len(messages(f"p(z) <- {body}.")) == 1


# Decimals


def test_products_are_exact_and_heads_round() -> None:
    text = 'm("a", 0.25). m("b", 0.75). k(x) -> decimal[6, 2](x). k(y * 0.5) <- m(_, y).'
    assert {str(v) for (v,) in evaluate(check(text))["k"]} == {"0.12", "0.38"}


def test_digits_of_results() -> None:
    found = types("p(a, b, c, d) <- m(x, y), m(x, z), a = y * z, b = a + 1.125, c = y / z, d = -a.")
    assert {v: found[v].removeprefix("decimal") for v in "yabcd"} == {
        "y": "(18, 2)",
        "a": "(38, 4)",
        "b": "(38, 4)",
        "c": "(38, 12)",
        "d": "(38, 4)",
    }


def test_columns_with_other_digits_are_read_exactly() -> None:
    """Joined by value: 0.5 of two digits is 0.5 of one."""
    declared = "a(x) -> decimal[8, 2](x). b(x) -> decimal[8, 1](x). a(0.50). a(0.55). b(0.5). b(0.6). "
    assert {str(v) for (v,) in evaluate(check(declared + "p(x) <- a(x), b(x)."))["p"]} == {"0.500000"}
    negated = declared + "p(z) <- a(x), z = x * 1.0, !b(z)."
    assert {str(v) for (v,) in evaluate(check(negated))["p"]} == {"0.550000"}
    assert types(declared + "p(x) <- a(x), b(x).")["_w0"] == "decimal(18, 1)"


def test_literals_of_atoms_have_the_columns_digits() -> None:
    assert [str(c.type) for c in _constants("p(x) <- m(x, 1.5).")] == ["decimal(10, 2)"]
    assert [str(c.type) for c in _constants("p(x) <- m(x, y), y > 1.5.")] == ["decimal(38, 1)"]


def test_aggregates_of_decimals() -> None:
    body = "s = sum y * z : { m(_, y), m(_, z) }, t = max y * z * y : { m(_, y), m(_, z) }"
    program = check(f"p(s, t) <- {body}.")
    assert [str(program.predicates[n].columns[0].type) for n in ("p'sum1", "p'max2")] == [
        "decimal(18, 4)", "decimal"]  # fmt: skip
    text = 'm("a", 1.25). m("b", 2.50). p(x) <- m(x, y), y = max z : { m(_, z) }.'
    assert evaluate(check(text))["p"] == {("b",)}


# Named types and casts


def test_subtypes_and_unions() -> None:
    text = """
        .type City <: symbol
        .type Town = City | Village
        .type Village <: City
        .type Money <: decimal(8, 2)
        .decl w(a: Town, b: Money)
        .type Old
        .number_type Id
        .decl v(a: Old, b: Id)
    """
    program = check(text)
    assert columns(text, "w") == ["string", "decimal(8, 2)"] and columns(text, "v") == ["string", "int"]
    assert [c.domain for c in program.predicates["w"].columns] == ["Town", "Money"]


def test_casts() -> None:
    assert types("p(y) <- g(x), y = as(x, unsigned).")["y"] == "unsigned"
    assert "as(x, unsigned)" in rules("p(y) <- g(x), y = as(x, unsigned).")[0]
    assert rules("p(y) <- g(x), y = as(x, number).") == ["p(y) <- exists x . g(x), y = x."]
    assert rules(".type City <: symbol\np(y) <- s(x, _), y = as(x, City).")[0].endswith("y = x.")
    assert types('p(y) <- g(_), y = as("2024-01-31", date).')["y"] == "date"
    assert len(messages("p(y) <- s(x, _), y = as(x, number).")) == 1
    assert messages("p(y) <- g(x), y = as(x, Citty).") == ["unknown type Citty"]
    assert len(messages(".type A <: B\n.type B <: A\np(y) <- g(x), y = as(x, A).")) == 1


# One message for one mistake


@pytest.mark.parametrize(
    "text",
    [
        "p(z) <- s(x, y), z = x + y, z > x, w = z * 2, w < 3.",
        "p(x) <- s(x, y), e(x, y), f(y, x), r(x, _).",
        'w(1). w(2). w("a"). w("b"). p(x) <- w(x), x > 3.',
        "p(x) -> strng(x).",
    ],
)
def test_one_message_for_one_mistake(text: str) -> None:
    assert len(messages(text)) == 1, messages(text)


def test_independent_mistakes_are_all_reported() -> None:
    assert len(messages("p(x) <- s(x, _), g(x). q(x) <- s(x, _), g(x). k(x) <- g(y), x < y, egg(x).")) == 3


def test_plus_joins_strings() -> None:
    text = 'w("a"). w("b"). p(x + "-" + y) <- w(x), w(y). q(x) <- w(y), x = y + y, !p(x).'
    text += "n(2). r(x + y) <- n(x), n(y)."
    facts = evaluate(dlog.check(text))
    assert facts["p"] == {("a-a",), ("a-b",), ("b-a",), ("b-b",)}
    assert facts["q"] == {("aa",), ("bb",)}
    assert facts["r"] == {(4,)}


def test_types_may_have_names_that_souffle_does_not_know() -> None:
    text = ".type string = symbol\n.type int <: number\n.type date <: symbol\n"
    text += ".decl p(x: string, y: int, z: date)\n"
    program = dlog.check(text + 'p("a", 1, "monday").')
    assert [str(column.type) for column in program.predicates["p"].columns] == ["string", "int", "string"]
    with pytest.raises(SourceError, match="number is a built-in type"):
        dlog.check(".type number <: symbol\n")
