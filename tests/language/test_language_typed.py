"""Text as it is typed: where statements end, what is a command, and the places of the pieces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.errors import SourceError
from dlog.language.parse import parse
from dlog.language.typed import Typed, is_complete, pieces

COMPLETE = [
    "p(1).",
    "p(1). // more",
    'p("a.").',
    "p(1.5).",
    "a.b(1).",
    ".decl p(x: number)",
    ".input p",
    "p(x) <- q(x). r(1).",
    'p("open',  # a string ends on its line: the parser reports it
    "",
    "// nothing",
]
OPEN = [
    "p(1)",
    "p(x) <-",
    "p(1), // not the end.",
    "p(1 /* . */",
    "/* a comment.",
    'p("a.")',
    ".decl p(x: number,",
    "p(1.5",
    "p(x) <- q(x). r(1)",
    "?- p(x)",
]


@pytest.mark.parametrize("text", COMPLETE)
def test_complete(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize("text", OPEN)
def test_open(text: str) -> None:
    assert not is_complete(text)


def test_pieces_of_a_session() -> None:
    typed = Typed("<prompt>")
    lines = [
        "",
        "// note",
        "p(1). p(2).",
        " begin // now",
        "q(x) <-",
        "  p(x).",
        ".print p",
        "commit",
        "rest(",
    ]
    found = [piece for line in lines for piece in typed.feed(line)]
    assert [(p.kind, p.text, p.line) for p in found] == [
        ("statements", "p(1). p(2).", 3),
        ("word", "begin", 4),
        ("statements", "q(x) <-\n  p(x).", 5),
        ("command", ".print p", 7),
        ("word", "commit", 8),
    ]
    assert found[3].command() == ("print", "p")
    assert typed.is_open and [(p.text, p.line) for p in typed.finish()] == [("rest(", 9)]
    assert not typed.is_open


def test_errors_of_a_piece_have_its_position() -> None:
    text = "p(1).\n\n  p(2).  p(3,\n    ;).\n"
    last = list(pieces(text.splitlines(), "f.tx"))[-1]
    with pytest.raises(SourceError) as caught:
        last.parse()
    assert (caught.value.file, caught.value.line, caught.value.column) == ("f.tx", 3, 13)
    good = list(pieces(text.splitlines(), "f.tx"))[1].parse()[0]
    assert (good.span.line, good.span.column) == (3, 3)


STATEMENTS = st.sampled_from(
    [
        "p(1).",
        '+p("a.b"), -q(2).',
        "q(x) <- p(x), /* . */ x > 1.5.",
        "?- p(x).",
        "p(x) ->\n int(x).",
        "^f[1] =\n2.",
    ]
)
BLANKS = st.sampled_from([" ", "\n", "\n\n", "  // note.\n", " /* a\n. */ "])


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.lists(st.tuples(STATEMENTS, BLANKS), max_size=6))
def test_oracle_pieces_are_the_statements_of_the_whole(parts: list[tuple[str, str]]) -> None:
    """However statements are laid out, pieces are what the parser makes of the whole, at the same places."""
    text = "".join(statement + blank for statement, blank in parts)
    apart = [s for piece in pieces(text.split("\n"), "f") for s in piece.parse()]
    whole = [(type(s), s.span.line, s.span.column) for s in parse(text, "f").statements]
    split = [(type(s), s.span.line, s.span.column) for s in apart]
    assert len(list(pieces(text.split("\n"), "f"))) == len(parts)
    assert set(whole) <= set(split)  # adjacent facts of one predicate are one node of the whole
