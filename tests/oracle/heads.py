"""Owns what several heads mean: each is a rule of its own, with the aggregates that it uses itself.

Works on the syntax, before anything is lowered: a program that an oracle checks has one head in each rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from dlog.language import ast
from dlog.language.parse import parse
from dlog.language.printing import format_node


@lru_cache(maxsize=256)
def one_head_each(text: str) -> str:
    """
    >>> print(one_head_each("p(x), q[x] = s, n() <- agg<<s = sum(y), t = min(y)>> r(x, y).  r(1, 2)."))
    p(x) <- r(x, y).
    q[x] = s <- agg<<s = sum(y)>> r(x, y).
    n() <- r(x, y).
    r(1, 2).
    """
    return "\n".join(part for statement in parse(text).statements for part in _parts(statement))


def _parts(statement: ast.Node) -> Iterator[str]:
    if not isinstance(statement, ast.Rule) or len(statement.heads) == 1 or statement.body is None:
        yield _ended(statement.span.text())
        return
    for head in statement.heads:
        names = {node.name for node in head.walk() if isinstance(node, ast.Variable)}
        used = tuple(a for a in statement.aggregations if a.result in names)
        yield _ended(format_node(replace(statement, heads=(head,), aggregations=used)))


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith(".") or text.startswith(".") else f"{text}."
