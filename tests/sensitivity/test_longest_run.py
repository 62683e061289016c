"""How many rows of an index begin alike, against counting."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dlog.sensitivity.run_kernels import longest_run
from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from tests.examples import relaxed

ARENA = Arena(1 << 28)
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 40)), max_size=60)


@relaxed(150)
@given(ROWS, st.integers(0, 3), st.booleans())
def test_oracle_longest_run(rows: list[tuple[int, int, int]], p: int, paged: bool) -> None:
    index = Index.build(ARENA, rows, 3)
    if paged:  # rows that come one by one make leaves
        index = Index.build(ARENA, [(9, i // 7, i) for i in range(3000)], 3)
        for row in rows:
            index = index.insert_row(row) or index
        rows = [*rows, *((9, i // 7, i) for i in range(3000))]
    expected = max(Counter(row[:p] for row in set(rows)).values(), default=0)
    assert longest_run(ARENA.A, index.root, p) == expected
