"""Owns the factorised form of a relation that joins give, along a variable order.  Knows no M3.

A query without aggregates is the relation of its free variables.  It has a *factor relation*, or factor, for
each free variable X: F@X[dep(X), X] has the values that X takes for given values of dep(X), those ancestors
that X or a variable below it depends on.  A row of the result is one value of each variable, such that every
factor has them; as no factor has a value without a continuation below, rows are listed without search.

So that this holds, F@X has those rows that all children of X have: an atom below X has a row, a variable Y
below X has some value.  Free variables are above all others, whose values need not be stored.

    R(a, b), S(b, c), T(b, d), all free:      F@b[b]  ├ F@a[b, a]  ├ F@c[b, c]  └ F@d[b, d]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dlog.errors import DlogError, UnsupportedError
from dlog.m3.syntax import ast
from dlog.views.orders.orders import arrange, find_order
from dlog.views.query import Atom, Query, variables_of
from dlog.views.tree.tree import OrderNode, VariableOrder


@dataclass(frozen=True)
class Leaf:
    """An atom: the variables of it that others need, and the conditions on its columns."""

    atom: Atom
    keys: tuple[str, ...]
    conditions: tuple[ast.Node, ...]


@dataclass(frozen=True)
class Factorisation:
    """A query, the order of its variables without those that only one atom has, and its atoms by name."""

    query: Query
    order: VariableOrder
    leaves: Mapping[str, Leaf]

    @property
    def listed(self) -> tuple[OrderNode, ...]:
        """The nodes of free variables, those above first: the order in which rows are listed."""
        return tuple(node for node in self.order.walk() if node.variable in self.query.free)

    def path(self, leaf: Leaf) -> tuple[OrderNode, ...]:
        """The nodes above an atom, from its lowest variable up; none if no other part needs its values."""
        if not leaf.keys:
            return ()
        lowest = next(node for node in self.order.walk() if leaf.atom.name in node.atoms)
        nodes = {node.variable: node for node in self.order.walk()}
        return tuple(nodes[name] for name in reversed(self.order.path(lowest.variable)))


def factorisation(
    query: Query, order: VariableOrder | None = None, sizes: Mapping[str, int] | None = None
) -> Factorisation:
    """REQUIRES: a checked query.  Raises for aggregates, and for conditions on several relations.

    `order`, if given, has all variables, or those that are free or that several relations have.
    """
    if query.aggregates:
        help = "leave out the aggregates; a query with groups has its result as a table"
        raise DlogError(
            "only a query without aggregates is listed by its factors", span=query.span, help=help
        )
    leaves = _leaves(query)
    small = _small(query, leaves)
    order = find_order(small, sizes, free_on_top=True) if order is None else _pruned(order, small)
    _check_top(order, query)
    return Factorisation(query, order, leaves)


def _leaves(query: Query) -> dict[str, Leaf]:
    conditions: dict[str, list[ast.Node]] = {atom.name: [] for atom in query.atoms}
    for node in query.conditions:
        used = set(variables_of(node))
        home = next((atom for atom in query.atoms if used <= set(atom.variables)), None)
        if home is None:
            help = "select only what one relation has, or GROUP BY the columns and COUNT(*)"
            message = "a relation cannot be listed by its factors under a condition on several relations"
            raise UnsupportedError(message, span=node.span or query.span, help=help)
        conditions[home.name].append(node)
    found = {}
    for atom in query.atoms:
        elsewhere = {v for other in query.atoms if other is not atom for v in other.variables}
        keys = tuple(v for v in atom.variables if v in elsewhere or v in query.free)
        found[atom.name] = Leaf(atom, keys, tuple(conditions[atom.name]))
    return found


def _small(query: Query, leaves: Mapping[str, Leaf]) -> Query:
    """The query over the keys of atoms, of which orders are made: a relation for each atom."""
    atoms = tuple(Atom(leaf.atom.name, leaf.keys) for leaf in leaves.values() if leaf.keys)
    sources = (
        ast.Source(ast.STREAM, a.relation, tuple(ast.Column(v, query.type_of(v)) for v in a.variables))
        for a in atoms
    )
    return replace(query, sources=tuple(sources), atoms=atoms, conditions=())


def _pruned(order: VariableOrder, small: Query) -> VariableOrder:
    """The order without the variables that one atom has alone."""
    parents: dict[str, str | None] = {}
    for node in order.walk():
        above = order.parents[node.variable]
        while above is not None and above not in small.variables:
            above = order.parents[above]
        if node.variable in small.variables:
            parents[node.variable] = above
    return arrange(small, parents)


def _check_top(order: VariableOrder, query: Query) -> None:
    for variable, above in order.parents.items():
        if variable in query.free and above is not None and above not in query.free:
            help = "put the selected columns above all others in the variable order"
            raise DlogError(f"{above} is not selected, but above {variable}", span=query.span, help=help)
