"""Owns predicates as relations of M3, and which rules are aggregation rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dlog.errors import UnsupportedError
from dlog.ir import rules as ir
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef

VIEW_TREES, LEVELS = "view trees", "levels of maps"  # what messages call them

Describe = Callable[[str], ast.Source]


def source_of(
    predicate: ir.Predicate,
    kind: str = ast.STREAM,
    file: str | None = None,
    options: tuple[tuple[str, str], ...] = (),
    decimals: str = "double",
    reader: str = VIEW_TREES,
) -> ast.Source:
    """A predicate as a relation of M3.  Raises if M3 has no type for a column."""
    columns = []
    for column in predicate.columns:
        type_ = decimals if column.type.is_decimal else column.type.m3
        if type_ is None:
            message = f"{predicate.name}: {reader} have no columns of type {column.type}"
            raise UnsupportedError(message, span=predicate.span)
        columns.append(ast.Column(column.name, TypeRef(type_)))
    return ast.Source(kind, source_name(predicate.name), tuple(columns), file=file, options=options)


def source_name(predicate: str) -> str:
    """The name of a predicate as a relation of M3."""
    return re.sub(r"[^A-Za-z0-9_]", "_", predicate)


def aggregation_rules(program: ir.Program, head: str | None = None) -> Sequence[ir.Rule]:
    """The rules with aggregates, or those of one head."""
    return [r for r in program.rules if r.aggregates and head in (None, *(h.predicate for h in r.heads))]
