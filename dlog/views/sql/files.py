"""Owns SQL files: text -> the neutral form of the aggregation query in it.

A file creates types, streams and tables, and has one SELECT:

    CREATE STREAM R(A int, B double) FROM FILE 'R.tbl' LINE DELIMITED CSV (delimiter := '|');
    CREATE TABLE S(A int, C int) FROM FILE 'S.tbl' LINE DELIMITED CSV (delimiter := '|');
    SELECT C, SUM(B * [f: double](A)), COUNT(*) FROM R NATURAL JOIN S WHERE B > 0 GROUP BY C;

Queries in queries and other things that view trees cannot maintain are left to levels of maps.  What is
outside that fragment, too, is an error with its position.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sqlglot import expressions as exp
from sqlglot.errors import ParseError
from sqlglot.parser import Parser

from dlog.errors import Diagnostics, DlogError, SourceError, place
from dlog.language.source import Source, Span, read_source, text_source
from dlog.m3.syntax import ast
from dlog.views.nested import NestedQuery
from dlog.views.query import Query
from dlog.views.sql.declarations import declaration
from dlog.views.sql.nested import read_nested
from dlog.views.sql.places import NeedsLevels
from dlog.views.sql.select import read_select
from dlog.views.sql.tokens import External, Statement, statements, without_externals


def read_sql(path: str | Path, levels: bool = False) -> Query | NestedQuery:
    """The query of a file; see `parse_sql`."""
    return parse_sql_source(read_source(path), levels)


def parse_sql(text: str, name: str = "<string>", levels: bool = False) -> Query | NestedQuery:
    """A query that a view tree maintains is a `Query`.  Any other, and with `levels` every query, is a
    `NestedQuery`, which levels of maps maintain.

    >>> query = parse_sql("CREATE TABLE R(a int, b int); SELECT b, SUM(a), AVG(a) FROM R GROUP BY b;")
    >>> query.free, [(a.name, a.divisor) for a in query.aggregates]
    (('b',), [('sum', None), ('count', None), ('avg', 'count')])
    """
    return parse_sql_source(text_source(text, name), levels)


def parse_sql_source(source: Source, levels: bool = False) -> Query | NestedQuery:
    """Raises the errors of all declarations together, else the first of the query."""
    types: dict[str, ast.TypeDefinition] = {}
    sources: list[ast.Source] = []
    select: Statement | None = None
    diagnostics = Diagnostics()
    for statement in statements(source):
        word = statement.tokens[0].text.upper()
        try:
            if word == "CREATE":
                _declare(declaration(statement, types), types, sources)
            elif select is not None:
                raise SourceError(
                    "a file has one query",
                    span=statement.span(statement.tokens[0]),
                    help=f"the first is in line {select.whole.line}; put each into its own file",
                )
            elif word in ("SELECT", "WITH", "("):
                select = statement
            else:
                raise _unknown(statement)
        except DlogError as error:
            diagnostics.add(error)
    diagnostics.raise_if_any()
    if select is None:
        end = len(source.text.rstrip())
        span = Span(source, max(0, end - 1), end)
        raise SourceError("the file has no SELECT", span=span, help="SELECT SUM(...) FROM ...")
    return _query(select, sources, types, levels)


def _declare(
    found: ast.TypeDefinition | ast.Source, types: dict[str, ast.TypeDefinition], sources: list[ast.Source]
) -> None:
    if isinstance(found, ast.TypeDefinition):
        types[found.name] = found
        return
    first = next((s for s in sources if s.name.lower() == found.name.lower()), None)
    if first is not None:
        message = f"{found.name} is already created in {place(first.span, found.span)}"
        raise SourceError(message, span=found.span)
    sources.append(found)


def _unknown(statement: Statement) -> SourceError:
    token = statement.tokens[0]
    help = "a file has CREATE TYPE, CREATE STREAM, CREATE TABLE and one SELECT"
    return SourceError(f"unexpected `{token.text}`", span=statement.span(token), help=help)


def _query(
    statement: Statement, sources: list[ast.Source], types: dict[str, ast.TypeDefinition], levels: bool
) -> Query | NestedQuery:
    tokens, externals = without_externals(statement, list(types))
    try:
        parsed = Parser().parse(tokens, statement.source.text)[0]
        assert isinstance(parsed, exp.Expr)
        given = parsed, sources, tuple(types.values()), externals, statement.whole
        query: Query | NestedQuery = read_nested(*given) if levels else _read(*given)
    except ParseError as error:
        raise _syntax_error(statement, error) from None
    except RecursionError:
        help = "use several columns, or several queries"
        raise SourceError("the query is nested too deeply", span=statement.whole, help=help) from None
    query.check()
    return query


Given = tuple[exp.Expr, list[ast.Source], tuple[ast.TypeDefinition, ...], dict[int, External], Span]


def _read(*given: *Given) -> Query | NestedQuery:
    """By a view tree if there is one."""
    try:
        return read_select(*given)
    except NeedsLevels as found:
        return replace(read_nested(*given), reason=found.message)


_REASONS = {
    "Expecting )": "`(` is not closed",
    "Expecting (": "expected `(`",
    "The number of provided arguments": "too many arguments",
}


def _syntax_error(statement: Statement, error: ParseError) -> SourceError:
    """sqlglot gives the line and the last column of the word that it did not expect, or stopped at."""
    problem = error.errors[0]
    source = statement.source
    line_start = sum(len(line) + 1 for line in source.text.split("\n")[: problem["line"] - 1])
    end = line_start + problem["col"]
    start = end - len(problem["highlight"] or " ")
    reason = next((r for begin, r in _REASONS.items() if problem["description"].startswith(begin)), None)
    if end > statement.tokens[-1].end:
        message = reason or "the query ends here, but is incomplete"
    else:
        message = f"{reason or 'this is not SQL'}: unexpected `{problem['highlight']}`"
    return SourceError(message, span=Span(source, start, end))
