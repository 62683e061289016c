"""Owns the FROM of a query that may be in another query: queries in it are tables, too, and names that it
does not have are looked for in the queries around it.  Every variable of the whole text has its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import expressions as exp

from dlog.errors import SourceError
from dlog.language.ast import Node
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import TypeRef
from dlog.m3.types.typing import Types
from dlog.multilevel.names import rename
from dlog.views.names import Names
from dlog.views.sql.places import Places
from dlog.views.sql.scope import Column, Scope, Table, is_mixed


@dataclass(frozen=True)
class Derived:
    """A query as a table: `rows` binds a variable for each of its columns, and is the number of rows with
    these values.
    """

    rows: Node
    variables: tuple[str, ...]
    columns: tuple[ast.Column, ...]

    def factors(self, variables: tuple[str, ...]) -> Node:
        """Its rows under other names."""
        return rename(self.rows, dict(zip(self.variables, variables, strict=True)))


@dataclass(frozen=True)
class View:
    """A query of WITH, and those before it, which it may read."""

    query: exp.CTE
    before: Mapping[str, View]


Views = Mapping[str, View]  # by names in lower case


class NestedScope(Scope):
    """`outer` is the scope of the query around.  `derive` reads a query in FROM or in WITH."""

    def __init__(
        self,
        sources: list[ast.Source],
        types: Types,
        places: Places,
        names: Names,
        outer: NestedScope | None,
        derive: Callable[[exp.Expr, Views], Derived],
        views: Views,
    ):
        super().__init__(sources, types, places)
        self.names, self.outer, self.derive, self.views = names, outer, derive, views
        self.derived: dict[int, Derived] = {}
        self.mixed: list[tuple[Column, Column]] = []  # equations of a whole number and a float
        self.groups: frozenset[str] | None = None  # if set, queries inside may use these variables only

    # ---- tables

    def add_table(self, node: exp.Expr) -> int:
        view = self.views.get(node.name.lower()) if isinstance(node, exp.Table) else None
        if view is not None:
            names = [n.name for n in view.query.args["alias"].args.get("columns") or ()]
            derived = self.derive(view.query.this, view.before)
            return self._add_derived(derived, node, node.alias or node.name, names)
        if isinstance(node, exp.Subquery):
            name = node.alias or f"query{len(self.tables) + 1}"
            return self._add_derived(self.derive(node.this, self.views), node, name, node.alias_column_names)
        return super().add_table(node)

    def _add_derived(self, derived: Derived, node: exp.Expr, name: str, columns: list[str]) -> int:
        if columns and len(columns) != len(derived.columns):
            count = len(derived.columns)
            message = f"{name} has {count} column{'' if count == 1 else 's'}, not {len(columns)}"
            raise SourceError(message, span=self.places.span(node), help="name each of them, or none")
        if columns:
            renamed = zip(derived.columns, columns, strict=True)
            derived = replace(derived, columns=tuple(replace(c, name=n) for c, n in renamed))
        self._add(Table(name, ast.Source(ast.TABLE, name, derived.columns), self.places.span(node)))
        self.derived[len(self.tables) - 1] = derived
        return len(self.tables) - 1

    # ---- columns

    def unite(self, left: Column, right: Column, node: exp.Expr) -> bool:
        """A whole number and a float stay two variables: each has the type of its column."""
        if not is_mixed(self.type_of(left), self.type_of(right)):
            return super().unite(left, right, node)
        self.mixed.append((left, right))
        return True

    def owns(self, node: exp.Column) -> bool:
        tables = [t for t in self.tables if not node.table or t.name.lower() == node.table.lower()]
        if node.table:
            return bool(tables) or self.outer is None
        return any(t.find(node.name) is not None for t in tables) or self.outer is None

    def named(self, node: exp.Column) -> tuple[str, TypeRef]:
        scope = self._scope_of(node)
        name, type_ = super(NestedScope, scope).named(node)
        if scope is not self and scope.groups is not None and name not in scope.groups:
            message = f"{node.name} is neither grouped by nor summed"
            raise SourceError(message, span=self.places.span(node), help="group by it in the query around")
        return name, type_

    def _scope_of(self, node: exp.Column) -> NestedScope:
        """The innermost that has the name; this one, if none has."""
        scope: NestedScope | None = self
        while scope is not None:
            if scope.outer is None and not scope._has(node):
                return self
            if scope.owns(node):
                return scope
            scope = scope.outer
        return self

    def _has(self, node: exp.Column) -> bool:
        tables = [t for t in self.tables if not node.table or t.name.lower() == node.table.lower()]
        return bool(tables) if node.table else any(t.find(node.name) is not None for t in tables)

    # ---- variables

    def name_variables(self, named: Mapping[Column, str] | None = None) -> None:
        """Those of a query in FROM stay.  REQUIRES: all equations are known."""
        for column in self._same:
            if self.root(column) != column:
                continue
            if column.table in self.derived:
                self._names[column] = self.derived[column.table].variables[column.index]
            else:
                wanted = self._column_name(column)
                self._names[column] = self.names.fresh(wanted, f"{self.tables[column.table].name}_{wanted}")

    def rows(self) -> list[Node]:
        """For each table of FROM its rows, as a factor; and equations that do not make one variable of two
        columns.
        """
        found: list[Node] = []
        for number, table in enumerate(self.tables):
            columns = [Column(number, index) for index in range(len(table.source.columns))]
            variables = tuple(self.variable(column) for column in columns)
            if number in self.derived:
                found.append(self.derived[number].factors(variables))
            else:
                names = tuple(map(ast.Variable, variables))
                found.append(ast.Relation(table.source.name, names, span=table.span))
        return [*found, *self._equations()]

    def _equations(self) -> Iterator[Node]:
        for columns in self.mixed:
            left, right = (ast.Variable(self.variable(column)) for column in columns)
            yield from (ast.Comparison("<=", left, right), ast.Comparison(">=", left, right))
