"""Support counts and group sums against plain Python: counters and integers of any size."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.heads.counts import apply_counts, check_counts, count_rows, no_counts
from dlog.heads.sums import Groups, apply_groups, check_groups, groups_of, no_groups
from dlog.storage.arena.arena import Arena
from dlog.storage.relation.relation import Relation

RELAXED = settings(max_examples=60, deadline=None, derandomize=True)
ROW = st.tuples(st.integers(0, 3), st.integers(-1, 2))
BIG = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))


@RELAXED
@given(st.lists(ROW), st.lists(st.lists(st.tuples(ROW, st.booleans()), max_size=8), max_size=6))
def test_oracle_counts(first: list, batches: list) -> None:  # type: ignore[type-arg]
    arena = Arena(1 << 28)
    model = Counter(first)
    rows, counts = count_rows(arena, np.array(first, np.int64).reshape(-1, 2), 2)
    head = Relation.build(arena, rows, 2)
    for batch in batches:
        changes = [(row, 1 if insert else -1) for row, insert in batch]
        for row, sign in changes:
            if sign < 0 and model[row] == 0:
                sign = 1  # only what is there can go
            model[row] += sign
        signed = Counter(model)
        signed.subtract(_support(head, counts))
        items = list(signed.items())
        if not items:
            continue
        array = np.array([row for row, _ in items], np.int64)
        before = {tuple(r) for r in head.rows().tolist()}
        head, counts, change = apply_counts(head, counts, array, np.array([n for _, n in items], np.int64))
        after = {tuple(r) for r in head.rows().tolist()}
        assert {tuple(r) for r in change.inserted.tolist()} == after - before
        assert {tuple(r) for r in change.erased.tolist()} == before - after
        assert _support(head, counts) == +model
        check_counts(head, counts)


def _support(head: Relation, counts: Relation) -> Counter[tuple[int, ...]]:
    support = Counter({tuple(row): 1 for row in head.rows().tolist()})
    support.update({tuple(row[:-1]): row[-1] - 1 for row in counts.rows().tolist()})
    return support


def test_a_derivation_that_is_not_there_cannot_go() -> None:
    arena = Arena(1 << 28)
    with pytest.raises(AssertionError, match="loses a derivation"):
        apply_counts(Relation(arena, 1), no_counts(arena, 1), np.array([[1]]), np.array([-1]))


@RELAXED
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), BIG, st.booleans()), min_size=1, max_size=8), max_size=8)
)
def test_oracle_sums(batches: list) -> None:  # type: ignore[type-arg]
    """Erasures are of members that are there; sums of large values pass 64 and 128 bits on the way."""
    state = no_groups(Arena(1 << 28), 1, 1)
    members: list[tuple[int, int]] = []
    for batch in batches:
        changes = []
        for key, value, insert in batch:
            if not insert and members:
                key, value = members.pop(len(members) // 2)
                changes.append(_group(key, value << 100).negative())
            else:
                members.append((key, value))
                changes.append(_group(key, value << 100))
        state, _, _ = apply_groups(state, 1, changes)
        check_groups(state, 1)
        found = groups_of(state.rows(), 1)
        expected = {k: [v for key, v in members if key == k] for k, _ in members}
        assert found.keys[:, 0].tolist() == sorted(expected)
        for key, count, words in zip(found.keys[:, 0].tolist(), found.counts, found.sums[0], strict=True):
            assert count == len(expected[key])
            assert _number(words) == sum(expected[key]) << 100


def _group(key: int, value: int) -> Groups:
    words = np.frombuffer(value.to_bytes(32, "little", signed=True), np.int64).reshape(1, 4)
    return Groups(np.array([[key]]), np.array([1]), [words])


def _number(words: np.ndarray) -> int:
    return int.from_bytes(np.ascontiguousarray(words).tobytes(), "little", signed=True)
