"""Owns text -> syntax tree.  Knows nothing of names, types or meaning.

Statements are parsed one by one by the LALR grammar, so an error in one leaves the others alone and a run
reports every statement that is wrong.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from dlog.errors import Diagnostics, DlogError
from dlog.language import ast, complaints
from dlog.language.blocks import grouped
from dlog.language.build import Builder
from dlog.language.lexer import MAX_ERRORS, TOO_MANY_ERRORS, tokenize
from dlog.language.preprocess import preprocess
from dlog.language.source import Source, Span, read_source, text_source
from dlog.language.surroundings import current
from dlog.language.tables import load_tables

# Terms and formulas nest at most this deep.  Code that walks a tree may recurse: at 200 levels four calls a
# level stay within Python's limit of 1,000, and people write fewer than ten.
MAX_DEPTH = 200
_MAX_RESUMES = 10  # each missing `.` in a row costs reading the rest of that statement again


def parse(text: str, name: str = "<string>") -> ast.Program:
    """The syntax tree of a program text.

    >>> parse("reach(x, y) <- edge(x, y).").statements[0].heads[0].name
    'reach'
    """
    return parse_source(text_source(text, name))


def parse_file(path: str | Path) -> ast.Program:
    return parse_source(read_source(path))


def parse_source(source: Source) -> ast.Program:
    """Preprocesses if the text has preprocessor lines, then parses.  Raises all syntax errors together."""
    diagnostics = Diagnostics()
    program, _ = parse_readable(source, diagnostics)
    diagnostics.raise_if_any()
    return program


def parse_readable(source: Source, diagnostics: Diagnostics) -> tuple[ast.Program, frozenset[str] | None]:
    """The statements that can be read, and the names that the others seem to mention.

    None for these if the text could not even be split into tokens: then nothing is known about its content.
    """
    source = preprocess(source)
    tokens = tokenize(source, diagnostics)
    if len(diagnostics.errors) > MAX_ERRORS:  # the tokens alone were too many
        diagnostics.raise_if_any()
    cut = not diagnostics.errors
    statements: list[ast.Node] = []
    unread: set[str] = set()
    broken_end = -1
    for chunk in tokens.statements:
        before = len(diagnostics.errors)
        if before >= MAX_ERRORS:
            span = Span(source, chunk[0].start_pos or 0, chunk[-1].end_pos or 0)
            diagnostics.error(TOO_MANY_ERRORS, span)
            diagnostics.raise_if_any()
        # What follows a broken statement without a space, as after `x > .`, is part of it: no second error.
        piece = chunk[0].start_pos == broken_end
        found = _parse_chunk(source, chunk, Diagnostics() if piece else diagnostics)
        if piece or len(diagnostics.errors) > before:
            unread |= _named(chunk)
            broken_end = chunk[-1].end_pos or 0
        else:
            statements += found
    program = ast.Program(tuple(_merge_facts(statements)), span=Span(source, 0, len(source.text)))
    return program, frozenset(unread) if cut else None


def _named(tokens: list[Token]) -> set[str]:
    """Names that a statement may be about: those before a bracket; every name of a directive."""
    every = tokens[0].type.startswith("D_")
    following = [*tokens[1:], None]
    return {
        str(token)
        for token, after in zip(tokens, following, strict=True)
        if token.type == "NAME" and (every or (after is not None and after.type in ("LPAR", "LSQB")))
    }


def load_file(path: str | Path) -> ast.Program:
    """A program with everything it includes."""
    return expand_includes(parse_file(path))


def expand_includes(program: ast.Program) -> ast.Program:
    """Replaces each `.include` by the statements of that file, each file once, relative to its includer.

    The statements of a component become one.
    """
    diagnostics = Diagnostics()
    seen = {_resolved(Path(program.span.source.name))} if program.span else set()
    statements = list(_included(program, seen, diagnostics))
    diagnostics.raise_if_any()
    return ast.Program(tuple(grouped(_merge_facts(statements))), span=program.span)


def _included(program: ast.Program, seen: set[Path | None], diagnostics: Diagnostics) -> Iterator[ast.Node]:
    for statement in program.statements:
        if not isinstance(statement, ast.Include):
            yield statement
            continue
        path = _found(statement)
        if path is None:
            diagnostics.error(f"cannot find the included file {statement.path}", statement.span)
        elif path not in seen:
            seen.add(path)
            yield from _included(_parse_included(statement, diagnostics), seen, diagnostics)


def _places(include: ast.Include) -> list[Path]:
    """Where an included file may be: relative to its includer, or in the folders that the command gives."""
    return [folder / include.path for folder in (Path(include.span.file).parent, *current().folders)]


def _found(include: ast.Include) -> Path | None:
    return next((path for place in _places(include) if (path := _resolved(place)) is not None), None)


def _parse_included(include: ast.Include, diagnostics: Diagnostics) -> ast.Program:
    """The included program, or an empty one after its errors were noted."""
    try:
        return parse_file(next(place for place in _places(include) if _resolved(place) is not None))
    except DlogError as error:
        if error.span is None:
            diagnostics.error(error.message, include.span)
        else:
            diagnostics.add(error)
        return ast.Program(())


def _resolved(path: Path) -> Path | None:
    """None if there is no such file, or the system does not accept the name."""
    try:
        return path.resolve() if path.is_file() else None
    except (OSError, ValueError):
        return None


def comments_of(source: Source) -> list[tuple[int, str]]:
    """(offset, text) of the comments and annotations in a text, in order."""
    return tokenize(source, Diagnostics()).comments


# One statement


class NoLexer(Lexer):
    """Tokens are fed one by one; lark's own lexer is not used."""

    def __init__(self, _configuration: Any):
        pass

    def lex(self, *_: Any) -> Iterator[Token]:
        return iter(())


