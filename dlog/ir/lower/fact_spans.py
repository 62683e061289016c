"""Owns where facts and their literals stand: a block keeps only an offset for each, to stay cheap."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dlog.ir.rules import Const, FactBlock, FactDelta
from dlog.language.fact_text import STRING, literal_places
from dlog.language.source import Span

# Up to the point that ends it: points also stand in strings, numbers and qualified names.
_FACT = re.compile(rf"(?:{STRING}|\w\.\w|[^\".])*", re.DOTALL)


def fact_span(block: FactBlock, row: int) -> Span:
    """The text of a fact.  O(its length)."""
    assert block.span is not None
    source, start = block.span.source, block.offsets[row]
    found = _FACT.match(source.text, start)
    end = start + len(found.group().rstrip()) if found else start
    return Span(source, start, max(end, start + 1))


def literal_span(block: FactBlock, row: int, index: int) -> Span:
    """The text of one argument of a fact."""
    return _argument_span(fact_span(block, row), index, len(block.rows[row]))


def delta_literals(delta: FactDelta) -> Iterator[Const]:
    """The literals of a delta, each with its place."""
    assert delta.span is not None
    for index, (kind, value) in enumerate(delta.row):
        yield Const(kind, value, None, _argument_span(delta.span, index, len(delta.row)))


def _argument_span(fact: Span, index: int, arity: int) -> Span:
    """The text of one argument of a fact or delta over literals; all of it where that cannot be told."""
    places = literal_places(fact.text())
    if len(places) != arity:
        return fact
    start, end = places[index]
    return Span(fact.source, fact.start + start, fact.start + end)
