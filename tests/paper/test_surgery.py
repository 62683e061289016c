"""The worked example of section 4.2.1, in its printed order."""

from __future__ import annotations

from dlog.storage.arena.arena import Arena
from dlog.storage.diff.delta import difference
from dlog.storage.diff.surgery import surgeries
from dlog.storage.index.index import Index

INSERT, ERASE = 1, -1
VERSION_1 = [(0, 30, 80), (0, 30, 81), (1, 35, 60), (1, 35, 61), (3, 40, 90), (3, 50, 91), (3, 50, 92)]
VERSION_2 = [(0, 30, 80), (1, 35, 60), (1, 35, 61), (3, 50, 91), (4, 60, 71)]
PRINTED = [
    (ERASE, (0, 30, 81)),
    (ERASE, (3, 40, 90)),
    (ERASE, (3, 40)),
    (ERASE, (3, 50, 92)),
    (INSERT, (4,)),
    (INSERT, (4, 60)),
    (INSERT, (4, 60, 71)),
]


def test_paper_delta_iterator() -> None:
    arena = Arena(1 << 28)
    change = difference(Index.build(arena, VERSION_1, 3), Index.build(arena, VERSION_2, 3))
    assert change.erased.tolist() == [[0, 30, 81], [3, 40, 90], [3, 50, 92]]
    assert change.inserted.tolist() == [[4, 60, 71]]


def test_paper_tree_surgery() -> None:
    arena = Arena(1 << 28)
    old, new = Index.build(arena, VERSION_1, 3), Index.build(arena, VERSION_2, 3)
    assert list(surgeries(old, new)) == PRINTED


def test_paper_tree_surgery_of_a_transaction() -> None:
    old = Index.build(Arena(1 << 28), VERSION_1, 3)
    new, change = old.apply(inserts=[(4, 60, 71)], erases=[(0, 30, 81), (3, 40, 90), (3, 50, 92)])
    assert list(surgeries(old, new, change)) == PRINTED


def test_paper_surgeries_by_depth() -> None:
    arena = Arena(1 << 28)
    found = surgeries(Index.build(arena, VERSION_1, 3), Index.build(arena, VERSION_2, 3))
    assert [found.at_depth(d).inserted.tolist() for d in (1, 2, 3)] == [[[4]], [[4, 60]], [[4, 60, 71]]]
    assert [found.at_depth(d).erased.tolist() for d in (1, 2)] == [[], [[3, 40]]]
