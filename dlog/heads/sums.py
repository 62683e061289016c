"""Owns group sums (maintenance paper, 2.3): counts and exact sums of groups under insertion and erasure.

A group is a row of one relation: its keys, the number of its assignments, then one wide number of 256 bits
for each sum.  A group exists as long as its number is positive, whatever its sums are.  Sums are Abelian
groups, so erasing is adding the negative, and the order of changes does not matter.

Integers are added up in four kernels, since none can do another one's work as fast:

    from scratch     `grouping_kernels.sum_ints`: a word of each row, in any order, to its group in two parts,
                     whose carries are settled once for each group
                     `arithmetic.wide_kernels.sums`: the same of numbers of 256 bits, such as decimals that a
                     rule computes, and sums of shards.  For single words it takes five to nine times as long
    general path     `kernels.add_row`, here: sums of changed rows, found from scratch, to sums that are
                     stored, one row for each group, in order.  For single words of many rows it takes five
                     times as long as `sum_ints`, without the sorting
    short path       `part_kernels.add_word`: the word of one assignment, added or taken away in place,
                     between finding the row of a group and changing it, in one call for all of it
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dlog.heads import kernels
from dlog.heads.kernels import WIDE
from dlog.heads.lookup import look_up
from dlog.jit import Words
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation


class Groups(NamedTuple):
    """Some groups: keys (n, g), counts (n,), and for each sum its words (n, 4)."""

    keys: Words
    counts: Words
    sums: list[Words]

    def take(self, mask: np.ndarray) -> Groups:
        return Groups(self.keys[mask], self.counts[mask], [s[mask] for s in self.sums])

    def negative(self) -> Groups:
        return Groups(self.keys, -self.counts, [_negative(s) for s in self.sums])


def no_groups(arena: Arena, keys: int, sums: int) -> Relation:
    return Relation(arena, keys + 1 + WIDE * sums)


def all_groups(arena: Arena, groups: Groups) -> Relation:
    """The state of groups, each of them once and with assignments.  O(n)."""
    assert (groups.counts > 0).all(), "a group without assignments"
    rows = _rows(groups)
    return Relation.build(arena, rows, rows.shape[1])


def apply_groups(state: Relation, keys: int, changes: list[Groups]) -> tuple[Relation, Groups, Groups]:
    """(The new state, changed groups as they were, changed groups as they are).  O(m log n)."""
    sums = (state.arity - keys - 1) // WIDE
    rows = _folded(np.concatenate([_rows(change) for change in changes]), keys, sums)
    found, old = look_up(state, rows[:, :keys])
    new = rows[:, keys:].copy()
    kernels.add_rows(new.reshape(-1), old.reshape(-1), len(rows), sums)
    assert (new[:, 0] >= 0).all(), "a group loses an assignment that it does not have"
    moved = (new != old).any(axis=1)
    before, after = moved & (found > 0), moved & (new[:, 0] > 0)
    assert not new[moved & ~after].any(), "an empty group has a sum"
    erased, inserted = np.hstack([rows[:, :keys], old])[before], np.hstack([rows[:, :keys], new])[after]
    state, _ = state.apply(erases=erased, inserts=inserted)
    return state, groups_of(erased, keys), groups_of(inserted, keys)


def groups_of(rows: Words, keys: int) -> Groups:
    """Groups from rows of a state relation."""
    sums = (rows.shape[1] - keys - 1) // WIDE
    words = [rows[:, keys + 1 + WIDE * s : keys + 1 + WIDE * (s + 1)] for s in range(sums)]
    return Groups(rows[:, :keys], np.ascontiguousarray(rows[:, keys]), words)


def _rows(groups: Groups) -> Words:
    return np.hstack([groups.keys, groups.counts[:, None], *groups.sums])


def _folded(rows: Words, keys: int, sums: int) -> Words:
    if keys:
        rows = rows[np.lexsort(rows[:, :keys].T[::-1])]
    out = np.empty_like(rows)
    flat = np.ascontiguousarray(rows).reshape(-1)
    return out[: kernels.fold_rows(flat, len(rows), keys, sums, out.reshape(-1))]


def _negative(words: Words) -> Words:
    out = words.copy()
    kernels.negate_wide(out.reshape(-1), len(out))
    return out


def check_groups(state: Relation, keys: int) -> None:
    """Assert that every group has assignments, and that no key has two groups.  O(groups log groups)."""
    rows = state.rows()
    assert (rows[:, keys] > 0).all(), "a group without assignments"
    assert (look_up(state, rows[:, :keys])[0] == 1).all(), "a group is stored twice"
