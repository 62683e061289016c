"""Syntax tree -> rules: scopes, aggregates, constraints, queries, deltas."""

from __future__ import annotations

import pytest

from dlog.ir.rules import Disjunction
from tests.ir.helpers import check, messages, rule, rules
from tests.oracle.naive import evaluate


def test_terms_become_forms() -> None:
    assert rules("p(x, h[h[x]] + 1) <- g(x).") == [
        "p(x, _3) <- exists _1, _2 . g(x), h[x] = _1, h[_1] = _2, _3 = _2 + 1."
    ]
    assert rules("p(x) <- h[x] = h[x + 1].")[0].count("h[") == 2
    assert rules("p(c) <- s(x, _), c = cat(x, x, x).")[0].count("cat(") == 2


def test_fresh_variables_are_fresh() -> None:
    """`_1` is a name that a user may write."""
    assert rules("p(_1) <- e(_1, _), f(_, _1).") == ["p(_1) <- exists _2, _3 . e(_1, _2), f(_3, _1)."]


def test_truth_values_fold() -> None:
    assert rules("p(x) <- g(x), true.") == ["p(x) <- g(x)."]
    assert rules("p(x) <- g(x), (e(x, _) ; false).") == rules("p(x) <- g(x), e(x, _).")
    assert rules("p(x) <- g(x), !(e(x, _), false).") == ["p(x) <- g(x)."]
    assert evaluate(check("g(1). p(x) <- g(x), !true. q(x) <- g(x), (false ; false)."))["p"] == set()
    assert rule("p(x) <- g(x), false.").body.forms[-1] == Disjunction(())


def test_several_heads_share_a_rule_unless_groups_differ() -> None:
    assert rules("a(x), b(y, x) <- e(x, y).") == ["a(x), b(y, x) <- e(x, y)."]
    assert rules("a[x] = n, b[x] = k, c[] = n <- agg<<n = count(), k = sum(y)>> e(x, y).") == [
        "a[x] = n, b[x] = k <- agg<<n = count(), k = sum(y)>> exists y . e(x, y).",
        "c[] = n <- agg<<n = count()>> exists x, y . e(x, y).",
    ]
    assert rules("a[x] = n, b(y) <- agg<<n = count()>> e(x, y).")[1] == "b(y) <- exists x . e(x, y)."


# Inline aggregates


def test_outer_variables_are_groups() -> None:
    first, second = rules("p(x, n) <- g(x), n = count : { e(x, y), y > 2 }.")
    assert first == "p'count1[x] = n <- agg<<n = count()>> exists y . e(x, y), y > 2."
    assert second == "p(x, n) <- g(x), (p'count1[x] = n ; !(exists _1 . p'count1[x] = _1), n = 0)."


def test_aggregates_that_fail_over_nothing_are_plain_atoms() -> None:
    assert rules("p(x, n) <- g(x), n = max y : { e(x, y) }.")[1] == "p(x, n) <- g(x), p'max1[x] = n."


def test_local_variables_of_siblings_are_apart() -> None:
    lowered = check("p(a, b) <- a = count : { e(y, _) }, b = max y : { f(_, y) }.").rules
    assert [str(v) for r in lowered[:2] for v in r.groups] == []


def test_a_variable_of_an_alternative_is_not_outer() -> None:
    """`y` of the second branch has nothing to do with the aggregate of the first."""
    program = check("p(x) <- g(x), (n = count : { e(x, y) }, n > 1 ; f(x, y)).")
    assert [str(v) for v in program.rules[0].groups] == ["x"]


def test_nested_aggregates_see_what_is_outside() -> None:
    program = check("p(x, n) <- g(x), n = max m : { g(y), m = count : { e(y, z), f(x, z) } }.")
    groups = {r.heads[0].predicate: [str(v) for v in r.groups] for r in program.rules if r.aggregates}
    assert list(groups.values()) == [["y", "x"], ["x"]] or list(groups.values()) == [["x", "y"], ["x"]]


def test_a_result_that_its_own_body_uses_is_a_group() -> None:
    program = check("p(n) <- g(n), n = count : { e(n, _) }.")
    assert "n = _" in str(program.rules[-1]) or "_2 = n" in str(program.rules[-1])
    facts = "g(0). g(1). g(2). e(1, 1). e(2, 1). e(2, 2)."
    assert evaluate(check(facts + "p(n) <- g(n), n = count : { e(n, _) }."))["p"] == {(0,), (1,), (2,)}


