"""Whatever is in a SQL file, it is read or it is an error with its place: never anything else.

Also: the types that sums have, by promotion.
"""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import DlogError
from dlog.views.m3.program import m3_text
from dlog.views.orders.orders import find_order
from dlog.views.sql.files import parse_sql
from dlog.views.tree.build import view_tree
from tests.examples import relaxed
from tests.test_errors import ROOT
from tests.views.sql.test_sql_meaning import CASES, declarations

FILES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "programs" / "sql").rglob("*.sql"))]
TEXTS = [text for text in FILES if len(text) < 2000] + [declarations() + text for text, _ in CASES.values()]
WORDS = sorted({word for text in TEXTS for word in re.findall(r"\w+|[^\w\s]|'[^']*'", text)})


def damaged(seed: int) -> str:
    """A text in which some words are left out, doubled, exchanged or replaced by others."""
    random = Random(seed)
    words = re.findall(r"\s+|\w+|'[^']*'|[^\w\s]", random.choice(TEXTS))
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(words))
        how = random.randrange(5)
        if how == 0:
            words[at] = ""
        elif how == 1:
            words[at] += " " + words[at]
        elif how == 2:
            other = random.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif how == 3:
            words[at] = " " + random.choice(WORDS) + " "
        else:
            words[at] = words[at][: random.randrange(len(words[at]) + 1)]
    return "".join(words)


def check_damaged(seed: int) -> None:
    text = damaged(seed)
    try:
        parse_sql(text, "q.sql")
    except DlogError as error:
        assert error.span is not None and error.render().startswith("q.sql:")


@given(st.integers(0, 10**9))
@relaxed(400)
def test_damaged_texts_are_read_or_errors(seed: int) -> None:
    check_damaged(seed)


@pytest.mark.fuzz
@given(st.integers(0, 10**9))
@relaxed(50_000, random=True)
def test_damaged_texts_are_read_or_errors_long(seed: int) -> None:
    check_damaged(seed)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("b", "long"), ("s * i", "long"), ("i * l", "long"), ("f * i", "float"), ("f * d", "double"),
        ("i + 0.5", "double"), ("i / 2", "double"), ("CASE WHEN i > 1 THEN i ELSE d END", "double"),
        ("ABS(f)", "float"), ("SQRT(i)", "double"), ("[cast_int: int](d)", "long"),
        ("[g: Ring](i) * s", "Ring"),
        ("YEAR(day)", "long"), ("GREATEST(s, d)", "double"),
    ],
)  # fmt: skip
def test_sums_have_the_promoted_type(value: str, type_: str) -> None:
    """The count of a row is a long, so that sums of smaller integers are."""
    query = parse_sql(f"""
        CREATE TYPE Ring FROM FILE 'ring.hpp';
        CREATE STREAM R(b byte, s smallint, i integer, l bigint, f real, d decimal(10, 2), day date);
        SELECT SUM({value}) FROM R;""")
    text = m3_text(query, view_tree(query, find_order(query)))
    assert re.search(r"DECLARE QUERY sum :=\s+AGG_VIEW_\w+\((\w+)\)", text).group(1) == type_  # type: ignore[union-attr]
