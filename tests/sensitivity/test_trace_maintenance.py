"""Random programs under random transactions, kept by their traces: the same answers as evaluation from
scratch, the naive evaluator and other strategies; coarse indices are at any time what a fresh run notes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine import trace_choice
from dlog.engine.store import Store
from dlog.engine.trace_choice import DELTA, TRACE, TRACE_EXACT, Choice
from dlog.errors import ConstraintError, DataError
from dlog.ir.rules import Rule
from tests.engine.test_maintenance import commit, ways
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.changes import transactions
from tests.oracle.naive import base_facts, evaluate_base
from tests.oracle.programs import ALL, CONJUNCTIVE, NONRECURSIVE, programs

WANTED = (TRACE, TRACE_EXACT)


@contextmanager
def mixed(seed: int) -> Iterator[None]:
    """Each rule kept in a way of its own."""
    kept = trace_choice.choose_way

    def choose(store: Store, rule: Rule, wanted: str | None) -> Choice:
        way = random.Random(f"{seed} {rule}").choice((DELTA, TRACE, TRACE_EXACT))
        return kept(store, rule, way)

    trace_choice.choose_way = choose
    try:
        yield
    finally:
        trace_choice.choose_way = kept


def follow(
    data: st.DataObject,
    text: str,
    wanted: str,
    most: int = 6,
    least: int = 1,
    sizes: tuple[int, ...] = (1, 4),
) -> None:
    program = accepted(text)
    base = base_facts(program)
    try:
        evaluate_base(program, base)
    except (ConstraintError, DataError, OverflowError):
        return
    size = data.draw(st.sampled_from(sizes))
    changes = data.draw(transactions(program, most, size, derived=data.draw(st.booleans()), least=least))
    db = dlog.Database(source=text, strategy=wanted)
    for transaction in changes:
        base = commit(db, program, base, transaction)


@pytest.mark.parametrize("wanted", WANTED)
def test_oracle_bodies(wanted: str) -> None:
    @relaxed(35)
    @given(st.data(), programs(CONJUNCTIVE.with_("negation", "disjunctions", "negated_conjunctions")))
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, wanted)

    check()


@pytest.mark.parametrize("wanted", WANTED)
def test_oracle_nonrecursive(wanted: str) -> None:
    @relaxed(35)
    @given(st.data(), programs(NONRECURSIVE))
    def check(data: st.DataObject, text: str) -> None:
        with ways(data.draw(st.booleans()), 64, 0.5):
            follow(data, text, wanted)

    check()


def test_oracle_one_row() -> None:
    """Transactions of one row over plain joins; many of them go the short way."""
    short: list[bool] = []
    commit_rows = dlog.Database._commit_rows

    def counted(db: dlog.Database, transaction: dlog.engine.transaction.Transaction) -> object:
        found = commit_rows(db, transaction)
        short.append(found is not None)
        return found

    @relaxed(40)
    @given(st.data(), programs(CONJUNCTIVE.with_("comparisons", "functions")))
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, TRACE, most=12, sizes=(1,))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dlog.Database, "_commit_rows", counted)
        check()
    assert sum(short) > len(short) / 10


@relaxed(30)
@given(st.data(), programs(ALL), st.integers(0, 99))
def test_oracle_mixed(data: st.DataObject, text: str, seed: int) -> None:
    """Different ways in one program."""
    with mixed(seed):
        follow(data, text, TRACE)


@pytest.mark.fuzz
@relaxed(1000, random=True)
@given(st.data(), programs(ALL, derived=6), st.sampled_from((*WANTED, "mixed")), st.integers(0, 99))
def test_fuzz_traces(data: st.DataObject, text: str, wanted: str, seed: int) -> None:
    if wanted != "mixed":
        follow(data, text, wanted, most=20, least=20)
        return
    with mixed(seed):
        follow(data, text, TRACE, most=20, least=20)
