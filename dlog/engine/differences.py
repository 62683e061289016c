"""Owns changes of relations as rows of codes: applying them, and telling two versions apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.storage.delta import difference
from dlog.storage.relation import Relation


def with_changes(relation: Relation, op: str, codes: Any, n_keys: int) -> Relation:
    """A new version after `+`, `-` or `^` of rows.  O(m log n), for `^` O(n + m)."""
    if op == "+":
        return relation.apply(inserts=codes)[0]
    if op == "-":
        return relation.apply(erases=codes)[0]
    rows = _last_of_key(_as_array(codes, relation.arity), n_keys)
    return relation.apply(inserts=rows, erases=_with_keys(relation.rows(), rows, n_keys))[0]


def changed_rows(before: Relation | None, after: Relation) -> tuple[np.ndarray, np.ndarray]:
    """(Rows that were inserted, rows that were erased), net and sorted.

    As `dlog.storage.delta.difference`: O(change) when one version was made from the other.
    """
    if before is None:
        return after.rows(), np.empty((0, after.arity), np.int64)
    order = next(o for o in before.orders if o in after.orders or o == before.orders[0])
    change = difference(before.index(order), after.add_order(order))
    natural = np.argsort(order)
    return _sorted(change.inserted[:, natural]), _sorted(change.erased[:, natural])


def _as_array(codes: Any, arity: int) -> np.ndarray:
    """Rows of codes, from rows or from a list of columns."""
    if isinstance(codes, list):
        return np.stack(codes, axis=1) if codes else np.empty((0, arity), np.int64)
    return np.asarray(codes, np.int64).reshape(-1, arity)


def _last_of_key(rows: np.ndarray, n_keys: int) -> np.ndarray:
    """Of rows with one key, the last."""
    backwards = rows[::-1]
    _, first = np.unique(backwards[:, :n_keys], axis=0, return_index=True)
    return backwards[first]


def _with_keys(rows: np.ndarray, wanted: np.ndarray, n_keys: int) -> np.ndarray:
    """Those rows whose key is among the wanted ones."""
    if n_keys == 0 or not len(rows):
        return rows
    if len(wanted) == 1:
        return rows[(rows[:, :n_keys] == wanted[0, :n_keys]).all(axis=1)]
    keys = np.concatenate([wanted[:, :n_keys], rows[:, :n_keys]])
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    return rows[np.isin(group[len(wanted) :], group[: len(wanted)])]


def _sorted(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort(rows.T[::-1])] if rows.shape[1] else rows
