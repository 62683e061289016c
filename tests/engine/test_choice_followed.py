"""Random programs with choices and numbers: what the engine holds is right, given what it has chosen, and
what it has chosen stays as long as it can."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.ir.rules import Program
from tests.engine.followed import apply
from tests.engine.machine import WAYS, check_commit, contents, ways
from tests.engine.remembered import memory_of
from tests.examples import relaxed
from tests.oracle.changes import Transaction, apply_all, transactions
from tests.oracle.choices import choices
from tests.oracle.compare import same_program
from tests.oracle.memory import check_memory, check_stays, numbers
from tests.oracle.naive import Facts, base_facts, evaluate, evaluate_base


class Followed:
    """A database beside its base facts and all numbers that it has given so far."""

    def __init__(self, db: dlog.Database, program: Program):
        self.db, self.program = db, program
        self.base, self.highest = base_facts(program), -1
        self.memory: Facts = {name: set() for name in program.remembered}
        self.check(self.memory)

    def commit(self, transaction: Transaction) -> None:
        apply_all(self.base, transaction)
        before = contents(self.db)
        check_commit(apply(self.db, transaction), before, contents(self.db))
        self.check(self.memory)

    def check(self, before: Facts) -> None:
        self.memory = memory_of(self.db)
        facts = evaluate_base(self.program, self.base, self.memory)
        check_memory(self.program, facts, self.base, self.memory)
        check_stays(self.program, partial(evaluate_base, self.program, self.base), before, self.memory)
        for name in self.program.remembered:
            new = numbers(self.program, name, self.memory[name] - before[name])
            assert all(n > self.highest for n in new), "a number was given again"
        given = (
            n for name in self.program.remembered for n in numbers(self.program, name, self.memory[name])
        )
        self.highest = max(self.highest, *given, -1)
        same_program(contents(self.db), facts, self.program)
        self.db.check()
        self.db.verify()


def follow(data: st.DataObject, text: str, strategy: str | None = None) -> None:
    program = dlog.check(text)
    size = data.draw(st.sampled_from((1, 1, 4)))
    derived = data.draw(st.booleans())
    changes = data.draw(transactions(program, 6, size, derived=derived, least=1))
    with ways(*data.draw(WAYS)) if strategy is None else nullcontext():
        followed = Followed(dlog.Database(source=text, strategy=strategy), program)
        for transaction in changes:
            followed.commit(transaction)


@relaxed(50)
@given(choices())
def test_oracle_first_choices(text: str) -> None:
    """Evaluated once, a program has one result."""
    program = dlog.check(text)
    expected = evaluate(program)
    same_program(contents(dlog.Database(source=text)), expected, program)
    same_program(contents(dlog.Database(source=text, jobs=2)), expected, program)


@relaxed(50)
@given(st.data(), choices())
def test_oracle_choices_in_transactions(data: st.DataObject, text: str) -> None:
    follow(data, text)


@pytest.mark.parametrize("strategy", ["delta", "trace", "views", "multilevel", "join_graph"])
def test_oracle_choices_under_each_strategy(strategy: str) -> None:
    @relaxed(8)
    @given(st.data(), choices())
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, strategy)

    check()


@pytest.mark.fuzz
@relaxed(1000, random=True)
@given(st.data(), choices())
def test_fuzz_choices(data: st.DataObject, text: str) -> None:
    follow(data, text)
