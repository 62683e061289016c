"""Scan predicates against sorted lists: extremes at every level of detail, texts, runs."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.heads.scans import (
    apply_values,
    check_values,
    extreme_texts,
    extremes,
    no_values,
    runs,
    text_values,
)
from dlog.storage.arena.arena import Arena
from dlog.storage.dictionary.dictionary import Dictionary

EXTREMES = [-(2**63), 2**63 - 1, 0]


@given(st.integers(0, 2**16), st.sampled_from([5, 50, 4000]), st.sampled_from([2, 30]))
@settings(max_examples=40)
def test_oracle_extremes_at_every_level(seed: int, count: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    state = no_values(Arena(1 << 28), 2, 1, levels=True)
    there: list[tuple[int, ...]] = []
    for _ in range(3):
        new = np.column_stack([rng.integers(0, spread, (count, 2)), rng.integers(-9, 9, count)])
        new[rng.random(count) < 0.1, 2] = rng.choice(EXTREMES)
        gone = [there[i] for i in rng.permutation(len(there))[: len(there) // 2]]
        rows = np.concatenate([new, np.array(gone, np.int64).reshape(-1, 3)])
        state = apply_values(state, rows, np.repeat([1, -1], [len(new), len(gone)]))
        check_values(state)
        there += list(map(tuple, new.tolist()))
        left = Counter(there)
        left.subtract(gone)
        there = list(left.elements())
        for depth in range(3):
            keys = np.unique(np.array(there, np.int64).reshape(-1, 3)[:, :depth], axis=0)
            keys = (
                np.concatenate([keys, np.full((1, depth), spread)]) if depth else np.empty((1, 0), np.int64)
            )
            found, least, greatest = extremes(state, keys, 2)
            values_of = defaultdict(list)
            for row in there:
                values_of[row[:depth]].append(row[2])
            for i, key in enumerate(map(tuple, keys.tolist())):
                values = values_of[key]
                assert found[i] == bool(values)
                if values:
                    assert (least[i, 0], greatest[i, 0]) == (min(values), max(values))


TEXTS = st.one_of(
    st.text(max_size=4),
    st.text(alphabet="ab\0", min_size=5, max_size=12),
    st.text(alphabet="xy", max_size=3).map(lambda end: "twenty-eight bytes and more: " + end),
)


@given(st.lists(st.tuples(st.integers(0, 2), TEXTS), min_size=1, max_size=30), st.randoms())
@settings(max_examples=100)
def test_oracle_extreme_texts(rows: list[tuple[int, str]], rng: object) -> None:
    dictionary = Dictionary()
    codes = np.array([dictionary.encode_one(text) for _, text in rows])
    keys = np.array([key for key, _ in rows])
    state = no_values(Arena(1 << 28), 1, 5, levels=False)
    values = np.column_stack([keys, text_values(dictionary, codes)])
    state = apply_values(state, values, np.ones(len(rows), np.int64))
    half = len(rows) // 2
    state = apply_values(state, values[:half], np.full(half, -1))
    left = rows[half:]
    for sign, choose in ((1, min), (-1, max)):
        found, chosen = extreme_texts(state, np.arange(4)[:, None], dictionary, sign)
        for key in range(4):
            texts = [text.encode() for k, text in left if k == key]
            assert found[key] == bool(texts)
            if texts:
                assert dictionary.decode_one(int(chosen[key])).encode() == choose(texts)


def test_runs_of_keys() -> None:
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.integers(0, 5, 9000), np.arange(9000)])
    state = apply_values(no_values(Arena(1 << 28), 1, 1, levels=False), rows, np.ones(9000, np.int64))
    state = apply_values(state, rows[:10], np.full(10, -1))
    found, bounds = runs(state, np.array([[3], [7], [0]]))
    expected = [sorted(rows[10:][rows[10:, 0] == key, 1].tolist()) for key in (3, 7, 0)]
    assert [found[bounds[i] : bounds[i + 1], 0].tolist() for i in range(3)] == expected
