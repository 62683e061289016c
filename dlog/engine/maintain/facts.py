"""Owns changes of base facts: a transaction's statements, in order, as one net change of each predicate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from dlog.engine.head.grouping import sorted_rows
from dlog.engine.maintain.strategy import Cycle, net_difference
from dlog.heads.lookup import contained, look_up
from dlog.planning.versions import facts_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.relation import Relation

Statement = tuple[str, str, Any]  # "+", "-" or "^", a predicate, codes


def change_facts(cycle: Cycle, statements: Sequence[Statement], derived: Collection[str]) -> None:
    """Publish changes of base predicates; hand those of derived predicates' base facts to their strata."""
    by_name: dict[str, list[tuple[str, Any]]] = {}
    for op, name, codes in statements:
        by_name.setdefault(name, []).append((op, codes))
    relations = cycle.store.relations
    for name, ops in by_name.items():
        n_keys = cycle.program.predicates[name].n_keys
        target = facts_name(name) if name in derived else name
        later, change = changed(relations[target], ops, n_keys)
        if not change:
            continue
        if name in derived:
            cycle.keep_old(target, relations[target])
            relations[target] = later
            cycle.facts[name] = change
        else:
            cycle.publish(name, later, change)


def changed(relation: Relation, ops: list[tuple[str, Any]], n_keys: int) -> tuple[Relation, Change]:
    """All statements on one predicate, in order; runs of them are merged first.  O(m log n)."""
    if len(ops) == 1:
        return _apply(relation, *ops[0], n_keys)
    later = relation
    for is_upsert, run in groupby(ops, lambda item: item[0] == "^"):
        said = [(op, as_array(codes, relation.arity)) for op, codes in run]
        if is_upsert:
            later, _ = _apply(later, "^", np.concatenate([rows for _, rows in said]), n_keys)
        else:
            inserts, erases = last_words(said)
            later, _ = later.apply(inserts=inserts, erases=erases)
    return later, net_difference(relation, later)


def last_words(said: Sequence[tuple[str, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(Rows to insert, rows to erase) by the last `+` or `-` of each row.  O(rows)."""
    rows = np.concatenate([rows for _, rows in said])
    comes = np.concatenate([np.full(len(rows), op == "+") for op, rows in said])
    if comes.all() or not comes.any():
        return rows[comes], rows[~comes]
    if rows.shape[1]:
        order = sorted_rows([np.ascontiguousarray(column) for column in rows.T], len(rows))
        rows, comes = rows[order], comes[order]
    is_last = np.ones(len(rows), bool)
    is_last[:-1] = (rows[1:] != rows[:-1]).any(axis=1)
    return rows[is_last & comes], rows[is_last & ~comes]


def _apply(relation: Relation, op: str, codes: Any, n_keys: int) -> tuple[Relation, Change]:
    """A new version after `+`, `-` or `^` of rows.  O(m log n)."""
    if op == "+":
        return relation.apply(inserts=codes)
    if op == "-":
        return relation.apply(erases=codes)
    rows = last_of_key(as_array(codes, relation.arity), n_keys)
    replaced = _with_keys(relation, rows[:, :n_keys])
    later, _ = relation.apply(inserts=rows, erases=replaced)
    return later, net_difference(relation, later)


def upserted(relation: Relation, codes: Any, n_keys: int) -> tuple[np.ndarray, np.ndarray]:
    """(Rows to erase, rows to insert) of `^`: those that change something.  O(m log n)."""
    rows = last_of_key(as_array(codes, relation.arity), n_keys)
    there = contained(relation, rows)
    rows = rows[~there]
    return _with_keys(relation, rows[:, :n_keys]), rows


def rows_with_keys(relation: Relation, rows: Any, n_keys: int) -> np.ndarray:
    """The rows of a function that have the keys of these rows."""
    return _with_keys(relation, last_of_key(as_array(rows, relation.arity), n_keys)[:, :n_keys])


def net_change(relation: Relation, ops: list[tuple[str, Any]], n_keys: int) -> Change:
    """The net change of a predicate's base facts by the statements on it."""
    return changed(relation, ops, n_keys)[1] if ops else net_difference(relation, relation)


def as_array(codes: Any, arity: int) -> np.ndarray:
    """Rows of codes, from rows or from a list of columns."""
    if isinstance(codes, list):
        return np.stack(codes, axis=1) if codes else np.empty((0, arity), np.int64)
    return np.asarray(codes, np.int64).reshape(len(codes), arity)


def last_of_key(rows: np.ndarray, n_keys: int) -> np.ndarray:
    """The last row of each key."""
    if n_keys == 0:
        return rows[-1:]
    backwards = rows[::-1]
    _, first = np.unique(backwards[:, :n_keys], axis=0, return_index=True)
    return backwards[first]


def _with_keys(relation: Relation, keys: np.ndarray) -> np.ndarray:
    """The rows that have one of the keys.  A key has several values only inside a transaction."""
    found, rest = look_up(relation, keys)
    if (found > 1).any():
        rows, d = relation.rows(), keys.shape[1]
        return rows[contained(Relation.build(relation.arena, keys, d), rows[:, :d])]
    return np.concatenate([keys, rest], axis=1)[found > 0]
