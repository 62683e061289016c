"""Support counts and group sums against plain Python: counters and integers of any size."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.heads.count_kernels import CHANGED, block_words, change_counted_head
from dlog.heads.counts import apply_counts, check_counts, count_rows, no_counts
from dlog.heads.sums import Groups, apply_groups, check_groups, groups_of, no_groups
from dlog.storage.arena.arena import Arena
from dlog.storage.arena.arena_kernels import RESULT
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


@RELAXED
@given(st.lists(ROW, min_size=9), st.lists(st.lists(st.tuples(ROW, st.booleans()), min_size=1), max_size=6))
def test_differential_counts_in_one_call(first: list, batches: list) -> None:  # type: ignore[type-arg]
    """By the kernel where it takes a batch, with the rows and counts that arrays of rows give."""
    arena = Arena(1 << 28)
    rows, counts = count_rows(arena, np.array(first, np.int64), 2)
    head = Relation.build(arena, rows, 2)
    head.add_order((1, 0))
    model = Counter(first)
    for batch in batches:
        signed = []
        for row, insert in batch:
            sign = 1 if insert or model[row] == 0 else -1
            model[row] += sign
            signed.append((row, sign))
        expected = apply_counts(
            head, counts, np.array([row for row, _ in signed], np.int64), np.array([s for _, s in signed])
        )
        for weighted in (False, True):
            found = _in_one_call(head, counts, signed, weighted)
            if found is None:
                continue
            later, later_counts, gained, lost = found
            assert np.array_equal(later.rows(), expected.rows.rows())
            assert np.array_equal(later_counts.rows(), expected.counts.rows())
            later.check()
            assert gained == expected.change.inserted.tolist() and lost == expected.change.erased.tolist()
        head, counts = expected.rows, expected.counts


def _in_one_call(  # type: ignore[type-arg]
    head: Relation, counts: Relation, signed: list, weighted: bool = False
) -> tuple | None:
    """Derivations as two joins give them: rows that come and rows that go, columns in the other order;
    `weighted`: each row once, with what it counts."""
    joins = [[row for row, sign in signed if sign == s] for s in (1, -1)]
    numbers_of = [[1] * len(rows) for rows in joins]
    if weighted:
        counted = [Counter(rows) for rows in joins]
        joins = [list(rows) for rows in counted]
        numbers_of = [[s * n for n in rows.values()] for s, rows in zip((1, -1), counted, strict=True)]
    weights = 2 if weighted else -1
    most = max(8, len(signed))
    out = np.zeros((2, 3, most), np.int64)
    for j, rows in enumerate(joins):
        out[j, :2, : len(rows)] = np.array(rows, np.int64).reshape(-1, 2).T[::-1]
        out[j, 2, : len(rows)] = numbers_of[j]
    layout = [
        2,
        2,
        1,
        2,
        most,
        3,
        most,
        0,
        *(0, 1),
        *(1, 0),
        *(0, 1, 2),
        *(1, 0, weights, 1, 1, 1, 0),
        *(-1, 0, weights, 1, 1, 1, 0),
    ]
    words, roots = np.array(layout, np.int64), np.zeros(6, np.int64)
    roots[:2], roots[4] = head.roots(), counts.roots()[0]
    written = np.zeros(block_words(2, most), np.int64)
    numbers = np.array([len(rows) for rows in joins], np.int64)
    found = change_counted_head(head.arena.A, words, roots, out.reshape(-1), numbers, written)
    if found < 0:
        return None
    gained, rows = head.arena.words[RESULT], written[: 2 * found].reshape(-1, 2).tolist()
    later = head.of_roots(roots[2:4].tolist()) if found else head
    later_counts = counts.of_roots([int(roots[5])]) if words[CHANGED] else counts
    return later, later_counts, rows[:gained], rows[gained:]


def test_the_kernel_of_counts_does_nothing_where_a_derivation_is_not_there() -> None:
    arena = Arena(1 << 28)
    head = Relation.build(arena, np.array([(x, x) for x in range(9)], np.int64), 2)
    head.add_order((1, 0))
    before = head.rows().tolist()
    assert _in_one_call(head, no_counts(arena, 2), [((20, 20), -1)]) is None
    assert _in_one_call(head, no_counts(arena, 2), [((1, 1), 1)]) is None, "counts that are empty are built"
    assert head.rows().tolist() == before
