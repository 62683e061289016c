"""Owns random transactions on a checked program's base facts, and their meaning on plain sets.

base = base_facts(program)
for transaction in data.draw(transactions(program)):
    apply_all(base, transaction)              # what the engine must agree with:
    evaluate_base(program, base)              # everything again from scratch
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from dlog.ir.rules import Predicate, Program

from .bodies import Draw
from .domains import fact, values_of
from .naive import Facts, apply_change, base_facts, fitted
from .values import Row


@dataclass(frozen=True)
class Change:
    """`+`, `-` or `^` of one base fact."""

    op: str
    predicate: str
    row: Row
    functional: bool = False

    def __str__(self) -> str:
        return f"{self.op}{fact(self.predicate, self.row, self.functional)}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As hypothesis shows it."""
        printer.text(str(self))


Transaction = list[Change]


def statement(transaction: Transaction) -> str:
    """A transaction as one statement, for the prompt or a transaction file.

    >>> statement([Change("+", "e", (1, 2)), Change("-", "e", (2, 3))])
    '+e(1, 2), -e(2, 3).'
    """
    return ", ".join(map(str, transaction)) + "."


def apply_all(base: Facts, transaction: Iterable[Change]) -> None:
    """Change base facts in place, in order."""
    for change in transaction:
        apply_change(base[change.predicate], change.op, change.row)


@st.composite
def transactions(
    draw: Draw,
    program: Program,
    most: int = 6,
    size: int = 4,
    derived: bool = False,
    least: int = 1,
    base: Facts | None = None,
    conflicts: bool = False,
) -> list[Transaction]:
    """From `least` to `most` transactions of at most `size` changes, from the program's own facts, or from
    `base`, onwards.

    Half of the changes erase a fact that is there.  With `derived`, predicates that have rules get and lose
    base facts too.  A new value of a function is an upsert, or an insert where the key has no base fact; with
    `conflicts`, now and then an insert where it has one.
    """
    base = {name: set(rows) for name, rows in (base or base_facts(program)).items()}
    with_rules = {head.predicate for rule in program.rules for head in rule.heads}
    predicates = [
        p
        for p in program.predicates.values()
        if not p.auxiliary and (derived or base[p.name] or p.name not in with_rules)
    ]
    result: list[Transaction] = []
    for _ in range(draw(st.integers(least, most))):
        transaction = []
        for _ in range(draw(st.integers(1, size))):
            change = draw(_change(base, draw(st.sampled_from(predicates)), conflicts))
            apply_all(base, [change])
            transaction.append(change)
        result.append(transaction)
    return result


@st.composite
def _change(draw: Draw, base: Facts, predicate: Predicate, conflicts: bool) -> Change:
    rows = sorted(base[predicate.name], key=repr)
    if rows and draw(st.booleans()):
        return Change("-", predicate.name, draw(st.sampled_from(rows)), predicate.is_functional)
    values = [st.sampled_from(values_of(column.type.name)) for column in predicate.columns]
    row = fitted(draw(st.tuples(*values)), predicate)
    if not predicate.is_functional:
        return Change("+", predicate.name, row)
    taken = any(other[:-1] == row[:-1] for other in rows) and not (conflicts and draw(st.integers(0, 7)) == 7)
    return Change("^" if taken or draw(st.booleans()) else "+", predicate.name, row, True)
