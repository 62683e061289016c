"""Owns nested query -> M3 program: its results are compiled by levels, and its columns are M3 queries over
them.  Knows no text and no drawing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from dlog.errors import DlogError, UnsupportedError
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import DBTOASTER
from dlog.m3.syntax.rewrite import rewritten
from dlog.m3.types.typing import Types
from dlog.multilevel.names import fresh, substitute
from dlog.multilevel.program import Program, Refusal, compile
from dlog.multilevel.selection.choice import CHOSEN, Selection, selections
from dlog.multilevel.selection.estimate import estimated
from dlog.multilevel.selection.sizes import Statistics
from dlog.multilevel.values import factors_of, times
from dlog.views.m3.program import distinct, identifier, lower_names
from dlog.views.nested import NestedQuery, Shown


@dataclass(frozen=True)
class Options:
    """Those of `dlog.multilevel.program.compile`.  `depth`: how many deltas of deltas are maintained;
    `inputs`: maps may have input variables; `batch`: triggers for batches, else for single rows; `demoted`:
    definitions that are not stored.  `statistics`: what is known of the data; instead of `depth` and
    `demoted`, the maps are chosen that cost least by it.
    """

    depth: int | None = None
    inputs: bool = False
    batch: bool = True
    demoted: Container[Node] = ()
    statistics: Statistics | None = None


DEFAULT = Options()
HYSTERESIS = 2  # times the cost of other maps that maps may have before they are replaced


@dataclass(frozen=True)
class Column:
    """How a column of the result is read: a group, or an M3 query; or a quotient of two."""

    name: str
    group: str | None = None
    value: str = ""
    divisor: str | None = None


@dataclass(frozen=True)
class Levels:
    """`program` has the maps with their reasons; `m3` is its program with the queries of all columns; if all
    of these are groups, with how often each is there.  `options` and `apart` are those of `levels`.
    """

    query: NestedQuery
    program: Program
    m3: ast.Program
    columns: tuple[Column, ...]
    options: Options = DEFAULT
    apart: bool = False


def levels(
    query: NestedQuery, options: Options = DEFAULT, apart: bool = False, as_maps: bool = False
) -> Levels:
    """`apart`: a quotient is two queries, and the caller divides when it shows the result.  `as_maps`: each
    column is a map.
    Raises UnsupportedError where there is no program.
    """
    query.check()
    _check_types(query)
    query = _as_maps(query) if as_maps else query
    program = _program(query, options)
    if isinstance(program, Refusal):
        raise UnsupportedError(f"no maps maintain this query: {program.reason}", span=query.span)
    return _shown(query, program, options, apart)


def reconsidered(levels: Levels, known: Statistics, times: float = HYSTERESIS) -> Levels:
    """Levels of the maps that cost least now; the same, unless they cost more than some times as much."""
    options = replace(levels.options, depth=None, demoted=(), statistics=known)
    _check_choice(levels.query, options)
    return cheaper(levels, side_by_side(levels.query, known, options.batch), known, times)


def cheaper(
    levels: Levels, found: Mapping[str, Selection | Refusal], known: Statistics, times: float
) -> Levels:
    """The same, between given levels and what was chosen among some."""
    cheapest = found[CHOSEN]
    if isinstance(cheapest, Refusal):
        return levels
    if estimated(levels.program, known).cost(known) <= times * cheapest.estimate.cost(known):
        return levels
    options = replace(levels.options, depth=None, demoted=(), statistics=known)
    return _shown(levels.query, cheapest.program, options, levels.apart)


def _shown(query: NestedQuery, program: Program, options: Options, apart: bool) -> Levels:
    writer = _Columns(query, program, apart)
    columns = tuple(map(writer.column, query.columns))
    shown = tuple(writer.queries.values()) or tuple(q for q in program.m3.queries if q.name == query.present)
    m3 = replace(program.m3, types=query.types, queries=shown)
    return Levels(query, program, m3, columns, options, apart)


def _program(query: NestedQuery, options: Options) -> Program | Refusal:
    if options.statistics is not None:
        _check_choice(query, options)
        found = side_by_side(query, options.statistics, options.batch)[CHOSEN]
        return found if isinstance(found, Refusal) else found.program
    return compile(
        query.results,
        map(_source, query.sources),
        depth=options.depth,
        inputs=options.inputs,
        batch=options.batch,
        demoted=options.demoted,
    )


def _check_choice(query: NestedQuery, options: Options) -> None:
    if options.depth is not None or options.inputs:
        what = "depth" if options.depth is not None else "input variables"
        raise DlogError(f"maps that are chosen by cost have no {what}", help="leave it out", span=query.span)


def side_by_side(query: NestedQuery, known: Statistics, batch: bool = True) -> dict[str, Selection | Refusal]:
    """The selections between which the choice is: depth 0, depth 1, full, and the one that is chosen."""
    return selections(query.results, map(_source, query.sources), known, batch)


def _as_maps(query: NestedQuery) -> NestedQuery:
    """Columns that are computed from results become results."""
    results, columns = dict(query.results), []
    for column in query.columns:
        value = column.value
        if not isinstance(value, ast.Variable) or column.divisor is not None:
            inverse = [ast.Call("/", ast.TypeRef("double"), (column.divisor,))] if column.divisor else []
            value = times(
                [*([ast.Exists(ast.Variable(query.present))] if query.present else []), value, *inverse]
            )
            for name, definition in query.results.items():
                value = substitute(value, name, definition) or value
            name = fresh(
                identifier(column.name).lower(), (*results, *query.groups, *(s.name for s in query.sources))
            )
            results[name] = value
            value = ast.Variable(name)
        columns.append(Shown(column.name, value))
    used = {n.name for c in columns for n in c.value.walk() if isinstance(n, ast.Variable)}
    kept = {n: d for n, d in results.items() if n in used or n == query.present}
    return replace(query, results=kept, columns=tuple(columns))


def _check_types(query: NestedQuery) -> None:
    types = Types(DBTOASTER, query.types)
    for source in query.sources:
        for column in source.columns:
            if types.is_custom(column.type):
                message = f"levels of maps have numbers, not values of type {column.type}"
                raise UnsupportedError(message, span=column.span or source.span)


def _source(source: ast.Source) -> ast.Source:
    names = lower_names([c.name for c in source.columns])
    return replace(source, columns=tuple(replace(c, name=names[c.name]) for c in source.columns))


class _Columns:
    """Writes the queries of columns."""

    def __init__(self, query: NestedQuery, program: Program, apart: bool):
        self.query, self.program, self.apart = query, program, apart
        self.queries: dict[str, ast.Query] = {}
        self.maps = {m.name: m for m in program.m3.maps}
        self.names = distinct({c.name: identifier(c.name) for c in query.columns}, ())

    def column(self, column: Shown) -> Column:
        value, name = column.value, self.names[column.name]
        if isinstance(value, ast.Variable) and value.name in self.query.groups and column.divisor is None:
            return Column(column.name, value.name)
        if column.divisor is None:
            return Column(column.name, value=self._query(name, value))
        if self.apart:
            divisor = self._query(f"{name}_divisor", column.divisor)
            return Column(column.name, value=self._query(name, value), divisor=divisor)
        inverse = ast.Call("/", ast.TypeRef("double"), (column.divisor,))
        return Column(column.name, value=self._query(name, ast.product([value, inverse])))

    def _query(self, name: str, value: Node) -> str:
        """Of this name, or one like it that no other map has."""
        expression = rewritten(value, self._read)
        if self.query.groups and not self._has_all_groups(expression):
            present = ast.Exists(self._access(self.query.present or ""))
            expression = ast.product([present, expression])
        own = isinstance(expression, ast.MapAccess) and expression.name == name
        while name in self.queries or (name in self.maps and not own):
            name += "_"
        self.queries[name] = ast.Query(name, expression)
        return name

    def _has_all_groups(self, expression: Node) -> bool:
        """Whether a map with all groups is read first, so that the other maps are looked up."""
        first = factors_of(expression)[0]
        return isinstance(first, ast.MapAccess) and {k.name for k in first.keys} == set(self.query.groups)

    def _read(self, node: ast.Node) -> ast.Node:
        if isinstance(node, ast.Variable) and node.name in self.query.results:
            return self._access(node.name)
        return node

    def _access(self, name: str) -> ast.MapAccess:
        keys: Iterable[str] = self.program.map(name).keys
        return ast.MapAccess(name, self.maps[name].type, (), tuple(map(ast.Variable, keys)))
