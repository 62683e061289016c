"""Reading of indices by position, flat and paged, against a sorted list of rows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.lftj.iterator import TrieIterator
from dlog.storage.index.trie_kernels import (
    end_position,
    key_at,
    last_position,
    next_position,
    position_of,
    rows_between,
    run_end,
    seek_lub,
)
from dlog.storage.layout import FANOUT
from tests.lftj.formulas import MAX, MIN
from tests.lftj.memory import Memory

KEYS = st.one_of(st.integers(-2, 12), st.sampled_from([MIN, MAX]))
LAYOUTS = st.one_of(
    st.none(),
    st.tuples(
        st.lists(st.integers(1, 5), min_size=1, max_size=4),
        st.lists(st.integers(1, 4), min_size=1, max_size=3),
    ),
)


class Reader:
    """An index and its rows; `positions[i]` is where row i is, and positions[-1] the end."""

    def __init__(self, rows, arity, layout):
        memory = Memory()
        self.rows = sorted(set(rows))
        self.root = memory.flat(rows, arity) if layout is None else memory.paged(rows, arity, *layout)
        self.words = memory.words()
        self.positions = [0]
        for _ in self.rows:
            self.positions.append(int(next_position(self.words, self.root, self.positions[-1])))


@given(st.sets(st.tuples(KEYS, KEYS), max_size=60), LAYOUTS)
@settings(deadline=None)
def test_oracle_rows_by_position(rows, layout):
    reader = Reader(rows, 2, layout)
    words, root, positions = reader.words, reader.root, reader.positions
    assert positions == sorted(set(positions)) or not rows
    assert positions[-1] == end_position(words, root)
    assert [tuple(int(key_at(words, root, c, p)) for c in (0, 1)) for p in positions[:-1]] == reader.rows
    assert [int(position_of(words, root, i)) for i in range(len(reader.rows))] == positions[:-1]
    if rows:
        assert last_position(words, root) == positions[-2]
    for i, lo in enumerate(positions):
        for j, hi in enumerate(positions):
            assert rows_between(words, root, lo, hi) == max(0, j - i)


@given(st.sets(st.tuples(KEYS, KEYS), min_size=1, max_size=60), LAYOUTS, KEYS, st.data())
@settings(max_examples=300, deadline=None)
def test_oracle_seek_lub(rows, layout, key, data):
    """In column 0 within any range, in column 1 within any part of a run of column 0."""
    reader = Reader(rows, 2, layout)
    column = data.draw(st.integers(0, 1))
    lo = data.draw(st.integers(0, len(reader.rows)))
    hi = data.draw(st.integers(lo, len(reader.rows)))
    if column == 1 and lo < hi:
        hi = min(hi, bisect_right([row[0] for row in reader.rows], reader.rows[lo][0]))
    keys = [row[column] for row in reader.rows[lo:hi]]
    at = [reader.positions[i] for i in (lo, hi)]
    found = seek_lub(reader.words, reader.root, column, *at, key)
    assert found == reader.positions[lo + bisect_left(keys, key)]
    if lo < hi:
        end = run_end(reader.words, reader.root, column, *at)
        assert end == reader.positions[lo + bisect_right(keys, keys[0])]


@pytest.mark.parametrize("node_fills", [[FANOUT], [FANOUT - 1, 1, FANOUT - 56], [1, FANOUT]])
def test_seeks_across_full_nodes(node_fills):
    """Leaves of one row, so that nodes and ordinals run over their limits."""
    reader = Reader([(3 * i,) for i in range(1300)], 1, ([1], node_fills))
    for start in (0, 1, FANOUT - 2, FANOUT - 1, FANOUT, 700, 1299):
        for target in range(start, 1300, 7):
            for key in (3 * target - 1, 3 * target):
                found = seek_lub(
                    reader.words, reader.root, 0, reader.positions[start], reader.positions[-1], key
                )
                assert found == reader.positions[target]
    assert seek_lub(reader.words, reader.root, 0, 0, reader.positions[700], 9999) == reader.positions[700]


@given(st.sets(st.tuples(KEYS, KEYS, KEYS), max_size=30), LAYOUTS)
@settings(deadline=None)
def test_oracle_trie_iterator_walks_every_row(rows, layout):
    reader = Reader(rows, 3, layout)
    iterator = TrieIterator(reader.words, reader.root)

    def walk(prefix):
        if iterator.depth == 3:
            yield prefix
            return
        iterator.open()
        while not iterator.at_end():
            iterator.check()
            yield from walk((*prefix, iterator.key()))
            iterator.next()
        iterator.up()

    assert list(walk(())) == reader.rows
