"""Primitives between joins as predicates of their own: what they become, and that nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given

import dlog
from dlog.errors import ConstraintError
from dlog.ir.rules import Program
from dlog.planning.range_tests import with_range_tests
from dlog.planning.stored_primitives import stored_primitives, with_stored_primitives
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.bodies import Features
from tests.oracle.naive import evaluate
from tests.oracle.programs import ALL, NONRECURSIVE, programs
from tests.oracle.values import DoesNotFit

BASE = """
    a(x, s) -> int(x), string(s).  b(t, z) -> string(t), int(z).  g(x, y) -> int(x), int(y).
    q(x, n) -> int(x), int(n).
    d[x] = v -> int(x), decimal[10, 2](v).  e(v, w) -> decimal[10, 4](v), int(w).
    f(x, v) -> int(x), float(v).
"""


def maintained(rules: str) -> Program:
    return with_stored_primitives(dlog.check(BASE + rules))


def shown(rules: str) -> list[str]:
    """The rules that are maintained, the user's first; none if they are the user's own."""
    program = dlog.check(BASE + rules)
    made = with_stored_primitives(program)
    made.check()
    return [] if made is program else [str(rule) for rule in made.rules]


def test_a_function_between_joins() -> None:
    assert shown("p(x, z) <- a(x, s), t = upper(s), b(t, z).") == [
        "p(x, z) <- exists s, t . a(x, s), p'upper1(s, t), b(t, z).",
        "p'upper1(s, t) <- exists x . a(x, s), t = upper(s).",
    ]


def test_functions_of_functions_and_of_several_atoms() -> None:
    assert shown("p(x, y) <- a(x, s), a(y, u), g(x, y), t = cat(lower(s), u), b(t, 1).") == [
        "p(x, y) <- exists s, u, t . a(x, s), a(y, u), g(x, y), p'cat1(s, u, t), b(t, 1).",
        "p'cat1(s, u, t) <- exists y, x, _1 . a(y, u), g(x, y), a(x, s), _1 = lower(s), t = cat(_1, u).",
    ]


def test_a_generator() -> None:
    assert shown('p(x, z) <- a(x, s), b(t, z), t = split(s, ",").')[1:] == [
        'p\'split1(s, t) <- exists x . a(x, s), t = split(s, ",").',
    ]
    assert shown("p(x, z) <- q(x, n), i = range(0, n), y = x + i, g(y, z).") == [
        "p(x, z) <- exists n, i, y . q(x, n), p'range1(n, i), y = x + i, g(y, z).",
        "p'range1(n, i) <- exists x . q(x, n), i = range(0, n).",
    ]


def test_inside_negations_and_disjunctions() -> None:
    assert shown('p(x) <- a(x, s), !(b(t, _), t = trim(s)), (contains("u", s) ; b(s, _)).') == [
        "p(x) <- exists s . a(x, s), !(exists t, _1 . b(t, _1), p'trim1(s, t)), "
        "(p'contains2(s) ; exists _2 . b(s, _2)).",
        "p'trim1(s, t) <- exists x . a(x, s), t = trim(s).",
        'p\'contains2(s) <- exists x . a(x, s), contains("u", s).',
    ]


def test_decimals_that_are_looked_up() -> None:
    """What has more digits than a column is computed where it is stored."""
    assert shown("p(x, w) <- d[x] = v, y = v / 8, e(y, w).")[1:] == [
        "p'div1(v, y) <- exists x . d[x] = v, y = v / 8.",
    ]
    assert shown("p(x, w) <- d[x] = v, e(v, w).")[1:] == [
        "p'eq1(v, _w0) <- exists x . d[x] = v, _w0 = v."
    ] or shown("p(x, w) <- d[x] = v, e(v, w).")


def test_a_decimal_with_more_digits_is_stored_with_what_reads_it() -> None:
    """Stored alone it would lose its value: nothing would tie `w` to `v`."""
    rules = shown("p(x) <- d[x] = v, !(y = v / 8, d[w] = y, g(x, w), y > 0.1).")
    assert rules == [
        "p(x) <- exists v . d[x] = v, !(exists _w0, w . p'eq1(v, _w0), d[w] = _w0, g(x, w), p'gt2(v)).",
        "p'eq1(v, _w0) <- exists x, y . d[x] = v, y = v / 8, _w0 = y.",
        "p'gt2(v) <- exists x, y . d[x] = v, y = v / 8, y > 0.1.",
    ]


NEGATED = """
    e(x, y) -> decimal[10, 2](x), decimal[10, 2](y).  p(x) -> decimal[10, 2](x).
    p(x) <- e(x, _), !(e(x, x), (e(x, y) ; e(x, x), x < 0.50), z = x * 2, e(z, w)).
    e(0.50, 0.50).  e(0.50, 1.25).  e(1.00, 1.00).
