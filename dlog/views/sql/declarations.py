"""Owns CREATE TYPE, CREATE STREAM and CREATE TABLE of SQL files: statements -> declarations of M3.

The declarations are those of `dlog.m3.syntax.ast`, names unchanged.  Knows nothing of SELECT.
"""

from __future__ import annotations

from dlog.errors import SourceError, place
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.views.sql.tokens import Cursor, Statement

_KINDS = "only CREATE TYPE, CREATE STREAM and CREATE TABLE are supported"
_ORIGIN = "a source is written FROM FILE '...' LINE DELIMITED CSV (delimiter := '|')"


def declaration(
    statement: Statement, types: dict[str, ast.TypeDefinition]
) -> ast.TypeDefinition | ast.Source:
    """REQUIRES: the statement begins with CREATE.  `types` are those declared before it."""
    cursor = Cursor(statement, list(types))
    cursor.expect("CREATE")
    if cursor.accept("TYPE"):
        return _type(cursor, types)
    if cursor.accept("STREAM"):
        return _source(cursor, ast.STREAM)
    if cursor.accept("TABLE"):
        return _source(cursor, ast.TABLE)
    raise cursor.error("TYPE, STREAM or TABLE", _KINDS)


def _type(cursor: Cursor, types: dict[str, ast.TypeDefinition]) -> ast.TypeDefinition:
    span = cursor.span()
    name = cursor.name("the name of a type").text
    first = types.get(name)
    if first is not None and first.span is not None:
        raise SourceError(f"type {name} is already created in {place(first.span, span)}", span=span)
    cursor.expect("FROM", "FILE", help="a type is written CREATE TYPE name FROM FILE '...'")
    file = cursor.text("the file of the type")
    schema: list[str] = []
    if cursor.accept("WITH"):
        cursor.expect("PARAMETER", "SCHEMA", "(")
        schema.append(cursor.name("static or dynamic_sum").text)
        while cursor.accept(","):
            schema.append(cursor.name("static or dynamic_sum").text)
        cursor.expect(")")
    cursor.end()
    return ast.TypeDefinition(name, file, tuple(schema), span=span)


def _source(cursor: Cursor, kind: str) -> ast.Source:
    span = cursor.span()
    name = cursor.name(f"the name of a {kind}").text
    cursor.expect("(", help=f"columns with their types: CREATE {kind.upper()} {name}(a int, b double)")
    columns = [_column(cursor)]
    while cursor.accept(","):
        columns.append(_column(cursor))
    cursor.expect(")")
    _check_distinct(columns)
    found = _origin(cursor) if cursor.accept("FROM") else None
    cursor.end(help=_ORIGIN if found is None else None)
    file, options = found or (None, ())
    return ast.Source(kind, name, tuple(columns), file, options=options, span=span)


_CONSTRAINTS = ("NOT", "NULL", "PRIMARY", "UNIQUE", "DEFAULT", "REFERENCES", "CHECK")


def _column(cursor: Cursor) -> ast.Column:
    span = cursor.span()
    name = cursor.name("a column").text
    type_ = cursor.type()
    if any(cursor.at(word) for word in _CONSTRAINTS):
        message = f"a column has a name and a type; `{cursor.span().text()}` is not supported"
        raise SourceError(message, span=cursor.span(), help="leave the constraint out: it is not checked")
    return ast.Column(name, type_, span=span)


def _check_distinct(columns: list[ast.Column]) -> None:
    seen: dict[str, Span | None] = {}
    for column in columns:
        if column.name.lower() in seen:
            raise SourceError(f"column {column.name} occurs twice", span=column.span)
        seen[column.name.lower()] = column.span


def _origin(cursor: Cursor) -> tuple[str, tuple[tuple[str, str], ...]]:
    if cursor.at("SOCKET"):
        raise SourceError("only files are supported, not sockets", span=cursor.span(), help=_ORIGIN)
    cursor.expect("FILE", help=_ORIGIN)
    file = cursor.text("the path of a file")
    cursor.expect("LINE", "DELIMITED", help=_ORIGIN)
    if not cursor.at("CSV"):
        raise SourceError(
            f"unknown format `{cursor.span().text()}`",
            span=cursor.span(),
            help="only CSV is supported: " + _ORIGIN,
        )
    cursor.take()
    options: list[tuple[str, str]] = []
    if cursor.accept("("):
        while not cursor.accept(")"):
            if options:
                cursor.expect(",")
            option = cursor.name("an option").text.lower()
            cursor.expect(":=", help="an option is written delimiter := '|'")
            options.append((option, cursor.text("the value of the option")))
    return file, tuple(options)
