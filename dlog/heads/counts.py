"""Owns support counts (maintenance paper, 2.2): how many derivations each row of a head has.

Only counts of 2 and more are stored, in a relation next to the head's: a row without an entry there has one
derivation.  So a head whose rows are derived once each, such as one without projection, costs nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dlog.heads.lookup import look_up
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.index.batch import Change
from dlog.storage.index.sort import weigh_rows
from dlog.storage.relation.relation import Relation


class Counted(NamedTuple):
    """A head's rows, their counts from 2 on, and the net change."""

    rows: Relation
    counts: Relation
    change: Change


def no_counts(arena: Arena, arity: int) -> Relation:
    return Relation(arena, arity + 1)


def count_rows(arena: Arena, rows: Words, arity: int, weights: Words | None = None) -> tuple[Words, Relation]:
    """(The distinct rows, the counts relation) of rows that occur once for each derivation.

    With weights, a row represents that many derivations.  O(n) for each varying byte.
    """
    if not arity or not len(rows):
        distinct, support = net_rows(rows, np.ones(len(rows), np.int64) if weights is None else weights)
        return distinct, Relation.build(arena, _entries(distinct, support, support > 1), arity + 1)
    columns, support = weigh_rows(list(rows.T), weights)
    several = np.flatnonzero(support > 1)
    counts = Relation.from_columns(arena, [column[several] for column in (*columns, support)])
    return np.stack(columns).T, counts


def apply_counts(head: Relation, counts: Relation, rows: Words, signs: Words) -> Counted:
    """Add (+n) and remove (-n) derivations of rows.  O(m log n).

    Correct output: a row is in the head as long as it has a derivation; ERASE and INSERT of one row in the
    same batch cancel first, whichever rule they come from.
    """
    rows, change = net_rows(rows, signs)
    there = look_up(head, rows)[0]
    found, values = look_up(counts, rows)
    before = np.where(found > 0, values[:, 0], there)
    after = before + change
    assert (after >= 0).all(), "a row loses a derivation that it does not have"
    later, net = head.apply(
        inserts=rows[(before == 0) & (after > 0)], erases=rows[(before > 0) & (after == 0)]
    )
    moved = before != after
    entries = _entries(rows, before, moved & (before > 1)), _entries(rows, after, moved & (after > 1))
    if len(entries[0]) or len(entries[1]):
        counts, _ = counts.apply(erases=entries[0], inserts=entries[1])
    return Counted(later, counts, net)


def _entries(rows: Words, support: Words, mask: np.ndarray) -> Words:
    return np.concatenate([rows[mask], support[mask, None]], axis=1)


def net_rows(rows: Words, signs: Words) -> tuple[Words, Words]:
    """Distinct rows, sorted, with the sum of their signs; those with sum 0 are omitted."""
    if not len(rows):
        return rows, signs
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    rows, signs = rows[order], signs[order]
    first = np.ones(len(rows), bool)
    first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    total = np.add.reduceat(signs, starts)
    kept = total != 0
    return rows[starts[kept]], total[kept]


def net_change(changes: Sequence[Change]) -> Change:
    """The net change of consecutive net changes: a row that was added and removed again is omitted.

    O(rows log rows)."""
    if len(changes) == 1:
        return changes[0]
    signs = np.concatenate([np.repeat((1, -1), (len(c.inserted), len(c.erased))) for c in changes])
    rows = np.ascontiguousarray(np.concatenate([part for change in changes for part in change]))
    if not rows.shape[1]:
        total = int(signs.sum())
        return Change(rows[: max(total, 0)], rows[: max(-total, 0)])
    distinct, totals = net_rows(rows, signs)
    return Change(distinct[totals > 0], distinct[totals < 0])


def check_counts(head: Relation, counts: Relation) -> None:
    """Assert that only rows of the head have counts, one each, of at least 2.  O(counts log rows)."""
    entries = counts.rows()
    assert (entries[:, -1] >= 2).all(), "a count below 2 is not stored"
    assert (look_up(head, entries[:, :-1])[0] == 1).all(), "a missing row has a count"
    assert (look_up(counts, entries[:, :-1])[0] == 1).all(), "a row has two counts"
