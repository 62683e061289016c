"""Random queries with what happens to their relations: schemas that are trees or have cycles, self-joins,
free variables anywhere, factors of one and of several variables, conditions, tables and streams, deletions.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import strategies as st

from dlog.m3.syntax import ast
from dlog.views.orders.orders import arrange
from dlog.views.query import Aggregate, Atom, Query, Term, count
from dlog.views.tree.tree import VariableOrder
from tests.views.schemas import var


@dataclass
class Case:
    query: Query
    order: VariableOrder | None
    tables: dict[str, list[tuple[int, ...]]]
    batches: list[tuple[str, list[tuple[int, ...]], list[int]]]


@st.composite
def queries(draw, types=("int", "long"), cyclic=False):
    """Each relation takes one variable, or two of one relation, from those before it: a join tree, unless it
    may have cycles.
    """
    n = draw(st.integers(1, 4))
    relations: list[list[str]] = []
    for r in range(n):
        known = sorted({v for columns in relations for v in columns})
        if cyclic:
            shared = draw(st.lists(st.sampled_from(known), unique=True, max_size=2)) if known else []
        else:
            other = draw(st.sampled_from(relations)) if relations else []
            shared = draw(st.lists(st.sampled_from(other), unique=True, max_size=2)) if other else []
        own = [f"{'RSTU'[r].lower()}{i}" for i in range(draw(st.integers(0 if shared else 1, 2)))]
        relations.append(draw(st.permutations([*shared, *own])))
    return draw(aggregations(relations, types))


CYCLES = {
    "triangle": ("ab", "bc", "ca"),
    "triangle of wide relations": ("abx", "bcy", "caz"),
    "triangles that share a variable": ("abx", "bcx", "ca"),
    "triangle twice bound": ("ab", "bc", "ca", "ab"),
    "two triangles": ("ab", "bc", "ca", "cd", "da"),
    "square": ("ab", "bc", "cd", "da"),
    "wide relation in cycles": ("abc", "ad", "bd", "cd"),
    "clique": ("ab", "ac", "ad", "bc", "bd", "cd"),
}


@st.composite
def cyclic_patterns(draw):
    """Joins whose views need indicators."""
    edges = draw(st.sampled_from(sorted(CYCLES.values())))
    return draw(aggregations([draw(st.permutations(edge)) for edge in edges], ("int", "long")))


@st.composite
def aggregations(draw, relations, types):
    """Relations, some of them the same, with streams and tables, groups, aggregates and conditions."""
    atoms, sources = [], []
    for r, columns in enumerate(relations):
        same = [s for s in sources if len(s.columns) == len(columns)]
        if same and draw(st.booleans()):
            source = draw(st.sampled_from(same))
            atoms.append(Atom(source.name, tuple(columns), f"{source.name}{r}"))
            continue
        kind = draw(st.sampled_from((ast.STREAM, ast.STREAM, ast.TABLE)))
        named = tuple(
            ast.Column(f"c{i}", ast.TypeRef(draw(st.sampled_from(types)))) for i in range(len(columns))
        )
        sources.append(ast.Source(kind, "RSTUVW"[r], named))
        atoms.append(Atom("RSTUVW"[r], tuple(columns)))
    variables = sorted({v for columns in relations for v in columns})
    free = tuple(draw(st.lists(st.sampled_from(variables), unique=True, max_size=2)))
    found = draw(st.lists(st.lists(terms(variables), min_size=1, max_size=2), min_size=1, max_size=3))
    aggregates = [Aggregate(f"a{i}", tuple(parts)) for i, parts in enumerate(found)]
    if draw(st.booleans()):
        aggregates += [count("n"), Aggregate("mean", aggregates[0].terms, divisor="n")]
    if draw(st.booleans()):  # the divisor may be 0
        aggregates.append(Aggregate("ratio", aggregates[0].terms, divisor=f"a{len(found) - 1}"))
    conditions = draw(st.lists(comparisons(variables), max_size=1))
    return Query(tuple(sources), tuple(atoms), tuple(aggregates), free, tuple(conditions))


@st.composite
def terms(draw, variables):
    return Term(tuple(draw(st.lists(factors(variables), max_size=3))))


@st.composite
def factors(draw, variables):
    kind = draw(st.integers(0, 5))
    x, y = var(draw(st.sampled_from(variables))), var(draw(st.sampled_from(variables)))
    if kind == 0:
        return ast.Constant("int", draw(st.sampled_from((2, -3))))
    if kind == 1:
        return ast.Sum((x, ast.Constant("int", 1)))
    if kind == 2:
        return ast.Sum((x, ast.Product((y, ast.Constant("int", -1)))))
    return x


@st.composite
def comparisons(draw, variables):
    x, y = var(draw(st.sampled_from(variables))), var(draw(st.sampled_from(variables)))
    op = draw(st.sampled_from(ast.COMPARISONS))
    if draw(st.booleans()) or x == y:
        return ast.Comparison(op, x, ast.Constant("int", draw(st.integers(0, 2))))
    return ast.Comparison(op, x, y)


@st.composite
def random_order(draw, query):
    """Any valid order: a random root of each connected part."""
    parents: dict[str, str | None] = {}
    pending = [(part, None) for part in _parts(query, set(query.variables))]
    while pending:
        part, above = pending.pop()
        root = draw(st.sampled_from(sorted(part)))
        parents[root] = above
        pending.extend((below, root) for below in _parts(query, part - {root}))
    return arrange(query, parents)


def _parts(query, variables):
    left, found = set(variables), []
    while left:
        reached = {min(left)}
        while True:
            more = {v for s in query.scopes if reached & set(s) for v in s} & variables
            if more <= reached:
                break
            reached |= more
        found.append(reached)
        left -= reached
    return found


@st.composite
def cases(draw, cyclic=False):
    query = draw(queries(cyclic=True) | cyclic_patterns() if cyclic else queries())
    order = draw(st.none() | random_order(query))
    present: dict[str, Counter] = {s.name: Counter() for s in query.sources}
    tables = {s.name: draw(rows(s)) for s in query.sources if s.kind == ast.TABLE}
    streams = [s for s in query.sources if s.kind == ast.STREAM]
    batches = []
    first = [s for s in streams if draw(st.integers(0, 9))]  # mostly all: a join with nothing says little
    later = [draw(st.sampled_from(streams)) for _ in range(draw(st.integers(0, 4)))] if streams else []
    for source in (*first, *later):
        inserted = draw(rows(source))
        old = sorted(present[source.name].elements())
        deleted = draw(st.lists(st.sampled_from(range(len(old))), unique=True, min_size=1)) if old else []
        gone = [old[i] for i in deleted]
        present[source.name].update(inserted)
        present[source.name].subtract(gone)
        batches.append((source.name, inserted + gone, [1] * len(inserted) + [-1] * len(gone)))
    return Case(query, order, tables, batches)


@st.composite
def rows(draw, source):
    row = st.tuples(*(st.sampled_from((1, 1, 2, 0, -1)) for _ in source.columns))
    return draw(st.lists(row, min_size=draw(st.sampled_from((0, 2, 3))), max_size=5))