# Witnesses


def test_a_variable_without_a_value_outside_is_a_witness() -> None:
    assert rules("p(x, n) <- n = max y : { e(x, y) }.") == [
        "p'max1[] = n <- agg<<n = max(y)>> exists x, y . e(x, y).",
        "p'max1'witnesses(x, y) <- e(x, y), p'max1[] = y.",
        "p(x, n) <- p'max1'witnesses(x, n).",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "p(y) <- y = max y : { e(_, y) }.",  # the name of the result
        "p(z) <- z = 1 + max z : { e(_, z) }.",  # computed from the result
        "p(n) <- n = max y : { e(x, y) }, m = min y : { f(x, y) }, n > m.",  # two local variables
        "p(y) <- g(y), (n = max x : { e(x, _) }, n > y ; f(x, y)).",  # x of another branch
        "?- n = max y : { e(x, y) }.",
    ],
)
def test_other_variables_are_local(text: str) -> None:
    program = check(text)
    assert not any(rule.groups for rule in program.rules if rule.aggregates)
    assert not any("witnesses" in name for name in program.predicates)


def test_a_computed_argument_is_stored_before_it_is_compared() -> None:
    first, second, third, _ = rules("p(x, n) <- n = max y + z : { e(x, y), f(x, z) }.")
    assert first.startswith("p'max1'candidates(x, _1) <- ")
    assert second == "p'max1[] = n <- agg<<n = max(_1)>> exists x, _1 . p'max1'candidates(x, _1)."
    assert third == "p'max1'witnesses(x, _1) <- p'max1'candidates(x, _1), p'max1[] = _1."


def test_a_witness_of_a_nested_aggregate_is_one_of_the_outer() -> None:
    names = check("p(z) <- n = max y : { g(y), m = max x : { e(z, x) }, y < m }.").predicates
    assert sum(name.endswith("'witnesses") for name in names) == 2


@pytest.mark.parametrize("op", ["count", "sum y", "mean y", "count_distinct y", "variance y"])
def test_only_min_and_max_have_witnesses(op: str) -> None:
    name = op.split()[0]
    expected = [f"x has a value only inside this {name}, but is used outside"]
    assert messages(f"p(x) <- n = {op} : {{ e(x, y) }}, n > 1.") == expected
    assert messages(f"p(n) <- n = {op} : {{ e(x, y) }}, !g(x).") == expected
    assert messages(f"p(x, n) <- g(x), n = {op} : {{ e(x, y) }}.") == []


# Domains


def test_ungrounded_groups_get_a_domain() -> None:
    lowered = rules("p(x, n) <- g(x), n = count : { e(y, _), y < x }.")
    assert lowered[0] == "p'count1'domain(x) <- g(x)."
    assert "p'count1'domain(x), e(y, _1), y < x" in lowered[1]


@pytest.mark.parametrize(
    "binding",
    ["g(x)", "h[_] = x", "g(y), x = y + 1", "(g(x) ; e(x, _))", "x = max y : { g(y) }",
     "x = count : { g(_) }",
     "(g(y), x = y ; e(_, x)), x < 9", "x = 3", "x = range(0, 4)"],
)  # fmt: skip
def test_domains_come_from_whatever_binds(binding: str) -> None:
    """An aggregate that only tests its outer variable means the same as one that binds it."""
    facts = "g(1). g(2). g(4). e(1, 2). e(2, 3). e(3, 3). h[1] = 3. h[2] = 1."
    tests = f"{facts} p(x, n) <- {binding}, n = count : {{ e(a, b), b < x }}."
    binds = f"{facts} p(x, n) <- {binding}, n = count : {{ e(a, b), c = b, c < d, d = x }}."
    by_hand = f"{facts} q(x) <- {binding}. p(x, n) <- q(x), n = count : {{ q(x), e(a, b), b < x }}."
    found = [evaluate(check(text))["p"] for text in (tests, binds, by_hand)]
    assert found[0] == found[1] == found[2] != set()


def test_domains_avoid_the_recursion() -> None:
    """`g(x)` binds x too, so the aggregate need not depend on p itself, in any order."""
    for body in ("p(x, _), g(x)", "g(x), p(x, _)"):
        assert check(f"p(x, n) <- {body}, n = count : {{ e(y, _), y < x }}.").strata
    (found,) = messages("p(x, n) <- p(x, _), n = count : { e(y, _), y < x }.")
    assert found == "the recursive count is not monotone: n, which grows, becomes a key of p"


