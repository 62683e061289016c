"""Few rows whose changes are prepared do what `JoinGraph.apply` does, and are undone like it."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np

from dlog.joingraph.body import Atom, Body
from dlog.joingraph.few_rows import FewRows
from dlog.joingraph.graph import JoinGraph, ViewRows
from dlog.joingraph.plan import Plan, plan_graph
from tests.joingraph.following import as_counter

BODIES = [
    Body((Atom("r", ("a", "b")), Atom("s", ("b", "c"))), ("a", "c")),
    Body((Atom("r", ("a", "b")), Atom("s", ("b", "c")), Atom("r", ("c", "d"))), ("a", "d")),
    Body((Atom("r", ("a", "b")), Atom("r", ("b", "c"))), ("a", "b", "c")),
    Body((Atom("r", ("a", "b")), Atom("s", ("b", "c"))), ()),
]


def planned(body: Body) -> Plan:
    plan = plan_graph(body)
    assert isinstance(plan, Plan)
    return plan


def found(few: FewRows, n: int) -> Counter[tuple[int, ...]]:
    rows = few.out.rows(n)
    return as_counter(ViewRows(list(rows[:-1]), rows[-1]))


def test_oracle_same_as_apply() -> None:
    draw = Random(1)
    for body in BODIES * 5:
        plan = planned(body)
        one, other = JoinGraph(plan), JoinGraph(plan)
        few = {(r, sign): FewRows(one, r, sign) for r in plan.body.relations for sign in (False, True)}
        rows: dict[str, set[tuple[int, int]]] = {r: set() for r in plan.body.relations}
        for _ in range(80):
            undone, before = draw.random() < 0.3, {r: set(own) for r, own in rows.items()}
            for _ in range(draw.randint(1, 3)):
                relation = draw.choice(sorted(rows))
                inserts = draw.random() < 0.6
                fresh = {(draw.randrange(4), draw.randrange(4)) for _ in range(draw.choice((1, 1, 5)))}
                changed = sorted(fresh - rows[relation] if inserts else fresh & rows[relation])
                if not changed:
                    continue
                array = np.array(changed, np.int64)
                n = few[relation, inserts].apply(changed if draw.random() < 0.5 else array)
                got = found(few[relation, inserts], n)
                parts = {"inserted": array} if inserts else {"erased": array}
                assert got == as_counter(other.apply(relation, **parts))
                rows[relation] = rows[relation] | fresh if inserts else rows[relation] - fresh
            for graph in (one, other):
                graph.undo() if undone else graph.settle()
            if undone:
                rows = before
            one.check()
            assert as_counter(one.whole()) == as_counter(other.whole())


def test_more_rows_than_there_is_room_for() -> None:
    plan = planned(BODIES[0])
    graph = JoinGraph(plan)
    graph.apply("s", inserted=np.array([(1, c) for c in range(5000)]))
    few = FewRows(graph, "r", True)
    for a in (1, 2):
        assert few.apply([(a, 1)]) == 5000
        assert found(few, 5000) == Counter({(a, c): 1 for c in range(5000)})
    graph.undo()
    assert not as_counter(graph.whole())
    graph.undo()
