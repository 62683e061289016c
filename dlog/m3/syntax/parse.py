"""Owns text -> syntax tree of M3, in either dialect.  Knows nothing of types or scopes.

Statements are parsed one by one, so an error in one leaves the others alone and all are reported together.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from pathlib import Path

from lark import Lark, Token
from lark.exceptions import UnexpectedToken

from dlog.errors import Diagnostics
from dlog.language.parse import MAX_DEPTH, NoLexer, deeper_than
from dlog.language.source import Source, Span, read_source, text_source
from dlog.language.tables import load_tables
from dlog.m3.syntax import ast, complaints
from dlog.m3.syntax.ast import A5
from dlog.m3.syntax.build import Builder
from dlog.m3.syntax.dialect_support import check_dialect_support
from dlog.m3.syntax.dialects import detect, require_dialect
from dlog.m3.syntax.lexer import tokenize


def parse(text: str, name: str = "<string>", dialect: str | None = None) -> ast.Program:
    """The syntax tree of a program; without a dialect, it is detected from the text.

    >>> parse("DECLARE MAP Q(long)[][] := 0; ON BATCH UPDATE OF R { Q[][] += (DELTA R)(x); }").dialect
    'dbtoaster'
    """
    return parse_source(text_source(text, name), dialect)


def parse_file(path: str | Path, dialect: str | None = None) -> ast.Program:
    return parse_source(read_source(path), dialect)


def parse_source(source: Source, dialect: str | None = None) -> ast.Program:
    """Raises all syntax errors together."""
    if dialect is not None:
        require_dialect(dialect)
    diagnostics = Diagnostics()
    tokens = tokenize(source, dialect, diagnostics)
    if dialect is None:
        dialect = detect(tokens)
        if dialect == A5:  # whose names may have a minus
            diagnostics = Diagnostics()
            tokens = tokenize(source, dialect, diagnostics)
    chunks = [chunk for chunk in _chunks(tokens) if not any(t.type == "BAD" for t in chunk)]
    statements = [_parse_statement(source, dialect, chunk, diagnostics) for chunk in chunks]
    found = [statement for statement in statements if statement is not None]
    if dialect != A5:
        _check_order(found, diagnostics)
    program = _program(source, dialect, found)
    check_dialect_support(program, diagnostics)
    diagnostics.raise_if_any()
    return program


def _chunks(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement: one begins with each CREATE, DECLARE or ON."""
    chunk: list[Token] = []
    for token in tokens:
        if chunk and token.type in ("CREATE", "DECLARE", "ON"):
            yield chunk
            chunk = []
        chunk.append(token)
    if chunk:
        yield chunk


_LOCK = threading.Lock()


@functools.cache
def _grammar() -> tuple[Lark, Builder]:
    builder = Builder()
    return load_tables("dlog.m3.syntax", lexer=NoLexer, transformer=builder), builder


def _parse_statement(
    source: Source, dialect: str, tokens: list[Token], diagnostics: Diagnostics
) -> ast.Node | None:
    lark, builder = _grammar()
    with _LOCK:
        builder.source, builder.dialect, builder.diagnostics = source, dialect, diagnostics
        parser = lark.parse_interactive()
        index = 0
        try:
            for index, token in enumerate(tokens):  # noqa: B007
                parser.feed_token(token)
            index = len(tokens)
            node = parser.feed_eof(tokens[-1])
        except UnexpectedToken:
            situation = complaints.Situation(source, tokens, index, frozenset(parser.accepts()))
            diagnostics.add(complaints.syntax_error(situation))
            return None
        except RecursionError:
            _report_depth(Span(source, tokens[0].start_pos or 0, tokens[-1].end_pos or 0), diagnostics)
            return None
    deep = deeper_than(MAX_DEPTH, [node]) if len(tokens) > MAX_DEPTH else None
    if deep is not None:
        _report_depth(deep.span, diagnostics)
        return None
    return node


def _report_depth(span: Span, diagnostics: Diagnostics) -> None:
    diagnostics.error(f"nested more than {MAX_DEPTH} levels deep", span, help="use several maps")


# The order of declarations: strict in dbtoaster.
_ORDER: tuple[tuple[type[ast.Node], str], ...] = (
    (ast.TypeDefinition, "types"),
    (ast.Source, "sources"),
    (ast.MapDeclaration, "maps"),
    (ast.Query, "queries"),
    (ast.Trigger, "triggers"),
)


def _check_order(statements: list[ast.Node], diagnostics: Diagnostics) -> None:
    last, last_span = 0, None
    for statement in statements:
        rank = next(i for i, (kind, _) in enumerate(_ORDER) if isinstance(statement, kind))
        if rank < last and last_span is not None:
            message = f"{_ORDER[rank][1]} come before {_ORDER[last][1]}, which begin at line {last_span.line}"
            help = "dbtoaster reads types, sources, maps, queries and triggers in this order"
            diagnostics.error(message, statement.span, help)
        elif rank > last or last_span is None:
            last, last_span = rank, statement.span


def _program(source: Source, dialect: str, statements: list[ast.Node]) -> ast.Program:
    return ast.Program(
        dialect,
        tuple(s for s in statements if isinstance(s, ast.TypeDefinition)),
        tuple(s for s in statements if isinstance(s, ast.Source)),
        tuple(s for s in statements if isinstance(s, ast.MapDeclaration)),
        tuple(s for s in statements if isinstance(s, ast.Query)),
        tuple(s for s in statements if isinstance(s, ast.Trigger)),
        span=Span(source, 0, len(source.text)),
    )
