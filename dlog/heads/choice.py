"""Owns choices among candidates: which of them are kept, and which compete for keys that have become free.

A *domain* is a set of columns.  Chosen rows are functional: no two of them agree in all columns of a domain.
They are maximal: every other candidate agrees with a chosen row in all columns of some domain.  Knows nothing
of rules or transactions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.heads.choice_kernels import choose_rows, rows_beginning
from dlog.heads.lookup import contained, look_up_index
from dlog.jit import Bools, Words
from dlog.storage.relation.relation import Relation

Domains = Sequence[tuple[int, ...]]


def also_chosen(chosen: Relation, candidates: Words, domains: Domains) -> Words:
    """The candidates that are chosen besides the rows that are: earlier ones first.

    O(n log n) for n candidates and each domain, and as many look-ups.

    >>> from dlog.storage.arena.arena import Arena
    >>> chosen = Relation.build(Arena(1 << 28), [(1, 5)], 2)
    >>> also_chosen(chosen, np.array([[1, 6], [2, 5], [2, 7], [2, 8], [3, 7]]), [(0,)]).tolist()
    [[2, 5], [3, 7]]
    >>> also_chosen(chosen, np.array([[1, 6], [2, 5], [2, 7], [2, 8], [3, 7]]), [(0,), (1,)]).tolist()
    [[2, 7]]
    """
    n = len(candidates)
    if not n:
        return candidates
    numbers, used = np.empty((len(domains), n), np.int64), np.zeros((len(domains), n), bool)
    for d, domain in enumerate(domains):
        keys = np.ascontiguousarray(candidates[:, domain])
        numbers[d] = _numbered(keys)
        found, _ = look_up_index(chosen.add_order(_first(domain, chosen.arity)), keys)
        used[d, numbers[d][found > 0]] = True
    kept = np.empty(n, bool)
    choose_rows(numbers.reshape(-1), len(domains), n, used.reshape(-1), kept)
    return candidates[kept]


def competing(candidates: Relation, rows: Words, domains: Domains) -> Words:
    """The candidates that agree with one of the rows in some domain; some may be there several times.
    O((rows + found) log candidates)."""
    parts = [rows[:0]]
    for domain in domains:
        order = _first(domain, candidates.arity)
        keys = _distinct(np.ascontiguousarray(rows[:, domain]))
        parts.append(_beginning(candidates, order, keys)[:, np.argsort(order)])
    return np.concatenate(parts)


def check_choice(chosen: Relation, candidates: Words, domains: Domains) -> None:
    """Assert that chosen rows are candidates, functional and maximal.  O(candidates log)."""
    rows = chosen.rows()
    assert contained(Relation.build(chosen.arena, candidates, chosen.arity), rows).all()
    covered = np.zeros(len(candidates), bool)
    for domain in domains:
        keys = Relation.build(chosen.arena, rows[:, domain], len(domain))
        assert len(keys) == len(rows), f"two chosen rows agree in the columns {domain}"
        covered |= contained(keys, np.ascontiguousarray(candidates[:, domain]))
    assert covered.all(), "a candidate could be chosen"


def _first(domain: Sequence[int], arity: int) -> tuple[int, ...]:
    """The column order that begins with a domain."""
    return (*domain, *(column for column in range(arity) if column not in domain))


def _beginning(relation: Relation, order: tuple[int, ...], keys: Words) -> Words:
    """The rows, in a column order, that begin with one of these keys."""
    index, (n, d), arity = relation.add_order(order), keys.shape, relation.arity
    flat, none = keys.reshape(-1), np.empty(0, np.int64)
    room = rows_beginning(index.arena.A, index.root, flat, n, d, arity, none, 0)
    out = np.empty((room, arity), np.int64)
    rows_beginning(index.arena.A, index.root, flat, n, d, arity, out.reshape(-1), room)
    return out


def _numbered(keys: Words) -> Words:
    """A number for each distinct key, from 0."""
    if keys.shape[1] == 1 and (keys[1:] >= keys[:-1]).all():
        return np.cumsum(_starts(keys)) - 1
    order = np.lexsort(keys.T[::-1])
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(_starts(keys[order])) - 1
    return numbers


def _distinct(keys: Words) -> Words:
    ordered = keys[np.lexsort(keys.T[::-1])]
    return np.ascontiguousarray(ordered[_starts(ordered)])


def _starts(ordered: Words) -> Bools:
    """Where a key differs from the one before."""
    starts = np.ones(len(ordered), bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return starts
