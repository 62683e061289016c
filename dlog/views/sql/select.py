"""Owns SELECT: its syntax tree -> the neutral form of an aggregation query.

Every aggregate is a sum of products; AVG, and a quotient of two aggregates, are a sum and what it is divided
by for display.  Sums inside a product are multiplied out if their parts come from different
relations, so that each factor can be applied where its variables are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import expressions as exp

from dlog.errors import SourceError, UnsupportedError
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import DBTOASTER, TypeRef
from dlog.m3.types.typing import Types
from dlog.views.query import Aggregate, Atom, Query, Term, variables_of
from dlog.views.sql.clauses import Item, check_clauses, check_parts, no_sum, ordered
from dlog.views.sql.conditions import Conditions, conjuncts
from dlog.views.sql.expressions import DOUBLE, LONG, Expressions
from dlog.views.sql.places import Places
from dlog.views.sql.scope import Column, Scope
from dlog.views.sql.tokens import External

MOST_TERMS = 64  # to which a product of sums is multiplied out


@dataclass(frozen=True)
class Sums:
    """An aggregate: terms that add up, and the terms of what the sum is divided by."""

    terms: tuple[Term, ...]
    type: TypeRef
    word: str
    divisor: tuple[Term, ...] | None = None


def read_select(
    select: exp.Expr,
    sources: list[ast.Source],
    definitions: tuple[ast.TypeDefinition, ...],
    externals: dict[int, External],
    whole: Span,
) -> Query:
    """REQUIRES: `select` is what sqlglot read from the statement at `whole`."""
    places = Places(whole.source, whole)
    if isinstance(select, exp.SetOperation):
        word = select.key.upper()
        place = places.word(word, select.this)
        help = "put each query into its own file, and combine their results"
        raise UnsupportedError(f"{word} is not supported", span=place, help=help)
    if not isinstance(select, exp.Select):
        raise places.outside("a query begins with SELECT", select, "leave out the brackets around it")
    inner = next((n for n in select.walk() if isinstance(n, exp.Select) and n is not select), None)
    if inner is not None:
        raise places.by_levels("it has a query in a query", inner)
    check_clauses(select, places)
    check_parts(select, places)
    scope = Scope(sources, Types(DBTOASTER, definitions), places)
    conditions = Conditions(Expressions(scope, externals, places))
    left = _join(select, scope, conditions)
    kept = [condition for node in left for condition in conditions.conditions(node)]
    reader = _Reader(conditions.expressions, scope.atoms())
    free, aggregates = reader.read(select)
    order = ordered(select, places, reader.items)
    used = {atom.relation for atom in reader.atoms}
    return Query(
        tuple(source for source in sources if source.name in used),
        reader.atoms,
        aggregates,
        free,
        tuple(kept),
        definitions,
        "Q" if all(source.name.upper() != "Q" for source in sources) else "QUERY_RESULT",
        order,
        span=whole,
    )


def _join(select: exp.Select, scope: Scope, conditions: Conditions) -> list[exp.Expr]:
    """Read FROM and the equations of ON and WHERE; the rest are conditions."""
    written = list(scope.read(select))
    if select.args.get("where") is not None:
        written.append(select.args["where"].this)
    parts = [part for node in written for part in conjuncts(node)]
    left = [part for part in parts if not conditions.unite(part)]
    scope.name_variables(_named(select, scope))
    return left


def _named(select: exp.Select, scope: Scope) -> dict[Column, str]:
    """The columns that SELECT gives their own name.  Raises when two have the same."""
    found: dict[Column, str] = {}
    for item in select.expressions:
        if isinstance(item, exp.Alias) and isinstance(item.this, exp.Column):
            column = scope.root(scope.resolve(item.this))
            if item.alias.lower() in (name.lower() for other, name in found.items() if other != column):
                message = f"the result has two columns {item.alias}"
                raise SourceError(message, span=scope.places.span(item), help="give it another name")
            found.setdefault(column, item.alias)
    return found


class _Reader:
    """Reads the list of SELECT and GROUP BY."""

    def __init__(self, expressions: Expressions, atoms: tuple[Atom, ...]):
        self.expressions, self.atoms = expressions, atoms
        self.scope, self.places = expressions.scope, expressions.places
        self.aggregates: list[Aggregate] = []
        self.divisors: dict[str, tuple[Term, ...]] = {}  # of the aggregates that are quotients, by name
        self.taken: set[str] = set()
        self.items: list[Item] = []

    def read(self, select: exp.Select) -> tuple[tuple[str, ...], tuple[Aggregate, ...]]:
        """The free variables, in the order of SELECT, and the aggregates."""
        if select.args.get("distinct") is not None:
            if select.args.get("order") is not None:
                help = "dlog list gives its rows in ascending order"
                raise self.places.outside("a join that is listed has no ORDER BY", select.args["order"], help)
            return self._listed(select), ()
        grouped = self._grouped(select)
        free: list[str] = []
        sums: list[tuple[Sums, exp.Expr]] = []
        for item in select.expressions:
            plain = item.this if isinstance(item, exp.Alias) else item
            if plain.find(exp.AggFunc) is None and isinstance(plain, exp.Column):
                self.items.append(Item(item.alias_or_name, item, len(free)))
                free.append(self._free(plain, free, grouped))
            else:
                sums.append((self._sums(plain), item))
        for variable, node in grouped.items():
            if variable not in free:
                raise self.places.by_levels(f"{variable} is grouped by but not selected", node)
        if not sums:
            help = "SELECT DISTINCT gives each row once; or select COUNT(*) too"
            raise self.places.outside("the query has no aggregate", select, help)
        self.taken.update(variable.lower() for variable in free)
        for place, (found, item) in enumerate(sums, len(free)):
            self.items.append(Item(self._add(found, item), item, place))
        self.items.sort(key=lambda i: next(n for n, e in enumerate(select.expressions) if e is i.written))
        return tuple(free), tuple(self._divided_aggregates())

    # Columns

    def _listed(self, select: exp.Select) -> tuple[str, ...]:
        """The columns of SELECT DISTINCT; `*` is all variables."""
        if select.args["distinct"].args.get("on") is not None:
            raise self.places.outside("DISTINCT ON is not supported", select, "select all columns")
        if select.args.get("group") is not None or select.find(exp.AggFunc) is not None:
            help = "GROUP BY gives each group once: leave out DISTINCT"
            raise self.places.outside("SELECT DISTINCT has no groups", select, help)
        free: list[str] = []
        for item in select.expressions:
            plain = item.unalias()
            if isinstance(plain, exp.Star):
                free += [v for atom in self.atoms for v in atom.variables if v not in free]
            elif isinstance(plain, exp.Column):
                free.append(self._variable(plain, free))
            else:
                raise self.places.by_levels("it groups by a computed value", item)
        return tuple(dict.fromkeys(free))

    def _variable(self, column: exp.Column, free: list[str]) -> str:
        variable = self.scope.variable(self.scope.resolve(column))
        if variable in free:
            message = f"{column.name} is selected twice"
            raise self.places.outside(message, column, "select it once: equal columns are one")
        return variable

    def _grouped(self, select: exp.Select) -> dict[str, exp.Expr]:
        group = select.args.get("group")
        if group is None:
            return {}
        if any(value for key, value in group.args.items() if key != "expressions"):
            raise self.places.outside(
                "only columns are allowed in GROUP BY", group, "write a query for each grouping"
            )
        found: dict[str, exp.Expr] = {}
        for node in group.expressions:
            column = self._item(node, select)
            if not isinstance(column, exp.Column):
                raise self.places.by_levels("it groups by a computed value", node)
            found.setdefault(self.scope.variable(self.scope.resolve(column)), node)
        return found

    def _item(self, node: exp.Expr, select: exp.Select) -> exp.Expr:
        """GROUP BY 1 is the first item of SELECT; a name that no column has is an alias of SELECT."""
        if isinstance(node, exp.Column) and not node.table and not self.scope.has(node.name):
            named = (i.this for i in select.expressions if isinstance(i, exp.Alias) and i.alias == node.name)
            return next(named, node)
        if not (isinstance(node, exp.Literal) and node.name.isdigit()):
            return node
        if not 1 <= int(node.name) <= len(select.expressions):
            message = f"SELECT has {len(select.expressions)} items"
            raise SourceError(message, span=self.places.span(node))
        return select.expressions[int(node.name) - 1].unalias()

    def _free(self, column: exp.Column, free: list[str], grouped: dict[str, exp.Expr]) -> str:
        variable = self.scope.variable(self.scope.resolve(column))
        if variable not in grouped:
            message = f"{column.name} is neither grouped by nor summed"
            raise SourceError(
                message, span=self.places.span(column), help=f"GROUP BY {self.places.text(column)}"
            )
        return self._variable(column, free)

    # Aggregates

    def _sums(self, node: exp.Expr) -> Sums:
        if isinstance(node, exp.Paren):
            return self._sums(node.this)
        if isinstance(node, exp.Coalesce):
            return self._sums(self.expressions.unless_null(node))
        if isinstance(node, exp.Sum | exp.Avg | exp.Count):
            return self._aggregate(node)
        if node.find(exp.AggFunc) is None or isinstance(node, exp.Window | exp.Filter):
            return self._no_aggregate(node)
        if isinstance(node, exp.Add | exp.Sub):
            return self._added(node)
        if isinstance(node, exp.Mul):
            return self._scaled(node)
        if isinstance(node, exp.Div):
            return self._divided(node)
        if isinstance(node, exp.Neg):
            return self._multiplied(self._sums(node.this), ast.Constant("int", -1))
        if isinstance(node, exp.Cast):
            raise self.places.outside("CAST is not supported", node, "cast where the result is read")
        raise no_sum(node, self.places)

    def _no_aggregate(self, node: exp.Expr) -> Sums:
        if isinstance(node, exp.Star):
            raise self.places.outside("`*` is only allowed in COUNT(*)", node, "name the columns")
        found = self.expressions.scalar(node)
        if variables_of(found.node):
            message = f"`{self.places.text(node)}` is neither grouped by nor summed"
            raise self.places.outside(message, node, f"SUM({self.places.text(node)})")
        raise self.places.outside("a constant is not an aggregate", node, "add it where the result is read")

    def _aggregate(self, node: exp.AggFunc) -> Sums:
        if isinstance(node.this, exp.Distinct):
            raise self.places.by_levels("an aggregate of DISTINCT values counts groups", node)
        if node.args.get("expressions"):
            raise self.places.outside(f"{node.key.upper()} takes one value", node)
        if isinstance(node, exp.Count):
            if not isinstance(node.this, exp.Star):
                self.expressions.scalar(node.this)  # there is no NULL: it counts whatever the value
            return Sums((Term(),), LONG, "count")
        found = self.expressions.number(node.this)
        terms = tuple(self._terms(found.node))
        if isinstance(node, exp.Sum):
            return Sums(terms, found.type, "sum")
        if self.expressions.types.is_custom(found.type):
            message = f"there is no average of {found.type}"
            raise SourceError(message, span=self.places.span(node), help="SUM it, and COUNT(*)")
        return Sums(terms, DOUBLE, "avg", (Term(),))

    def _terms(self, node: ast.Node) -> list[Term]:
        return [_term(product) for product in self._products(node)]

    def _products(self, node: ast.Node) -> list[list[ast.Node]]:
        """A scalar as a sum of products of factors."""
        if isinstance(node, ast.Sum) and not self._in_one_atom(node):
            return [product for term in node.terms for product in self._products(term)]
        if not isinstance(node, ast.Product):
            return [[node]]
        found: list[list[ast.Node]] = [[]]
        for factor in node.factors:
            choices = self._products(factor)
            if len(found) * len(choices) > MOST_TERMS:
                choices = [[factor]]
            found = [product + choice for product in found for choice in choices]
        return found

    def _in_one_atom(self, node: ast.Node) -> bool:
        variables = set(variables_of(node))
        return any(variables <= set(atom.variables) for atom in self.atoms)

    # Arithmetic on aggregates

    def _added(self, node: exp.Binary) -> Sums:
        left, right = self._sums(node.left), self._sums(node.right)
        types = self.expressions.types
        if left.divisor or right.divisor:
            raise self.places.by_levels("it adds quotients of aggregates", node)
        type_ = types.sum(left.type, right.type)
        if not types.adds(left.type, right.type) or type_ is None:
            message = f"{left.type} and {right.type} cannot be added"
            raise SourceError(message, span=self.places.span(node))
        if isinstance(node, exp.Sub):
            right = self._multiplied(right, ast.Constant("int", -1))
        return Sums(left.terms + right.terms, type_, "sum")

    def _scaled(self, node: exp.Binary) -> Sums:
        one, other = node.left, node.right
        if one.find(exp.AggFunc) is not None and other.find(exp.AggFunc) is not None:
            raise self.places.by_levels("it multiplies aggregates", node)
        sums, scale = (one, other) if one.find(exp.AggFunc) is not None else (other, one)
        return self._multiplied(self._sums(sums), self._constant(scale))

    def _divided(self, node: exp.Binary) -> Sums:
        if node.left.find(exp.AggFunc) is None:
            raise self.places.by_levels("it divides by an aggregate", node)
        left = self._sums(node.left)
        if node.right.find(exp.AggFunc) is None:
            return self._multiplied(left, ast.Call("/", DOUBLE, (self._constant(node.right),)))
        right = self._sums(node.right)
        if left.divisor or right.divisor:
            raise self.places.by_levels("it divides a quotient of aggregates", node)
        return Sums(left.terms, DOUBLE, "ratio", right.terms)

    def _constant(self, node: exp.Expr) -> ast.Node:
        found = self.expressions.number(node)
        if variables_of(found.node):
            raise self.places.by_levels("it computes with aggregates and groups", node)
        return found.node

    def _multiplied(self, sums: Sums, factor: ast.Node) -> Sums:
        number = isinstance(factor, ast.Constant) and isinstance(factor.value, int)
        terms = tuple(_term([factor, *term.factors]) for term in sums.terms)
        return Sums(terms, sums.type if number else DOUBLE, sums.word, sums.divisor)

    # Names

    def _add(self, sums: Sums, item: exp.Expr) -> str:
        alias = item.alias if isinstance(item, exp.Alias) else ""
        if alias and alias.lower() in self.taken:
            message = f"the result has two columns {alias}"
            raise SourceError(message, span=self.places.span(item), help="give it another name")
        name = self._name(alias or sums.word)
        self.aggregates.append(Aggregate(name, sums.terms))
        if sums.divisor is not None:
            self.divisors[name] = sums.divisor
        return name

    def _divided_aggregates(self) -> Iterator[Aggregate]:
        """Aggregates with the names of their divisors.  One that is no column is hidden, and comes first."""
        sums = [a for a in self.aggregates if a.name not in self.divisors]
        names = {aggregate.terms: aggregate.name for aggregate in reversed(sums)}
        for aggregate in self.aggregates:
            divisor = self.divisors.get(aggregate.name)
            if divisor is not None and divisor not in names:
                names[divisor] = self._name("count" if divisor == (Term(),) else "divisor")
                yield Aggregate(names[divisor], divisor, hidden=True)
            yield aggregate if divisor is None else replace(aggregate, divisor=names[divisor])

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name.lower() in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name.lower())
        return name


def _term(factors: list[ast.Node]) -> Term:
    """A product in which the constants are one factor, the first; 1 is none."""
    scale: int | float = 1
    left: list[ast.Node] = []
    for factor in factors:
        if isinstance(factor, ast.Constant) and isinstance(factor.value, int | float):
            scale *= factor.value
        else:
            left.append(factor)
    if isinstance(scale, int) and abs(scale) >= 2**63:
        scale = float(scale)
    if isinstance(scale, int) and scale == 1:
        return Term(tuple(left))
    kind = "double" if isinstance(scale, float) else "int" if abs(scale) < 2**31 else "long"
    return Term((ast.Constant(kind, scale), *left))
