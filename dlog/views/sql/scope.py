"""Owns FROM: which relations a query joins, which of their columns are one variable, and its name.

Columns are one variable if a join, or an equation in WHERE, makes them equal.  The variable has the
name of the first of them; if several variables would have the same name, each is prefixed with its
relation's.  Knows nothing of expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import expressions as exp

from dlog.errors import SourceError, did_you_mean, place
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.types.typing import FLOATS, INTEGERS, Types
from dlog.views.query import Atom
from dlog.views.sql.places import Places


@dataclass(frozen=True)
class Column:
    """A column of a table of FROM, by its place there."""

    table: int
    index: int


@dataclass(frozen=True)
class Table:
    """A relation in FROM, under the name that the query gives it."""

    name: str
    source: ast.Source
    span: Span

    def find(self, column: str) -> int | None:
        names = [c.name.lower() for c in self.source.columns]
        return names.index(column.lower()) if column.lower() in names else None


class Scope:
    """The tables of FROM, and a union-find over their columns."""

    def __init__(self, sources: list[ast.Source], types: Types, places: Places):
        self.sources, self.types, self.places = sources, types, places
        self.tables: list[Table] = []
        self._same: dict[Column, Column] = {}
        self._names: dict[Column, str] = {}

    # Tables

    def add_table(self, node: exp.Expr) -> int:
        """The place of a table in FROM."""
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.places.outside("only relations are allowed in FROM", node, "create a relation for it")
        if node.args.get("db") is not None:
            raise self.places.outside(
                "a relation has no schema before its name", node, f"write only {node.name}"
            )
        if node.args.get("sample") is not None or (node.alias and node.alias_column_names):
            raise self.places.outside("only `relation AS name` is allowed in FROM", node)
        span = self.places.span(node.this)
        source = next((s for s in self.sources if s.name.lower() == node.name.lower()), None)
        if source is None:
            known = [s.name for s in self.sources]
            help = did_you_mean(
                node.name, known, f"CREATE STREAM {node.name}(...) or CREATE TABLE {node.name}(...)"
            )
            raise SourceError(f"there is no relation {node.name}", span=span, help=help)
        self._add(Table(node.alias or source.name, source, span))
        return len(self.tables) - 1

    def _add(self, table: Table) -> None:
        first = next((t for t in self.tables if t.name.lower() == table.name.lower()), None)
        if first is not None:
            message = (
                f"{table.name} is joined twice, first in {place(first.span, table.span)}, under one name"
            )
            help = (
                f"give each a name: {table.source.name} {table.name}1 ... {table.source.name} {table.name}2"
            )
            raise SourceError(message, span=table.span, help=help)
        self.tables.append(table)
        for index in range(len(table.source.columns)):
            column = Column(len(self.tables) - 1, index)
            self._same[column] = column

    # Columns

    def resolve(self, node: exp.Column) -> Column:
        """The column that a name stands for; one of several that are equal."""
        if isinstance(node.this, exp.Star):
            raise self.places.outside("`*` is only allowed in COUNT(*)", node, "name the columns")
        if node.args.get("db") is not None:
            raise self.places.outside("a column is written name, or relation.name", node)
        tables = [t for t in self.tables if not node.table or t.name.lower() == node.table.lower()]
        if not tables:
            help = did_you_mean(node.table, [t.name for t in self.tables], "FROM has no such relation")
            raise SourceError(f"unknown relation {node.table}", span=self.places.span(node), help=help)
        found = [
            Column(self.tables.index(table), index)
            for table in tables
            if (index := table.find(node.name)) is not None
        ]
        return self.one_of(found, node, tables)

    def one_of(self, found: list[Column], node: exp.Expr, tables: list[Table]) -> Column:
        """The only column among those found, or one of several that are equal."""
        name = node.name
        if not found:
            known = [c.name for table in tables for c in table.source.columns]
            where = ", ".join(t.name for t in tables)
            help = did_you_mean(name, known)
            raise SourceError(f"there is no column {name} in {where}", span=self.places.span(node), help=help)
        if len({self.root(column) for column in found}) > 1:
            where = " and ".join(self.tables[column.table].name for column in found)
            help = f"write {self.tables[found[0].table].name}.{name}"
            message = f"{name} is ambiguous: it is in {where}"
            raise SourceError(message, span=self.places.span(node), help=help)
        return found[0]

    def owns(self, node: exp.Column) -> bool:
        """Whether a name belongs to this query."""
        return True

    def named(self, node: exp.Column) -> tuple[str, TypeRef]:
        """The variable that a name stands for, and the type of the column."""
        column = self.resolve(node)
        return self.variable(column), self.type_of(column)

    def root(self, column: Column) -> Column:
        """The first of the columns that are equal to this one."""
        while self._same[column] != column:
            column = self._same[column]
        return column

    def type_of(self, column: Column) -> TypeRef:
        return self.tables[column.table].source.columns[column.index].type

    def unite(self, left: Column, right: Column, node: exp.Expr) -> bool:
        """Note that two columns are equal; False if that makes one variable of two columns of a table."""
        first, second = sorted((self.root(left), self.root(right)), key=lambda c: (c.table, c.index))
        types = self.type_of(left), self.type_of(right)
        if not (self.types.fits(*types) or self.types.fits(*reversed(types))):
            message = f"{types[0]} and {types[1]} are never equal"
            raise SourceError(message, span=self.places.span(node), help="compare columns of the same type")
        if first == second:
            return True
        tables = [c.table for c in self._same if self.root(c) == first]
        if any(c.table in tables for c in self._same if self.root(c) == second):
            return False
        self._same[second] = first
        return True

    # Joins

    def read(self, select: exp.Select) -> Iterator[exp.Expr]:
        """Add every table and every equation of the joins; returns the remaining conditions of ON."""
        origin = select.args.get("from_")
        if origin is None:
            raise self.places.outside("a query joins relations: FROM is missing", select)
        group = [self.add_table(origin.this)]  # what a join joins with: all since the last comma
        for join in select.args.get("joins") or ():
            self._check_kind(join)
            table = self.add_table(join.this)
            if (join.args.get("method") or "").upper() == "NATURAL":
                self._natural(group, table, join)
            elif join.args.get("using"):
                for name in join.args["using"]:
                    self._shared(group, table, name)
            elif join.args.get("on") is not None:
                yield join.args["on"]
            elif self.places.follows_comma(join.this):
                group = []
            elif (join.args.get("kind") or "").upper() != "CROSS":
                help = "NATURAL JOIN makes columns of one name equal, CROSS JOIN takes every pair of rows"
                raise self.places.outside("JOIN without ON or USING is not supported", join.this, help)
            group.append(table)

    def _check_kind(self, join: exp.Join) -> None:
        side, kind = (join.args.get("side") or "").upper(), (join.args.get("kind") or "").upper()
        method = (join.args.get("method") or "").upper()
        if side or kind not in ("", "INNER", "CROSS") or method not in ("", "NATURAL"):
            words = " ".join(word for word in (method, side, kind) if word)
            help = "use JOIN; rows without a partner do not count in a sum of products"
            raise self.places.outside(f"{words} JOIN is not supported", join.this, help)

    def _natural(self, group: list[int], table: int, join: exp.Join) -> None:
        """All columns that both sides have are equal."""
        for column in self.tables[table].source.columns:
            if any(self.tables[t].find(column.name) is not None for t in group):
                self._shared(group, table, exp.to_identifier(column.name), join.this)

    def _shared(
        self, group: list[int], table: int, name: exp.Identifier, node: exp.Expr | None = None
    ) -> None:
        left = [self.tables[t] for t in group]
        found = [Column(t, i) for t in group if (i := self.tables[t].find(name.name)) is not None]
        index = self.tables[table].find(name.name)
        right = [Column(table, index)] if index is not None else []
        if node is not None:  # the name is not in the text
            name.meta.update(next((n.meta for n in node.walk() if "start" in n.meta), {}))
        one = self.one_of(found, name, left)
        self.unite(one, self.one_of(right, name, [self.tables[table]]), name)

    # Variables

    def name_variables(self, named: Mapping[Column, str] | None = None) -> None:
        """`named`: columns that SELECT gives a name.  REQUIRES: all equations are known."""
        self._names = {self.root(column): name for column, name in (named or {}).items()}
        taken = {name.lower() for name in self._names.values()}
        roots = [c for c in self._same if self.root(c) == c and c not in self._names]
        wanted = [*taken, *(self._column_name(c).lower() for c in roots)]
        for column in roots:
            name = self._column_name(column)
            if wanted.count(name.lower()) > 1:
                name = f"{self.tables[column.table].name}_{name}"
            while name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            self._names[column] = name

    def has(self, name: str) -> bool:
        """Whether a relation has a column of that name."""
        return any(table.find(name) is not None for table in self.tables)

    def _column_name(self, column: Column) -> str:
        return self.tables[column.table].source.columns[column.index].name

    def variable(self, column: Column) -> str:
        return self._names[self.root(column)]

    def atoms(self) -> tuple[Atom, ...]:
        atoms = []
        for place_, table in enumerate(self.tables):
            columns = [Column(place_, index) for index in range(len(table.source.columns))]
            alias = table.name if table.name != table.source.name else ""
            variables = tuple(self.variable(column) for column in columns)
            atoms.append(Atom(table.source.name, variables, alias, span=table.span))
        return tuple(atoms)


def is_mixed(one: TypeRef, other: TypeRef) -> bool:
    """Whether one is a type of whole numbers and the other of floats."""
    names = {one.name, other.name}
    return not names.isdisjoint(INTEGERS) and not names.isdisjoint(FLOATS)
