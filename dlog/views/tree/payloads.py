"""Owns what a view stores for each key: the *payloads* that the terms of a query need there, their types and
the names of their maps.  Knows no statements.

A term of a query is a product of factors; a view needs the product of those at or below it.  Terms that have
the same factors there share one payload: below a view without factors all of them count rows.  So several
aggregates, and the count that distinguishes a group of sum 0 from none, are stored together, each at the cost
of what differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from dlog.errors import DlogError
from dlog.m3.syntax import ast
from dlog.m3.syntax.ast import DBTOASTER, TypeRef
from dlog.m3.syntax.dialects import CONDITION, MULTIPLICITY
from dlog.m3.types.typing import Types
from dlog.views.query import Aggregate, Query, Term, count
from dlog.views.tree.tree import View, ViewTree
from dlog.views.tree.written_order import in_written_order, ordered_products

COUNTING = ("RingAvg", "RingCofactor")
COUNT = TypeRef(MULTIPLICITY[DBTOASTER])
# Numbers of factors of the query, as often as they occur: ascending, but elements of a ring that does not
# commute come last, in their order.
Payload = tuple[int, ...]


@dataclass(frozen=True)
class Shown:
    """An aggregate of the result: the payloads of the root that add up to it."""

    aggregate: Aggregate
    payloads: tuple[Payload, ...]


def has_count(aggregate: Aggregate) -> bool:
    """Whether it is an element that counts rows, besides sums: it is zero only where there are none."""
    factors = aggregate.terms[0].factors if len(aggregate.terms) == 1 else ()
    return any(isinstance(f, ast.Call) and f.type.name in COUNTING for f in factors)


class Payloads:
    """The payloads of all views of a tree."""

    def __init__(self, query: Query, tree: ViewTree):
        self.query, self.tree = query, tree
        self.numbers = {factor: i for i, factor in enumerate(query.factors)}
        self.types = Types(DBTOASTER, query.types)
        self.elements = frozenset(self.numbers[f] for product in ordered_products(query) for f in product)
        self._below: dict[int, frozenset[int]] = {}
        self._own: dict[int, frozenset[int]] = {}
        self._note(tree.root)

    def _note(self, view: View) -> None:
        self._own[id(view)] = frozenset(self.numbers[f] for f in view.factors)
        for child in view.children:
            self._note(child)
        self._below[id(view)] = self._own[id(view)].union(*(self._below[id(c)] for c in view.children))

    @cached_property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Those of the query, and a hidden count if groups have to be distinguished from none."""
        given = self.query.aggregates
        if not self.query.free or any(a.terms == (Term(),) or has_count(a) for a in given):
            return given
        name = "count"
        while any(a.name == name for a in given):
            name += "_"
        return (*given, Aggregate(name, count().terms, hidden=True))

    @cached_property
    def shown(self) -> tuple[Shown, ...]:
        return tuple(Shown(a, tuple(map(self.payload, a.terms))) for a in self.aggregates)

    def payload(self, term: Term) -> Payload:
        """What a term needs at the root."""
        return in_written_order((self.numbers[factor] for factor in term.factors), self.elements)

    def is_ordered(self, payload: Payload) -> bool:
        """Whether the order of its factors matters."""
        return sum(i in self.elements for i in payload) > 1

    def of(self, view: View) -> tuple[Payload, ...]:
        """All payloads of a view, each once, in the order of the query's aggregates."""
        found = (self.below(view, payload) for shown in self.shown for payload in shown.payloads)
        return tuple(dict.fromkeys(found))

    def below(self, view: View, payload: Payload) -> Payload:
        """The part of a parent's payload that a view contributes."""
        return tuple(i for i in payload if i in self._below[id(view)])

    def own(self, view: View, payload: Payload) -> tuple[ast.Node, ...]:
        """The factors of a payload that are applied at the view itself."""
        return tuple(factor for _, factor in self.placed(view, payload))

    def placed(self, view: View, payload: Payload) -> list[tuple[int, ast.Node]]:
        """The factors of a payload that are applied at the view itself, with their places in it."""
        own = self._own[id(view)]
        return [(place, self.query.factors[i]) for place, i in enumerate(payload) if i in own]

    def place(self, view: View, payload: Payload) -> int:
        """Where the part of a parent's payload that a view contributes begins among the elements; -1 if it
        has none.
        """
        below = self._below[id(view)] & self.elements
        return next((place for place, i in enumerate(payload) if i in below), -1)

    def type(self, payload: Payload) -> TypeRef:
        """The type of a product of rows' multiplicities and factors."""
        type_ = COUNT
        for i in payload:
            factor = self.query.factors[i]
            found = self.type_of(factor)
            if not self.types.multiplies(type_, found):
                message = f"{found} and {type_} cannot be multiplied"
                raise DlogError(message, span=factor.span or self.query.span)
            type_ = self.types.product(type_, found) or found
        return type_

    def name(self, view: View, payload: Payload) -> str:
        """AGG_VIEW_X; with several payloads the count is COUNT_VIEW_X, others have numbers from 2 on.

        An indicator of all variables of an atom is given by the rows of the atom, others by counts of them.
        """
        if view.atom is not None:
            whole = view.keys == self.query.atom(view.atom).variables
            return f"VIEW_{view.atom}" if whole else f"INDICATOR{self._number(view)}_{view.atom}"
        several = self.of(view)
        if len(several) > 1 and not payload:
            return f"COUNT_VIEW_{view.name}"
        number = [p for p in several if p].index(payload) if len(several) > 1 else 0
        return f"AGG_VIEW_{view.name}" + (f"_{number + 1}" if number else "")

    def _number(self, view: View) -> str:
        """Of an indicator: which of those of its atom with different keys; the first has none."""
        assert view.atom is not None
        known = list(dict.fromkeys(leaf.keys for leaf in self.tree.indicators(view.atom)))
        at = known.index(view.keys)
        return str(at + 1) if at else ""

    def type_of(self, node: ast.Node) -> TypeRef:
        """Of a scalar over variables of the query."""
        match node:
            case ast.Variable():
                return self.query.type_of(node.name)
            case ast.Constant():
                return TypeRef(node.type)
            case ast.Call():
                return node.type
            case ast.Product():
                return self._folded(node.factors, self.types.multiplies, self.types.product)
            case ast.Sum():
                return self._folded(node.terms, self.types.adds, self.types.sum)
        return TypeRef(CONDITION[DBTOASTER])

    def _folded(self, nodes: Iterable[ast.Node], fits, combine) -> TypeRef:
        type_: TypeRef | None = None
        for node in nodes:
            found = self.type_of(node)
            if type_ is not None and not fits(type_, found):
                raise DlogError(f"{type_} and {found} cannot be combined", span=node.span or self.query.span)
            type_ = found if type_ is None else combine(type_, found)
        assert type_ is not None
        return type_
