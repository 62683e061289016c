"""Tokens that depend on their position: the rules where the two syntaxes of the language meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import Diagnostics, DlogError
from dlog.language import ast
from dlog.language.ast import Binary, Call, Comparison, Constant, InlineAggregate, Unary, Variable
from dlog.language.lexer import tokenize
from dlog.language.parse import parse
from dlog.language.source import Source


def kinds(text: str) -> list[str]:
    diagnostics = Diagnostics()
    tokens = tokenize(Source("text", text), diagnostics)
    assert not diagnostics.errors
    return [" ".join(token.type for token in statement) for statement in tokens.statements]


def statement(text: str) -> ast.Node:
    (found,) = parse(text).statements
    return found


def body(text: str) -> ast.Node:
    """The body of a rule with this body."""
    rule = statement(f"head(x) <- {text}.")
    assert isinstance(rule, ast.Rule) and rule.body is not None
    return rule.body


def term(text: str) -> ast.Node:
    comparison = body(f"x = {text}")
    assert isinstance(comparison, Comparison)
    return comparison.right


x, y = Variable("x"), Variable("y")


def integer(value: int) -> Constant:
    return Constant("int", value)


# Arrows


def test_arrow_between_head_and_body_only() -> None:
    assert body("x<-1") == Comparison("<", x, integer(-1))
    assert kinds("p(x)<-x<-1.") == ["NAME LPAR NAME RPAR ARROW NAME CMP MINUS INT END"]
    assert kinds("p(x):-x<-1.") == kinds("p(x)<-x<-1.")


def test_no_arrow_in_queries_constraints_and_brackets() -> None:
    assert statement("?- x<-1.") == ast.Query(Comparison("<", x, integer(-1)))
    assert statement("p(x), x<-1 -> q(x).") == ast.Constraint(
        ast.Conjunction((Call("p", (x,)), Comparison("<", x, integer(-1)))), Call("q", (x,))
    )
    assert body("!(x<-1)") == ast.Negation(Comparison("<", x, integer(-1)))
    assert kinds("(x<-1) <- p(x).") == ["LPAR NAME CMP MINUS INT RPAR ARROW NAME LPAR NAME RPAR END"]


def test_query_at_the_start_only() -> None:
    assert isinstance(statement("?- p(x)."), ast.Query)
    assert body("p(?x)") == Call("p", (Variable("?x"),))
    with pytest.raises(DlogError):
        parse("p(x) <- ?- q(x).")
    with pytest.raises(DlogError, match="unexpected character `\\?`"):
        parse("p(?) <- q(x).")


# Names and points


def test_qualified_names_and_ends() -> None:
    assert statement("a.b(x) <- c.d.e(x).") == ast.Rule((Call("a.b", (x,)),), Call("c.d.e", (x,)))
    assert len(parse("p(x) <- q(x).r(x) <- s(x).").statements) == 2
    assert len(parse("p(x) <- x = y. q(1).").statements) == 2
    assert body("x = y.z") == Comparison("=", x, Variable("y.z"))


def test_floats_have_digits_on_both_sides() -> None:
    assert term("1.5") == Constant("float", "1.5")
    assert term("1.5e-3") == Constant("float", "1.5e-3")
    assert [type(s) for s in parse("p(x) <- x = 1.q(2).").statements] == [ast.Rule, ast.Facts]
    assert statement("f[1] = 1.5.") == ast.Facts("f", ((("int", 1), ("float", "1.5")),), True)
    assert statement("f[1] = 2.") == ast.Facts("f", ((("int", 1), ("int", 2)),), True)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12", "int", 12),
        ("0x1F", "int", 31),
        ("0b101", "int", 5),
        ("12u", "unsigned", 12),
        ("0xFFu", "unsigned", 255),
        ("1.2.3.4", "int", 0x01020304),
        ("-7", "int", -7),
        ("- 7", "int", -7),
        ("-(7)", "int", -7),
        ("-1.50", "float", "-1.50"),
        ("- -1.5", "float", "1.5"),
        ("true", "bool", True),
        ("18446744073709551615u", "unsigned", 2**64 - 1),
        ('"a\\tb"', "string", "a\tb"),
        ('"\\n\\t\\r\\"\\\\\\\'\\0\\a\\b\\f\\v"', "string", "\n\t\r\"\\'\0\a\b\f\v"),
        ('"// /* # é"', "string", "// /* # é"),
    ],
)
def test_literals(text: str, kind: str, value: object) -> None:
    assert term(text) == Constant(kind, value)  # type: ignore[arg-type]


def test_files_and_lines_are_literals() -> None:
    rule = parse("\np(__FILE__, __LINE__, x) <- q(x).", "f.dl").statements[0]
    assert isinstance(rule, ast.Rule)
    assert rule.heads[0].args[:2] == (Constant("string", "f.dl"), integer(2))  # type: ignore[attr-defined]


# Directives


def test_directives_begin_a_line() -> None:
    assert kinds("p(1).\n.input q\nr(2).") == ["FACTS", "D_IO NAME", "FACTS"]
    assert kinds("p(1). .input q") == ["FACTS", "D_IO NAME"]
    assert kinds(".decl a(x: T) .decl b(x: T)") == ["D_DECL NAME LPAR NAME COLON NAME RPAR"] * 2
    assert kinds("/* c */ .input q") == ["D_IO NAME"]
    assert kinds(".input a p(x) <- q(x).") == [
        "D_IO NAME",
        "NAME LPAR NAME RPAR ARROW NAME LPAR NAME RPAR END",
    ]


def test_directives_continue_over_lines() -> None:
    assert kinds(".input a,\n  b(x=1,\n y=2)\nc(1).") == [
        "D_IO NAME COMMA NAME LPAR NAME EQ INT COMMA NAME EQ INT RPAR",
        "FACTS",
    ]
    assert kinds(".type A = B\n | C\n| D") == ["D_TYPE NAME EQ NAME BAR NAME BAR NAME"]
    assert kinds(".decl p\n  (x: T)\n  // why\n  inline\n(x) <- p(x).")[0] == (
        "D_DECL NAME LPAR NAME COLON NAME RPAR QUALIFIER"
    )
    assert kinds(".input p\n(q(x)) <- r(x).")[0] == "D_IO NAME"


def test_words_in_directives_are_names() -> None:
    (declaration,) = parse(".decl stat(min: number, count: number, nil: number, as: number)").statements
    assert [p.name for p in declaration.keys] == ["min", "count", "nil", "as"]  # type: ignore[attr-defined]
    assert kinds(".input band, lor, count") == ["D_IO NAME COMMA NAME COMMA NAME"]
    assert kinds(".decl inline(x: T) inline") == ["D_DECL NAME LPAR NAME COLON NAME RPAR QUALIFIER"]
    assert kinds(".decl p(x: T)\ninline(x) <- p(x).")[0] == "D_DECL NAME LPAR NAME COLON NAME RPAR"


# Operators


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2^3^2", Binary("^", integer(2), Binary("^", integer(3), integer(2)))),
        ("-2^2", Unary("-", Binary("^", integer(2), integer(2)))),
        ("(-2)^2", Binary("^", integer(-2), integer(2))),
        ("2^-1", Binary("^", integer(2), integer(-1))),
        ("2^-x^y", Binary("^", integer(2), Unary("-", Binary("^", x, y)))),
        ("1-2-3", Binary("-", Binary("-", integer(1), integer(2)), integer(3))),
        ("1-2*3", Binary("-", integer(1), Binary("*", integer(2), integer(3)))),
        ("1*-x+y", Binary("+", Binary("*", integer(1), Unary("-", x)), y)),
        ("x bor y band 1", Binary("bor", x, Binary("band", y, integer(1)))),
        ("x lor y land x lxor y", Binary("lor", x, Binary("lxor", Binary("land", y, x), y))),
        ("x band 1 bshl 2 + y", Binary("band", x, Binary("bshl", integer(1), Binary("+", integer(2), y)))),
        ("bnot x * y", Binary("*", Unary("bnot", x), y)),
        ("lnot bnot x", Unary("lnot", Unary("bnot", x))),
        ("band", Variable("band")),
        ("band band band", Binary("band", Variable("band"), Variable("band"))),
    ],
)  # fmt: skip
def test_operators_bind(text: str, expected: ast.Node) -> None:
    assert term(text) == expected


# Deltas


def test_deltas_at_the_start_of_items() -> None:
    found = statement("+p(1), -q(2 - 1), ^f[-1] = +1 ^ 2.".replace("+1", "1"))
    assert found == ast.DeltaStatement(
        (
            ast.Delta("+", Call("p", (integer(1),))),
            ast.Delta("-", Call("q", (Binary("-", integer(2), integer(1)),))),
            ast.Delta(
                "^",
                Comparison("=", ast.Application("f", (integer(-1),)), Binary("^", integer(1), integer(2))),
            ),
        )
    )


# Aggregates and words that are keywords only in their places


def test_aggregates_are_names_without_a_colon() -> None:
    assert body("count(x)") == Call("count", (x,))
    assert term("min(x, y)") == Call("min", (x, y))
    assert term("max + min - 1") == Binary("-", Binary("+", Variable("max"), Variable("min")), integer(1))
    assert statement("sum(x) <- p(x).") == ast.Rule((Call("sum", (x,)),), Call("p", (x,)))


p_of_x = Call("p", (x,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count : { p(x) }", InlineAggregate("count", None, p_of_x)),
        ("count : p(x)", InlineAggregate("count", None, p_of_x)),
        ("sum (x+1) : { p(x) }", InlineAggregate("sum", Binary("+", x, integer(1)), p_of_x)),
        ("sum(x) : { p(x) }", InlineAggregate("sum", x, p_of_x)),
        ("sum -x : { p(x) }", InlineAggregate("sum", Unary("-", x), p_of_x)),
        ("sum bnot x : { p(x) }", InlineAggregate("sum", Unary("bnot", x), p_of_x)),
        ("sum band : { p(x) }", InlineAggregate("sum", Variable("band"), p_of_x)),
        ("sum min(x, y) : { p(x) }", InlineAggregate("sum", Call("min", (x, y)), p_of_x)),
        ("sum x + count : { p(x) }", InlineAggregate("sum", Binary("+", x, Variable("count")), p_of_x)),
        ("min + count : { p(x) }", Binary("+", Variable("min"), InlineAggregate("count", None, p_of_x))),
        ("min - sum x : { p(x) }", Binary("-", Variable("min"), InlineAggregate("sum", x, p_of_x))),
        (
            "sum count : { p(x) } : { p(x) }",
            InlineAggregate("sum", InlineAggregate("count", None, p_of_x), p_of_x),
        ),
        (
            "max x : { p(x), y = min x : { p(x) } }",
            InlineAggregate(
                "max", x, ast.Conjunction((p_of_x, Comparison("=", y, InlineAggregate("min", x, p_of_x))))
            ),
        ),
        (
            "sum x : f[x] = 1",
            InlineAggregate("sum", x, Comparison("=", ast.Application("f", (x,)), integer(1))),
        ),
    ],
)
def test_inline_aggregates(text: str, expected: ast.Node) -> None:
    assert term(text) == expected


def test_other_words_in_their_places() -> None:
    assert body("band(x)") == Call("band", (x,))
    assert body("as[x] = y") == Comparison("=", ast.Application("as", (x,)), y)
    assert body("nil(x)") == Call("nil", (x,))
    assert term("as(x, number)") == ast.Cast(x, ast.TypeRef("int"))
    assert term("choice-domain") == Binary("-", Variable("choice"), Variable("domain"))
    assert body("agg(x)") == Call("agg", (x,))


def test_types_with_sizes() -> None:
    assert statement("p(x) -> decimal[10,2](x).") == ast.Declaration(
        "p", (ast.Parameter("x", ast.TypeRef("decimal", (10, 2))),)
    )
    assert body("decimal[10, 2](x)") == Call("decimal[10,2]", (x,))


# The fast path of facts agrees with the grammar

CONSTANTS = st.one_of(
    st.integers(-(10**18), 10**18).map(str),
    st.sampled_from(["0", "-0", "007", "1.5", "-1.50", "3u", "0x1F", "1.2.3.4", "true", "false", "1.5e3"]),
    st.sampled_from(['"a"', '""', '"a, b"', '"a)"', '"true"', '"1.5"', '"\\n"', '"é\\""', '"//"']),
)
SPACES = st.sampled_from(["", " ", "\n", " \t "])


@given(
    st.sampled_from(["p", "a.b", "?q", "count", "nil", "trues"]),
    st.lists(CONSTANTS, max_size=4),
    st.none() | CONSTANTS,
    st.lists(SPACES, min_size=8, max_size=8),
)
def test_differential_facts(name: str, args: list[str], value: str | None, spaces: list[str]) -> None:
    inner = spaces[0] + f"{spaces[1]},{spaces[2]}".join(args) + spaces[3]
    equals = f"{spaces[4]}={spaces[5]}"
    left = f"{name}({inner})" if value is None else f"{name}[{inner}]{equals}{value}"
    end = spaces[6].replace("\n", " ") + "."
    # A comment inside excludes a fact from the fast path.
    slow = left.replace("(", "(/**/", 1) if value is None else left.replace("[", "[/**/", 1)
    fast_fact, slow_fact = statement(left + end), statement(slow + end)
    assert isinstance(slow_fact, ast.Facts)
    assert fast_fact == slow_fact
    assert fast_fact.offsets == slow_fact.offsets == (0,)  # type: ignore[attr-defined]


def test_runs_of_facts_are_one_node() -> None:
    program = parse("p(1).\np(2). // two\np(/**/3).\np(x) <- q(x).\np(4).\nq(1).\nf[1] = 2. f[3] = 4.")
    assert [type(s).__name__ for s in program.statements] == ["Facts", "Rule", "Facts", "Facts", "Facts"]
    first = program.statements[0]
    assert isinstance(first, ast.Facts)
    assert first.rows == ((("int", 1),), (("int", 2),), (("int", 3),))
    assert first.offsets == (0, 6, 19)
    assert (first.span.start, first.span.end) == (0, 28)
