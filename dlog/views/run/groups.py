"""Owns the groups of an aggregation query over integers in codes: rows of changes in, the groups that changed
out, by its maps.  Those of its view tree are here.  Knows no engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dlog.errors import DataError
from dlog.jit import Words
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.views.m3.program import NATIVE, lower_names, m3_program
from dlog.views.orders.orders import find_order
from dlog.views.query import Query, Term, count
from dlog.views.run.kept_maps import KeptMaps, Name
from dlog.views.tree.build import view_tree
from dlog.views.tree.payloads import COUNT, Payload, Payloads, Shown
from dlog.views.tree.tree import ViewTree


@dataclass(frozen=True)
class Groups:
    """Groups, (n, keys), with the number of their assignments and their sums, before and after."""

    keys: Words
    counts: tuple[Words, Words]
    sums: tuple[Mapping[str, Words], Mapping[str, Words]]


@dataclass(frozen=True)
class Results:
    """Where a row of drained changes has what a query asks for: its keys come first, then for each map the
    value before and the value after."""

    keys: tuple[str, ...]
    values: Mapping[str, tuple[int, ...]]  # of aggregates: the places of the values before that add up to it
    count: int  # the same of the number of assignments
    width: int  # words of a row


class GroupMaps(KeptMaps[Name]):
    """Maps of a query."""

    def results(self) -> Results | None:
        """None: nothing counts what a group is made of."""
        raise NotImplementedError

    def changed_groups(self) -> Groups:
        """The groups that have changed since the last call.  O(changes)."""
        raise NotImplementedError


class GroupViews(GroupMaps[Payload]):
    """The views of a query, and which groups changed.  REQUIRES: `is_integral(query)`."""

    def __init__(
        self,
        query: Query,
        dictionary: Dictionary,
        sizes: Mapping[str, int] | None = None,
        threads: int | None = None,
    ):
        query.check()
        self.query, self.sizes = query, dict(sizes or {})
        self.tree: ViewTree = view_tree(query, find_order(query, sizes))
        self.payloads = Payloads(query, self.tree)
        root = self.tree.root
        roots: dict[Payload, str] = {p: self.payloads.name(root, p) for p in self.payloads.of(root)}
        names = lower_names(query.variables)
        keys = [names[variable] for variable in query.free]
        super().__init__(m3_program(query, self.tree, NATIVE), roots, keys, dictionary, threads)

    def changed_groups(self) -> Groups:
        found = self.changed()
        return Groups(
            found.keys,
            (found.before[()], found.after[()]),
            (self._sums(found.before), self._sums(found.after)),
        )

    def results(self) -> Results:
        shown = self.payloads.shown
        values = {s.aggregate.name: tuple(self.places[p] for p in s.payloads) for s in shown}
        return Results(tuple(self.query.free), values, self.places[()], self.width)

    def _sums(self, values: Mapping[Payload, Words]) -> dict[str, Words]:
        return {s.aggregate.name: _added(s, values) for s in self.payloads.shown}


def with_count(query: Query) -> Query:
    """The query with the number of assignments, which shows whether there are any."""
    if any(a.terms == (Term(),) for a in query.aggregates):
        return query
    return replace(query, aggregates=(*query.aggregates, replace(count("number of rows"), hidden=True)))


def is_integral(query: Query) -> bool:
    """Whether all sums are of integers, and the number of assignments is among the aggregates."""
    tree = view_tree(query, find_order(query))
    payloads = Payloads(query, tree)
    found = payloads.of(tree.root)
    return () in found and all(payloads.type(p) == COUNT for p in found)


def _added(shown: Shown, values: Mapping[Payload, Words]) -> Words:
    """Raises DataError if a total does not fit 64 bits."""
    total = values[shown.payloads[0]]
    for payload in shown.payloads[1:]:
        more, before = values[payload], total
        total = before + more
        if (((before ^ total) & (more ^ total)) < 0).any():
            raise DataError(f"{shown.aggregate.name} does not fit 64 bits")
    return total.copy()
