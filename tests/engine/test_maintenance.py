"""Random programs under random transactions: after each one every predicate is what evaluation from scratch
gives, by the engine, by the naive evaluator and by DuckDB; and an aborted one leaves everything as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dlog
from dlog.engine import delta_strategy, maintain
from dlog.errors import ConstraintError, DataError
from dlog.ir.rules import Program
from tests.oracle.accepted import accepted
from tests.oracle.changes import Transaction, apply_all, transactions
from tests.oracle.compare import same_program
from tests.oracle.naive import Facts, base_facts, evaluate_base
from tests.oracle.programs import ALL, CONJUNCTIVE, NONRECURSIVE, programs


def relaxed(examples: int, random: bool = False) -> settings:
    """The same programs in every run, unless `random`: new ones are what `make fuzz` is for."""
    return settings(
        max_examples=examples,
        derandomize=not random,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=True,
    )


@contextmanager
def ways(existence: bool, small: int, bulk: float) -> Iterator[None]:
    """Other ways to keep heads up to date, which never change an answer."""
    kept = delta_strategy.FAR_LARGER, maintain.SMALL_CHANGE, maintain.BULK
    delta_strategy.FAR_LARGER, maintain.SMALL_CHANGE, maintain.BULK = (
        (0 if existence else kept[0]),
        small,
        bulk,
    )
    try:
        yield
    finally:
        delta_strategy.FAR_LARGER, maintain.SMALL_CHANGE, maintain.BULK = kept


WAYS = st.one_of(
    st.just((False, 64, 0.5)),
    st.tuples(st.booleans(), st.sampled_from((0, 3)), st.sampled_from((0.0, 0.3, 9.0))),
)


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
    apply(db, transaction)
    same_program(contents(db), expected, program)
    told(db, before)
    db.check()
    return later


def apply(db: dlog.Database, transaction: Transaction) -> None:
    with db.transaction() as tx:
        for change in transaction:
            {"+": tx.insert, "-": tx.erase, "^": tx.upsert}[change.op](change.predicate, [change.row])
    db.last = tx.commit_info  # type: ignore[attr-defined]


def told(db: dlog.Database, before: dict[str, list]) -> None:  # type: ignore[type-arg]
    """What the commit tells is the net difference of the two states."""
    changes = db.last.changes  # type: ignore[attr-defined]
    for name, rows in contents(db).items():
        old, new = set(map(repr, before[name])), set(map(repr, rows))
        inserted, erased = (
            {repr(r) for r in part.rows()} if name in changes else set()
            for part in ((changes[name].inserted, changes[name].erased) if name in changes else ((), ()))
        )
        assert (inserted, erased) == (new - old, old - new), name


def contents(db: dlog.Database) -> dict[str, list]:  # type: ignore[type-arg]
    return {name: db[name].rows() for name in db.predicates()}


@relaxed(50)
@given(st.data(), programs(CONJUNCTIVE.with_("negation", "disjunctions", "negated_conjunctions")))
def test_oracle_bodies(data: st.DataObject, text: str) -> None:
    follow(data, text)


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
        follow(data, text, most=12, sizes=(1,))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dlog.Database, "_commit_rows", counted)
        check()
    assert sum(short) > len(short) / 4


@relaxed(70)
@given(st.data(), programs(NONRECURSIVE))
def test_oracle_nonrecursive(data: st.DataObject, text: str) -> None:
    follow(data, text)


@relaxed(40)
@given(st.data(), programs(ALL))
def test_oracle_everything(data: st.DataObject, text: str) -> None:
    follow(data, text)


@pytest.mark.fuzz
@relaxed(2000, random=True)
@given(st.data(), programs(ALL, derived=6))
def test_fuzz_everything(data: st.DataObject, text: str) -> None:
    follow(data, text, most=20, least=20)
