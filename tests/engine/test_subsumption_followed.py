"""Random programs with subsumption: the engine agrees with the naive evaluator, and with other algorithms."""

from __future__ import annotations

import heapq
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.commit.printed_facts import fact_text
from dlog.engine.why import derivation_tree
from tests.engine.followed import follow
from tests.engine.test_random_programs import agree
from tests.examples import relaxed
from tests.oracle.naive import base_facts, evaluate, evaluate_base
from tests.oracle.subsumptions import ANY, DECLARED, subsumptions

FRONT = """\
offer(price, days, stars) -> int(price), int(days), int(stars).
offer(p, d, s) <= offer(q, e, t) :- q <= p, e <= d, t >= s.
"""
PATHS = """\
edge(x, y, w) -> int(x), int(y), int(w).
path(x, y, d) <- edge(x, y, d), x = 0.
path(x, z, d + w) <- path(x, y, d), edge(y, z, w).
path(x, y, d) <= path(x, y, e) :- e < d.
"""


@relaxed(60)
@given(subsumptions())
def test_oracle_subsumption(text: str) -> None:
    agree(text)


@relaxed(30)
@given(st.data(), subsumptions())
def test_oracle_subsumption_in_transactions(data: st.DataObject, text: str) -> None:
    follow(data, text)


def test_rows_that_come_back_change_by_change() -> None:
    """A few rows come and go many times, so that the state of all rows is what is tested."""
    ways: set[str] = set()

    @relaxed(25)
    @given(
        st.lists(st.sampled_from(ANY), min_size=1, max_size=2),
        st.lists(
            st.tuples(st.sampled_from("+-"), st.integers(0, 3), st.integers(0, 3)), min_size=5, max_size=20
        ),
    )
    def check(conditions: list[str], steps: list[tuple[str, int, int]]) -> None:
        clauses = "".join(f"p(x, y, a, b) <= p(x, y, c, d) :- {condition}.\n" for condition in conditions)
        text = f"{DECLARED}p(1, 1, a, b) <- e(1, 1, a, b).\n{clauses}n(1). near(1, 2). near(2, 1).\n"
        program, db = dlog.check(text), dlog.Database(source=text)
        facts = base_facts(program)
        for number, (op, a, b) in enumerate(steps):
            name = "ep"[number % 2]
            commit = db.execute(f"{op}{name}(1, 1, {a}, {b}).")
            ways.update(way for changed, way in commit.ways.items() if changed == "p")
            (facts[name].add if op == "+" else facts[name].discard)((1, 1, a, b))
            expected = evaluate_base(program, {p: set(rows) for p, rows in facts.items()})
            assert set(db["p"].rows()) == expected["p"]
        db.check()

    check()
    assert "subsumptions" in ways


@pytest.mark.parametrize("strategy", ["delta", "trace", "views", "multilevel"])
def test_oracle_subsumption_under_each_strategy(strategy: str) -> None:
    @relaxed(8)
    @given(st.data(), subsumptions())
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, strategy)

    check()


def test_every_row_has_a_derivation() -> None:
    """Also one that was derived from a row that went later; the programs have such rows."""
    replaced = 0

    @relaxed(60)
    @given(subsumptions())
    def check(text: str) -> None:
        nonlocal replaced
        db = dlog.Database(source=text)
        for name in db.predicates():
            for row in db[name].rows()[:6]:
                fact = fact_text(db.program.predicates[name], row)
                tree = derivation_tree(db, fact)
                assert tree.startswith(fact)
                replaced += "replaced since" in tree

    check()
    assert replaced


@pytest.mark.fuzz
@relaxed(3000, random=True)
@given(st.data(), subsumptions())
def test_fuzz_subsumption(data: st.DataObject, text: str) -> None:
    follow(data, text)


@relaxed(60)
@given(st.sets(st.tuples(*[st.integers(0, 5)] * 3), max_size=30))
def test_oracle_pareto_front(offers: set[tuple[int, int, int]]) -> None:
    """Compared with the definition, for the engine and for the naive evaluator."""
    front = {
        a
        for a in offers
        if not any(b != a and b[0] <= a[0] and b[1] <= a[1] and b[2] >= a[2] for b in offers)
    }
    text = FRONT + "".join(f"offer{row}.\n" for row in offers)
    assert evaluate(dlog.check(text))["offer"] == front
    with dlog.Database(source=text) as db:
        assert set(db["offer"].rows()) == front


@relaxed(60)
@given(st.dictionaries(st.tuples(*[st.integers(0, 5)] * 2), st.integers(0, 4), max_size=15))
def test_oracle_shortest_distances(edges: dict[tuple[int, int], int]) -> None:
    """Compared with Dijkstra's algorithm."""
    text = PATHS + "".join(f"edge({x}, {y}, {w}).\n" for (x, y), w in edges.items())
    out = defaultdict(list)
    for (x, y), w in edges.items():
        out[x].append((w, y))
    best: dict[int, int] = {}
    queue = [(w, y) for w, y in out[0]]
    heapq.heapify(queue)
    while queue:
        distance, node = heapq.heappop(queue)
        if node not in best:
            best[node] = distance
            for w, y in out[node]:
                heapq.heappush(queue, (distance + w, y))
    with dlog.Database(source=text) as db:
        assert set(db["path"].rows()) == {(0, y, d) for y, d in best.items()}
