"""A join graph written from its definitions, over dicts and sets, and the view evaluated naively.

It shares no code with `dlog.joingraph` but the form of a body.  Rows are tuples, relations are sets of rows.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from dlog.joingraph.body import Atom, Body

OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Row = tuple[int, ...]
Relations = Mapping[str, set[Row]]
Binding = dict[str, int]


def bindings(atom: Atom, rows: set[Row], known: Binding) -> Iterator[Binding]:
    """What rows give to the variables, where they agree with what is known."""
    for row in rows:
        found = dict(known)
        for arg, code in zip(atom.args, row, strict=True):
            if (arg if isinstance(arg, int) else found.setdefault(arg, code)) != code:
                break
        else:
            yield found


def holds(body: Body, binding: Binding) -> bool:
    value = {**binding}
    sides = ((c.op, c.left, c.right) for c in body.comparisons)
    return all(
        OPERATORS[op](*(s if isinstance(s, int) else value[s] for s in (left, right)))
        for op, left, right in sides
    )


def view(body: Body, relations: Relations) -> Counter[Row]:
    """The view: every row with its number of assignments."""
    found = [{}]
    for atom in body.atoms:
        found = [new for known in found for new in bindings(atom, relations[atom.relation], known)]
    return Counter(tuple(b[v] for v in body.outputs) for b in found if holds(body, b))


class NaiveGraph:
    """The definitions: vertex values, join tuples and projected tuples of an instance.

    `tree`: (atom, atom, variables) for each vertex.
    """

    def __init__(self, body: Body, relations: Relations, tree: Sequence[tuple[int, int, Sequence[str]]]):
        self.body, self.tree = body, tree
        wanted = set(body.outputs)
        own = [{a for a in atom.args if isinstance(a, str)} for atom in body.atoms]
        decided = [c for c in body.comparisons if any(c.variables <= v for v in own)]
        for comparison in body.comparisons:
            if comparison not in decided:
                wanted |= comparison.variables
        self.values: list[set[Row]] = [set() for _ in tree]
        self.tuples: list[dict[Row, Counter[Row]]] = [{} for _ in body.atoms]
        for i, atom in enumerate(body.atoms):
            vertices = [(e, names) for e, (a, b, names) in enumerate(tree) if i in (a, b)]
            joined = {name for _, names in vertices for name in names}
            kept = [a for a in dict.fromkeys(atom.args) if a in wanted & own[i] - joined]
            mine = Body((atom,), (), tuple(c for c in decided if c.variables <= own[i]))
            for binding in bindings(atom, relations[atom.relation], {}):
                if holds(mine, binding):
                    for e, names in vertices:
                        self.values[e].add(tuple(binding[n] for n in names))
                    key = tuple(binding[n] for _, names in vertices for n in names)
                    payload = tuple(binding[n] for n in kept)
                    self.tuples[i].setdefault(key, Counter())[payload] += 1

    def complete_paths(self) -> int:
        """How many combinations of join tuples, one of each atom, are connected."""
        return sum(1 for _ in self.paths())

    def paths(self) -> Iterator[tuple[Row, ...]]:
        for path in product(*self.tuples):
            if all(self.at(a, e, path[a]) == self.at(b, e, path[b]) for e, (a, b, _) in enumerate(self.tree)):
                yield path

    def at(self, atom: int, vertex: int, key: Row) -> Row:
        """The vertex value of a join tuple."""
        place = 0
        for e, (a, b, names) in enumerate(self.tree):
            if atom in (a, b):
                if e == vertex:
                    return key[place : place + len(names)]
                place += len(names)
        raise AssertionError
