"""Random programs under random transactions: after each one every predicate is what evaluation from scratch
gives, by the engine, by the naive evaluator and by DuckDB; and an aborted one leaves everything as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.body.table import Table
from dlog.engine.head import heads
from dlog.engine.maintain import rule_strategy
from tests.engine.followed import follow, follow_single_rows
from tests.examples import relaxed
from tests.oracle.programs import ALL, CONJUNCTIVE, NONRECURSIVE, programs


@relaxed(30)
@given(st.data(), programs(CONJUNCTIVE.with_("negation", "disjunctions", "negated_conjunctions")))
def test_oracle_bodies(data: st.DataObject, text: str) -> None:
    follow(data, text)


def test_oracle_one_row() -> None:
    short = follow_single_rows(40)
    assert sum(short) > len(short) / 4


@relaxed(40)
@given(st.data(), programs(NONRECURSIVE))
def test_oracle_nonrecursive(data: st.DataObject, text: str) -> None:
    follow(data, text)


SUB_JOINS = """.pragma "planner" "always-sub-joins"
e(x, y) -> int(x), int(y).
near(x, z) <- e(x, y), e(y, z).
far(x) <- e(x, y), e(y, z), e(z, w), w > 1.
far(x) <- near(x, _).
ways[x] = n <- agg<<n = count()>> e(x, y), e(y, z).
total[x] = s <- agg<<s = sum(z)>> e(x, y), e(y, z).
best[x] = m <- agg<<m = max(z)>> e(x, y), e(y, z).
"""


def test_oracle_state_from_sub_joins() -> None:
    """Counts and sums of assignments that are never enumerated: rows of sub-joins have weights."""
    weighted: list[bool] = []
    apart = heads.apart

    def noted(table: Table) -> tuple[Table, np.ndarray | None]:
        found = apart(table)
        weighted.append(found[1] is not None)
        return found

    @relaxed(25)
    @given(st.data(), st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=4, max_size=14))
    def check(data: st.DataObject, edges: set[tuple[int, int]]) -> None:
        follow(data, SUB_JOINS + " ".join(f"e({x}, {y})." for x, y in sorted(edges)), most=6)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DLOG_PLANNER", raising=False)  # which would have the last word
        patch.setattr(heads, "apart", noted)
        patch.setattr(rule_strategy, "apart", noted)
        check()
    assert any(weighted)


@relaxed(30)
@given(st.data(), programs(ALL))
def test_oracle_everything(data: st.DataObject, text: str) -> None:
    follow(data, text)


@pytest.mark.fuzz
@relaxed(2000, random=True)
@given(st.data(), programs(ALL, derived=6))
def test_fuzz_everything(data: st.DataObject, text: str) -> None:
    follow(data, text, most=20, least=20)


@pytest.mark.parametrize(
    "rule", ["p(x) <- q(x).", "p(x), r(x) <- q(x).", "p(x) <- q(x), s(y).", "p(x) <- q(x), (q(x) ; s(x))."]
)
def test_a_base_fact_goes_and_a_rule_still_derives_it(rule: str) -> None:
    """Also when the erased fact is the first change that the rule follows."""
    declared = "".join(f"{name}(x) -> int(x). " for name in "qspr") + "q(1). s(1). s(2). "
    db = dlog.Database(source=declared)
    db.apply(insert={"p": [(1,), (2,)]})
    db.add_rules(rule)
    db.apply(erase={"p": [(1,), (2,)]})
    assert db["p"].rows() == [(1,)]
    db.check()
    db.verify()
