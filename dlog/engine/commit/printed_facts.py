"""Owns values and facts as they are written in a program.  Knows nothing of where they are printed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dlog.ir.rules import Predicate, Program
from dlog.values import Type
from dlog.values.quoting import quoted
from dlog.values.record_text import order_key

if TYPE_CHECKING:
    from dlog.engine.commit.commits import Change
    from dlog.engine.commit.result import Result


def literal_text(value: Any, type: Type) -> str:
    """A value as a literal that denotes it in its type.

    >>> literal_text(1e20, Type("float")), literal_text(-math.inf, Type("float"))
    ('1.0e+20', '"-inf"')
    >>> literal_text("a\\nb", Type("string"))
    '"a\\\\nb"'
    """
    text = type.literal_text(value)
    return quoted(text) if type.quoted_literal else text


def fact_text(predicate: Predicate, row: Iterable[Any]) -> str:
    """`reach(1, 3)` or `price["tea"] = 3.50`."""
    pairs = zip(row, predicate.columns, strict=True)
    return predicate.show(tuple(literal_text(v, c.type) for v, c in pairs))


def facts_text(predicate: Predicate, result: Result) -> list[str]:
    """Every row of a predicate as a fact, in the order of values."""
    return [fact_text(predicate, row) for row in result.rows()]


def change_lines(predicate: Predicate, change: Change) -> list[str]:
    """`+fact` and `-fact` for each row that changed, sorted by row."""
    signed = [(row, "-") for row in change.erased.rows()] + [(row, "+") for row in change.inserted.rows()]
    types = [column.type for column in predicate.columns]
    signed.sort(key=lambda pair: tuple(map(_sort_key, pair[0], types)))
    return [sign + fact_text(predicate, row) for row, sign in signed]


def in_order(program: Program, names: Iterable[str]) -> list[str]:
    """Predicates in the order in which changes flow: base predicates, then stratum by stratum."""
    wanted = set(names)
    base = [name for name in program.predicates if name not in program.stratum_of]
    return [name for name in (*base, *program.stratum_of) if name in wanted]


def is_derived(program: Program, name: str) -> bool:
    return name in program.stratum_of


def _sort_key(value: Any, type: Type) -> tuple[bool, Any]:
    """NaN comes last."""
    if type.is_record:
        return False, order_key(value, type)
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)
