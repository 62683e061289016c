"""Owns the neutral form of an aggregation query: what SQL and aggregation rules are translated to, and view
trees are made from.  Knows no text, no variable order and no trigger.

Meaning.  A query joins its atoms on variables of the same name.  Every assignment of the variables that
satisfies all atoms and conditions counts as often as the product of its rows' multiplicities.  For each
assignment of the free variables that has any, the result is one row: the free variables and, for each
aggregate, the sum over assignments of the sum of its terms.  Without free variables there is one row always.
Without aggregates the result is a relation: each assignment of the free variables that has any, once.

Relations, types, conditions and factors are nodes of M3 in the dialect dbtoaster (`dlog.m3.syntax.ast`): a
relation is an `ast.Source`, a factor any scalar made of `Variable`, `Constant`, `Product`, `Sum` and `Call`,
a condition anything that is worth 1 or 0: a `Comparison`, an `In`, or what `dlog.views.conditions` makes of
them.  Names of variables are kept as they were written; two names that
differ only in case are two variables here, and get different names when M3 is written.

Example: SELECT b, SUM(a * c), COUNT(*) FROM R NATURAL JOIN S WHERE c > 2 GROUP BY b

>>> from dlog.m3 import ast
>>> long = ast.TypeRef("long")
>>> columns = lambda *names: tuple(ast.Column(name, long) for name in names)
>>> a, c = ast.Variable("a"), ast.Variable("c")
>>> query = Query(
...     sources=(ast.Source("stream", "R", columns("a", "b")), ast.Source("table", "S", columns("b", "c"))),
...     atoms=(Atom("R", ("a", "b")), Atom("S", ("b", "c"))),
...     free=("b",),
...     aggregates=(Aggregate("total", (Term((a, c)),)), Aggregate("number", (Term(),))),
...     conditions=(ast.Comparison(">", c, ast.Constant("int", 2)),),
... )
>>> query.check()
>>> query.variables, query.streams, str(query.type_of("a"))
(('a', 'b', 'c'), ('R',), 'long')
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from dlog.errors import DlogError, did_you_mean
from dlog.language.source import Span
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import DBTOASTER, STREAM, TypeRef
from dlog.m3.types.typing import Types
from dlog.planning.join_tree import cyclic_core


@dataclass(frozen=True)
class Atom:
    """One occurrence of a relation, with a variable for each of its columns.

    A relation that is joined with itself has several atoms; each needs its own name, `alias`.  No
    variable occurs twice in one atom: write a second variable and a condition that they are equal.
    """

    relation: str
    variables: tuple[str, ...]
    alias: str = ""
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def name(self) -> str:
        """The name of the atom in variable orders, views and pictures."""
        return self.alias or self.relation


@dataclass(frozen=True)
class Term:
    """A product of factors; without any, 1.

    Each factor is a lifting function: a scalar of the variables in it.  Factors are as small as possible:
    `a * c` is two factors, so that each can be applied where its variables are.  A factor of several
    variables, as `a + c` or `[f: double](a, c)`, is applied at the first view that has all of them; until
    then they stay keys.
    """

    factors: tuple[ast.Node, ...] = ()


@dataclass(frozen=True)
class Aggregate:
    """A column of the result: the sum of the terms, COUNT(*) being the sum of the empty product.

    `divisor`: the name of the aggregate that the sum is divided by for display, as AVG needs.
    `hidden` aggregates are computed for others and are not shown.
    """

    name: str
    terms: tuple[Term, ...]
    divisor: str | None = None
    hidden: bool = False


@dataclass(frozen=True)
class Order:
    """That rows are shown in the order of a column, by its place in the result."""

    column: int
    descending: bool = False


@dataclass(frozen=True)
class Query:
    """See the module.  `types` are the user-defined types (rings), `name` that of the result, `order` the
    columns by which it is sorted when it is shown: those of `free` come first.
    """

    sources: tuple[ast.Source, ...]
    atoms: tuple[Atom, ...]
    aggregates: tuple[Aggregate, ...]
    free: tuple[str, ...] = ()
    conditions: tuple[ast.Node, ...] = ()
    types: tuple[ast.TypeDefinition, ...] = ()
    name: str = "Q"
    order: tuple[Order, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """All variables, in the order in which atoms name them."""
        return tuple(dict.fromkeys(v for atom in self.atoms for v in atom.variables))

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the atoms that change: those of streams."""
        return tuple(atom.name for atom in self.atoms if self.source(atom.relation).kind == STREAM)

    def source(self, relation: str) -> ast.Source:
        for source in self.sources:
            if source.name == relation:
                return source
        raise self._error(f"there is no relation {relation}", did_you_mean(relation, self._relations))

    def atom(self, name: str) -> Atom:
        return next(atom for atom in self.atoms if atom.name == name)

    def atoms_of(self, relation: str) -> tuple[Atom, ...]:
        return tuple(atom for atom in self.atoms if atom.relation == relation)

    def type_of(self, variable: str) -> TypeRef:
        """The type that holds the values of all columns a variable stands for."""
        found = self._types.get(variable)
        if found is None:
            raise self._error(f"{variable} is not in any relation", did_you_mean(variable, self.variables))
        return found

    @cached_property
    def factors(self) -> tuple[ast.Node, ...]:
        """Every factor of every term, each once."""
        terms = (term for aggregate in self.aggregates for term in aggregate.terms)
        return tuple(dict.fromkeys(factor for term in terms for factor in term.factors))

    @cached_property
    def scopes(self) -> tuple[tuple[str, ...], ...]:
        """The variables of atoms, and of factors and conditions that have several.  In a variable order those
        of an atom must be on one path; those of an expression should be.
        """
        expressions = [variables_of(node) for node in (*self.factors, *self.conditions)]
        many = (found for found in expressions if len(found) > 1)
        return tuple(dict.fromkeys((*(atom.variables for atom in self.atoms), *many)))

    @property
    def is_acyclic(self) -> bool:
        """Whether atoms can be removed one by one, each with what it shares inside another (GYO).

        >>> triangle = tuple(Atom(r, tuple(v)) for r, v in (("R", "ab"), ("S", "bc"), ("T", "ca")))
        >>> Query((), triangle, ()).is_acyclic, Query((), triangle[:2], ()).is_acyclic
        (False, True)
        """
        return len(cyclic_core([atom.variables for atom in self.atoms])) <= 1

    def check(self) -> None:
        """Raises DlogError for the first inconsistency."""
        self._check_atoms()
        for variable in self.free:
            self.type_of(variable)
        for node in (*self.factors, *self.conditions):
            for variable in variables_of(node):
                self.type_of(variable)
        names = [aggregate.name for aggregate in self.aggregates]
        self._check_distinct("aggregate", names)
        for aggregate in self.aggregates:
            if aggregate.divisor is not None and aggregate.divisor not in names:
                raise self._error(f"there is no aggregate {aggregate.divisor}")
        if not (self.aggregates or self.free):
            raise self._error("the query has neither an aggregate nor a free variable")

    def _check_atoms(self) -> None:
        if not self.atoms:
            raise self._error("the query has no relation")
        self._check_distinct("relation", [atom.name for atom in self.atoms], "give each its own name")
        for atom in self.atoms:
            columns = self.source(atom.relation).columns
            if len(columns) != len(atom.variables):
                message = f"{atom.relation} has {len(columns)} columns, not {len(atom.variables)}"
                raise DlogError(message, span=atom.span or self.span)
            if len(set(atom.variables)) != len(atom.variables):
                raise DlogError(f"a variable occurs twice in {atom.name}", span=atom.span or self.span)

    def _check_distinct(self, what: str, names: list[str], help: str | None = None) -> None:
        for name in names:
            if names.count(name) > 1:
                raise self._error(f"{what} {name} occurs twice", help)

    @cached_property
    def _relations(self) -> list[str]:
        return [source.name for source in self.sources]

    @cached_property
    def _types(self) -> dict[str, TypeRef]:
        types, found = Types(DBTOASTER, self.types), dict[str, TypeRef]()
        for atom in self.atoms:
            for variable, column in zip(atom.variables, self.source(atom.relation).columns, strict=False):
                known = found.setdefault(variable, column.type)
                if not (types.fits(known, column.type) or types.fits(column.type, known)):
                    message = f"{variable} is {known} and, in {atom.name}, {column.type}"
                    raise DlogError(message, span=atom.span or self.span)
                found[variable] = column.type if types.fits(known, column.type) else known
        return found

    def _error(self, message: str, help: str | None = None) -> DlogError:
        return DlogError(message, span=self.span, help=help)


def variables_of(node: ast.Node) -> tuple[str, ...]:
    """The variables of a scalar, each once, in order.

    >>> variables_of(ast.Sum((ast.Variable("b"), ast.Variable("a"), ast.Variable("b"))))
    ('b', 'a')
    """
    return tuple(dict.fromkeys(n.name for n in node.walk() if isinstance(n, ast.Variable)))


def count(name: str = "count") -> Aggregate:
    """COUNT(*)."""
    return Aggregate(name, (Term(),))


def total(name: str, *factors: ast.Node) -> Aggregate:
    """The sum of one product, split into its smallest factors.

    >>> a = ast.Variable("a")
    >>> len(total("s", ast.Product((a, ast.Constant("int", 2), a))).terms[0].factors)
    3
    """
    return Aggregate(name, (Term(smallest_factors(factors)),))


def smallest_factors(factors: Iterable[ast.Node]) -> tuple[ast.Node, ...]:
    """Products flattened."""
    flat: list[ast.Node] = []
    for factor in factors:
        flat.extend(smallest_factors(factor.factors) if isinstance(factor, ast.Product) else (factor,))
    return tuple(flat)
