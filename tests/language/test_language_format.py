"""Formatting: parsing the output gives the same program, and formatting it again the same text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program_trees import programs

from dlog.errors import Diagnostics
from dlog.language import ast
from dlog.language.format import WIDTH, format_node, format_program
from dlog.language.lexer import tokenize
from dlog.language.parse import comments_of, expand_includes, parse, parse_file
from dlog.language.preprocess import has_directives
from dlog.language.source import Source

FOLDER = Path(__file__).parents[2] / "programs"
PROGRAMS = sorted(path for path in FOLDER.rglob("*.dl") if path.parent.name != "errors")
slow = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None, max_examples=60
)


def formatted(text: str) -> str:
    """The canonical text, after checking what must hold of it."""
    program = parse(text)
    out = format_program(program)
    again = parse(out)
    assert again == program
    assert format_program(again) == out
    kept = Counter(comment.rstrip() for _, comment in comments_of(Source("out", out)))
    assert kept == Counter(comment.rstrip() for _, comment in comments_of(Source("in", text)))
    return out


# Round trips


@slow
@given(programs)
def test_round_trip_of_random_programs(program: ast.Program) -> None:
    text = format_program(program)
    again = parse(text)
    assert again == program
    assert format_program(again) == text


@slow
@given(programs, st.data())
def test_round_trip_with_comments_anywhere(program: ast.Program, data: st.DataObject) -> None:
    text = format_program(program)
    places = _token_ends(text)
    chosen = data.draw(st.lists(st.sampled_from([(0, False), *places]), max_size=6, unique=True))
    for number, (place, whole_line) in enumerate(sorted(chosen, reverse=True)):
        kinds = ["/* {} */", "/* a\n {} */ ", " @[hint {}] "] + (
            ["// {}\n", "\n\n// {}\n\n\n"] if whole_line else []
        )
        comment = data.draw(st.sampled_from(kinds)).format(number)
        text = text[:place] + comment + text[place:]
    assert parse(text) == program
    formatted(text)


def _token_ends(text: str) -> list[tuple[int, bool]]:
    """Where comments can be put, and whether one that ends a line can; a directive ends with its line."""
    statements = tokenize(Source("text", text), Diagnostics()).statements
    return [(token.end_pos or 0, not s[0].type.startswith("D_")) for s in statements for token in s]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_round_trip_of_shipped_programs(path: Path) -> None:
    program = parse_file(path)
    text = format_program(program)
    assert parse(text, str(path)) == program
    assert format_program(parse(text, str(path))) == text
    if not has_directives(path.read_text(encoding="utf-8")):
        formatted(path.read_text(encoding="utf-8"))


def test_shipped_programs_are_found() -> None:
    assert len(PROGRAMS) > 10


# The canonical style: text, canonical text

STYLE = [
    ("p(x):-q(x,y),r(y).", "p(x) <- q(x, y), r(y)."),
    (".decl p(x:number,y:symbol)", "p(x, y) -> int(x), string(y)."),
    (".decl p(x:Person)", ".decl p(x: Person)"),
    (".decl p(x:number) inline", ".decl p(x: int) inline"),
    (".decl p(x:number,x:number)", ".decl p(x: int, x: int)"),
    (".decl p(true:number)", ".decl p(true: int)"),
    (".decl p()", "p() -> ."),
    (".decl a,b(x:number)", "a(x) -> int(x).\nb(x) -> int(x)."),
    (".decl a(x:number) input", "a(x) -> int(x).\n.input a"),
    (".decl p(x:decimal(10,2))", "p(x) -> decimal[10, 2](x)."),
    ("p(x,y)->int(x).", "p(x, y) -> int(x)."),
    ("f[x]=y->int(x),y>0.", "f[x] = y -> int(x).\nf[x] = y -> y > 0."),
    (".type A<:number", ".type A <: int"),
    (".number_type A", ".type A <: int"),
    (".type A", ".type A <: string"),
    (".type A=B|C", ".type A = B | C"),
    (".input a,b,c", ".input a, b, c"),
    (".input a(x=1),b(x=1)", ".input a, b(x=1)"),
    (".input a(x=1),b", ".input a(x=1)\n.input b"),
    (".input a\n.input b", ".input a\n.input b"),
    ('.output a(IO="file",n=1,delimiter="\\t")', '.output a(IO=file, n=1, delimiter="\\t")'),
    ('.include "a\\"b"', '.include "a\\"b"'),
    ('.pragma "a""b"', '.pragma "a" "b"'),
    ("p(x):-q(x).\n.plan 0:(2,1),1:(1)", "p(x) <- q(x).\n.plan 0:(2, 1), 1:(1)"),
    ('p("a\\"b\\\\\\n\\t",-1,2.50,true,3u,0xFF).', 'p("a\\"b\\\\\\n\\t", -1, 2.50, true, 3u, 0xFF).'),
    ('f["a"]=1.', 'f["a"] = 1.'),
    ("+p(1),-q(2),^f[1]=2.", "+p(1), -q(2), ^f[1] = 2."),
    ("?-p(x),x<-1.", "?- p(x), x < -1."),
    ("p(x)<-!q(x),!(a(x);b(x)),!(x=1),!f[x]=1.", "p(x) <- !q(x), !(a(x) ; b(x)), !(x = 1), !f[x] = 1."),
    ("p(x)<-(a(x);b(x)),c(x).", "p(x) <- (a(x) ; b(x)), c(x)."),
    ("p(x)<-(a(x),b(x));c(x).", "p(x) <- a(x), b(x) ; c(x)."),
    ("p(x)<-((a(x),(b(x)))).", "p(x) <- a(x), b(x)."),
    ("p(x)<-x=(-2)^2.", "p(x) <- x = (-2) ^ 2."),
    ("p(x)<-x=-2^2.", "p(x) <- x = -(2 ^ 2)."),
    ("p(x)<-x=2^3^2.", "p(x) <- x = 2 ^ 3 ^ 2."),
    ("p(x)<-x=(2^3)^2.", "p(x) <- x = (2 ^ 3) ^ 2."),
    ("p(x)<-x=1-(2-3)-4.", "p(x) <- x = 1 - (2 - 3) - 4."),
    ("p(x)<-x=1-(2*3).", "p(x) <- x = 1 - 2 * 3."),
    ("p(x)<-x=(1-2)*3.", "p(x) <- x = (1 - 2) * 3."),
    ("p(x)<-x= - -y.", "p(x) <- x = -(-y)."),
    ("p(x)<-x=bnot y band 3.", "p(x) <- x = bnot y band 3."),
    ("p(n)<-n=count:{q(_)}.", "p(n) <- n = count : { q(_) }."),
    ("p(n)<-n=count:q(_).", "p(n) <- n = count : { q(_) }."),
    ("p(n)<-n=sum x+1:{q(x)}*2.", "p(n) <- n = sum x + 1 : { q(x) } * 2."),
    ("p(n)<-n=sum(min(x,y)):{q(x,y)}.", "p(n) <- n = sum (min(x, y)) : { q(x, y) }."),
    ("p(n)<-n=(max(n,1))-count:{q(_)}.", "p(n) <- n = (max(n, 1)) - count : { q(_) }."),
    ("t[x]=s,n[x]=c<-agg<<s=sum(v),c=count()>>p(x,v).",
     "t[x] = s, n[x] = c <- agg<<s = sum(v), c = count()>> p(x, v)."),
    ("(-x)<1->q(x).", "(-x < 1) -> q(x)."),
    ("p(as(x,number)).", "p(as(x, int))."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "canonical"), STYLE)
def test_canonical_style(text: str, canonical: str) -> None:
    assert formatted(text) == canonical + "\n"


def test_the_empty_program() -> None:
    assert formatted("") == ""
    assert formatted(" \n\n ") == ""


# Comments and blank lines

COMMENTS = [
    ("between statements", "a(1).\n// b\nb(x) <- a(x).\n", "a(1).\n// b\nb(x) <- a(x).\n"),
    ("at the end of a line", "a(1). // one\na(2).\n", "a(1).  // one\na(2).\n"),
    ("behind a directive", ".input a  // one\n.input b\n", ".input a  // one\n.input b\n"),
    ("inside a statement", "a(x) <- // why\n b(x).\n", "// why\na(x) <- b(x).\n"),
    ("inside a fact", "a(1).\na(/* two */ 2).\na(3).\n", "a(1).\n/* two */\na(2).\na(3).\n"),
    ("between facts of a run", "a(1). // one\n// two\na(2).\n", "a(1).  // one\n// two\na(2).\n"),
    ("before a statement on its line", "/* one */ a(1).", "/* one */\na(1).\n"),
    ("two behind one another", "a(1). /* one */ // two\n", "a(1).  /* one */  // two\n"),
    ("in a list of directives", ".input a, // one\n b\n", "// one\n.input a, b\n"),
    ("of two statements on a line", "a(1). /* x */ b(2). // y", "a(1).  /* x */\nb(2).  // y\n"),
    ("over several lines", "a(1). /* x\n y */ a(2).", "a(1).  /* x\n y */\na(2).\n"),
    ("at the end", "a(1).\n\n// end", "a(1).\n\n// end\n"),
    ("alone", "// one\n\n\n\n// two   \n", "// one\n\n// two\n"),
    ("behind two in one", "a(x) -> int(x), b(x). // c\n", "a(x) -> int(x).\na(x) -> b(x).  // c\n"),
    ("inside two in one", "a(x) -> /* c */ int(x), b(x).\n", "/* c */\na(x) -> int(x).\na(x) -> b(x).\n"),
    ("annotations", "@[hint]\na(1).\n", "@[hint]\na(1).\n"),
    ("blank lines kept", "a(1).\n\n\n\nb(2).\nc(3).\n \t\nc(4).", "a(1).\n\nb(2).\nc(3).\n\nc(4).\n"),
    ("none at the start or the end", "\n\na(1).\n\n\n", "a(1).\n"),
    ("none from inside a statement", "a(x) <-\n\n // why\n\n b(x).\nc(1).", "// why\na(x) <- b(x).\nc(1).\n"),
    ("a script's first line", "#!/usr/bin/env dlog\na(1).", "#!/usr/bin/env dlog\na(1).\n"),
    ("a hash inside a comment", "/*\n#define A\n*/\na(1).", "/*\n#define A\n*/\na(1).\n"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [c[1:] for c in COMMENTS], ids=[c[0] for c in COMMENTS])
def test_comments_and_blank_lines(text: str, expected: str) -> None:
    assert formatted(text) == expected


# Long statements


def test_long_rules_have_one_literal_a_line() -> None:
    literals = [f"some_predicate_{i}(x, y)" for i in range(6)]
    text = formatted(f"head(x) <- {', '.join(literals)}.")
    assert text == "head(x) <-\n    " + ",\n    ".join(literals) + ".\n"


def test_long_disjunctions_have_one_alternative_a_line() -> None:
    short = [f"first_{i}(x, y), second_{i}(x, y)" for i in range(4)]
    assert formatted(f"head(x) <- {';'.join(short)}.") == "head(x) <-\n    " + "\n  ; ".join(short) + ".\n"
    long = [f"quite_a_long_predicate_{i}(x, y)" for i in range(4)]
    text = formatted(f"head(x) <- {', '.join(long)} ; b(x).")
    assert text == "head(x) <-\n    " + ",\n    ".join(long) + "\n  ; b(x).\n"


@pytest.mark.parametrize(
    "text",
    [
        ".input " + ", ".join(f"predicate_{i}" for i in range(30)) + "(delimiter=\",\")",
        f"p({', '.join(f'x{i}' for i in range(12))}) -> {', '.join(f'string(x{i})' for i in range(12))}.",
        ".decl p(" + ", ".join(f"x{i}: SomeType" for i in range(12)) + ") inline",
        "?- " + ", ".join(f"predicate_{i}(x)" for i in range(12)) + ".",
        ", ".join(f"+predicate_{i}(1)" for i in range(12)) + ".",
        ", ".join(f"predicate_{i}(x)" for i in range(12)) + " <- p(x).",
        "p(x) -> " + ", ".join(f"predicate_{i}(x)" for i in range(12)) + ".",
        "t[x] = s <- agg<<s = sum(v)>> " + ", ".join(f"predicate_{i}(x)" for i in range(12)) + ".",
    ],
)  # fmt: skip
def test_long_statements_are_broken(text: str) -> None:
    lines = formatted(text).splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= WIDTH


def test_one_line_of_any_node() -> None:
    program = parse("p(x) -> q(x), x < 3. ?- p(x), !q(x). p(1). p(2).")
    assert [format_node(s) for s in program.statements] == [
        "p(x) -> q(x), x < 3.",
        "?- p(x), !q(x).",
        "p(1). p(2).",
    ]
    rule = parse("p(x) <- q(x ^ 2, _).").statements[0]
    assert isinstance(rule, ast.Rule) and rule.body is not None
    assert format_node(rule.body) == "q(x ^ 2, _)"
    assert format_node(rule.body.args[0]) == "x ^ 2"  # type: ignore[attr-defined]


def test_included_files_print_after_one_another(tmp_path: Path) -> None:
    (tmp_path / "part.dl").write_text("// part\nb(1).  // one\n")
    main = tmp_path / "main.dl"
    main.write_text('// main\na(1).\n.include "part.dl"\n// end\nc(1).\n')
    assert format_program(parse_file(main)) == '// main\na(1).\n.include "part.dl"\n// end\nc(1).\n'
    whole = format_program(expand_includes(parse_file(main)))
    assert whole == "// main\na(1).\n// part\nb(1).  // one\n// end\nc(1).\n"


def test_preprocessed_programs_print_their_expansion() -> None:
    program = parse("#define N 3\np(N).\n")
    assert format_program(program) == "p(3).\n"


@pytest.mark.parametrize(
    "text",
    [
        'p(0x1F, -0b101, 10.0.0.1, "0x10", 0xFFu, 12).\np(1, 2, 3, "a", 5u, 0x0).\n',
        "f[0xA] = 0b11.\nf[1] = 2.\n",
        "q(x) <- p(x), x = 255.255.255.0 band 0xFF, x < -0x2, x ^ (-0x2) = 0b1.\n",
        "+p(0x2, 10.0.0.1).\n",
    ],
)
def test_numbers_keep_their_spelling(text: str) -> None:
    assert format_program(parse(text)) == text


def test_numbers_of_a_macro_are_spelled_as_in_it() -> None:
    assert format_program(parse("#define MASK 0xFF\np(MASK).\n")) == "p(0xFF).\n"


COMPONENTS = """\
// Outside.
.comp A<T> {  // opens
    // Inside.
    .decl p(x: T)
    p(1).
    p(2).  // a fact

    .comp B {
        /* Two
lines. */
        q(x) <- p(x), x > 1.
        // At the end.
    }
    .init b = B
}
.init a = A<number>
.output a.p, a.b.q
"""


def test_the_contents_of_components_are_indented() -> None:
    flat = "\n".join(line.strip() for line in COMPONENTS.split("\n"))
    assert format_program(parse(flat)) == format_program(parse(COMPONENTS)) == COMPONENTS
    assert parse(COMPONENTS) == parse(flat)


def test_long_statements_of_components_are_indented_as_a_whole() -> None:
    atoms = [f"p{'p' * 20}(x{i}, x{i + 1})" for i in range(5)]
    inside = f"q(x0) <- {', '.join(atoms)}."
    (start, *lines, end) = format_program(parse(f".comp A {{ {inside} }}")).splitlines()
    assert (start, end) == (".comp A {", "}")
    assert lines == ["    " + line for line in format_program(parse(inside)).splitlines()] and len(lines) == 6
