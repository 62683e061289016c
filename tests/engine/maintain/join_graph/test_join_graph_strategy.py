"""Rules maintained by their join graphs in transactions: the answers of the naive evaluator after every
transaction, committed or rolled back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain.join_graph.keep import JoinGraphStrategy
from tests.engine.followed import follow, follow_single_rows
from tests.examples import relaxed
from tests.oracle.programs import ALL, CONJUNCTIVE, NONRECURSIVE, programs

GRAPH = "join_graph"

# Acyclic joins: chains, stars, projections, self-joins, literals, comparisons of variables of one atom and of
# several, several rules, aggregates, primitives, and heads that other rules read.
BODIES = [
    "far(x, z) <- edge(x, y), edge(y, z).",
    "far(x, v) <- edge(x, y), edge(y, z), edge(z, v).",
    "far(x, x2) <- edge(x, y), edge(x2, y).",
    "far(x, y) <- edge(x, y), g(x), g(y).",
    "far(x, z) <- edge(x, y), edge(y, z), x < z.",
    "far(x, z) <- edge(x, y), edge(y, z), x != 1, z > 0.",
    "far(x, 7) <- edge(x, x), edge(x, y), g(y).",
    "far(x, z) <- edge(x, 1), edge(1, z), g(z).",
    "far(x, z) <- edge(x, y), edge(y, z). far(x, x) <- g(x), edge(x, _).",
    "far(x, s) <- edge(x, y), edge(y, z), s = x + z.",
    "far(x, z) <- edge(x, y), edge(y, z). near(x) <- far(x, y), g(y).",
    "near[x] = n, most[x] = m <- agg<<n = count(), m = max(z)>> edge(x, y), edge(y, z).",
    "some() <- edge(x, y), g(y).",
    "far(x, z) <- edge(x, _), g(z), edge(_, z).",
]


@pytest.mark.parametrize("text", BODIES)
def test_bodies(text: str) -> None:
    base = "edge(x, y) -> int(x), int(y). g(x) -> int(x). edge(1, 2). edge(2, 2). edge(2, 3). g(2).\n"

    @relaxed(12)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        follow(data, base + text, GRAPH, most=8)

    check()


def test_oracle_random_programs() -> None:
    @relaxed(60)
    @given(st.data(), programs(NONRECURSIVE))
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, GRAPH)

    check()


def test_oracle_joins() -> None:
    @relaxed(60)
    @given(st.data(), programs(CONJUNCTIVE.with_("comparisons", "functions", "aggregates", "several_heads")))
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, GRAPH, most=8)

    check()


def test_single_rows() -> None:
    short = follow_single_rows(60, GRAPH)
    assert sum(short) > 20


@pytest.mark.fuzz
def test_fuzz() -> None:
    @relaxed(3000)
    @given(st.data(), programs(ALL))
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, GRAPH, most=10)

    check()


SOCIAL = """
follower(u, f) -> int(u), int(f). tweet(u, t) -> int(u), int(t).
timeline(f, u, t) <- follower(u, f), tweet(u, t).
"""


def ways(db: dlog.Database) -> dict[str, str]:
    return {s.stratum.predicates[0]: s.way for s in db._maintenance.strategies.values()}


def run(db: dlog.Database, *changes: tuple[str, str, tuple[Any, ...]]) -> None:
    with db.transaction() as tx:
        for op, name, row in changes:
            (tx.insert if op == "+" else tx.erase)(name, [row])


def test_a_rolled_back_transaction_is_undone() -> None:
    db = dlog.Database(source=SOCIAL + "tweet(u, t) -> t < 100.\n", strategy=GRAPH)
    run(db, ("+", "follower", (1, 2)), ("+", "tweet", (1, 10)))
    assert ways(db)["timeline"] == GRAPH
    for _ in range(3):
        with pytest.raises(dlog.errors.ConstraintError):
            run(db, ("+", "follower", (1, 3)), ("-", "follower", (1, 2)), ("+", "tweet", (1, 100)))
        db.check()
    run(db, ("+", "follower", (1, 4)))
    assert sorted(db["timeline"].rows()) == [(2, 1, 10), (4, 1, 10)]
    db.check()


def test_what_is_shown() -> None:
    db = dlog.Database(source=SOCIAL, strategy=GRAPH)
    text = db.explain()
    assert "join graph of 2 atoms" in text
    assert "vertex u: follower(u, f), tweet(u, t)" in text
    assert "change of tweet(u, t): follower by u, rows of follower" in text
    strategy = db._maintenance.strategies
    assert not strategy or all(isinstance(s, JoinGraphStrategy) for s in strategy.values())


def test_refusals_fall_to_deltas() -> None:
    db = dlog.Database(
        source="e(x, y) -> int(x), int(y). e(1, 2).\ntri(x) <- e(x, y), e(y, z), e(z, x).\n", strategy=GRAPH
    )
    assert "it has no join graph: its atoms join in a cycle" in db.explain()
    run(db, ("+", "e", (2, 1)), ("+", "e", (1, 1)))
    db.check()
