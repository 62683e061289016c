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
from tests.oracle.naive import evaluate
from tests.oracle.subsumptions import subsumptions

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


@relaxed(150)
@given(subsumptions())
def test_oracle_subsumption(text: str) -> None:
    agree(text)


@relaxed(60)
@given(st.data(), subsumptions())
def test_oracle_subsumption_in_transactions(data: st.DataObject, text: str) -> None:
    follow(data, text)


@pytest.mark.parametrize("strategy", ["delta", "trace", "views", "multilevel"])
def test_oracle_subsumption_under_each_strategy(strategy: str) -> None:
    @relaxed(20)
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
