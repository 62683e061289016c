"""Owns SELECT with queries in it: its syntax tree -> the neutral form for levels of maps.

A query is a product of the rows of FROM and of conditions, each 1 or 0.  An aggregate is the sum of a value
times this product.  A query in a value is such a sum, in which names of the query around are free variables;
EXISTS, IN, ANY and ALL ask whether there are rows; a query in FROM is a factor that binds its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import expressions as exp

from dlog.errors import SourceError, UnsupportedError
from dlog.language.ast import Node
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import DBTOASTER, TypeRef
from dlog.m3.types.typing import Types
from dlog.multilevel.binding import NONE, inputs, outputs
from dlog.multilevel.values import MINUS_ONE, ZERO, sum_over, times
from dlog.views.names import Names
from dlog.views.nested import NestedQuery, Shown
from dlog.views.sql.clauses import Item, check_clauses, check_parts, no_sum, ordered
from dlog.views.sql.conditions import OPERATORS, OPPOSITE, Conditions, conjuncts, operands
from dlog.views.sql.expressions import DOUBLE, LONG, Expressions, Scalar
from dlog.views.sql.nested_scope import Derived, NestedScope, View, Views
from dlog.views.sql.places import Places
from dlog.views.sql.tokens import External

QUERIES = (exp.Subquery, exp.Select)


def read_nested(
    select: exp.Expr,
    sources: list[ast.Source],
    definitions: tuple[ast.TypeDefinition, ...],
    externals: dict[int, External],
    whole: Span,
) -> NestedQuery:
    """REQUIRES: `select` is what sqlglot read from the statement at `whole`."""
    places = Places(whole.source, whole)
    check_parts(select, places)
    text = Text(sources, Types(DBTOASTER, definitions), externals, places, Names())
    outermost = Outermost(Block(text, select, None, {}, is_outermost=True))
    found = outermost.query()
    used = {n.name for node in found.results.values() for n in node.walk() if isinstance(n, ast.Relation)}
    name = "Q" if all(source.name.upper() != "Q" for source in sources) else "QUERY_RESULT"
    return replace(
        found,
        sources=tuple(source for source in sources if source.name in used),
        types=definitions,
        name=name,
        span=whole,
    )


@dataclass(frozen=True)
class Text:
    """What all queries of a text have in common."""

    sources: list[ast.Source]
    types: Types
    externals: dict[int, External]
    places: Places
    names: Names


@dataclass(frozen=True)
class Group:
    """What is grouped by: as it is computed from a row, and the variable that has its value."""

    value: Node
    variable: str
    type: TypeRef


@dataclass
class Block:
    """One SELECT with the names of the queries around it.  `body`: the number of times that an assignment of
    its variables occurs, as factors.  `registered` is called with each aggregate and each query among the
    values of groups, and gives what stands for it.
    """

    text: Text
    query: exp.Expr
    outer: NestedScope | None
    views: Views
    is_outermost: bool = False
    registered: Callable[[Node, str], Node] = lambda node, word: node
    body: list[Node] = field(init=False)
    groups: list[Group] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.places = self.text.places
        self.select = self._checked(self.query)
        self.views = self._with()
        text = self.text
        self.scope = NestedScope(
            text.sources, text.types, self.places, text.names, self.outer, self._derived, self.views
        )
        self.rows = self._expressions(self._row_value)
        self.values = self._expressions(self._group_value)
        left = self._join()
        self.body = self.scope.rows()
        self.body += [c for node in left for c in self.rows[1].conditions(node)]
        self._read_groups()
        self.is_aggregated = bool(self.groups) or any(map(_has_aggregate, self._shown()))
        if self.select.args.get("having") is not None and not self.is_aggregated:
            raise self.places.outside("HAVING needs groups", self.select.args["having"], "use WHERE")

    def _checked(self, query: exp.Expr) -> exp.Select:
        inner = query.unnest() if isinstance(query, exp.Subquery) else query
        if isinstance(inner, exp.SetOperation):
            word = inner.key.upper()
            help = "put each query into its own file, and combine their results"
            if not self.is_outermost:
                help = "write a condition with OR, or a query for each part"
            place = self.places.word(word, inner.this)
            raise UnsupportedError(f"{word} is not supported", span=place, help=help)
        if not isinstance(inner, exp.Select):
            raise self.places.outside("a query begins with SELECT", query)
        check_clauses(inner, self.places, nested=True, outermost=self.is_outermost)
        return inner

    def _with(self) -> Views:
        """The queries that may be read by name: those of WITH, too, each of which is read here to find its
        errors.
        """
        views, clause = dict(self.views), self.select.args.get("with_")
        if clause is not None and clause.args.get("recursive"):
            help = "write a rule of a .dl program, which may be recursive"
            raise self.places.outside("WITH RECURSIVE is not supported", clause, help)
        for query in clause.expressions if clause is not None else ():
            self._derived(query.this, views)
            views = {**views, query.alias.lower(): View(query, views)}
        return views

    def _expressions(self, other: Callable[[exp.Expr], Scalar | None]) -> tuple[Expressions, Conditions]:
        expressions = Expressions(self.scope, self.text.externals, self.places)
        expressions.other = other
        conditions = Conditions(expressions)
        conditions.keeps_types = True
        conditions.other = lambda node, holds: self._on_query(conditions, node, holds)
        return expressions, conditions

    def _join(self) -> list[exp.Expr]:
        """Read FROM and the equations of ON and WHERE; the rest are conditions."""
        written = list(self.scope.read(self.select))
        if self.select.args.get("where") is not None:
            written.append(self.select.args["where"].this)
        parts = [part for node in written for conjunct in conjuncts(node) for part in _factored(conjunct)]
        left = [part for part in parts if not self.rows[1].unite(part)]
        self.scope.name_variables()
        return left

    def _shown(self) -> list[exp.Expr]:
        having = self.select.args.get("having")
        return [*self.select.expressions, *([having] if having is not None else [])]

    # ---- groups

    def _read_groups(self) -> None:
        group = self.select.args.get("group")
        if group is None:
            return
        help = "write a query for each grouping"
        if any(value for key, value in group.args.items() if key != "expressions"):
            raise self.places.outside("GROUP BY lists values only", group, help)
        for node in group.expressions:
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
                raise self.places.outside("GROUP BY lists values only", node, help)
            item = self._item(node)
            self.group(item, self._alias_of(item))

    def group(self, node: exp.Expr, name: str = "") -> None:
        """Group by a value."""
        found = self.rows[0].scalar(node)
        value = found.node
        if any(known.value == value for known in self.groups):
            return
        if isinstance(value, ast.Variable) and value.name in outputs(times(self.body)):
            name = value.name
        else:
            name = self._lift(found, name or "key", node)
        self.groups.append(Group(value, name, found.type))

    def _lift(self, value: Scalar, name: str, node: exp.Expr) -> str:
        """A variable with the value, which every row of the body binds."""
        if self.text.types.is_custom(value.type):
            message = f"values of type {value.type} cannot be compared"
            raise SourceError(message, span=self.places.span(node), help="group by numbers, texts or dates")
        fresh = self.text.names.fresh(name)
        self.body.append(ast.Lift(ast.Variable(fresh), value.node))
        return fresh

    def _item(self, node: exp.Expr) -> exp.Expr:
        """GROUP BY 1 is the first item of SELECT; a name that no column has is an alias of SELECT."""
        items = self.select.expressions
        if isinstance(node, exp.Literal) and node.name.isdigit():
            if not 1 <= int(node.name) <= len(items):
                raise SourceError(f"SELECT has {len(items)} items", span=self.places.span(node))
            return items[int(node.name) - 1].unalias()
        return self._of_alias(node) or node

    def _of_alias(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Column) and not node.table and not self.scope.has(node.name):
            for item in self.select.expressions:
                if isinstance(item, exp.Alias) and item.alias.lower() == node.name.lower():
                    return item.this
        return None

    def _alias_of(self, node: exp.Expr) -> str:
        aliases = (i for i in self.select.expressions if isinstance(i, exp.Alias))
        return next((i.alias for i in aliases if i.this == node), "")

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(group.variable for group in self.groups)

    # ---- values

    def _row_value(self, node: exp.Expr) -> Scalar | None:
        return self._scalar(node) if isinstance(node, QUERIES) else None

    def _group_value(self, node: exp.Expr) -> Scalar | None:
        """An aggregate, a query, what is grouped by; None: something that is computed from these."""
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        if isinstance(node, QUERIES):
            self.scope.groups = self.keys
            found = self._scalar(node)
            self.scope.groups = None
            return replace(found, node=self.registered(found.node, "value"))
        if isinstance(node, exp.Column):
            alias = self._of_alias(node)
            return self.values[0].scalar(alias) if alias is not None else self._grouped(node)
        if isinstance(node, exp.Literal | exp.Star) or _has_aggregate(node) or node.find(*QUERIES):
            return None
        return self._known(node) if self.groups else None

    def _known(self, node: exp.Expr) -> Scalar | None:
        """A value that is grouped by."""
        value = self.rows[0].scalar(node).node
        for group in self.groups:
            if group.value == value:
                return Scalar(ast.Variable(group.variable), group.type)
        return None

    def _grouped(self, node: exp.Column) -> Scalar:
        found = self._known(node)
        if found is not None:
            return found
        name, type_ = self.scope.named(node)
        if self.scope.owns(node) and name not in self.keys:
            message = f"{node.name} is neither grouped by nor summed"
            help = f"GROUP BY {self.places.text(node)}, or SUM({self.places.text(node)})"
            raise SourceError(message, span=self.places.span(node), help=help)
        return Scalar(ast.Variable(name), type_)

    # ---- aggregates

    def _aggregate(self, node: exp.AggFunc) -> Scalar:
        if isinstance(node, exp.Avg):
            total, count = self.average(node)
            inverse = ast.Call("/", DOUBLE, (count,), span=self.places.span(node))
            return Scalar(ast.product([total, inverse]), DOUBLE)
        if not isinstance(node, exp.Sum | exp.Count):
            raise no_sum(node, self.places, inside=not self.is_outermost)
        if node.args.get("expressions"):
            raise self.places.outside(f"{node.key.upper()} takes one value", node)
        if isinstance(node.this, exp.Distinct):
            return self._distinct(node)
        if isinstance(node, exp.Count):
            if not isinstance(node.this, exp.Star):
                self.rows[0].scalar(node.this)  # there is no NULL: it counts whatever the value
            return Scalar(self.registered(self.count(), "count"), LONG)
        found = self._number(node.this)
        type_ = self.text.types.sum(found.type, LONG) or LONG
        return Scalar(self.registered(self._sum([*self.body, found.node]), "sum"), type_)

    def _number(self, node: exp.Expr) -> Scalar:
        found = self.rows[0].number(node)
        if self.text.types.is_custom(found.type):
            message = f"levels of maps have numbers, not values of type {found.type}"
            help = "add up numbers, or ask without a query in the query"
            raise self.places.outside(message, node, help)
        return found

    def average(self, node: exp.Avg) -> tuple[Node, Node]:
        """The sum and the count, whose quotient it is."""
        if isinstance(node.this, exp.Distinct):
            return tuple(self._distinct(kind(this=node.this)).node for kind in (exp.Sum, exp.Count))  # type: ignore[return-value]
        total = self._sum([*self.body, self._number(node.this).node])
        return self.registered(total, "sum"), self.registered(self.count(), "count")

    def _distinct(self, node: exp.Sum | exp.Count) -> Scalar:
        """Of different values: of each, whether there are rows."""
        before, values = list(self.body), []
        for value in node.this.expressions:
            found = self.rows[0].scalar(value)
            is_bound = isinstance(found.node, ast.Variable) and found.node.name in outputs(times(self.body))
            values.append(found.node.name if is_bound else self._lift(found, "value", value))  # type: ignore[attr-defined]
        there = ast.Exists(sum_over(times(self.body), self.keys | frozenset(values)))
        self.body = before
        if isinstance(node, exp.Count):
            return Scalar(self.registered(self._sum([there]), "count"), LONG)
        found = self._number(node.this.expressions[0])
        type_ = self.text.types.sum(found.type, LONG) or LONG
        return Scalar(self.registered(self._sum([there, ast.Variable(values[0])]), "sum"), type_)

    def _sum(self, factors: Iterable[Node]) -> Node:
        return sum_over(times(factors), self.keys)

    def count(self) -> Node:
        """How many rows a group has."""
        return self._sum(self.body)

    def having(self) -> list[Node]:
        clause = self.select.args.get("having")
        if clause is None:
            return []
        return [c for node in conjuncts(clause.this) for c in self.values[1].conditions(node)]

    # ---- its rows, for the query around

    def factors(self) -> list[Node]:
        """Their product is the number of times that a row occurs."""
        if not self.is_aggregated:
            return self.body
        groups: list[Node] = [ast.Exists(self.count())] if self.groups else []
        return [*groups, *self.having()]

    def columns(self) -> list[tuple[str, Scalar]]:
        return list(self._columns(self.values[0] if self.is_aggregated else self.rows[0]))

    def _columns(self, expressions: Expressions) -> Iterator[tuple[str, Scalar]]:
        for item in self.select.expressions:
            if not isinstance(item, exp.Star):
                yield name_of(item), expressions.scalar(item.unalias())
                continue
            if self.is_aggregated:
                raise self.places.outside("`*` is only allowed in COUNT(*)", item, "name the columns")
            for table in self.scope.tables:
                for column in table.source.columns:
                    name = exp.column(column.name, table.name)
                    yield column.name, Scalar(*_variable(self.scope, name))

    def _derived(self, query: exp.Expr, views: Views) -> Derived:
        """A query in FROM or WITH.  It does not see the other tables of FROM."""
        block = Block(self.text, query, self.outer, views)
        factors, columns = block.factors(), block.columns()
        bound = outputs(times(factors))
        variables: list[str] = []
        for name, value in columns:
            variable = value.node.name if isinstance(value.node, ast.Variable) else ""
            if variable not in bound or variable in variables:
                variable = self.text.names.fresh(name)
                factors = [*factors, ast.Lift(ast.Variable(variable), value.node)]
            variables.append(variable)
        rows = sum_over(times(factors), frozenset(variables))
        if block.select.args.get("distinct") is not None:
            rows = ast.Exists(rows)
        listed = tuple(ast.Column(name, value.type) for name, value in columns)
        return Derived(rows, tuple(variables), listed)

    def _scalar(self, query: exp.Expr) -> Scalar:
        """A query as a value."""
        block = self._inside(query)
        if len(block.select.expressions) != 1:
            raise self.places.outside("a query in a value has one column", query, "select one value")
        (item,) = block.select.expressions
        if not block.is_aggregated or block.groups:
            help = f"add up its rows: SUM({self.places.text(item.unalias())})"
            help = help if not block.is_aggregated else "leave out GROUP BY, and compare its columns in WHERE"
            raise self.places.outside("a query in a value may have several rows", query, help)
        found = block.values[0].scalar(item.unalias())
        return replace(found, node=times([*block.having(), found.node]))

    # ---- conditions on queries

    def _on_query(self, conditions: Conditions, node: exp.Expr, holds: bool) -> list[Node] | None:
        """EXISTS, IN, ANY and ALL; None for other conditions."""
        self.scope.groups = self.keys if conditions is self.values[1] else None
        try:
            if isinstance(node, exp.Exists):
                return self._there_are(self._inside(node.this).factors(), holds)
            if isinstance(node, exp.In) and node.args.get("query") is not None:
                return self._any(conditions, node, node.this, "=", node.args["query"], holds)
            for kind, op in OPERATORS.items():
                if isinstance(node, exp.Binary) and type(node) is kind and _is_quantified(node):
                    return self._quantified(conditions, node, op, holds)
        finally:
            self.scope.groups = None
        return None

    def _quantified(self, conditions: Conditions, node: exp.Binary, op: str, holds: bool) -> list[Node]:
        """x < ALL q says that for no y of q not x < y."""
        query = node.expression.this
        if isinstance(node.expression, exp.All):
            return self._any(conditions, node, node.left, OPPOSITE[op], query, not holds)
        return self._any(conditions, node, node.left, op, query, holds)

    def _any(
        self, conditions: Conditions, node: exp.Expr, value: exp.Expr, op: str, query: exp.Expr, holds: bool
    ) -> list[Node]:
        """Whether the value compares so with some row of a query."""
        block = self._inside(query)
        columns = block.columns()
        if len(columns) != 1:
            message = f"the query has {len(columns)} columns, and is compared with one value"
            raise self.places.outside(message, query, "select one column, or write EXISTS")
        left = conditions.expressions.scalar(value)
        condition = conditions.compared(left, columns[0][1], op, node)
        return self._there_are([*block.factors(), condition], holds)

    def _inside(self, query: exp.Expr) -> Block:
        return Block(self.text, query, self.scope, self.views)

    def _there_are(self, rows: list[Node], holds: bool) -> list[Node]:
        """Whether there are rows, or whether there are none."""
        count = sum_over(times(rows), NONE)
        if not any(isinstance(n, ast.Relation) for n in count.walk()):
            return [count if holds else ast.Comparison("=", count, ZERO)]
        return [ast.Exists(count) if holds else ast.Comparison("=", count, ZERO)]


def _is_quantified(node: exp.Binary) -> bool:
    return isinstance(node.right, exp.Any | exp.All)


def _variable(scope: NestedScope, column: exp.Column) -> tuple[Node, TypeRef]:
    name, type_ = scope.named(column)
    return ast.Variable(name), type_


class Outermost:
    """Reads what is shown of the outermost query."""

    def __init__(self, block: Block):
        self.block, self.places = block, block.places
        self.results: dict[str, Node] = {}
        self.wanted = ""  # the name of the column that is read, if it is an aggregate
        self.having: list[Node] = []

    def query(self) -> NestedQuery:
        block, select = self.block, self.block.select
        items = self._items()
        if select.args.get("distinct") is not None:
            self._distinct(items)
        elif not block.is_aggregated:
            help = "SELECT DISTINCT gives each row once; or select COUNT(*) too"
            raise self.places.outside("the query has no aggregate", select, help)
        self.having = block.having()
        block.registered = self._registered
        columns: list[Shown] = []
        for item in items:
            columns.append(self._column(item, columns))
        shown = zip(columns, items, strict=True)
        order = ordered(select, self.places, [Item(c.name, i, n) for n, (c, i) in enumerate(shown)])
        groups = tuple(group.variable for group in block.groups)
        present = self._present()
        return NestedQuery((), self.results, tuple(columns), groups, present, order)

    def _items(self) -> list[exp.Expr]:
        """The items of SELECT; `*` is all columns."""
        found: list[exp.Expr] = []
        for item in self.block.select.expressions:
            if not isinstance(item, exp.Star):
                found.append(item)
                continue
            if self.block.is_aggregated:
                raise self.places.outside("`*` is only allowed in COUNT(*)", item, "name the columns")
            tables = self.block.scope.tables
            found += [exp.column(column.name, t.name) for t in tables for column in t.source.columns]
        return found

    def _distinct(self, items: list[exp.Expr]) -> None:
        """SELECT DISTINCT groups by all columns."""
        block = self.block
        if block.select.args["distinct"].args.get("on") is not None:
            raise self.places.outside("DISTINCT ON is not supported", block.select, "select all columns")
        if block.is_aggregated:
            help = "GROUP BY gives each group once: leave out DISTINCT"
            raise self.places.outside("SELECT DISTINCT has no groups", block.select, help)
        for item in items:
            block.group(item.unalias(), name_of(item))

    # ---- results

    def _registered(self, node: Node, word: str) -> Node:
        """The result that has a number for each group: those that are shown."""
        if inputs(node):
            node = times([ast.Exists(self.block.count()), node])
        if outputs(node):
            node = times([node, *self.having])
        return ast.Variable(self._result(node, word))

    def _result(self, node: Node, word: str) -> str:
        for name, known in self.results.items():
            if known == node:
                return name
        text, name = self.block.text, self.wanted or word
        while (name := text.names.fresh(name)) in {source.name.lower() for source in text.sources}:
            pass
        self.results[name] = node
        return name

    def _present(self) -> str | None:
        self.wanted = ""
        count = self.block.count()
        if not self.block.groups:
            return self._result(times(self.having), "present") if self.having else None
        if not self.having:
            return self._result(count, "count")
        return self._result(times([ast.Exists(count), *self.having]), "present")

    # ---- columns

    def _column(self, item: exp.Expr, before: list[Shown]) -> Shown:
        node, taken = item.unalias(), {column.name.lower() for column in before}
        if item.alias and item.alias.lower() in taken:
            message = f"the result has two columns {item.alias}"
            raise SourceError(message, span=self.places.span(item), help="give it another name")
        self.wanted = item.alias if isinstance(node, exp.Sum | exp.Count) else ""
        value, divisor = self._quotient(node)
        name = wanted = name_of(item)
        number = 2
        while name.lower() in taken:
            name, number = f"{wanted}_{number}", number + 1
        return Shown(name, value, divisor)

    def _quotient(self, node: exp.Expr) -> tuple[Node, Node | None]:
        """A value, and what it is divided by when it is shown."""
        numbers = self.block.values[0]
        if isinstance(node, exp.Paren | exp.Coalesce):
            return self._quotient(node.this if isinstance(node, exp.Paren) else numbers.unless_null(node))
        if isinstance(node, exp.Neg):
            value, divisor = self._quotient(node.this)
            return times([MINUS_ONE, value]), divisor
        if isinstance(node, exp.Avg):
            return self.block.average(node)
        if isinstance(node, exp.Div) and not isinstance(node.right.unnest(), exp.Literal):
            return numbers.number(node.left).node, numbers.number(node.right).node
        return self._whole(node), None

    def _whole(self, node: exp.Expr) -> Node:
        found = self.block.values[0].scalar(node)
        is_key = isinstance(found.node, ast.Variable) and found.node.name in self.block.keys
        if not is_key and not self.block.text.types.is_number(found.type):
            message = f"`{self.places.text(node)}` is a {found.type} that is computed when it is shown"
            raise self.places.outside(message, node, "group by it")
        return found.node


WORDS: dict[type[exp.Expr], str] = {exp.Sum: "sum", exp.Count: "count", exp.Avg: "avg", exp.Div: "ratio"}


def name_of(item: exp.Expr) -> str:
    """What SELECT calls an item."""
    if isinstance(item, exp.Alias | exp.Column):
        return item.alias_or_name
    return next((word for kind, word in WORDS.items() if isinstance(item, kind)), "value")


def _has_aggregate(node: exp.Expr) -> bool:
    """Of its own, not of a query in it."""
    return any(isinstance(n, exp.AggFunc) for n in node.walk(prune=lambda n: isinstance(n, exp.Select)))


def _factored(node: exp.Expr) -> list[exp.Expr]:
    """What all parts of an OR have in common, and the rest: (a AND b) OR (a AND c) is a AND (b OR c)."""
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    if not isinstance(inner, exp.Or):
        return [node]
    parts = [conjuncts(part) for part in operands(inner)]
    common = [c for c in parts[0] if all(c in part for part in parts[1:])]
    if not common:
        return [node]
    rest = [[c for c in part if c not in common] for part in parts]
    if not all(rest):
        return common
    return [*common, exp.or_(*(exp.and_(*part) for part in rest))]
