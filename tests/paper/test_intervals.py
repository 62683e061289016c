"""The interval trees of section 3.2: Fig. 2 with x = 80, and the query 10 of the text."""

from __future__ import annotations

from dlog.storage.arena.arena import Arena
from dlog.storage.scan.interval_tree import build_intervals, stabbing

TEXT = [(2, 10), (3, 7), (5, 15), (6, 9)]


def test_paper_which_intervals_contain_10() -> None:
    tree = build_intervals(Arena(1 << 28), TEXT, 2, prefix=0)
    assert stabbing(tree, 0, [[10]]).rows.tolist() == [[2, 10], [5, 15]]


# The text at hand gives the answer of Fig. 2 and not its records: the others are ours, and none holds 80.
HOLD_80 = [(11, 100), (49, 82), (72, 87), (77, 96)]
OTHERS = [(0, 79), (3, 7), (15, 40), (49, 79), (60, 61), (72, 79), (79, 79), (81, 81), (81, 200), (90, 95)]


def test_paper_figure_2_which_intervals_contain_80() -> None:
    tree = build_intervals(Arena(1 << 28), HOLD_80 + OTHERS, 2, prefix=0)
    assert {(a, b) for a, b in stabbing(tree, 0, [[80]]).rows.tolist()} == set(HOLD_80)
