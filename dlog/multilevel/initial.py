"""Owns the decision about a map's first values (MI 3): what a map contains before any row of a stream.

An entry that is not there counts as 0.  That is right for a map without input variables where each product of
its definition has a row of a stream as a factor: nothing is multiplied by 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.multilevel.binding import NONE, Names, inputs
from dlog.multilevel.decompose import expand
from dlog.multilevel.simplify import everywhere, simplify
from dlog.multilevel.values import ZERO, is_zero


@dataclass(frozen=True)
class Zero:
    """It starts empty."""

    reason: str = "every product has a row of a stream"


@dataclass(frozen=True)
class AtReady:
    """It is computed once, when all tables are loaded."""

    expression: Node
    reason: str = "part of it does not depend on rows of streams"


@dataclass(frozen=True)
class OnRead:
    """A value is computed when it is first read."""

    expression: Node
    reason: str = "its input variables may have any value"


@dataclass(frozen=True)
class Refused:
    reason: str


Initial = Zero | AtReady | OnRead | Refused


def initial(definition: Node, sources: Mapping[str, ast.Source], on_read: bool = False) -> Initial:
    """What a map with this definition contains at first.  `on_read`: maps with input variables are allowed.

    A stream is empty at first, so products with one of its rows are 0, and a lift or Exists over its rows has
    the value of nothing.
    """
    needed = sorted(inputs(definition))
    if needed:
        return _with_inputs(definition, needed, sources, on_read)
    first = simplify(without_streams(definition, sources))
    if is_zero(first):
        return Zero()
    return AtReady(first)


def _with_inputs(
    definition: Node, needed: list[str], sources: Mapping[str, ast.Source], on_read: bool
) -> Initial:
    """Each product that has a row of a stream is 0 at first, but for all inputs at once it is not needed."""
    if all(_has_stream_row(m, sources) for m in expand(definition)):
        return OnRead(definition) if on_read else Refused(_unbound(needed))
    return Refused(f"would need a value for every {' and '.join(needed)}")


def _unbound(needed: list[str]) -> str:
    return f"{' and '.join(needed)} {'is' if len(needed) == 1 else 'are'} bound nowhere"


def _has_stream_row(monomial: tuple[Node, ...], sources: Mapping[str, ast.Source]) -> bool:
    return any(isinstance(f, ast.Relation) and sources[f.name].kind == ast.STREAM for f in monomial)


def without_streams(definition: Node, sources: Mapping[str, ast.Source]) -> Node:
    """The definition when no stream has a row."""

    def empty(node: Node, scope: Names) -> Node:
        is_stream = isinstance(node, ast.Relation) and sources[node.name].kind == ast.STREAM
        return ZERO if is_stream else node

    return everywhere(definition, NONE, empty)
