"""Owns running random programs through random transactions, whatever strategy maintains them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.commit.commits import Commit
from dlog.errors import ConstraintError, DataError
from dlog.ir.rules import Program
from tests.engine.machine import WAYS, check_commit, contents, enter, short_ways, ways
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.changes import Transaction, apply_all, transactions
from tests.oracle.compare import same_program
from tests.oracle.naive import Facts, base_facts, evaluate_base
from tests.oracle.programs import CONJUNCTIVE, programs


def follow(
    data: st.DataObject,
    text: str,
    strategy: str | None = None,
    most: int = 5,
    sizes: tuple[int, ...] = (1, 4),
    least: int = 1,
) -> None:
    """Without a strategy, also in the ways that sizes would not lead to."""
    program = accepted(text)
    base = base_facts(program)
    try:
        evaluate_base(program, base)
    except (ConstraintError, DataError, OverflowError):
        return
    size = data.draw(st.sampled_from(sizes))
    changes = data.draw(transactions(program, most, size, derived=data.draw(st.booleans()), least=least))
    with ways(*data.draw(WAYS)) if strategy is None else nullcontext():
        db = dlog.Database(source=text, strategy=strategy)
        for transaction in changes:
            base = commit(db, program, base, transaction)


def follow_single_rows(examples: int, strategy: str | None = None) -> list[bool]:
    """Transactions of one row over plain joins; for each whether it took the short path."""

    @relaxed(examples)
    @given(st.data(), programs(CONJUNCTIVE.with_("comparisons", "functions")))
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, strategy, most=12, sizes=(1,))

    with short_ways() as short:
        check()
    return short


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
    check_commit(apply(db, transaction), before, contents(db))
    same_program(contents(db), expected, program)
    db.check()
    return later


def apply(db: dlog.Database, transaction: Transaction) -> Commit:
    with db.transaction() as tx:
        enter(tx, transaction)
    assert tx.commit_info is not None
    return tx.commit_info
