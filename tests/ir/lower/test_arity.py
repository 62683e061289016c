"""A predicate has a bounded number of arguments; a fact with many is read or refused, with its place."""

from __future__ import annotations

import pytest

import dlog
from dlog.ir.lower.names import MAX_ARITY


def fact(n: int) -> str:
    return f"p({', '.join(map(str, range(n)))})."


def test_most_arguments_are_read() -> None:
    assert dlog.check(fact(MAX_ARITY)).predicates["p"].arity == MAX_ARITY


@pytest.mark.parametrize("text", [fact(10_000), fact(MAX_ARITY + 1).replace(").", ") <- q(1). q(1).")])
def test_more_arguments_are_refused(text: str) -> None:
    with pytest.raises(dlog.SourceError, match="at most 1,000") as raised:
        dlog.check(text)
    assert raised.value.span is not None
    assert "split it" in str(raised.value.render())