def test_aggregates_in_negations_heads_and_arguments() -> None:
    facts = "g(1). g(2). e(1, 2). e(1, 3). e(2, 2)."
    assert evaluate(check(facts + "p(x) <- g(x), !(n = count : { e(x, _) }, n > 1)."))["p"] == {(2,)}
    assert evaluate(check(facts + "p(x, count : { e(x, _) }) <- g(x)."))["p"] == {(1, 2), (2, 1)}
    assert evaluate(check(facts + "p(x) <- g(x), e(x, 1 + count : { e(x, _) })."))["p"] == {(1,), (2,)}
    assert evaluate(check(facts + "p[] = t <- agg<<t = sum(max y : { e(x, y) })>> g(x)."))["p"] == {(5,)}


# Constraints and queries


def test_constraints_derive_their_violations() -> None:
    assert rules("e(x, y) -> g(x), f(y, z), z > x.") == [
        "constraint'1(x, y) <- e(x, y), !(exists z . g(x), f(y, z), z > x)."
    ]
    assert rules("g(x) -> false.") == ["constraint'1(x) <- g(x)."]
    assert rules("e(x, _) ; f(x, y) -> g(x).")[0].startswith("constraint'1(x) <-")
    assert rules("g(x), !e(x, y) -> f(x, _).")[0].startswith("constraint'1(x) <-")
    assert check("g(x)   ->\n  x > 0.").constraints[0].text == "g(x) -> x > 0."


def test_constraints_over_aggregates() -> None:
    text = "g(1). g(2). e(1, 1). e(2, 1). e(2, 2). g(x), n = count : { e(x, _) } -> n < 2."
    program = check(text.replace("-> n < 2", "-> n < 3"))
    assert evaluate(program)["constraint'1"] == set()
    assert check(text).constraints


def test_queries_answer_their_free_variables() -> None:
    program = check("?- e(1, y), !f(y, z), n = count : { e(y, w) }.")
    assert str(program.rules[-1].heads[0]) == "query'1(y, n)"
    assert check("?- g(1).").predicates["query'1"].arity == 0


# Facts and deltas


def test_a_predicate_that_is_only_erased_does_not_exist() -> None:
    assert messages("-nothing(1).") == ["unknown predicate nothing"]
    assert messages("+something(1). -something(2).") == []


def test_declarations_that_agree_are_one() -> None:
    program = check("w(x, y) -> int(x), y > 0. w(a, b) -> decimal[8, 2](b). w(x, y) -> int(x).")
    assert [(c.name, str(c.type)) for c in program.predicates["w"].columns] == [
        ("x", "int"),
        ("y", "decimal(8, 2)"),
    ]
    assert messages("w(x) -> int(x). w(x) -> string(x).") == ["w is declared twice, in different ways"]
    assert messages("w(x) -> int(x). w[x] = y -> int(x).") == ["w is declared twice, in different ways"]


def test_inputs_take_the_arity_of_their_first_use() -> None:
    program = check('.input w\np(x) <- w(x, y), y > 1, x = "a".')
    assert [str(c.type) for c in program.predicates["w"].columns] == ["string", "int"]
    assert messages(".input w\np(x) <- g(x).") == ["unknown predicate w"]
    assert messages(".input w\np(x) <- w(x, _).") == ["the type of argument 1 of w is not known"]


def test_shadowed_primitives() -> None:
    """A predicate may have a primitive's name: a condition is the predicate, a value the primitive."""
    assert rules("contains(1, 2). p(x) <- contains(x, _).") == ["p(x) <- exists _1 . contains(x, _1)."]
    assert rules("range(1). p(x) <- range(x), y = range(0, x), y > 1.")[0].count("range(") == 2


def test_deep_nesting_works() -> None:
    """As deep as the parser allows."""
    assert check("p(x) <- g(x), " + "!(" * 190 + "g(x)" + ")" * 190 + ".").rules
    assert check("p(y) <- g(x), y = " + "(x + " * 190 + "1" + ")" * 190 + ".").rules
    nested = "e(x, y)"
    for _ in range(60):
        nested = f"(f(x, y) ; g(x), {nested})"
    assert check(f"p(x) <- g(x), {nested}.").rules
    nested = "v0 = count : { e(x, _) }"
    for i in range(40):
        nested = f"v{i + 1} = count : {{ g(v{i}), {nested} }}"
    assert check(f"p(x) <- g(x), {nested}.").rules
