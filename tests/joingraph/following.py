"""A join graph, the sets of rows that it must be the graph of, and random bodies and changes for both."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np

from dlog.joingraph import layout as at
from dlog.joingraph.body import COMPARISONS, Atom, Body, Comparison
from dlog.joingraph.check import GraphReader
from dlog.joingraph.graph import JoinGraph, ViewRows
from dlog.joingraph.plan import Plan, plan_graph
from tests.oracle.join_graph_naive import NaiveGraph, Relations, Row, view


def as_counter(rows: ViewRows) -> Counter[Row]:
    """Each row with the sum of its counts, where that is not 0."""
    found: Counter[Row] = Counter()
    table = np.array([*rows.columns, rows.counts]).T.tolist()
    for *row, count in table:
        found[tuple(row)] += count
    return Counter({row: count for row, count in found.items() if count})


def as_rows(rows: set[Row] | list[Row], arity: int) -> np.ndarray:
    return np.array(list(rows), np.int64).reshape(len(rows), arity)


def difference(new: Counter[Row], old: Counter[Row]) -> Counter[Row]:
    found = Counter(new)
    found.subtract(old)
    return Counter({row: count for row, count in found.items() if count})


class Followed:
    """Every change goes to both; each difference is compared with that of naive evaluations."""

    def __init__(self, body: Body, lookahead: str = "marks", indexed: int = at.INDEXED):
        plan = plan_graph(body)
        assert isinstance(plan, Plan), plan
        self.body, self.plan = body, plan
        self.graph = JoinGraph(plan, lookahead)
        self.graph.words[at.G_INDEXED] = indexed
        self.arity = {atom.relation: len(atom.args) for atom in body.atoms}
        self.relations: dict[str, set[Row]] = {name: set() for name in self.arity}
        self.view: Counter[Row] = Counter()

    def change(
        self,
        relation: str,
        erased: set[Row] = frozenset(),
        inserted: set[Row] = frozenset(),
        updated: list[tuple[Row, Row]] | tuple[()] = (),
        wanted: bool = True,
    ) -> Counter[Row]:
        """REQUIRES: net rows."""
        rows, arity = self.relations[relation], self.arity[relation]
        before, after = [b for b, _ in updated], [a for _, a in updated]
        assert not erased - rows and not inserted & rows
        rows -= erased
        rows -= set(before)
        rows |= inserted
        rows |= set(after)
        new = view(self.body, self.relations)
        pairs = (as_rows(before, arity), as_rows(after, arity)) if updated else None
        got = as_counter(
            self.graph.apply(relation, as_rows(erased, arity), as_rows(inserted, arity), pairs, wanted)
        )
        expected = difference(new, self.view) if wanted else Counter()
        assert got == expected, (self.body, relation, erased, inserted, updated)
        self.view = new
        return got

    def insert(self, relation: str, *rows: Row) -> Counter[Row]:
        return self.change(relation, inserted=set(rows))

    def erase(self, relation: str, *rows: Row) -> Counter[Row]:
        return self.change(relation, erased=set(rows))

    def check(self) -> None:
        """The graph is sound, is that of the definitions, and gives the view."""
        self.graph.check()
        naive = naive_graph(self.plan, self.relations)
        graph = GraphReader(self.graph)
        assert [graph.vertex_keys(e) for e in range(len(self.plan.vertices))] == naive.values
        assert [graph.described(i) for i in range(len(self.plan.atoms))] == naive.tuples
        assert as_counter(self.graph.whole()) == self.view == view(self.body, self.relations)

    def atom(self, i: int) -> dict[Row, dict[Row, int]]:
        """The payload rows of an atom, by its vertex values."""
        return GraphReader(self.graph).described(i)

    def vertex(self, e: int) -> set[Row]:
        return GraphReader(self.graph).vertex_keys(e)

    def is_empty(self) -> bool:
        """Whether no word is in use."""
        return not self.graph.words[at.G_USED : at.G_USED + len(at.KINDS)].any()


def naive_graph(plan: Plan, relations: Relations) -> NaiveGraph:
    return NaiveGraph(plan.body, relations, [(*v.atoms, v.variables) for v in plan.vertices])


# ---- random bodies and changes


def random_body(random: Random, least: int = 2, most: int = 6) -> Body:
    """An acyclic body: each atom shares variables with one before it."""
    atoms: list[Atom] = []
    shapes: dict[str, int] = {}
    n = random.randint(least, most)
    for i in range(n):
        name = random.choice("rstu")
        arity = shapes.setdefault(name, random.randint(1, 3))
        old = list(random.choice(atoms).variables) if atoms else []
        shared = random.sample(old, min(len(old), arity, random.choice((0, 1, 1, 1, 1, 2))))
        fresh = [f"{'abcdef'[i]}{c}" for c in range(arity)]
        args: list[str | int] = [*shared, *fresh][:arity]
        if random.random() < 0.15 and len(args) > len(shared):
            args[-1] = random.choice((args[0], random.randint(0, 2)))
        random.shuffle(args)
        atoms.append(Atom(name, tuple(args)))
    variables = list(dict.fromkeys(v for atom in atoms for v in atom.variables))
    outputs = random.sample(variables, random.randint(0, len(variables)))
    if random.random() < 0.3:
        outputs = variables
    comparisons = [
        Comparison(random.choice(COMPARISONS), *random.choice(_sides(random, variables)))
        for _ in range(random.choice((0, 0, 1, 1, 2)) if variables else 0)
    ]
    return Body(tuple(atoms), tuple(outputs), tuple(comparisons))


def _sides(random: Random, variables: list[str]) -> list[tuple[str | int, str | int]]:
    one, other, code = random.choice(variables), random.choice(variables), random.randint(0, 2)
    return [(one, other), (one, other), (one, code), (code, one)]


def random_start(random: Random, followed: Followed, codes: int) -> None:
    """Some rows for every relation."""
    for relation, arity in followed.arity.items():
        n = random.randint(0, 8)
        followed.insert(relation, *{tuple(random.randrange(codes) for _ in range(arity)) for _ in range(n)})


def random_change(random: Random, followed: Followed, codes: int, most: int = 3) -> None:
    """A few rows of one relation are erased, inserted and updated."""
    relation = random.choice(list(followed.relations))
    arity, there = followed.arity[relation], followed.relations[relation]
    erased = set(random.sample(sorted(there), min(len(there), random.randint(0, most))))
    given = {tuple(random.randrange(codes) for _ in range(arity)) for _ in range(random.randint(0, most))}
    inserted = given - there
    rest = sorted(there - erased)
    before = random.sample(rest, min(len(rest), random.randint(0, most)))
    updated = []
    for row in before if arity else ():
        after = list(row)
        after[random.randrange(arity)] = random.randrange(codes)
        if tuple(after) not in there | inserted:
            updated.append((row, tuple(after)))
            inserted |= {tuple(after)}
    inserted -= {after for _, after in updated}
    followed.change(relation, erased, inserted, updated, wanted=random.random() < 0.9)
