"""Inline predicates: programs mean what they mean without `inline`, and what is inlined costs nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.run import run_program
from dlog.errors import ConstraintError, SourceError
from tests.examples import relaxed
from tests.ir.helpers import check, messages, rules
from tests.oracle.accepted import accepted
from tests.oracle.bodies import Draw, Features
from tests.oracle.compare import same_program
from tests.oracle.naive import Facts, evaluate
from tests.oracle.programs import ALL, Author
from tests.oracle.values import DoesNotFit

_RELATION = re.compile(r"^(p\d+)\(([^)]*)\) -> (.*)\.$")


@st.composite
def marked(draw: Draw, features: Features) -> tuple[str, str]:
    """A program, and the same with some of its relations declared inline."""
    author = Author(draw, features)
    author.base(4)
    author.picks(2, 4)
    author.declare_all()
    lines = dict.fromkeys(author.lines)
    changed = [_inline(line) if _RELATION.match(line) and draw(st.booleans()) else line for line in lines]
    return "\n".join(lines), "\n".join(changed)


def _inline(line: str) -> str:
    found = _RELATION.match(line)
    assert found is not None
    types = {name: type for type, name in re.findall(r"(\w+)(?:\[[\d, ]*\])?\((\w+)\)", found[3])}
    return f".decl {found[1]}({', '.join(f'{n}: {types[n]}' for n in found[2].split(', '))}) inline"


_FEATURES = replace(
    ALL.without("linear_recursion", "nonlinear_recursion", "mutual_recursion", "recursive_min", "deltas"),
    types=("int", "string", "unsigned", "decimal"),
)


@relaxed(45)
@given(texts=marked(_FEATURES))
def test_oracle_inlined_programs_mean_the_same(texts: tuple[str, str]) -> None:
    plain = accepted(texts[0])
    try:
        expected = evaluate(plain)
    except (DoesNotFit, ConstraintError, OverflowError):
        return
    program = dlog.check(texts[1])
    got = evaluate(program)
    shown: Facts = {n: rows for n, rows in expected.items() if n in program.predicates and "'" not in n}
    same_program({n: got[n] for n in shown}, shown, program)


def test_inlined_rules_take_the_place_of_atoms() -> None:
    pair = ".decl pair(x: number, y: number) inline  pair(x, y) :- g(x), g(y). "
    assert rules(pair + "q(x) :- pair(x, x), x < 2.") == ["q(x) <- g(x), g(x), x < 2."]
    assert rules(pair + "q(x) :- g(x), !pair(x, 3).") == ["q(x) <- g(x), !(g(x), g(3))."]
    assert rules(pair + "q(x) :- pair(x, _).") == ["q(x) <- exists y_1 . g(x), g(y_1)."]


def test_variables_are_renamed() -> None:
    near = ".decl near(x: number, y: number) inline  near(x, y) :- e(x, z), e(z, y). "
    assert rules(near + "q(z) :- near(z, y), g(y).") == [
        "q(z) <- exists z_1, y . e(z, z_1), e(z_1, y), g(y)."
    ]


def test_several_rules_become_a_disjunction() -> None:
    both = ".decl both(x: number, y: number) inline  both(x, y) :- e(x, y).  both(x, y) :- e(y, x). "
    assert rules(both + "q(x) :- both(x, 1).") == ["q(x) <- (e(x, 1) ; e(1, x))."]


def test_an_aggregate_counts_the_rows_of_the_predicate() -> None:
    """`z` would be one more variable, and an assignment that both rules give would count twice."""
    text = """e(1, 2). e(2, 3). e(2, 4).
        .decl a(x: number) inline
        a(x) :- e(x, z), z > 0.
        .decl b(x: number, y: number) inline
        b(x, y) :- e(x, y).
        one(c) :- c = count : { a(x) }.  two(c) :- c = count : { b(x, y) }.
        three[] = c <- agg<<c = count()>> a(x)."""
    facts = evaluate(check(text))
    assert (facts["one"], facts["two"], facts["three"]) == ({(2,)}, {(3,)}, {(2,)})
    assert "b" not in facts
    assert "a" in facts


def test_rules_that_cannot_be_evaluated_alone() -> None:
    less = ".decl less(x: number, y: number) inline  less(x, y) :- x < y. "
    assert rules(less + "q(x) :- g(x), less(x, 3).") == ["q(x) <- g(x), x < 3."]
    assert messages(less + "q(x) :- g(x), less(x, y).") == ["ungrounded variable y"]
    assert messages(less + "q(x) :- g(x), less(x, 3). .output less") == [
        "ungrounded variable x",
        "ungrounded variable y",
    ]


@pytest.mark.parametrize("rest", ["p(1).", "+p(1).", ".output p", ".input p"])
def test_facts_and_files_of_an_inline_predicate(rest: str) -> None:
    """It is a predicate like any other then, and rules that read it give the same."""
    text = "g(5). .decl p(x: number) inline\np(x) :- g(x).\nq(x) :- p(x).\n"
    program = dlog.check(text + rest)
    assert "p" in program.predicates
    found = evaluate(program)
    assert found["q"] == found["p"]


def test_a_cycle_is_an_error() -> None:
    text = """.decl p(x: number) inline
        .decl q(x: number) inline
        p(x) :- q(x).  q(x) :- g(x), p(x).  other(x) :- p(x)."""
    assert messages(text) == ["p is inline and depends on itself"]


def test_operations_of_a_query_over_pairs(tmp_path: Path) -> None:
    """Two numbers are looked up, although there are 10,001 times 10,001 pairs."""
    (tmp_path / "pairs.dl").write_text("""
        .decl nat(x: number)
        nat(0).  nat(x + 1) :- nat(x), x < 10000.
        .decl nat_pair(x: number, y: number) inline
        nat_pair(x, y) :- nat(x), nat(y).
        .decl query(x: number)
        query(x) :- nat_pair(x, x), x < 2.
        .output query
    """)
    database = run_program(tmp_path / "pairs.dl", tmp_path, tmp_path)
    assert (tmp_path / "query.csv").read_text() == "0\n1\n"
    (measure,) = [m for m in database.measures.rules.values() if m.rule.heads[0].predicate == "query"]
    assert measure.seeks + measure.nexts < 20


def test_a_live_database_inlines_in_queries_and_new_rules() -> None:
    source = "g(1). g(2). g(3).\n.decl pair(x: number, y: number) inline\npair(x, y) :- g(x), g(y).\n"
    db = dlog.Database(source=source + "q(x) :- pair(x, x), x > 1.")
    assert db["q"].rows() == [(2,), (3,)]
    assert db.query("?- pair(x, y), x < y, y < 3.").rows() == [(1, 2)]
    db.execute("+g(0). r(x) :- pair(x, y), y = x + 3.")
    assert db["r"].rows() == [(0,)]
    db.execute("-g(3).")
    assert db["r"].rows() == []
    with pytest.raises(SourceError):
        db.execute("+pair(1, 2).")
    db.check()