_LOCK = threading.Lock()


@functools.cache
def _grammar() -> tuple[Lark, Builder]:
    builder = Builder()
    return load_tables(lexer=NoLexer, transformer=builder), builder


def _parse_chunk(source: Source, tokens: list[Token], diagnostics: Diagnostics) -> list[ast.Node]:
    """The statement of a chunk; after a missing `.`, also those after it, so that their errors show."""
    nodes: list[ast.Node] = []
    resume: int | None = None
    for _ in range(_MAX_RESUMES):
        found, resume = _parse_statement(source, tokens, diagnostics)
        nodes += found
        if resume is None:
            break
        # An arrow in the joined statement may not be one in the second half, so it is read again.
        # The first reading reported no errors.
        rest = tokenize(source, Diagnostics(), resume, tokens[-1].end_pos).statements
        if not rest:
            break
        tokens = rest[0]
    return nodes


def _parse_statement(
    source: Source, tokens: list[Token], diagnostics: Diagnostics
) -> tuple[list[ast.Node], int | None]:
    """The nodes of a statement, and where to continue if a `.` is missing in it."""
    if tokens[0].type == "D_UNKNOWN":
        span = Span(source, tokens[0].start_pos or 0, tokens[0].end_pos or 0)
        diagnostics.add(complaints.unknown_directive(str(tokens[0]), span))
        return [], None
    lark, builder = _grammar()
    with _LOCK:
        builder.source, builder.diagnostics = source, diagnostics
        parser = lark.parse_interactive()
        index = 0
        try:
            for index, token in enumerate(tokens):  # noqa: B007
                parser.feed_token(token)
            index = len(tokens)
            nodes = parser.feed_eof(tokens[-1])
        except UnexpectedToken:
            situation = complaints.Situation(source, tokens, index, frozenset(parser.accepts()))
            diagnostics.add(complaints.syntax_error(situation))
            resumes = complaints.misses_end(situation) and not situation.at_end
            return [], tokens[index].start_pos if resumes else None
        except RecursionError:
            nodes = []
            _report_depth(Span(source, tokens[0].start_pos or 0, tokens[-1].end_pos or 0), diagnostics)
    # A level of a tree takes at least one token, so short statements need no check.
    deep = deeper_than(MAX_DEPTH, nodes) if len(tokens) > MAX_DEPTH else None
    if deep is not None:
        _report_depth(deep.span, diagnostics)
        return [], None
    return nodes, None


def _report_depth(span: Span, diagnostics: Diagnostics) -> None:
    diagnostics.error(f"nested more than {MAX_DEPTH} levels deep", span, help="use several rules")


def deeper_than(limit: int, nodes: Iterable[ast.Node]) -> ast.Node | None:
    """A node more than `limit` levels below a statement.  O(nodes), without recursion."""
    pending = [(node, 0) for node in nodes]
    while pending:
        node, depth = pending.pop()
        if depth > limit:
            return node
        pending.extend((child, depth + 1) for child in node.children())
    return None


def _merge_facts(statements: Iterable[ast.Node]) -> Iterator[ast.Node]:
    """Adjacent facts of one predicate and source become one node, however they were written."""
    run: list[ast.Facts] = []
    for statement in statements:
        if isinstance(statement, ast.Facts):
            if run and not _same_run(run[0], statement):
                yield _merged(run)
                run = []
            run.append(statement)
            continue
        if run:
            yield _merged(run)
            run = []
        yield statement
    if run:
        yield _merged(run)


def _same_run(left: ast.Facts, right: ast.Facts) -> bool:
    # Offsets are positions in one source.
    same_source = left.span.source is right.span.source
    return same_source and (left.predicate, left.functional) == (right.predicate, right.functional)


def _merged(run: list[ast.Facts]) -> ast.Facts:
    if len(run) == 1:
        return run[0]
    return ast.Facts(
        run[0].predicate,
        tuple(row for facts in run for row in facts.rows),
        run[0].functional,
        tuple(offset for facts in run for offset in facts.offsets),
        span=run[0].span.to(run[-1].span),
    )
