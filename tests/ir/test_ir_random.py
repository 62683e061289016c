"""Properties of checked rules on random statements."""

from __future__ import annotations

import random

from hypothesis import assume, given
from hypothesis import strategies as st

import dlog
from dlog.ir.rules import Program
from tests.examples import relaxed
from tests.oracle.naive import FunctionConflict, evaluate

from .statements import (
    VARIABLES,
    Facts,
    Statement,
    answer,
    facts,
    grounded_outside,
    permuted,
    renamed,
    rule_text,
    shuffled,
    statements,
    text,
)

sixty = relaxed(60)


def checked(statement: Statement, rows: Facts | None = None) -> Program | None:
    """The checked program, or None when the statement is refused."""
    try:
        return dlog.check(text(statement, rows))
    except dlog.DlogError:
        return None


def user_types(program: Program) -> dict[str, str]:
    """Types of the columns and of the rule's own variables, by name."""
    types = {f"p.{i}": str(c.type) for i, c in enumerate(program.predicates["p"].columns)}
    for rule in program.rules:
        if not program.predicates[rule.heads[0].predicate].auxiliary:
            types |= {name: str(type) for name, type in rule.types.items() if name in VARIABLES}
    return types


@sixty
@given(statements())
def test_invariant_normal_form(statement: Statement) -> None:
    """Whatever is accepted is in normal form; whatever is not is refused with a place."""
    try:
        program = dlog.check(text(statement))
    except dlog.DlogError as error:
        assert error.span is not None and error.render()
    else:
        program.check()


@sixty
@given(statements(), st.randoms(use_true_random=False))
def test_order_of_literals_changes_nothing(statement: Statement, chance: random.Random) -> None:
    other = Statement(statement.head, permuted(statement.body, chance), statement.op, statement.target)
    first, second = checked(statement), checked(other)
    assert (first is None) == (second is None), rule_text(other)
    if first is not None and second is not None:
        assert user_types(first) == user_types(second)


@sixty
@given(statements(), st.randoms(use_true_random=False))
def test_names_of_variables_change_nothing(statement: Statement, chance: random.Random) -> None:
    names = shuffled(VARIABLES, chance)
    first, second = checked(statement), checked(renamed(statement, names))
    assert (first is None) == (second is None), rule_text(renamed(statement, names))
    if first is not None and second is not None:
        assert first.strata[-1].recursive == second.strata[-1].recursive
        assert [str(c.type) for c in first.predicates["p"].columns] == [
            str(c.type) for c in second.predicates["p"].columns
        ]


@sixty
@given(statements(), facts(), st.randoms(use_true_random=False))
def test_oracle_meaning_of_a_statement(statement: Statement, rows: Facts, chance: random.Random) -> None:
    """Lowered rules, under other names and in another order, say what the statement says by definition."""
    names = shuffled(VARIABLES, chance)
    other = renamed(statement, names)
    other = Statement(other.head, permuted(other.body, chance), other.op, other.target)
    program = checked(other, rows)
    assume(program is not None)
    assert program is not None
    try:
        derived = evaluate(program)["p"]
    except FunctionConflict:
        derived = None
    expected = answer(statement, rows)
    if derived is not None:
        assert derived == expected, rule_text(statement)


@sixty
@given(grounded_outside(), facts())
def test_oracle_groups_may_come_from_outside(statement: Statement, rows: Facts) -> None:
    """However the forms of an aggregate wait for each other, values of its groups from outside let it run."""
    program = checked(statement, rows)
    assert program is not None, rule_text(statement)
    assert evaluate(program)["p"] == answer(statement, rows), rule_text(statement)
