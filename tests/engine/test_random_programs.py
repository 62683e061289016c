"""Random programs: the engine, the naive evaluator and evaluation under other plans give the same answers."""

from __future__ import annotations

import pytest
from hypothesis import given

import dlog
from dlog.errors import ConstraintError, DataError
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.bodies import Features
from tests.oracle.compare import same_program
from tests.oracle.heads import one_head_each
from tests.oracle.naive import evaluate
from tests.oracle.programs import ALL, CONJUNCTIVE, NONRECURSIVE, RECURSIVE, programs


def agree(text: str) -> None:
    """Same rows, or both refuse: a conflict of function values, or a value that does not fit."""
    program = accepted(text)
    try:
        expected = evaluate(dlog.check(one_head_each(text)))
    except (ConstraintError, DataError, OverflowError) as error:
        with pytest.raises((ConstraintError, DataError)):
            dlog.Database(source=text)
        assert error is not None
        return
    database = dlog.Database(source=text)
    shown = {name: database[name].rows() for name, p in program.predicates.items() if not p.auxiliary}
    same_program(shown, expected, program)
    database.check()


@relaxed(150)
@given(
    programs(
        CONJUNCTIVE.with_("comparisons", "arithmetic", "negation", "disjunctions", "negated_conjunctions")
    )
)
def test_oracle_bodies(text: str) -> None:
    agree(text)


@relaxed(90)
@given(programs(NONRECURSIVE))
def test_oracle_nonrecursive(text: str) -> None:
    agree(text)


@relaxed(60)
@given(programs(Features(("int", "string")).with_("arithmetic", "several_heads", "aggregates")))
def test_oracle_several_heads(text: str) -> None:
    agree(text)


@relaxed(100)
@given(programs(Features().with_("comparisons", "negation", *RECURSIVE), derived=3))
def test_oracle_recursive(text: str) -> None:
    agree(text)


@relaxed(110)
@given(programs(ALL))
def test_oracle_everything(text: str) -> None:
    agree(text)


@pytest.mark.fuzz
@relaxed(5000, random=True)
@given(programs(ALL, derived=6))
def test_fuzz_everything(text: str) -> None:
    agree(text)
