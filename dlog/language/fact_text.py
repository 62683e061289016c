"""Owns the positions of literals in the text of one fact: rows of facts store only where each fact begins."""

from __future__ import annotations

import re

STRING = r'"(?:[^"\\]|\\.)*"'
_CONSTANT = re.compile(rf"{STRING}|(?:-\s*)?\w+(?:\.\w+)*(?:[eE][+-]\d+)?", re.DOTALL)
_OPENING = re.compile(r"[(\[]")


def literal_places(fact: str) -> list[tuple[int, int]]:
    """Where the literals of `R(1, "a")` or `F[1] = 2` begin and end.

    >>> [fact[a:b] for fact in ['price["a, b"] = - 3.5'] for a, b in literal_places(fact)]
    ['"a, b"', '- 3.5']
    """
    opening = _OPENING.search(fact)
    return [match.span() for match in _CONSTANT.finditer(fact, opening.end() if opening else 0)]
