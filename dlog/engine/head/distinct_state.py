"""Owns the state that counts the distinct values of a group: a part of `aggregate_state`.

The state has rows (keys, value, number of assignments), so that a value disappears with its last assignment.
An index counts the rows that begin with a key without reading them, so a change costs O(log n), whatever the
number of values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.body.bodies import BodyRunner
from dlog.engine.body.table import Values
from dlog.engine.head.aggregate_state import Assignments, StatePart, has_codes
from dlog.engine.state.store import Store
from dlog.heads.lookup import look_up
from dlog.heads.scans import apply_values, check_values, no_values, run_lengths
from dlog.ir.rules import Aggregate, Program, Rule, Var
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation


class DistinctPart:
    """Aggregates of one variable."""

    def __init__(self, rule: Rule, value: str, items: Sequence[Aggregate], state: str):
        self.items, self.state, self.value = items, state, value
        self.groups = tuple(v.name for v in rule.groups)

    @classmethod
    def parts(cls, program: Program, rule: Rule, items: Sequence[Aggregate], state: str) -> list[StatePart]:
        """One for each value."""
        values: dict[str, list[Aggregate]] = {}
        for item in items:
            assert isinstance(item.argument, Var)
            values.setdefault(item.argument.name, []).append(item)
        return [cls(rule, value, own, f"{state}/distinct/{value}") for value, own in values.items()]

    @classmethod
    def holds(cls, rule: Rule, item: Aggregate) -> bool:
        return has_codes(rule, item.argument)

    def empty(self, arena: Arena) -> Relation:
        return no_values(arena, len(self.groups), 1, levels=False)

    def changed(self, state: Relation, changes: Assignments, runner: BodyRunner) -> Relation:
        columns = [changes.columns[name] for name in (*self.groups, self.value)]
        return apply_values(state, np.column_stack(columns), changes.signs)

    def sizes(self, state: Relation, keys: Words) -> Words:
        return look_up(state, keys)[0]

    def results(self, store: Store, state: Relation, keys: Words, counts: Words) -> dict[str, Values]:
        found = run_lengths(state, keys)
        return {item.result.name: found for item in self.items}

    def check(self, state: Relation) -> None:
        check_values(state)

    def explain(self) -> str:
        return f"stores the distinct values of each group for {' and '.join(map(str, self.items))}"
