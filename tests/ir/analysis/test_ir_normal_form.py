"""The check of the normal form finds what it is there for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dlog.ir.rules import Atom, Conj, Const, Disjunction, Negation, Primitive, Rule, Var, check_rule
from dlog.values import INT
from tests.ir.helpers import check, rule

X, Y, Z = Var("x"), Var("y"), Var("z")
ONE = Const("int", 1, INT)


def e(*args: Var | Const) -> Atom:
    return Atom("e", args, len(args))


def broken(body: Conj, head: Atom | None = None, **changes: object) -> Rule:
    """A rule with types for all its variables and the right keys, and otherwise as given."""
    heads = (head or Atom("p", (X,), 1),)
    keys = {a.name for atom, _ in body.atoms() for a in atom.keys if isinstance(a, Var)}
    names = body.variables() | {a.name for a in heads[0].args if isinstance(a, Var)}
    made = Rule(0, heads, body, (), (X,), dict.fromkeys(names, INT), frozenset(keys))
    return replace(made, **changes)  # type: ignore[arg-type]


def test_rules_of_a_program_pass() -> None:
    check_rule(broken(Conj((Y,), (e(X, Y),))))
    check_rule(rule("p[x] = n <- agg<<n = count()>> g(x), (e(x, y) ; f(y, x)), !h[x] = _."))


@pytest.mark.parametrize(
    "wrong",
    [
        broken(Conj((Y,), (e(X, Y),)), types={"x": INT}),
        broken(Conj((Y,), (e(X, Y),)), universals=()),
        broken(Conj((Y,), (e(X, Y),)), keys=frozenset({"x"})),
        broken(Conj((), (e(X, Y),))),
        broken(Conj((Y, Y), (e(X, Y),))),
        broken(Conj((X, Y), (e(X, Y),))),
        broken(Conj((Y,), (e(Y, Y),))),
        broken(Conj((Y,), (e(X, Const("int", 1)), e(X, Y)))),
        broken(Conj((Y,), (Primitive("lt", (X, Y)), e(X, Y)))),
        broken(Conj((Y,), (e(X, ONE), Primitive("add", (X, Y), X), e(X, Y)))),
        broken(Conj((Y,), (Primitive("eq", (X, Y)), e(X, Y)))),
        broken(Conj((Y,), (Negation(Conj((), (e(X, Y),))), e(X, Y)))),
        broken(Conj((Y,), (e(X, ONE), Negation(Conj((), (e(X, Y),)))))),
        broken(Conj((), (e(X, ONE), Negation(Conj((X,), (e(X, ONE),)))))),
        broken(Conj((Y,), (e(X, ONE), Disjunction((Conj((), (e(X, Y),)), Conj((), (e(X, ONE),))))))),
        broken(Conj((), (e(X, ONE), Disjunction((Conj((Y,), (e(X, Y),)), Conj((Y,), (e(Y, X),))))))),
        broken(Conj((), (e(X, ONE), Negation(Conj((), (e(X, ONE), Disjunction(()))))))),
        broken(Conj((), (e(X, ONE), Primitive("frobnicate", (X,))))),
        broken(Conj((), (e(ONE, ONE),))),
        broken(Conj((Y,), (e(X, ONE), Primitive("range", (X, ONE), Y)))),
        broken(Conj((), (e(X, ONE),)), heads=()),
    ],
)
def test_broken_rules_are_found(wrong: Rule) -> None:
    with pytest.raises(AssertionError):
        check_rule(wrong)


def test_hidden_variables_of_aggregates_are_found() -> None:
    right = rule("p[x] = n <- agg<<n = count()>> g(x), (e(x, y) ; f(y, x)).")
    hidden = Disjunction((Conj((Y,), (e(X, Y),)), Conj((), (e(X, ONE),))))
    wrong = replace(right, body=Conj((), (right.body.forms[0], hidden)), types={**right.types, "y": INT})
    with pytest.raises(AssertionError, match="hides"):
        check_rule(wrong)
    with pytest.raises(AssertionError):
        check_rule(replace(right, heads=(replace(right.heads[0], args=(X, X)),)))


def test_programs_with_wrong_arities_are_found() -> None:
    program = check("p(x) <- g(x).")
    program.predicates["g"] = program.predicates["e"]
    with pytest.raises(AssertionError):
        program.check()
