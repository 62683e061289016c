"""Owns the positions of facts and their literals: a block stores only an offset for each, to stay cheap."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dlog.ir.rules import Const, FactBlock, FactDelta
from dlog.language.fact_text import STRING, literal_places
from dlog.language.source import Span

# Up to the period that ends it: periods also occur in strings, numbers and qualified names.
_FACT = re.compile(rf"(?:{STRING}|\w\.\w|[^\".])*", re.DOTALL)


def fact_span(block: FactBlock, row: int) -> Span:
    """The text of a fact.  O(its length)."""
    assert block.span is not None
    source, start = block.span.source, block.offsets[row]
    found = _FACT.match(source.text, start)
    end = start + len(found.group().rstrip()) if found else start
    return Span(source, start, max(end, start + 1))


def literal_span(block: FactBlock, row: int, index: int) -> Span:
    """The text of one argument of a fact.  O(length of the fact)."""
    return literal_spans(block, row)[index]


def literal_spans(block: FactBlock, row: int) -> list[Span]:
    """The text of each argument of a fact.  O(length of the fact)."""
    return _argument_spans(fact_span(block, row), len(block.rows[row]))


def delta_literals(delta: FactDelta) -> Iterator[Const]:
    """The literals of a delta, each with its place."""
    assert delta.span is not None
    for (kind, value), span in zip(delta.row, _argument_spans(delta.span, len(delta.row)), strict=True):
        yield Const(kind, value, None, span)


def _argument_spans(fact: Span, arity: int) -> list[Span]:
    """The text of each argument of a fact or delta over literals; all of it if that cannot be determined."""
    places = literal_places(fact.text())
    if len(places) != arity:
        return [fact] * arity
    return [Span(fact.source, fact.start + start, fact.start + end) for start, end in places]
