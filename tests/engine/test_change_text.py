"""Texts of a few changes take a short path: it reads what the parser reads, or leaves the text to the
parser.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dlog
from dlog.engine.transaction import Transaction
from dlog.language.change_text import read_changes
from dlog.language.parse import expand_includes, parse

PROGRAM = """
    e(x, y) -> int(x), int(y).  named(x, s) -> int(x), string(s).  f[x] = y -> int(x), int(y).
    heavy(x, w) -> int(x), float(w).  two(x, z) <- e(x, y), e(y, z).
"""
LITERALS = st.one_of(
    st.integers(-3, 12).map(str),
    st.sampled_from(
        ['"a"', '"b c"', '""', '"é, ("', '"x\\n"', "1.5", "x", "007", "- 1", str(2**63), str(-(2**63))]
    ),
)
SPACES = st.sampled_from(["", "", " ", "  ", "\n", " // why\n"])


@st.composite
def items(draw: st.DrawFn) -> str:
    op = draw(st.sampled_from(["+", "-", "^", "", "+ "]))
    if draw(st.integers(0, 3)) == 0:
        return f"{op}f[{draw(st.integers(0, 5))}] = {draw(LITERALS)}"
    name = draw(st.sampled_from(["e", "e", "e", "named", "heavy", "two", "unknown", "f"]))
    return f"{op}{name}({', '.join(draw(st.lists(LITERALS, min_size=1, max_size=3)))})"


@st.composite
def texts(draw: st.DrawFn) -> str:
    parts = draw(st.lists(items(), min_size=1, max_size=4))
    ends = [draw(st.sampled_from([",", ".", "."])) for _ in parts[1:]] + [
        draw(st.sampled_from([".", ".", ","]))
    ]
    return "".join(draw(SPACES) + part + draw(SPACES) + end for part, end in zip(parts, ends, strict=True))


def said(transaction: Transaction) -> list[tuple[str, str, list[list[int]]]]:
    return [(op, name, np.asarray(codes).tolist()) for op, name, codes in transaction.changes]


@pytest.fixture(scope="module")
def database() -> dlog.Database:
    return dlog.Database(source=PROGRAM)


@settings(max_examples=400)
@given(text=texts())
def test_oracle_the_parser(database: dlog.Database, text: str) -> None:
    quick = Transaction(database)
    if not quick.take_changes(text):
        return
    asked = Transaction(database)
    asked.add_statements(expand_includes(parse(text)).statements)
    assert said(quick) == said(asked)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("+e(1, 2).", [("+", "e", [[1, 2]])]),
        ("e(1, 2).  e(-3, 0).", [("+", "e", [[1, 2], [-3, 0]])]),
        ("+e(1, 2), +e(2, 3), -e(1, 2).\n", [("+", "e", [[1, 2], [2, 3]]), ("-", "e", [[1, 2]])]),
        ("^f[1] = 2, ^f[1] = 3.", [("^", "f", [[1, 2]]), ("^", "f", [[1, 3]])]),
    ],
)
def test_plain_changes_take_the_short_way(
    database: dlog.Database, text: str, changes: list[tuple[str, str, list[list[int]]]]
) -> None:
    transaction = Transaction(database)
    assert transaction.take_changes(text) and said(transaction) == changes


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "e(1, 2)",
        "e(1, 2), e(2, 3).",
        "+e(1, 2), e(2, 3).",
        "e(1, 2). +e(2, 3).",
        "+e(1, 2).5",
        "?- e(1, 2).",
    ]
    + ["e(x, 1) <- e(1, x).", "+e(1, 2) // no\n.", "+f[1] = 2.5.", '+named(1, "a\\"b").', "+e(1,).", "+e()."],
)
def test_all_else_is_for_the_parser(text: str) -> None:
    assert read_changes(text) is None


def test_a_mistake_has_its_place(database: dlog.Database) -> None:
    for text in ("+e(1).", '+e(1, "a").', f"+e(1, {2**63}).", "^e(1, 2).", "+unknown(1)."):
        with pytest.raises(dlog.DlogError, match=r"<string>:1:\d+: "):
            database.execute(text)
