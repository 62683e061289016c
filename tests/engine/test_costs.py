"""The operations that a transaction reports: by predicate in its commit, by rule in the measures.

The kernel of stages keeps its own count, which plans know nothing of: the two must agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import dlog
from dlog.engine.maintain.stages.keep import StageStrategy

CHAIN = "".join(f"edge({i}, {i + 1}, {i % 3 + 1})." for i in range(30))
RECURSIONS = {
    "linear": "p(x, y) <- edge(x, y, _). p(x, z) <- p(x, y), edge(y, z, _).",
    "reads itself": "p(x, y) <- edge(x, y, _). p(x, z) <- p(x, y), p(y, z).",
    "two predicates": "p(x, y) <- edge(x, y, _). q(x, z) <- p(x, y), edge(y, z, _). p(x, y) <- q(x, y).",
    "three facts": "p(x, y) <- edge(x, y, _). p(x, z) <- p(x, y), p(y, z), p(x, z).",
}


def recursive_work(db: dlog.Database) -> int:
    """As the table of stages has counted it in the last transaction."""
    (strategy,) = (s for s in db._maintenance.strategies.values() if isinstance(s, StageStrategy))
    return strategy.recursion.table.work


@pytest.mark.parametrize("name", RECURSIONS)
def test_operations_of_a_recursion_are_those_that_its_table_counts(name: str) -> None:
    db = dlog.Database(source=RECURSIONS[name] + CHAIN)
    db.apply(insert={"edge": [(100, 0, 1)]})
    total = 0
    for change in ("insert", "erase"):
        for row in ((101, 7, 2), (102, 20, 1), (101, 8, 1)):
            commit = db.apply(**{change: {"edge": [row]}})
            assert set(commit.ways.values()) == {"stages"}
            assert commit.costs == {"p": recursive_work(db)}
            assert commit.operations == commit.costs["p"]
            measured = sum(m.seeks + m.nexts for m in db.stats().rules.values())
            assert measured <= commit.costs["p"]
            total += commit.costs["p"]
    assert total > 0


def test_operations_are_reported_by_rule() -> None:
    """Two negated joins take the general path, where rules are measured."""
    other = "other(x) <- base(x), !(p(x, y), p(y, x)), !(p(x, z), p(z, z)). base(1)."
    db = dlog.Database(source=RECURSIONS["linear"] + CHAIN + other)
    db.apply(insert={"edge": [(100, 0, 1)]})
    leaf = db.apply(insert={"edge": [(29, 200, 1)]})
    rules = {m.rule.span.line: m for m in db.stats().rules.values() if m.rule.span}
    assert rules and all(m.iterations >= 1 and m.seconds > 0 for m in rules.values())
    cut = db.apply(erase={"edge": [(15, 16, 1)]})
    assert "edge" not in cut.costs and set(cut.costs) == {"p", "other"}
    assert cut.costs["p"] > 10 * leaf.costs["p"] > 0
    assert cut.operations == sum(cut.costs.values())


def test_operations_of_a_single_row_are_reported_by_predicate() -> None:
    rules = (
        "far(x, y) <- a(x, y), b(y). near(x) <- a(x, y), b(y), c(y). all[x] = s <- agg<<s = sum(y)>> a(x, y)."
    )
    facts = "".join(f"b({i}). c({i}). a({i}, {i})." for i in range(40))
    db = dlog.Database(source=rules + facts)
    db.apply(insert={"a": [(1, 2)]})
    commit = db.apply(insert={"a": [(1, 3)]})
    assert set(commit.costs) == set(commit.ways) == {"far", "near", "all"}
    assert commit.operations == sum(commit.costs.values())
    assert commit.costs["near"] > 0 and commit.costs["far"] > 0
    assert not db.stats().rules
    again = db.apply(insert={"a": [(1, 3)]})
    assert again.operations == 0
    both = db.apply(insert={"a": [(1, 4)]}, erase={"b": [(5,)]})
    assert both.operations == sum(both.costs.values()) > commit.operations


def test_operations_after_a_single_row_count_too() -> None:
    rules = "p(x, y) <- e(x, y). q(x, z) <- p(x, y), p(y, z)."
    db = dlog.Database(source=rules + "".join(f"e({i}, {i + 1})." for i in range(50)))
    db.apply(insert={"e": [(100, 1)]})
    commit = db.apply(insert={"e": [(101, 1)]})
    assert commit.ways == {"p": "delta", "q": "delta"} and commit.costs["q"] > 0
    assert commit.operations == sum(commit.costs.values())
    assert not db.stats().rules  # q is reached by a trigger, too: no rule ran by itself


# Databases that begin empty and grow

GROWN = {
    "two atoms": "q(a, b) <- p(a, m), r(b, m).",
    "three atoms": "q(a, b, c) <- p(a, m), r(b, m), s(c, m).",
    "a chain": "q(a, c) <- p(a, m), r(m, b), s(b, c).",
    "a negation": "q(a, b) <- p(a, m), r(b, m), !s(a, b).",
    "groups": "q[a] = n <- agg<<n = count()>> p(a, m), r(b, m).",
}
FIRST_ROWS = {"none": [], "one": ["p"], "one of each": ["p", "r", "s"], "three of each": ["p", "r", "s"] * 3}
DECLARED = "".join(f"{name}(x, y) -> int(x), int(y)." for name in "prs")


@pytest.mark.parametrize("strategy", ["delta", "trace", "trace-exact"])
@pytest.mark.parametrize("first", FIRST_ROWS)
@pytest.mark.parametrize("rule", GROWN)
def test_invariant_operations_do_not_remember_how_small_a_database_was(
    rule: str, first: str, strategy: str
) -> None:
    """Plans are made for the first rows; then 200 more come of each predicate, one by one."""
    rng = np.random.default_rng(1)
    program = DECLARED + GROWN[rule]

    def more(db: dlog.Database, names: Sequence[str]) -> float:
        rows = [(name, tuple(map(int, rng.integers(0, 200, 2)))) for name in names]
        return float(np.mean([db.apply(insert={name: [row]}).operations for name, row in rows]))

    grown = dlog.Database(source=program, strategy=strategy)
    for name in FIRST_ROWS[first]:  # of which all are alike, so that they tell nothing of those to come
        grown.apply(insert={name: [(len(grown[name]), 7)]})
    more(grown, "prs" * 190)
    fresh = dlog.Database(source=program, strategy=strategy)
    fresh.apply(insert={name: grown[name].rows() for name in "prs"})
    fresh.apply(insert={name: [(300, 300)] for name in "prs"})
    assert more(grown, "prs" * 10) <= 2 * more(fresh, "prs" * 10) + 20
    grown.verify()
