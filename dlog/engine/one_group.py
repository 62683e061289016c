"""Owns the short way of one row through an aggregation: its group's number and sums, and the head's row.

For rules that count or add up ints, alone in their stratum, each group in a row of its own: what one row
changes is a group or two, told by Python's integers, which have no end.  `aggregate_deltas` does all else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlog.engine.aggregate_deltas import Sums
from dlog.engine.delta_strategy import DeltaStrategy
from dlog.engine.heads import stored_as
from dlog.engine.store import Store
from dlog.engine.strategy import Cycle
from dlog.heads.kernels import WIDE
from dlog.heads.lookup import look_up
from dlog.ir.rules import Aggregate, Const, Rule, Var
from dlog.planning.versions import facts_name
from dlog.storage.batch import Change
from dlog.storage.relation import Relation
from dlog.types import INT

Row = tuple[int, ...]
Place = tuple[str, int]  # "group" or "result" and its number, or "literal" and its code
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_ABOVE_POSITIVE, _ABOVE_NEGATIVE = (0,) * (WIDE - 1), (-1,) * (WIDE - 1)


@dataclass(frozen=True)
class OneGroup:
    """Where in a join's output a rule's groups and arguments stand, and where in its head they go."""

    name: str
    state: str
    groups: tuple[int, ...]
    arguments: tuple[tuple[bool, int], ...]  # of each sum: (is a column, its number or the code itself)
    head: tuple[Place, ...]
    sums: tuple[int, ...]  # for each aggregate the number of its sum, or -1 for the count

    def follow(self, cycle: Cycle, output: np.ndarray, sign: int) -> bool:
        """Take the assignments of a join's output (columns, n) in; False: not simple, drop the cycle."""
        relations = cycle.store.relations
        if len(relations[facts_name(self.name)]):  # a row may have another derivation
            return False
        changes: dict[Row, list[int]] = {}
        for values in output.T.tolist():
            change = changes.setdefault(
                tuple(values[g] for g in self.groups), [0] * (1 + len(self.arguments))
            )
            change[0] += sign
            for i, (is_column, word) in enumerate(self.arguments):
                change[1 + i] += sign * (values[word] if is_column else word)
        state, head = relations[self.state], relations[self.name]
        inserted: list[Row] = []
        erased: list[Row] = []
        for key, change in changes.items():
            before = group_of(state, key, len(self.arguments))
            after = [a + b for a, b in zip(before, change, strict=True)]
            state = replaced(state, state_row(key, before), state_row(key, after))
            old = self._row(key, before) if before[0] else None
            new = self._row(key, after) if after[0] else None
            if not (words_fit(old) and words_fit(new)):
                return False
            if old != new:
                head = replaced(head, old, new)
                erased += [old] if old is not None else []
                inserted += [new] if new is not None else []
        relations[self.state] = state
        cycle.publish(self.name, head, Change(row_array(inserted, head.arity), row_array(erased, head.arity)))
        return True

    def _row(self, key: Row, group: list[int]) -> Row:
        row = []
        for kind, number in self.head:
            if kind == "group":
                row.append(key[number])
            elif kind == "literal":
                row.append(number)
            else:
                row.append(group[1 + self.sums[number]])
        return tuple(row)


def one_group(store: Store, strategy: DeltaStrategy, outputs: tuple[str, ...]) -> OneGroup | None:
    """None: the stratum's aggregation is not of the simple kind."""
    if strategy.plain or len(strategy.aggregates) != 1 or not strategy.counts_are_one(store):
        return None
    aggregate = strategy.aggregates[0]
    if not isinstance(aggregate, Sums):
        return None
    rule = aggregate.rule
    arguments = int_arguments(store, rule, rule.aggregates, outputs)
    groups = [v.name for v in rule.groups]
    places = head_places(store, strategy, rule, exact=True)
    if arguments is None or places is None or not set(groups) <= set(outputs):
        return None
    numbers = iter(range(len(rule.aggregates)))
    sums = tuple(-1 if a.op == "count" else next(numbers) for a in rule.aggregates)
    columns = tuple(outputs.index(name) for name in groups)
    return OneGroup(strategy.name, aggregate.state, columns, arguments, places, sums)


