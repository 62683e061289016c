"""Owns the positions of the nodes of a drawn forest.  Knows only sizes, nothing of what is drawn.

The layout is tidy, in the sense of Reingold and Tilford: levels are straight, subtrees keep their shape, a
parent is above the middle of its children, and subtrees are as close as their outlines allow.

Correct output: no two boxes come nearer to each other than the gap, whatever their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass
class Layout:
    """Centres of the nodes; the top and the bottom of each level; the width and height of the whole."""

    centres: list[tuple[float, float]]
    levels: list[tuple[float, float]]
    depths: list[int]
    width: float
    height: float


@dataclass
class _Outline:
    """Of a subtree whose root is at 0: the leftmost and rightmost place of each level."""

    left: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)


def tidy(
    children: Sequence[Sequence[int]],
    roots: Sequence[int],
    sizes: Sequence[tuple[float, float]],
    gap: float = 16.0,
    level_gap: float = 40.0,
) -> Layout:
    """Trees side by side, roots on top.  O(nodes * depth).

    >>> tidy([[1, 2], [], []], [0], [(10, 10)] * 3, gap=4, level_gap=20).centres
    [(12.0, 5.0), (5.0, 35.0), (19.0, 35.0)]
    """
    order = list(_parents_first(children, roots))
    outlines: dict[int, _Outline] = {}
    offsets = [0.0] * len(children)
    for node in reversed(order):
        outlines[node] = _subtree(node, children[node], sizes[node][0], outlines, offsets, gap)
    whole = _side_by_side(roots, outlines, offsets, gap)
    depths = [0] * len(children)
    places = [0.0] * len(children)
    for root in roots:
        places[root] = offsets[root]
    for node in order:
        for child in children[node]:
            depths[child] = depths[node] + 1
            places[child] = places[node] + offsets[child]
    levels = _levels(order, depths, sizes, level_gap)
    left = min(whole.left, default=0.0)
    centres = [(x - left, sum(levels[d]) / 2) for x, d in zip(places, depths, strict=True)]
    width = max(whole.right, default=0.0) - left
    return Layout(centres, levels, depths, width, levels[-1][1] if levels else 0.0)


def _parents_first(children: Sequence[Sequence[int]], roots: Sequence[int]) -> Iterator[int]:
    waiting = list(reversed(roots))
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children[node]))


def _subtree(
    node: int,
    below: Sequence[int],
    width: float,
    outlines: dict[int, _Outline],
    offsets: list[float],
    gap: float,
) -> _Outline:
    """The outline of a node above its children, whose offsets from it are set."""
    joined = _side_by_side(below, outlines, offsets, gap)
    if below:
        middle = (offsets[below[0]] + offsets[below[-1]]) / 2
        for child in below:
            offsets[child] -= middle
        joined.left = [x - middle for x in joined.left]
        joined.right = [x - middle for x in joined.right]
    return _Outline([-width / 2, *joined.left], [width / 2, *joined.right])


def _side_by_side(
    nodes: Sequence[int], outlines: dict[int, _Outline], offsets: list[float], gap: float
) -> _Outline:
    """Subtrees from left to right, each as near to its neighbours as the gap allows.

    What can move is in the middle of its range: halfway between where it is when all are pushed to the left
    and where it is when all are pushed to the right.  Both keep the gap, so the middle does.
    """
    parts = [outlines.pop(node) for node in nodes]
    left = _pushed(parts, gap)
    mirrored = [_Outline([-x for x in part.right], [-x for x in part.left]) for part in reversed(parts)]
    right = [-x for x in reversed(_pushed(mirrored, gap))]
    play = left[-1] - right[-1] if parts else 0.0
    joined = _Outline()
    for node, part, low, high in zip(nodes, parts, left, right, strict=True):
        shift = offsets[node] = (low + high + play) / 2
        for level, (first, last) in enumerate(zip(part.left, part.right, strict=True)):
            if level == len(joined.left):
                joined.left.append(first + shift)
                joined.right.append(last + shift)
            joined.left[level] = min(joined.left[level], first + shift)
            joined.right[level] = max(joined.right[level], last + shift)
    return joined


def _pushed(parts: Sequence[_Outline], gap: float) -> list[float]:
    """Where each subtree is when all are pushed to the left; the first is at 0."""
    shifts: list[float] = []
    occupied: list[float] = []  # the rightmost place of each level
    for part in parts:
        shift = max((r + gap - l for r, l in zip(occupied, part.left, strict=False)), default=0.0)
        shifts.append(shift)
        occupied[: len(part.right)] = [x + shift for x in part.right]
    return shifts


def _levels(
    nodes: Sequence[int], depths: Sequence[int], sizes: Sequence[tuple[float, float]], level_gap: float
) -> list[tuple[float, float]]:
    heights = [0.0] * (max((depths[n] for n in nodes), default=-1) + 1)
    for node in nodes:
        heights[depths[node]] = max(heights[depths[node]], sizes[node][1])
    levels, top = [], 0.0
    for height in heights:
        levels.append((top, top + height))
        top += height + level_gap
    return levels