"""


@pytest.mark.parametrize("strategy", [None, "delta", "trace", "join_graph"])
def test_a_negation_that_looks_up_a_decimal_is_maintained(strategy: str | None) -> None:
    db = dlog.Database(source=NEGATED, strategy=strategy)
    db.execute("+e(1.25, 0.50).")  # it has nothing to do with 1.00
    assert sorted(map(str, (x for (x,) in db.query("p(x)")))) == ["1.00", "1.25"]
    db.execute("+e(2.00, 0.50).")
    assert sorted(map(str, (x for (x,) in db.query("p(x)")))) == ["1.25", "2.00"]


def test_states_of_a_recursion_that_negates_a_computed_decimal() -> None:
    """The stored values give the rows that evaluation gave."""
    db = dlog.Database(
        source="""
        e(x, y) -> decimal[10, 2](x), decimal[10, 2](y).  p(x, y) -> decimal[10, 2](x), decimal[10, 2](y).
        p(x, y) <- e(x, y), !(z = x / 4, e(z, _)).
        p(x, z) <- p(x, y), e(y, z), !(w = z / 4, e(w, _)).
        e(1.00, 2.00).  e(2.00, 1.00).  e(2.00, 4.00).
        """
    )
    before = db.snapshot()
    db.build_states()
    db.execute("+e(0.25, 8.00).")
    assert before != db.snapshot()
    db.check()


def test_values_computed_on_both_sides() -> None:
    assert shown("p(x, y) <- a(x, s), a(y, u), upper(s) = trim(u).")[0] == (
        "p(x, y) <- exists s, u, _1 . a(x, s), a(y, u), p'trim1(u, _1), p'upper2(s, _1)."
    )


def test_what_follows_the_join_stays() -> None:
    assert not shown('p(x, t) <- a(x, s), t = upper(s), n = strlen(t), n < 4, contains("u", s).')
    assert not shown("p(x, i) <- q(x, n), i = range(0, n).")
    assert not shown("p(x, y) <- g(x, z), y = z + 1, g(y, x).")  # joins compute with integers themselves


def test_equal_ones_are_stored_once() -> None:
    rules = "p(x) <- a(x, s), t = upper(s), b(t, _).  r(z, x) <- a(x, m), n = upper(m), b(n, z)."
    assert stored_primitives(dlog.check(BASE + rules)) == ("p'upper1",)


def test_comparisons_restrict_what_is_stored() -> None:
    assert "x = 5" in shown("p(x, z) <- a(x, s), x = 5, t = upper(s), b(t, z).")[1]


def test_a_recursion_stores_outside_of_itself_if_possible() -> None:
    outside = maintained("p(x) <- g(0, x).  p(z) <- p(x), a(x, s), t = upper(s), b(t, z).")
    assert [s.predicates for s in outside.strata if s.recursive] == [("p",)]
    inside = maintained("p(x) <- g(0, x).  p(z) <- p(x), t = to_string(x), b(t, z).")
    assert [s.predicates for s in inside.strata if s.recursive] == [("p", "p'to_string1")]


def test_what_cannot_be_stored_stays() -> None:
    """A product of atoms that share nothing; a recursion under a negation."""
    assert not shown("p(x, y) <- a(x, s), a(y, u), t = cat(s, u), b(t, _).")
    recursive = "p(x) <- g(0, x).  p(z) <- p(x), !(t = to_string(x), b(t, z)), z = x + 1, z < 9."
    assert not shown(recursive)


def test_ranges_that_test() -> None:
    assert shown("p(x, y) <- x = range(1, 9), g(x, y).") == ["p(x, y) <- g(x, y), x >= 1, x < 9."]
    assert shown("p(x, y) <- x = range(9, 1), g(x, y).") == ["p(x, y) <- g(x, y), x <= 9, x > 1."]
    assert shown("p(x, y) <- x = range(1, 9, 3), g(x, y).") == [
        "p(x, y) <- exists _r1, _r0 . _r1 = 0, g(x, y), x >= 1, x < 9, _r0 = x - 1, _r1 = _r0 % 3."
    ]
    (rule,) = dlog.check(BASE + "p(x) <- f(x, v), v = range(0.0, 2.0).").rules
    assert with_range_tests(rule) is rule  # which floats a range has is known by adding only


def test_nothing_of_it_is_seen() -> None:
    db = dlog.Database(source=BASE + 'p(x, z) <- a(x, s), t = upper(s), b(t, z).  a(1, "k").  b("K", 2).')
    commit = db.execute('+a(3, "K").')
    assert set(commit.changes) == {"a", "p"} and set(commit.ways) == {"p"}  # type: ignore[union-attr]
    assert "upper1" not in str(db.predicates())
    assert db.why("p(3, 2)").splitlines() == [
        "p(3, 2)   by <string>:6",
        '  a(3, "K")   base fact',
        '  "K" = upper("K")',
        '  b("K", 2)   base fact',
    ]
    assert "stores p'upper1(s, t) <- exists x . a(x, s), t = upper(s)" in db.explain("p")


# The naive evaluator gives a program and what is maintained in its place the same rows.


def same_meaning(text: str) -> None:
    program = accepted(text)
    made = with_stored_primitives(program)
    made.check()
    try:
        expected = evaluate(program)
    except (ConstraintError, DoesNotFit, OverflowError) as error:
        with pytest.raises(type(error)):
            evaluate(made)
        return
    found = evaluate(made)
    assert {name: found[name] for name in program.predicates} == expected


@relaxed(50)
@given(programs(NONRECURSIVE.without("inline_aggregates", "comparisons")))
def test_oracle_stored_primitives(text: str) -> None:
    same_meaning(text)


@relaxed(25)
@given(programs(ALL, derived=3))
def test_oracle_stored_primitives_everywhere(text: str) -> None:
    same_meaning(text)


@relaxed(40)
@given(
    programs(
        Features(("int", "unsigned", "string")).with_("primitives", "negated_conjunctions", "aggregates")
    )
)
def test_oracle_ranges(text: str) -> None:
    same_meaning(text)
