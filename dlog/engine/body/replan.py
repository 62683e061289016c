"""Owns the decision whether sizes have changed so much that another plan may be better.  Knows no plan."""

from __future__ import annotations

from collections.abc import Sequence

REPLAN = 16  # the factor by which a relation grows or shrinks before its plans are rebuilt
_ANY_PLAN_ROWS = 64  # rows up to which any plan is quick, whatever it was made for


def alike(sizes: Sequence[int], before: Sequence[int]) -> bool:
    """Whether a plan made for relations of some sizes still fits them.  O(relations).

    >>> alike([3, 1000], [60, 1000]), alike([100_000], [1000]), alike([100], [3])
    (True, False, False)
    """
    return all(map(is_alike, sizes, before))


def is_alike(size: int, before: int) -> bool:
    """The same of one relation."""
    return size <= most_alike(before) and before <= most_alike(size)


def most_alike(before: int) -> int:
    """The largest size that a plan fits which was made for another size."""
    return max(_ANY_PLAN_ROWS, REPLAN * before)
