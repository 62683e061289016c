"""Groups of relations: versions that are lists of roots until they are read, and followed in place."""

from __future__ import annotations

import gc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.storage.arena.arena import Arena
from dlog.storage.arena.arena_kernels import RESULT
from dlog.storage.layout import ROOT_REFERENCES
from dlog.storage.relation.relation import Relation
from dlog.storage.relation.relation_group import RelationGroup
from dlog.storage.relation.rows_kernels import change_rows

Rows = set[tuple[int, ...]]
ARITIES = (2, 3)
ORDERS = (((0, 1), (1, 0)), ((0, 1, 2), (2, 0, 1)))


def group_of(arena: Arena, contents: list[Rows]) -> RelationGroup:
    parts = [
        Relation.build(arena, sorted(rows), k, orders)
        for rows, k, orders in zip(contents, ARITIES, ORDERS, strict=True)
    ]
    return RelationGroup(arena, parts)


def bare(group: RelationGroup) -> RelationGroup:
    """The same version as a list of roots, as a kernel leaves it."""
    roots = [root for part in group.snapshot().parts for root in part.roots().tolist()]
    with group.arena.lock:
        for root in roots:
            group.arena.words[root + ROOT_REFERENCES] += 1
    return group.of_roots(roots)


def follow(group: RelationGroup, contents: list[Rows], later: list[Rows]) -> RelationGroup:
    """Change all parts in place, as a trigger's kernel does."""
    arena, roots, edits, changes = group.arena, [], [], []
    found = np.zeros(4, np.int64)
    assert group.put_roots(found.data) == 4
    for i, (k, before, after) in enumerate(zip(ARITIES, contents, later, strict=True)):
        inserts, erases = sorted(after - before), sorted(before - after)
        own = found[2 * i : 2 * i + 2].copy()
        if inserts or erases:
            rows = np.array([*inserts, *erases], np.int64).reshape(-1)
            layout = np.array([c for order in ORDERS[i] for c in order], np.int64)
            with arena.lock:
                n = change_rows(arena.A, k, 2, layout, own, rows, len(inserts), len(erases), 1, rows.copy())
                assert n == len(inserts) + len(erases) and arena.words[RESULT] == len(inserts)
        changes += [len(inserts), len(erases), sum(map(len, edits))]
        edits.append(np.array([*inserts, *erases], np.int64).reshape(-1))
        roots += own.tolist()
    words = np.concatenate(edits).tobytes(), np.array(changes, np.int64).tobytes()
    return group.followed_in_place(roots, lambda: words)


def rows_of(group: RelationGroup) -> list[Rows]:
    return [{tuple(row) for row in part.rows().tolist()} for part in group.parts]


def test_parts_are_made_of_roots_and_share_nothing_that_changes() -> None:
    arena = Arena(1 << 28)
    contents: list[Rows] = [{(1, 2), (3, 4)}, {(1, 2, 3)}]
    group = bare(group_of(arena, contents))
    assert group.is_bare and len(group.snapshot()) == 3
    assert not group.is_bare and rows_of(group) == contents
    group.check()


small = st.integers(0, 9)
states = st.tuples(
    st.sets(st.tuples(small, small), min_size=8, max_size=40),
    st.sets(st.tuples(small, small, small), min_size=8, max_size=40),
).map(list)


@given(first=states, second=states, third=states)
@settings(max_examples=60, deadline=None)
def test_oracle_versions_that_were_followed_in_place(
    first: list[Rows], second: list[Rows], third: list[Rows]
) -> None:
    """Every version has its own rows, whichever is read first, and all memory comes back."""
    arena = Arena(1 << 28)
    one = bare(group_of(arena, first))
    two = follow(one, first, second)
    three = follow(two, second, third)
    assert not one.is_bare and not two.is_bare and three.is_bare
    assert rows_of(one) == first and rows_of(three) == third and rows_of(two) == second
    for group in (one, two, three):
        group.check()
    del one, two, three, group
    gc.collect()
    assert arena.usage().used_extents == 0 and arena.usage().used_blocks == 0
