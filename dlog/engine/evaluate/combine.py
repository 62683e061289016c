"""Owns recursive min and max: which candidates are better than the values a function has now."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from dlog.aggregates import aggregate_named
from dlog.engine.state.store import Store
from dlog.lftj.assemble import Assembled, assemble
from dlog.lftj.plan import Emit, Holds, Leap, Not, Plan, Seek, Step, Value
from dlog.lftj.triejoin import Join
from dlog.storage.index.index import Index


def combine_candidates(store: Store, name: str, rows: np.ndarray, op: str) -> tuple[np.ndarray, np.ndarray]:
    """(rows that are better than what is stored, stored rows that they replace).  O((n + m) log)."""
    best = _best(store, name, rows, op)
    candidates = Index.build(store.arena, best, best.shape[1])
    n_keys = best.shape[1] - 1
    stored = store.index(name, tuple(range(n_keys + 1)))
    both = _run(store, _matches(n_keys), candidates, stored)
    new = _run(store, _unmatched(n_keys), candidates, stored)
    order = _order(store, name)
    ahead = order(both[:, n_keys]) < order(both[:, n_keys + 1])
    if aggregate_named(op).direction < 0:
        ahead = order(both[:, n_keys]) > order(both[:, n_keys + 1])
    both = both[ahead]
    better = np.concatenate([both[:, : n_keys + 1], new])
    return better, np.delete(both, n_keys, axis=1)


def _order(store: Store, name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Maps codes to numbers in the order of their values."""
    if not store.column_types(name)[-1].ordered_codes:
        rank = store.dictionary.rank
        return lambda codes: rank[codes]
    return lambda codes: codes


def _best(store: Store, name: str, rows: np.ndarray, op: str) -> np.ndarray:
    """One row per key: the least or greatest value.  O(n) for each byte that varies, but for strings."""
    if store.column_types(name)[-1].ordered_codes:
        ordered = Index.from_columns(store.arena, [rows[:, c] for c in range(rows.shape[1])]).rows()
        new_key = np.ones(len(ordered) + 1, bool)
        new_key[1:-1] = (ordered[1:, :-1] != ordered[:-1, :-1]).any(axis=1)
        return ordered[new_key[:-1] if aggregate_named(op).direction > 0 else new_key[1:]]
    value = _order(store, name)(rows[:, -1])
    if aggregate_named(op).direction < 0:
        value = ~value  # ~ reverses the order of all int64, including the least
    order = np.lexsort([value, *(rows[:, c] for c in reversed(range(rows.shape[1] - 1)))])
    rows = rows[order]
    first = np.ones(len(rows), bool)
    if len(rows) > 1:
        first[1:] = (rows[1:, :-1] != rows[:-1, :-1]).any(axis=1)
    return rows[first]


@cache
def _matches(n_keys: int) -> Assembled:
    """Candidate and stored value of every key that both have: slots are the keys, then the two values."""
    steps: list[Step] = [Leap(k, ((0, k), (1, k))) for k in range(n_keys)]
    steps += [Value(0, n_keys, n_keys), Value(1, n_keys, n_keys + 1)]
    if n_keys == 0:
        steps = [Leap(0, ((0, 0),)), Leap(1, ((1, 0),))]
    return assemble(Plan((n_keys + 1, n_keys + 1), (*steps, Emit(tuple(range(n_keys + 2))))))


@cache
def _unmatched(n_keys: int) -> Assembled:
    """Candidates whose key has no stored value."""
    steps: list[Step] = [Leap(k, ((0, k),)) for k in range(n_keys)]
    inner: tuple[Step, ...] = tuple(Seek(1, k, k) for k in range(n_keys)) or (Holds(1),)
    last: Step = Value(0, n_keys, n_keys) if n_keys else Leap(0, ((0, 0),))
    arities = (n_keys + 1, n_keys if n_keys else 0)
    return assemble(Plan(arities, (*steps, Not(inner), last, Emit(tuple(range(n_keys + 1))))))


def _run(store: Store, plan: Assembled, candidates: Index, stored: Index) -> np.ndarray:
    return Join(plan, store.arena.A, (candidates.root, stored.root)).rows()
