"""Random programs under random transactions: after each one every predicate is what evaluation from scratch
gives, by the engine, by the naive evaluator and by DuckDB; and an aborted one leaves everything as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine import delta_strategy, heads
from dlog.engine.table import Table
from dlog.engine.transaction import Commit
from dlog.errors import ConstraintError, DataError
from dlog.ir.rules import Program
from tests.engine.machine import WAYS, contents, enter, short_ways, told, ways
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.changes import Transaction, apply_all, transactions
from tests.oracle.compare import same_program
from tests.oracle.naive import Facts, base_facts, evaluate_base
from tests.oracle.programs import ALL, CONJUNCTIVE, NONRECURSIVE, programs


def follow(
    data: st.DataObject, text: str, most: int = 5, sizes: tuple[int, ...] = (1, 4), least: int = 1
) -> None:
    program = accepted(text)
    base = base_facts(program)
    try:
        evaluate_base(program, base)
    except (ConstraintError, DataError, OverflowError):
        return
    changes = data.draw(
        transactions(
            program, most, data.draw(st.sampled_from(sizes)), derived=data.draw(st.booleans()), least=least
        )
    )
    with ways(*data.draw(WAYS)):
        db = dlog.Database(source=text)
        for transaction in changes:
            base = commit(db, program, base, transaction)


def commit(db: dlog.Database, program: Program, base: Facts, transaction: Transaction) -> Facts:
    """Both sides after a transaction: same rows, or both refuse.  Returns the base facts then."""
    later = {name: set(rows) for name, rows in base.items()}
    apply_all(later, transaction)
    try:
        expected = evaluate_base(program, later)
    except (ConstraintError, DataError, OverflowError):
        before = contents(db)
        with pytest.raises((ConstraintError, DataError)):
            apply(db, transaction)
        assert contents(db) == before
        db.check()
        return base
    before = contents(db)
    told(apply(db, transaction), before, contents(db))
    same_program(contents(db), expected, program)
    db.check()
    return later


def apply(db: dlog.Database, transaction: Transaction) -> Commit:
    with db.transaction() as tx:
        enter(tx, transaction)
    assert tx.commit_info is not None
    return tx.commit_info


@relaxed(50)
@given(st.data(), programs(CONJUNCTIVE.with_("negation", "disjunctions", "negated_conjunctions")))
def test_oracle_bodies(data: st.DataObject, text: str) -> None:
    follow(data, text)


def test_oracle_one_row() -> None:
    """Transactions of one row over plain joins; many of them go the short way."""

    @relaxed(40)
    @given(st.data(), programs(CONJUNCTIVE.with_("comparisons", "functions")))
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, most=12, sizes=(1,))

    with short_ways() as short:
        check()
    assert sum(short) > len(short) / 4


@relaxed(70)
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
        patch.setattr(heads, "apart", noted)
        patch.setattr(delta_strategy, "apart", noted)
        check()
    assert any(weighted)


@relaxed(40)
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
