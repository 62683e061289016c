"""Error messages: text, position and help for the common mistakes, each once, in order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

import dlog
from dlog.errors import DlogError, DlogErrors
from dlog.language import ast
from dlog.language.format import format_program
from dlog.language.lexer import MAX_ERRORS
from dlog.language.parse import MAX_DEPTH, parse


def errors_of(text: str) -> list[DlogError]:
    with pytest.raises(DlogError) as caught:
        parse(text, "f.dl")
    return caught.value.errors if isinstance(caught.value, DlogErrors) else [caught.value]


EXPONENT_HELP = "a float has digits on both sides of its point, as in 1.0e5"
NUMBER_HELP = "numbers are 12, 0x1F, 0b101, 12u or 1.5; names do not start with a digit"
AGGREGATE_HELP = "aggregates are written `count : { ... }` and `sum x : { ... }`"
AGG_HELP = "write it directly after `<-` or `:-`"
SECOND_HELP = "does the statement before it end with `.`?"
RANGE_HELP = "integers have 64 bits: from -9223372036854775808 to 9223372036854775807"
ESCAPE_HELP = r"the escapes are \n \t \r \" \\ \' \0 \a \b \f \v"

# A text, then the one error it gives: what the caret is under, the message, the help.  «» mark the caret.
MISTAKES = [
    # The end of statements
    ("p(x) <- q(x)«»", "missing `.` at the end of the statement", None),
    ("p(x) <- q(x)«\n»r(x) <- s(x).", "missing `.` at the end of the statement", None),
    ("p(x) <- q(x)«\n»\n.output p", "missing `.` at the end of the statement", None),
    ("f[1] = 2.5«\n»q(1).", "missing `.` at the end of the statement", None),
    ("p(1)«\n»// c\n?- p(x).", "missing `.` at the end of the statement", None),
    ("+p(1)«\n»+p(2).", "missing `.` at the end of the statement", None),
    ("+f[1] = 2«\n»-f[2] = 3.", "missing `.` at the end of the statement", None),
    ("p(x) «<-»", "the statement is not finished", "expected a term or `.`"),
    ("p(x) <- q(x)«,»", "the statement is not finished", "expected a term"),
    ("p(1)«;»", "the statement is not finished", "statements end with `.`"),
    ("«.»", "unexpected `.`", "expected a fact, a rule, a constraint, a query or a directive"),
    # Brackets
    ("p«(»x <- q(x).", "`(` is not closed", "is `)` missing before `<-`?"),
    ("p(x) <- q«[»x, r(x).", "`[` is not closed", "is `]` missing before `.`?"),
    ("p(x) <- «(»q(x), r(x).", "`(` is not closed", "is `)` missing before `.`?"),
    ("p«(»x", "`(` is not closed", "write `)` at the end"),
    ("p(n) <- n = count : «{»q(x).", "`{` is not closed", "is `}` missing before `.`?"),
    ("p(x)«)» <- q(x).", "`)` closes nothing", None),
    ("p(x«]» <- q(x).", "`]` does not close `(`", "`(` was opened at 1:2"),
    # Signs
    ("p(x) «:» q(x).", "unexpected `:`", "did you mean `:-`?"),
    ("p(x) «:=» q(x).", "unexpected `:=`", "did you mean `=` or `:-`?"),
    ("p(x) <- q(x), x «==» 3.", "unexpected `==`", "did you mean `=`?"),
    ("p(x) <- q(x), x «<>» 3.", "unexpected `<>`", "did you mean `!=`?"),
    ("p(x) <- q(x), x «=<» 3.", "unexpected `=<`", "did you mean `<=`?"),
    ("p(x) «=>» q(x).", "unexpected `=>`", "did you mean `->` or `>=`?"),
    ("p(x) <- q(x) «|» r(x).", "unexpected `|`", "did you mean `;`?"),
    ("p(x) <- x «!» = 3.", "unexpected `!`", "did you mean `!=`?"),
    ("p(x) <- q(x) «&»& r(x).", "unexpected character `&`", "`and` is written `,`"),
    ("p(x) <- «\\»+ q(x).", "unexpected character `\\`", "negation is written `!`, and `not equal` is `!=`"),
    ("p(x) «←» q(x).", "unexpected character `←`", "write `<-`"),
    ("«:-» p(x).", "nothing comes before `:-`", "a query is written `?- p(x).`"),
    ("«->» p(x).", "nothing comes before `->`", None),
    ("p(x) :- q(x) «:-» r(x).", "a second `:-` in one statement", SECOND_HELP),
    # Commas and what belongs between things
    ("p(x) <- q(x)«,» .", "nothing follows this `,`", "remove it, or write what comes between it and `.`"),
    ("p(x«,») <- q(x).", "nothing follows this `,`", "remove it, or write what comes between it and `)`"),
    ("p(x) <- a(x)«,»,b().", "nothing follows this `,`", "remove it, or write what comes between it and `,`"),
    ("p(x) <- «,» q(x).", "nothing comes before this `,`", "remove it"),
    ("p(1 «2»).", "missing `,` before `2`", None),
    ("p(x) <- q(x) «r»(x).", "missing `,` or `.` before `r`", None),
    ("p(x) <- q(x) «!»r(x).", "missing `,` or `.` before `!`", None),
    ("f[x] «y» <- p(x).", "missing `=` before `y`", None),
    ("f[] = n <- agg<<n «count»()>> q(x).", "missing `=` before `count`", None),
    ('.input p(filename «"a"»)', 'missing `=` before `"a"`', None),
    ("+p(1), «q»(2).", "missing sign before `q`", "each fact of a list has its own `+`, `-` or `^`"),
    ("+p(1) «+»p(2).", "missing `,` or `.` before `+`", None),
    ("p(x) <- q(x)\n  «r»(x).", "missing `,` or `.` before `r`", None),
    ("t[x] = s <- agg<<s = sum(y) «p»(x, y).", "missing `>>` before `p`", None),
    ("t[x] = s <- agg<s «=» sum(y)> p(x, y).", "unexpected `=`", "did you mean agg<<...>>?"),
    ("p(x) <- 1 < x «<» 3.", "comparisons cannot be chained", "write two, separated by `,`"),
    ("«?» - p(x).", "unexpected character `?`", "a query begins with `?-`"),
    # Words
    ("p(x) <- q(x), «not» r(x).", "unexpected `not`", "negation is written `!`"),
    ("p(x) <- q(x) «AND» r(x).", "unexpected `AND`", "`AND` is written `,`"),
    ("p(x) <- x = y «mod» 2.", "unexpected `mod`", "`mod` is written `%`"),
    # Aggregates
    ("p(n) <- q(n), «agg<<»n=count()>> r(x).", "agg<<...>> is out of place", AGG_HELP),
    ("p(n) <- n = count «{» q(x) }.", "unexpected `{`", AGGREGATE_HELP),
    ("p(n) <- n = min «x» { q(x) }.", "unexpected `x`", AGGREGATE_HELP),
    ("p(n) <- n = «count x : { q(x) }».", "count takes no argument", "write count : { ... }"),
    ("p(n) <- n = «sum : { q(x) }».", "sum needs an argument", "write sum x : { ... }"),
    ("f[] = n <- agg<<n = count()«>» q(x).", "unexpected `>`", "expected `>>` or `,`"),
    # Directives
    ("«.inptu» edge", "unknown directive .inptu", "did you mean .input?"),
    ("«.whatever» edge(x, y)", "unknown directive .whatever", None),
    (".output p«.»", "a directive does not end with `.`", "remove the `.`"),
    (".output p «q»", "unexpected `q` after the directive", None),
    (".decl p(x: number) «inlin»\np(1).", "unexpected `inlin` after the directive", "did you mean inline?"),
    (".decl p «x»", "the arguments of p are missing", "write `.decl p(x: number)`"),
    (".decl p(x: number) «inlin»", "unexpected `inlin` after the directive", "did you mean inline?"),
    (".decl p(«x», y: number)", "`x` has no type", "write `x: number`"),
    (".decl p(«number» x)", "`number` has no type", "write `x: number`"),
    (".decl p «:» number", "the arguments of p are missing", "write `.decl p(x: number)`"),
    (".decl p(x: number«;» y: number)", "unexpected `;`", "expected `)`, `,` or `(`"),
    ("«.input»", "the directive is not finished", "expected a name"),
    (".include «foo.dl»", "unexpected `foo.dl`", "expected a string"),
    # Declarations
    ("p(x) -> int(x), «string(x)».", "x has two types in the declaration of p", None),
    ("«p(1) -> .»", "nothing follows `->`", "`p(x) -> .` declares a predicate over distinct variables"),
    ("p(x) <- «q[1](x)».", "only a type can take both [...] and (...)", None),
    # Comments
    ("«%» a comment\np(1).", "unexpected `%`", "comments begin with //"),
    ("p(1). «%» one\nq(2).", "unexpected `%`", "comments begin with //"),
    ("«--» a comment here\np(1).", "unexpected `--`", "comments begin with //"),
    ("«#» a comment\np(1).", "unexpected character `#`", "comments begin with //"),
    ("p(1).\n«/*» a comment\nq(2", "unterminated comment", "close it with */"),
    ("«@[»a hint\nq(2).", "unterminated annotation", "close it with ]"),
    # Strings
    ('p(«"a).»\nq(1).', "unterminated string", 'close it with "'),
    ('p(«"a),»\n  q(", b).', "unterminated string", 'close it with "'),
    ('p("a«\\q»b").', "bad literal: unknown escape \\q", ESCAPE_HELP),
    ('p(«"a\\»\nb").', "unterminated string", 'close it with "'),
    ("p(«'»a').", "unexpected character `'`", 'strings are written in double quotes: "text"'),
    ("p(«“»a”).", "unexpected character `“`", 'write plain double quotes: "text"'),
    # Numbers
    ("p(«12abc»).", "bad literal 12abc", NUMBER_HELP),
    ("p(«0b12»).", "bad literal 0b12", NUMBER_HELP),
    ("p(«1e5»).", "bad literal 1e5", EXPONENT_HELP),
    ("p(«1.2.3»).", "bad literal 1.2.3", NUMBER_HELP),
    ("f[1] = «1.2.3».", "bad literal 1.2.3", NUMBER_HELP),
    ("p(«1.2.3.400»).", "bad literal 1.2.3.400", "each part of an address is at most 255"),
    ("p(«18446744073709551616»).", "the number is out of range", RANGE_HELP),
    ("p(«.»5).", "a number does not begin with `.`", "write a digit before it, as in 0.5"),
    ("p(5«.»).", "a number does not end with `.`", "write a digit after it, as in 5.0"),
    ("p(x) <- x = 1«..»5.", "unexpected `..`", "write x = range(1, 6)"),
    ("p(x) <- q(x), «if» x > 1.", "unexpected `if`", "write the condition without a word before it"),
    ("p(x) <- x = «.»5.", "a number does not begin with `.`", "write a digit before it, as in 0.5"),
    # Characters
    ("p(«größe») <- q(größe).", "unexpected `größe`", "names have the letters A to Z, digits, _ and ?"),
    ("p(x)«\xa0»<- q(x).", "unexpected character U+00A0", "this is a no-break space; write a plain one"),
    ("p(1).«\0»", "unexpected character U+0000", None),
    ("p(«٣»).", "unexpected character `٣`", None),
    ("p(«?») <- q(x).", "unexpected character `?`", "names may begin with ?, but need a letter: ?x"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "message", "help"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_one_error_for_one_mistake(marked: str, message: str, help: str | None) -> None:
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    (error,) = errors_of(text)
    assert (error.message, error.help) == (message, help)
    assert error.span is not None
    # A caret after a line is one wide.
    assert (error.span.start, error.span.end) == (start, max(end, start + 1))  # type: ignore[attr-defined]
    line = text.count("\n", 0, start) + 1
    assert (error.line, error.column) == (line, start - text.rfind("\n", 0, start))


def test_the_printed_form() -> None:
    (error,) = errors_of("a(1).\n\tp(x) :  q(x, y).\n")
    assert error.render() == (
        "f.dl:2:7: error: unexpected `:`\n\tp(x) :  q(x, y).\n\t     ^\nhelp: did you mean `:-`?"
    )


def test_long_lines_are_shown_in_part() -> None:
    text = "p(x) <- " + "q(x), " * 5_000 + "x == 1, " + "q(x), " * 5_000 + "q(x)."
    shown = errors_of(text)[0].render().splitlines()
    assert [len(line) < 200 for line in shown] == [True] * 4
    assert shown[1][shown[2].index("^") :].startswith("== 1")


def test_several_errors_each_once_in_order() -> None:
    text = "\n".join(
        [
            "p(x) <- q(x), .",  # 1
            "p(1).",
            ".inptu edge",  # 3
            "a(x) <- b(x)",  # 4
            "c(x) <- d(x)",  # 5
            "e(x <- f(x).",  # 6
            "g('a', 'b') <- h(x).",  # 7
            'i(12abc, "\\q", 1e5).',  # 8, three
            ".functor f(x: number): number inlined",  # 9
            "j(@f) <- k(x).",  # 10
            'l("a) <- m(x),',  # 11
            "   n(x) o(x).",
            "p(x) q(x).",  # 13
        ]
    )
    errors = errors_of(text)
    assert [e.line for e in errors] == [1, 3, 4, 5, 6, 7, 8, 8, 8, 9, 10, 11, 13]
    assert [e.column for e in errors if e.line == 8] == [3, 11, 16]
    places = [(e.line, e.column, e.message) for e in errors]
    assert len(set(places)) == len(places)


def test_a_file_full_of_errors_is_not_read_to_its_end() -> None:
    errors = errors_of("p(x) q(x).\n" * 10_000)
    assert len(errors) == MAX_ERRORS + 1
    assert errors[-1].message == "too many errors: stopped reading"
    errors = errors_of("p(0x).\n" * 10_000)
    assert len(errors) == MAX_ERRORS + 1
    assert (errors[-1].line, errors[-1].message) == (MAX_ERRORS, "too many errors: stopped reading")


def test_statements_without_any_end() -> None:
    errors = errors_of("p(x) <- q(x)\n" * 500)
    assert 1 < len(errors) < 20
    assert {e.message for e in errors} == {"missing `.` at the end of the statement"}


# Depth: whatever is nested too deeply is one clean error, and what is not is fine

NESTED = {
    "calls": lambda n: "p(x) <- q(" + "f(" * n + "x" + ")" * n + ").",
    "applications": lambda n: "p(x) <- x = " + "f[" * n + "x" + "]" * n + ".",
    "groups of formulas": lambda n: (
        "p(x) <- " + "(a(x), (b(x) ; " * (n // 2) + "c(x)" + "))" * (n // 2) + "."
    ),
    "negations": lambda n: "p(x) <- " + "!" * n + "q(x).",
    "minuses": lambda n: "p(x) <- x = " + "- " * n + "y.",
    "words": lambda n: "p(x) <- x = " + "bnot " * n + "y.",
    "powers": lambda n: "p(x) <- x = " + "2 ^ " * n + "y.",
    "sums": lambda n: "p(x) <- x = " + "y + " * n + "y.",
    "aggregates": lambda n: "p(x) <- x = " + "count : { y = " * n + "z" + " }" * n + ".",
    "targets": lambda n: "p(x) <- x = " + "sum " * n + "y" + " : { q(y) }" * n + ".",
    "casts": lambda n: "p(x) <- x = " + "as(" * n + "y" + ", int)" * n + ".",
    "functions of min": lambda n: "p(x) <- x = " + "min(" * n + "y" + ", 1)" * n + ".",
}


@pytest.mark.parametrize("shape", NESTED)
def test_depth_is_limited(shape: str) -> None:
    parse(NESTED[shape](MAX_DEPTH // 2 - 4))
    for depth in (MAX_DEPTH + 10, 3_000):
        (error,) = errors_of("a(1).\n" + NESTED[shape](depth) + "\nb(1).")
        assert error.message == f"nested more than {MAX_DEPTH} levels deep"
        assert error.line == 2


@pytest.mark.parametrize("shape", NESTED)
def test_deep_programs_can_be_printed_and_checked(shape: str) -> None:
    """The deepest tree that parses leaves room for whatever walks it, and for callers."""
    program = _deepest(NESTED[shape])

    def work(frames: int) -> None:
        if frames:
            work(frames - 1)
            return
        text = format_program(program)
        assert parse(text) == program
        with contextlib.suppress(DlogError):
            dlog.check(text)

    work(100)


def _deepest(make: Callable[[int], str]) -> ast.Program:
    for depth in range(MAX_DEPTH, 0, -1):
        with contextlib.suppress(DlogError):
            return parse(make(depth))
    raise AssertionError("nothing parses")


def test_parentheses_alone_add_no_depth() -> None:
    assert parse("p(x) <- " + "(" * 4_000 + "q(x)" + ")" * 4_000 + ".") == parse("p(x) <- q(x).")
    assert parse("p(" + "(" * 4_000 + "1" + ")" * 4_000 + ").") == parse("p(1).")


def test_width_is_not_limited() -> None:
    rule = parse("p(x) <- " + ", ".join(f"q{i}(x)" for i in range(4_000)) + ".").statements[0]
    assert len(rule.body.items) == 4_000  # type: ignore[attr-defined]


# Texts that patterns or tables could choke on: each takes linear time

HARD = {
    "blanks in a fact": "p(" + " " * 200_000 + "x).",
    "blanks at the end": "p(1)" + " " * 200_000 + "q",
    "digits": "p(" + "1" * 200_000 + ").",
    "hexadecimal digits": "p(0x" + "f" * 200_000 + ").",
    "addresses": "p(" + "1" * 5_000 + ".1.1.1).",
    "float digits": "p(" + "1" * 100_000 + "." + "1" * 100_000 + "e" + "9" * 100 + ").",
    "open comments": "/*" * 100_000,
    "open comments before a directive": "#define A\n" + "/*" * 100_000,
    "open annotations": "@[" * 50_000,
    "open components": ".comp A\n" * 20_000,
    "comments in a component": ".comp A { " + "/*" * 50_000,
    "quotes": '"' * 100_001,
    "backslashes": '"' + "\\" * 100_001,
    "points": "." * 20_000,
    "question marks": "?" * 100_000,
    "names with points": "a." * 50_000,
    "one line of rules": "p(x) <- q(x). " * 1_000,
    "one line of directives": ".input a " * 5_000,
    "lines of a directive": ".decl a(x: T" + "\n, y: T" * 5_000 + ")",
    "comments behind a directive": ".decl a(x: T)" + "\n// c" * 5_000 + "\ninline",
    "aggregates without colons": "p(x) <- x = " + "min(" * 5_000 + ":.",
    "arrows": "p(x) <- x" + "<-1" * 10_000 + ".",
    "brackets": "([{" * 20_000,
    "closing brackets": ")]}" * 20_000,
    "letters of no alphabet": "é" * 100_000,
    "nothing printable": "\0\1\2" * 50_000,
    "a long name": "p" * 100_000 + "(1).",
    "a long string": 'p("' + "a" * 100_000 + '\\n").',
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", HARD)
def test_hard_texts_are_read_in_linear_time(name: str) -> None:
    try:
        parse(HARD[name], "f.dl")
    except DlogError as error:
        assert len(error.render()) < 100_000
        assert error.span is not None


@pytest.mark.parametrize("text", ["p(\ud800).", "\udcff", 'p("\udfff").'])
def test_halves_of_characters(text: str) -> None:
    (error,) = errors_of("a(1).\n" + text)
    assert "is half of a character" in error.message
    assert error.line == 2
    error.render().encode()
