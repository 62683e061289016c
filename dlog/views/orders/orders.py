"""Owns variable orders of a query: making one from its edges, checking it, and finding a good one.

Knows no text and no views.

The search.  Taking a variable X as the root of a connected part of the query leaves parts that are
connected without X, and their orders can be chosen independently: the ancestors that a part depends on are
its neighbours, however they were chosen.  So the best order of a part is the best root, with the best orders
of what it leaves.  Variables that the same atoms have, and that are all free or all bound, are one *class*, a
chain in the order: a wide relation has few.  Each part is solved once.  The root of
a part with more than `MOST_ROOTS` candidates is chosen greedily, and so are all when `MOST_TRIES` were tried.

The goal: small views (each at most the product of the sizes of atoms that cover
its variables) and few rows touched when every row of a stream comes once; then, few keys.  An atom of unknown
size is assumed to be the larger the more variables it joins on, as the fact table of a snowflake is.  Free
variables are on top unless that costs more than `WORTH` times as much.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlog.errors import DlogError
from dlog.views.query import Query
from dlog.views.tree.tree import OrderNode, VariableOrder

MOST_TRIES = 3000
MOST_ROOTS = 12
DOMAIN = 100.0  # values of a variable that several atoms have, if nothing is known
WORTH = 4.0
DEGREE = 10.0  # rows that one value of a variable is expected to have, if nothing is known


def find_order(
    query: Query, sizes: Mapping[str, int] | None = None, free_on_top: bool = False
) -> VariableOrder:
    """A variable order for the query; `sizes` are rows of atoms, by name.  `free_on_top`: free variables are
    on top, whatever it costs.

    O((MOST_TRIES + classes^2) * atoms).
    """
    parents: dict[str, str | None] = {}
    for search, _, part in searches(query, sizes, free_on_top):
        search.chain(part, None, parents)
    return arrange(query, parents)


def searches(
    query: Query, sizes: Mapping[str, int] | None = None, free_on_top: bool = False
) -> Iterator[tuple[Search, Search, frozenset[int]]]:
    """For each connected part of a query the search whose order is taken, and the other: free variables on
    top or anywhere.
    """
    anywhere, on_top = Search(query, sizes or {}), Search(query, sizes or {}, True)
    for part in anywhere.parts(frozenset(range(len(anywhere.classes)))):
        if free_on_top or on_top.solve(part)[0][0] <= WORTH * anywhere.solve(part)[0][0]:
            yield on_top, anywhere, part
        else:
            yield anywhere, on_top, part


def arrange(query: Query, parents: Mapping[str, str | None], cached: Iterable[str] = ()) -> VariableOrder:
    """The variable order with these edges (variable to the one above it), its dependencies and atoms.

    Children are in the order of `parents`.  Raises if the variables of a relation are not on one path.
    """
    below: dict[str | None, list[str]] = {}
    for variable, parent in parents.items():
        below.setdefault(parent, []).append(variable)
    _check_forest(query, parents, below)
    paths = _paths(below)
    lowest = {atom.name: _lowest(paths, atom.variables, atom.name) for atom in query.atoms}
    subtrees = _subtrees(below)
    keep = set(cached)

    def node(variable: str) -> OrderNode:
        inside = subtrees[variable]
        linked = {v for atom in query.atoms if not inside.isdisjoint(atom.variables) for v in atom.variables}
        return OrderNode(
            variable,
            tuple(v for v in paths[variable][:-1] if v in linked),
            tuple(map(node, below.get(variable, ()))),
            tuple(name for name, at in lowest.items() if at == variable),
            variable in keep,
        )

    return VariableOrder(tuple(map(node, below.get(None, ()))))


def _lowest(paths: Mapping[str, tuple[str, ...]], variables: Sequence[str], relation: str) -> str:
    """The lowest variable of a relation, whose variables must be on one path."""
    deepest = max(variables, key=lambda v: len(paths[v]))
    beside = [v for v in variables if v not in paths[deepest]]
    if beside:
        message = (
            f"the variables of relation {relation} do not lie on one path: {beside[0]} is not above {deepest}"
        )
        raise DlogError(message, help="put one below the other in the variable order")
    return deepest


def _check_forest(
    query: Query, parents: Mapping[str, str | None], below: Mapping[str | None, list[str]]
) -> None:
    for variable in query.variables:
        if variable not in parents:
            raise DlogError(f"variable {variable} of the query is not in the variable order")
    for variable in parents:
        if variable not in query.variables:
            raise DlogError(f"variable {variable} of the variable order is not in the query")
    reached = list(below.get(None, ()))
    for variable in reached:
        reached.extend(below.get(variable, ()))
    if len(reached) != len(parents):
        lost: str | None = next(v for v in parents if v not in reached)
        seen: list[str] = []
        while lost is not None and lost not in seen:  # one that is only below a cycle is not below itself
            seen.append(lost)
            lost = parents[lost]
        raise DlogError(f"variable {lost} is below itself in the variable order")


def _paths(below: Mapping[str | None, list[str]]) -> dict[str, tuple[str, ...]]:
    paths: dict[str, tuple[str, ...]] = {}
    pending: list[tuple[str, tuple[str, ...]]] = [(v, ()) for v in below.get(None, ())]
    while pending:
        variable, above = pending.pop()
        paths[variable] = (*above, variable)
        pending.extend((child, paths[variable]) for child in below.get(variable, ()))
    return paths


def _subtrees(below: Mapping[str | None, list[str]]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}

    def visit(variable: str) -> frozenset[str]:
        parts = [visit(child) for child in below.get(variable, ())]
        found[variable] = frozenset((variable,)).union(*parts)
        return found[variable]

    for root in below.get(None, ()):
        visit(root)
    return found


# The search

Cost = tuple[float, int]


@dataclass(frozen=True)
class _Class:
    variables: tuple[str, ...]
    scopes: frozenset[int]
    free: bool


class Search:
    def __init__(self, query: Query, sizes: Mapping[str, int], free_first: bool = False):
        self.query, self.tries, self.free_first, streams = query, 0, free_first, set(query.streams)
        self.scopes = query.scopes
        self.classes = _classes(query)
        numbers = range(len(self.classes))
        self.members = [  # of each scope
            frozenset(c for c in numbers if s in self.classes[c].scopes) for s in range(len(self.scopes))
        ]
        self.beside = [
            frozenset().union(*(self.members[s] for s in self.classes[c].scopes)) - {c} for c in numbers
        ]
        self.atoms = [
            (frozenset(c for c in numbers if self.classes[c].variables[0] in atom.variables),
             float(max(sizes.get(atom.name) or self._guess(atom.variables), 1)), atom.name in streams)
            for atom in query.atoms
        ]  # fmt: skip
        self.domains = [
            min(
                float(sizes.get(atom.name) or DOMAIN)
                for atom in query.atoms
                if c.variables[0] in atom.variables
            )
            for c in self.classes
        ]
        self.free = frozenset(c for c in numbers if self.classes[c].free)
        self.best: dict[frozenset[int], tuple[Cost, int]] = {}

    def _guess(self, variables: Sequence[str]) -> float:
        shared = {v for c in self.classes if len(c.scopes) > 1 for v in c.variables}
        return DOMAIN ** max(len(shared.intersection(variables)), 1)

    # ---- parts

    def parts(self, part: frozenset[int]) -> list[frozenset[int]]:
        """The connected parts, each once, in the order of the query."""
        left, found = set(part), []
        for c in sorted(part):
            if c not in left:
                continue
            reached, pending = {c}, [c]
            while pending:
                new = (self.beside[pending.pop()] & part) - reached
                reached |= new
                pending.extend(new)
            left -= reached
            found.append(frozenset(reached))
        return found

    def neighbours(self, part: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(self.beside[c] for c in part)) - part

    def chain(self, part: frozenset[int], above: str | None, parents: dict[str, str | None]) -> None:
        """Records the order of a part, below a variable."""
        pending = [(part, above)]
        while pending:
            part, above = pending.pop(0)
            root = self.solve(part)[1]
            for variable in self.classes[root].variables:
                parents[variable] = above
                above = variable
            pending.extend((below, above) for below in self.parts(part - {root}))

    # ---- costs

    def solve(self, part: frozenset[int]) -> tuple[Cost, int]:
        """The cost of the best order of a connected part, and its root."""
        known = self.best.get(part)
        if known is not None:
            return known
        candidates = self.candidates(part)
        self.tries += len(candidates)
        if len(candidates) > MOST_ROOTS or self.tries > MOST_TRIES:
            candidates = [min(candidates, key=lambda c: self._greedy(part, c))]
        found = min((self.with_root(part, root), root) for root in candidates)
        self.best[part] = found
        return found

    def candidates(self, part: frozenset[int]) -> list[int]:
        """Variables that cut the part, and free ones; if there are none, any: they are one class."""
        if self.free_first and part & self.free:
            return sorted(part & self.free)
        cutting = [c for c in part if len(self.classes[c].scopes) > 1 or c in self.free]
        return sorted(cutting or part)

    def with_root(self, part: frozenset[int], root: int) -> Cost:
        cost = self.local(part, root)
        for below in self.parts(part - {root}):
            work, keys = self.solve(below)[0]
            cost = cost[0] + work, cost[1] + keys
        return cost

    def local(self, part: frozenset[int], root: int) -> Cost:
        """The cost of the view at the root of a part."""
        above = self.neighbours(part)
        keys = above | (part & self.free)
        joined = keys | {root}
        touched = sum(
            size * DEGREE ** len(joined - atom)
            for atom, size, is_stream in self.atoms
            if is_stream and atom & part
        )
        return self.size(joined) + touched, len(keys)

    def size(self, classes: frozenset[int]) -> float:
        """At most this many rows: the product of atoms that cover the classes, chosen greedily, and exactly
        the least when one or two do; or the product of numbers of values.
        """
        return min(self._covered(classes), _product(self.domains[c] for c in classes))

    def _covered(self, classes: frozenset[int]) -> float:
        relevant = [(atom & classes, size) for atom, size, _ in self.atoms if atom & classes]
        for number in (1, 2) if len(relevant) < 20 else (1,):
            fits = [
                _product(size for _, size in chosen)
                for chosen in itertools.combinations(relevant, number)
                if frozenset().union(*(atom for atom, _ in chosen)) == classes
            ]
            if fits:
                return min(fits)
        left, total = set(classes), 1.0
        while left:
            atom, size = max(relevant, key=lambda pair: (len(pair[0] & left), -pair[1]))
            left -= atom
            total *= size
        return total

    def _greedy(self, part: frozenset[int], root: int) -> tuple[float, int, Cost]:
        """Roots that leave parts whose neighbours one atom covers; small parts first."""
        parts = self.parts(part - {root})
        sizes = sum(self.size(self.neighbours(below)) for below in parts)
        return sizes, max(map(len, parts), default=0), self.local(part, root)


def _classes(query: Query) -> list[_Class]:
    found: dict[tuple[frozenset[int], bool], list[str]] = {}
    for variable in query.variables:
        scopes = frozenset(i for i, scope in enumerate(query.scopes) if variable in scope)
        found.setdefault((scopes, variable in query.free), []).append(variable)
    return [_Class(tuple(variables), scopes, free) for (scopes, free), variables in found.items()]


def _product(numbers: Iterable[float]) -> float:
    total = 1.0
    for number in numbers:
        total *= number
    return total
