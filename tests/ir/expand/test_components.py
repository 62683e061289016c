"""Components: an instance means what its statements mean outside, under other names."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.errors import ConstraintError
from dlog.language.format import format_program
from dlog.language.parse import expand_includes, parse
from dlog.language.typed import pieces
from tests.examples import relaxed
from tests.ir.helpers import messages
from tests.oracle.accepted import accepted
from tests.oracle.bodies import Draw
from tests.oracle.naive import Facts, evaluate
from tests.oracle.programs import ALL, Author
from tests.oracle.values import DoesNotFit


@st.composite
def authors(draw: Draw) -> Author:
    """A program with every predicate declared, since only declared names belong to an instance."""
    author = Author(draw, ALL.without("deltas"))
    author.base(5)
    author.picks(1, 3)
    author.declare_all()
    return author


def instance(facts: Facts, name: str) -> Facts:
    start = f"{name}."
    return {n.removeprefix(start): rows for n, rows in facts.items() if n.startswith(start) and "'" not in n}


@relaxed(40)
@given(author=authors())
def test_oracle_instances_mean_what_their_statements_mean(author: Author) -> None:
    """A base relation is in a base, a predicate is overridden, and one of two instances is nested."""
    program = accepted(author.text)
    try:
        expected = {n: rows for n, rows in evaluate(program).items() if "'" not in n}
    except (DoesNotFit, ConstraintError, OverflowError):
        return
    base = [line for line in author.lines if line.startswith("e1")]
    rest = [line for line in author.lines if not line.startswith("e1")]
    text = "\n".join(
        [
            ".comp Base {",
            *base,
            ".decl over(x: number) overridable",
            "over(1).",
            "}",
            ".comp All : Base {",
            ".override over",
            "over(2).",
            *rest,
            "}",
            ".comp Outer { .init inner = All }",
            ".init one = All",
            ".init two = Outer",
        ]
    )
    facts = evaluate(dlog.check(text))
    for name in ("one", "two.inner"):
        assert instance(facts, name) == expected | {"over": {(2,)}}


def test_parameters_are_types_and_components() -> None:
    program = dlog.check("""
        .comp Set<T> { .decl has(x: T) }
        .comp Pair<S, T> { .init left = S<T>  .init right = Set<T>  .decl both(x: T)
            both(x) :- left.has(x), right.has(x). }
        .comp Numbers<T> : Set<T> { has(7). }
        .init p = Pair<Numbers, number>
        p.right.has(7). p.right.has(8).
    """)
    assert evaluate(program)["p.both"] == {(7,)}
    assert str(program.predicates["p.both"].columns[0].type) == "int"


def test_names_are_looked_up_in_the_instance_then_around_it_then_in_the_program() -> None:
    facts = evaluate(
        dlog.check("""
        .decl a(x: number)  .decl b(x: number)  .decl c(x: number)
        a(1). b(1). c(1).
        .comp Outer {
            .decl a(x: number)  .decl b(x: number)
            a(2). b(2).
            .comp Inner { .decl a(x: number)  .decl out(x: number)
                a(3).  out(x) :- a(x).  out(x + 10) :- b(x).  out(x + 100) :- c(x). }
            .init inner = Inner
        }
        .init o = Outer
    """)
    )
    assert facts["o.inner.out"] == {(3,), (12,), (101,)}
    assert (facts["a"], facts["o.a"]) == ({(1,)}, {(2,)})


def test_rules_for_what_is_around() -> None:
    """A rule in a component may derive a predicate of the program."""
    facts = evaluate(
        dlog.check(
            ".decl all(x: number) .comp C<T> { .decl own(x: T) all(x) :- own(x). } "
            ".init a = C<number>\n.init b = C<number>\na.own(1). b.own(2)."
        )
    )
    assert facts["all"] == {(1,), (2,)}


def test_directives_name_the_instance(tmp_path: Path) -> None:
    from dlog.engine.run import run_program

    text = ".comp C { .decl p(x: number) .input p\n .decl q(x: number) q(x + 1) :- p(x). .output q\n }\n"
    (tmp_path / "c.dl").write_text(text + ".init a = C\n.init b = C\n")
    (tmp_path / "a.p.facts").write_text("1\n")
    (tmp_path / "b.p.facts").write_text("5\n")
    run_program(tmp_path / "c.dl", tmp_path, tmp_path)
    assert [(tmp_path / f"{n}.q.csv").read_text() for n in "ab"] == ["2\n", "6\n"]


COMPONENTS = (
    ".comp A<T> : B<T>, C { .decl p(x: T) p(1). .comp D {\n.init e = C }\n.override q // why\n}\nr(2)."
)


def test_format() -> None:
    """Parsing what is printed gives the same, also if a component is one statement."""
    tree = parse(COMPONENTS)
    text = format_program(tree)
    assert parse(text) == tree
    assert format_program(parse(text)) == text
    assert "// why" in text
    whole = expand_includes(tree)
    assert parse("\n".join(format_program(dlog.language.ast.Program((s,))) for s in whole.statements)) == tree


def test_a_component_is_typed_as_one_statement() -> None:
    lines = ["p(1).", ".comp A {", " q(2).", " .comp B { r(3). }", "}", ".init a = A", "p(4)."]
    texts = [" ".join(piece.text.split()) for piece in pieces(lines, "<prompt>")]
    assert texts == ["p(1).", ".comp A { q(2). .comp B { r(3). } }", ".init a = A", "p(4)."]


def test_a_live_database_makes_instances_later(tmp_path: Path) -> None:
    source = ".comp C<T> { .decl p(x: T) p(x) :- q(x). .decl q(x: T) q(1). }\n.init a = C<number>\n"
    (tmp_path / "c.dl").write_text(source)
    db = dlog.Database(tmp_path / "db", program=tmp_path / "c.dl")
    assert db["a.p"].rows() == [(1,)]
    db.execute("+a.q(2).")
    db.execute(".init b = C<number>\nb.q(7).")
    assert (db["a.p"].rows(), db["b.p"].rows()) == ([(1,), (2,)], [(1,), (7,)])
    db.close()
    again = dlog.Database(tmp_path / "db")
    assert (again["a.p"].rows(), again["b.p"].rows()) == ([(1,), (2,)], [(1,), (7,)])
    again.execute("-a.q(1). a.q(9).")
    assert again["a.p"].rows() == [(2,), (9,)]
    again.check()
    again.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".init a = X", "unknown component X"),
        (".comp X<T> { .decl p(x: T) }\n.init a = X", "component X takes 1 parameter, but 0 are given"),
        (".comp X { .init a = X }\n.init a = X", "component X contains an instance of itself"),
        (
            ".comp X { .decl p(x: number) }\n.comp Y { }\n.init a = X\n.init a = Y",
            "a is an instance of two components",
        ),
        (".comp X { .override p\n}\n.init a = X", "no base of X declares p"),
    ],
)
def test_errors(text: str, message: str) -> None:
    assert messages(text) == [message]
