"""Plans: trees, searches in preorder, comparisons as soon as they can be decided, refusals, estimates."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.joingraph.body import Atom, Body, Comparison
from dlog.joingraph.estimates import graph_bytes, work
from dlog.joingraph.graph import JoinGraph
from dlog.joingraph.plan import Enter, Payload, Plan, Refusal, RowFilter, Search, plan_graph
from tests.examples import relaxed
from tests.joingraph.following import random_body


def planned(body: Body) -> Plan:
    plan = plan_graph(body)
    assert isinstance(plan, Plan)
    return plan


def test_what_is_refused_has_a_reason() -> None:
    assert plan_graph(Body((Atom("r", ("a",)),), ("a",))) == Refusal("it has one atom: nothing is joined")
    many = tuple(Atom("r", (f"a{i}", f"a{i + 1}")) for i in range(65))
    assert plan_graph(Body(many, ("a0",))) == Refusal("it has more than 64 atoms")
    square = tuple(Atom("r", (x, y)) for x, y in ("ab", "bc", "cd", "da"))
    assert plan_graph(Body(square, ("a",))) == Refusal("its atoms join in a cycle")


def test_constants_repeated_variables_and_comparisons_of_one_atom_filter_rows() -> None:
    atoms = Atom("r", ("a", 7, "a", "b")), Atom("s", ("b", "c"))
    comparisons = Comparison("<", 3, "b"), Comparison("!=", "a", "b"), Comparison("<", "a", "c")
    plan = planned(Body(atoms, ("c",), comparisons))
    assert plan.atoms[0].filters == (
        RowFilter("=", 1, 7, True),
        RowFilter("=", 2, 0, False),
        RowFilter(">", 3, 3, True),
        RowFilter("!=", 0, 3, False),
    )
    assert plan.atoms[1].filters == (RowFilter(">", 0, 3, True),)
    assert [step.tests for step in plan.searches[0].steps] == [(), (comparisons[2],)]


def test_payload_that_a_comparison_needs_comes_early() -> None:
    atoms = Atom("r", ("a", "x")), Atom("s", ("a", "b", "y")), Atom("t", ("b", "z"))
    compared = Comparison("<", "x", "y")
    plan = planned(Body(atoms, ("x", "y", "z"), (compared,)))
    enter, rows, *rest = plan.searches[0].steps
    assert (enter.atom, rows) == (1, Payload(1, (compared,)))
    assert [(type(step), step.atom) for step in rest] == [(Enter, 2), (Payload, 2)]
    plain = planned(Body(atoms, ("x", "y", "z"))).searches[0].steps
    assert [type(step) for step in plain] == [Enter, Enter, Payload, Payload]


@relaxed(200)
@given(seed=st.integers(0, 2**32))
def test_invariant_searches(seed: int) -> None:
    """Every other atom is entered once, after the atom that its vertex leads from; what is behind a step is
    between it and its end; every comparison that no atom decides is tested once."""
    body = random_body(Random(seed))
    plan = planned(body)
    decided = [c for c in body.comparisons if any(c.variables <= set(a.variables) for a in body.atoms)]
    for search in (*plan.searches, *plan.wholes):
        check_search(plan, search)
        tests = [test for step in search.steps for test in step.tests]
        assert sorted(map(str, tests)) == sorted(str(c) for c in body.comparisons if c not in decided)


def check_search(plan: Plan, search: Search) -> None:
    entered = {search.atom} - {None}
    for place, step in enumerate(search.steps):
        if isinstance(step, Payload):
            assert step.atom in entered
            continue
        vertex = plan.vertices[step.vertex]
        assert step.atom not in entered and place < step.end <= len(search.steps)
        if step.parent >= 0:
            above = search.steps[step.parent]
            assert isinstance(above, Enter) and above.atom == vertex.other(step.atom)
            assert step.parent < place and step.end <= above.end
        else:
            assert step.vertex == search.vertex or vertex.other(step.atom) == search.atom
        behind = [s for s in search.steps[place + 1 :] if isinstance(s, Enter) and s.parent >= place]
        assert all(search.steps.index(s) < step.end for s in behind if s.parent == place)
        entered.add(step.atom)
    assert entered == set(range(len(plan.atoms)))


class Table:
    """Statistics of arrays."""

    def __init__(self, **tables: np.ndarray):
        self.tables = tables

    def rows(self, name: str) -> int:
        return len(self.tables[name])

    def distinct(self, name: str, column: int) -> float:
        return len(np.unique(self.tables[name][:, column]))


@pytest.mark.parametrize("values", [300, 1000, 3000])
def test_estimates_agree_with_what_is_there(values: int) -> None:
    """For evenly distributed values: bytes within a third, visits and rows within a fifth."""
    n, random = 20_000, np.random.default_rng(1)
    atoms = Atom("r", ("a", "x")), Atom("s", ("a", "b", "y")), Atom("t", ("b", "z"))
    plan = planned(Body(atoms, ("x", "y", "z")))
    shapes = {"r": 2, "s": 3, "t": 2}
    tables = {name: np.unique(random.integers(0, values, (n, k)), axis=0) for name, k in shapes.items()}
    graph, statistics = JoinGraph(plan, "none"), Table(**tables)
    graph.build(tables)
    used = graph.memory()
    there = sum(used.values()) - used["free"] - used["plans"]
    assert 0.66 < graph_bytes(plan, statistics) / there < 1.5
    sample = tables["r"][random.permutation(len(tables["r"]))[:400]]
    before = graph.visits
    rows = len(graph.apply("r", erased=sample).counts)
    estimate = work(plan, 0, statistics)
    assert 0.8 < estimate.rows * len(sample) / rows < 1.25
    assert 0.8 < estimate.visits * len(sample) / (graph.visits - before) < 1.25
