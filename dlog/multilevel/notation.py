"""Owns expressions as text: how they are read in tests and examples, and how explain shows them."""

from __future__ import annotations

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.m3.syntax.parse import parse
from dlog.m3.syntax.print import print_expression
from dlog.multilevel.names import plain


def read(source: str) -> Node:
    """An expression of the dialect dbtoaster.

    >>> read("R(a) * 2").factors[1].value
    2
    """
    program = parse(f"DECLARE QUERY q := {source};", dialect=ast.DBTOASTER)
    return plain(program.queries[0].expression)


def text(node: Node) -> str:
    """In one line.

    >>> text(read("AggSum([a],R(a,b)*{b<1})"))
    'AggSum([a], R(a, b) * {b < 1})'
    """
    return print_expression(node)