def head_places(store: Store, strategy: DeltaStrategy, rule: Rule, exact: bool) -> tuple[Place, ...] | None:
    """Where a head's columns come from; None: not simple.  `exact`: results are ints, else any codes."""
    (head,) = (h for h in rule.heads if h.predicate == strategy.name)
    groups = [v.name for v in rule.groups]
    results = [a.result.name for a in rule.aggregates]
    places: list[Place] = []
    for operand, type in zip(head.args, store.column_types(strategy.name), strict=True):
        if isinstance(operand, Const):
            code = store.encode(operand, type)
            if code is None:
                return None
            places.append(("literal", code))
        elif operand.name in groups and stored_as(rule, operand, type):
            places.append(("group", groups.index(operand.name)))
        elif operand.name in results and (type == INT or (not exact and not type.is_decimal)):
            places.append(("result", results.index(operand.name)))
        else:
            return None
    return tuple(places)


def int_arguments(
    store: Store, rule: Rule, items: Sequence[Aggregate], outputs: tuple[str, ...]
) -> tuple[tuple[bool, int], ...] | None:
    """Of each sum of ints: (is a column, its number or the code itself); None: not simple."""
    found: list[tuple[bool, int]] = []
    for item in items:
        if item.op == "count":
            continue
        argument = item.argument
        if item.op not in ("sum", "total") or argument is None:
            return None
        if isinstance(argument, Var):
            if rule.types[argument.name] != INT or argument.name not in outputs:
                return None
            found.append((True, outputs.index(argument.name)))
        else:
            code = store.encode(argument, INT) if argument.type == INT else None
            if code is None:
                return None
            found.append((False, code))
    return tuple(found)


def group_of(state: Relation, key: Row, sums: int) -> list[int]:
    """Number and sums of a group; zeros when there is none."""
    found, rest = look_up(state, np.array([key], np.int64).reshape(1, -1))
    if not found[0]:
        return [0] * (1 + sums)
    count, *words = rest[0].tolist()
    return [count, *[_sum(words[at : at + WIDE]) for at in range(0, WIDE * sums, WIDE)]]


def state_row(key: Row, group: Sequence[int]) -> Row | None:
    """A group as the state keeps it; None without assignments."""
    count, *sums = group
    return (*key, count, *[word for s in sums for word in _words(s)]) if count else None


def _words(number: int) -> Row:
    """A sum as WIDE words, the lowest first; those above a small one repeat its sign."""
    if _LEAST <= number <= _GREATEST:
        return (number, *(_ABOVE_NEGATIVE if number < 0 else _ABOVE_POSITIVE))
    return struct.unpack(f"<{WIDE}q", number.to_bytes(8 * WIDE, "little", signed=True))


def _sum(words: list[int]) -> int:
    """The inverse of `_words`."""
    if tuple(words[1:]) == (_ABOVE_NEGATIVE if words[0] < 0 else _ABOVE_POSITIVE):
        return words[0]
    return int.from_bytes(struct.pack(f"<{WIDE}q", *words), "little", signed=True)


def words_fit(row: Row | None) -> bool:
    return not row or (min(row) >= _LEAST and max(row) <= _GREATEST)


def replaced(relation: Relation, old: Row | None, new: Row | None) -> Relation:
    if old is not None and new is not None:
        changed = relation.replace_row(old, new)
        assert changed is not None, "a group that is not there changes"
        return changed
    if old is not None:
        changed = relation.erase_row(old)
        assert changed is not None, "a group that is not there changes"
        relation = changed
    if new is not None:
        changed = relation.insert_row(new)
        assert changed is not None, "a group is there already"
        relation = changed
    return relation


def row_array(rows: list[Row], arity: int) -> np.ndarray:
    array = np.array(sorted(rows), np.int64)
    return array.reshape(-1, arity)
