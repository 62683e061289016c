"""Owns the positions of the nodes of a drawn graph.  Knows only sizes, nothing of what is drawn.

Nodes are in rows: each is below all that it leads to.  An edge over several rows bends between the boxes of
each row, so that no line touches a box.  Rows are ordered by the mean place of their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Edge = tuple[int, int]  # from a node to one above it
Point = tuple[float, float]

_SWEEPS = 8
_BEND = 6.0  # the width of the place where an edge passes a row


@dataclass(frozen=True)
class Layers:
    """Centres of the nodes; for each edge where it passes the rows between, from below; top and bottom of
    each row, the highest first.
    """

    centres: list[Point]
    bends: dict[Edge, list[float]]
    rows: list[tuple[float, float]]
    row_of: list[int]
    width: float
    height: float


def layers(sizes: Sequence[Point], edges: Iterable[Edge], gap: float = 18.0, row_gap: float = 46.0) -> Layers:
    """O((nodes + edges * rows) * sweeps).  Edges that close a cycle are left out.

    >>> found = layers([(10, 10), (10, 10), (10, 10)], [(1, 0), (2, 1), (2, 0)])
    >>> found.row_of, found.bends[2, 0] != []
    ([0, 1, 2], True)
    """
    kept = _without_cycles(len(sizes), dict.fromkeys(edges))
    row_of = _rows(len(sizes), kept)
    graph = _Graph.of(sizes, kept, row_of)
    for sweep in range(_SWEEPS):
        graph.sort(downwards=sweep % 2 == 0)
    places = graph.places(gap)
    heights = [
        max((sizes[n][1] for n in range(len(sizes)) if row_of[n] == r), default=0.0) for r in graph.numbers
    ]
    rows, top = [], 0.0
    for height in heights:
        rows.append((top, top + height))
        top += height + row_gap
    centres = [(places[n], sum(rows[row_of[n]]) / 2) for n in range(len(sizes))]
    bends = {edge: [places[n] for n in chain] for edge, chain in graph.chains.items()}
    right = max((places[n] + graph.widths[n] / 2 for n in range(len(graph.widths))), default=0.0)
    return Layers(centres, bends, rows, row_of, right, rows[-1][1] if rows else 0.0)


def _without_cycles(count: int, edges: Iterable[Edge]) -> list[Edge]:
    """All but those that lead back on the way that a search in depth takes."""
    above: dict[int, list[int]] = {n: [] for n in range(count)}
    for low, high in edges:
        if low != high:
            above[low].append(high)
    state = [0] * count  # 1: on the way, 2: done
    kept: list[Edge] = []
    for start in range(count):
        waiting = [(start, iter(above[start]))] if not state[start] else []
        state[start] = state[start] or 1
        while waiting:
            node, rest = waiting[-1]
            other = next(rest, None)
            if other is None:
                state[node] = 2
                waiting.pop()
            elif state[other] != 1:
                kept.append((node, other))
                if not state[other]:
                    state[other] = 1
                    waiting.append((other, iter(above[other])))
    return kept


def _rows(count: int, edges: Sequence[Edge]) -> list[int]:
    """The length of the longest way up."""
    row_of, changed = [0] * count, True
    while changed:
        changed = False
        for low, high in edges:
            if row_of[low] <= row_of[high]:
                row_of[low], changed = row_of[high] + 1, True
    return row_of


@dataclass
class _Graph:
    """The nodes and, after them, one more for each row that an edge passes."""

    widths: list[float]
    chains: dict[Edge, list[int]]
    above: list[list[int]]
    below: list[list[int]]
    rows: list[list[int]]

    @staticmethod
    def of(sizes: Sequence[Point], edges: Sequence[Edge], row_of: Sequence[int]) -> _Graph:
        graph = _Graph([w for w, _ in sizes], {}, [], [], [[] for _ in range(max(row_of, default=0) + 1)])
        graph.above, graph.below = [[] for _ in sizes], [[] for _ in sizes]
        for node, row in enumerate(row_of):
            graph.rows[row].append(node)
        for low, high in edges:
            chain = [graph._bend(row) for row in range(row_of[low] - 1, row_of[high], -1)]
            graph.chains[low, high] = chain
            for one, other in zip([low, *chain], [*chain, high], strict=True):
                graph.above[one].append(other)
                graph.below[other].append(one)
        return graph

    def _bend(self, row: int) -> int:
        self.widths.append(_BEND)
        self.above.append([])
        self.below.append([])
        self.rows[row].append(len(self.widths) - 1)
        return len(self.widths) - 1

    @property
    def numbers(self) -> range:
        return range(len(self.rows))

    def sort(self, downwards: bool) -> None:
        """Each row by the mean place of the neighbours in the row before it."""
        for row in self.numbers if downwards else reversed(self.numbers):
            before = row - 1 if downwards else row + 1
            if not 0 <= before < len(self.rows):
                continue
            place = {n: i / max(1, len(self.rows[before]) - 1) for i, n in enumerate(self.rows[before])}
            near = self.above if downwards else self.below
            own = {n: i / max(1, len(self.rows[row]) - 1) for i, n in enumerate(self.rows[row])}
            self.rows[row].sort(key=lambda n: _mean([place[m] for m in near[n] if m in place], own[n]))

    def places(self, gap: float) -> list[float]:
        """Centres, from left to right; no two boxes of a row come nearer than the gap."""
        places = [0.0] * len(self.widths)
        for row in self.rows:
            self._packed(row, [0.0] * len(row), places, gap)
        for sweep in range(_SWEEPS):
            near = self.above if sweep % 2 == 0 else self.below
            for row in self.rows if sweep % 2 == 0 else self.rows[::-1]:
                wanted = [_mean([places[m] for m in near[n]], places[n]) for n in row]
                self._packed(row, wanted, places, gap)
        left = min((places[n] - w / 2 for n, w in enumerate(self.widths)), default=0.0)
        return [place - left for place in places]

    def _packed(self, row: Sequence[int], wanted: Sequence[float], places: list[float], gap: float) -> None:
        """As near to the wanted places as the order allows: in the middle between what is pushed to the right
        and what is pushed to the left.
        """
        right, left = list(wanted), list(wanted)
        for i in range(1, len(row)):
            right[i] = max(right[i], right[i - 1] + self._apart(row[i - 1], row[i], gap))
        for i in reversed(range(len(row) - 1)):
            left[i] = min(left[i], left[i + 1] - self._apart(row[i], row[i + 1], gap))
        for node, one, other in zip(row, left, right, strict=True):
            places[node] = (one + other) / 2

    def _apart(self, one: int, other: int, gap: float) -> float:
        near = self.widths[one] == self.widths[other] == _BEND
        return (self.widths[one] + self.widths[other]) / 2 + (gap / 4 if near else gap)


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
