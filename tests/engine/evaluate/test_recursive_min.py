"""Recursive min and max give the same values however recursion is done: driven, in slices, in rounds."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dlog
from dlog.engine.evaluate import fixpoint
from dlog.engine.evaluate.evaluate import Evaluation, evaluate
from tests.engine.evaluate.test_recursion import EXAMPLES, agree
from tests.oracle.bodies import Draw

# Each a program over road(x, y, w), link(x, y) and start(x); {0} is min or max.
SHAPES = {
    "paths": "d[x] = 0 <- start(x).\nd[y] = m <- agg<<m = {0}(e)>> d[x] = a, road(x, y, w), e = a + w.",
    "from each": "d[x, x] = 0 <- start(x)."
    "\nd[s, y] = m <- agg<<m = {0}(e)>> d[s, x] = a, road(x, y, w), e = a + w.",
    "labels": "d[x] = x <- start(x).\nd[x] = 7 - x <- link(x, _)."
    "\nd[y] = m <- agg<<m = {0}(e)>> d[x] = e, link(x, y).",
    "two rules": "d[x] = 1 <- start(x).\nd[y] = m <- agg<<m = {0}(e)>> d[x] = e, link(x, y)."
    "\nd[y] = m <- agg<<m = {0}(e)>> d[x] = a, road(x, y, w), start(y), e = a + w.",
    "mutual": "d[x] = 0 <- start(x).\nc[y] = m <- agg<<m = {0}(e)>> d[x] = a, road(x, y, w), e = a + w."
    "\nd[y] = m <- agg<<m = {0}(e)>> c[x] = e, link(x, y), !start(y).",
    "both sides": "d[x, y] = w <- road(x, y, w), start(x).\nd[x, y] = 0 <- link(x, y), !road(x, y, _)."
    "\nd[x, z] = m <- agg<<m = {0}(e)>> d[x, y] = a, d[y, z] = b, e = a + b.",
    "strings": 'd[x] = "b" <- start(x).\nd[x] = "a" <- link(x, x).'
    "\nd[y] = m <- agg<<m = {0}(e)>> d[x] = e, link(x, y).",
    "floats": "d[x] = 0.5 <- start(x)."
    "\nd[y] = m <- agg<<m = {0}(e)>> d[x] = a, road(x, y, w), v = to_float(w), e = a + v.",
}
DRIVEN = {name: name not in ("both sides", "strings") for name in SHAPES}


@st.composite
def graphs(draw: Draw) -> tuple[str, str]:
    """Facts and an aggregate under which every path's value is bounded.

    On any graph no step is better than none; on an acyclic one steps may be anything.
    """
    op = draw(st.sampled_from(["min", "max"]))
    node = st.integers(0, 6)
    acyclic = draw(st.booleans())
    weight = st.integers(-9, 9) if acyclic else st.integers(0, 9) if op == "min" else st.integers(-9, 0)
    pairs = st.tuples(node, node).filter(lambda pair: not acyclic or pair[0] < pair[1])
    roads = draw(st.lists(st.tuples(pairs, weight), min_size=4, max_size=16, unique=True))
    links = draw(st.lists(pairs, min_size=2, max_size=8, unique=True))
    starts = draw(st.lists(node, min_size=1, max_size=3, unique=True))
    lines = ["road(x, y, w) -> int(x), int(y), int(w). link(x, y) -> int(x), int(y). start(x) -> int(x)."]
    lines += [f"road({x}, {y}, {w})." for (x, y), w in roads]
    lines += [f"link({x}, {y})." for x, y in links]
    lines += [f"start({x})." for x in starts]
    return "\n".join(lines) + "\n", op


@pytest.mark.parametrize("slices", ["large", "small"])
@pytest.mark.parametrize("shape", SHAPES)
def test_oracle_recursive_min(shape: str, slices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if slices == "small":
        monkeypatch.setattr(fixpoint, "OUTPUT_ROWS", 2)
        monkeypatch.setattr(fixpoint, "FIRST_BUDGET", 5)
        monkeypatch.setattr(fixpoint, "BUDGET", 9)

    @settings(max_examples=EXAMPLES // 2, suppress_health_check=list(HealthCheck))
    @given(graphs())
    def check(graph: tuple[str, str]) -> None:
        facts, op = graph
        agree(facts + SHAPES[shape].format(op))

    check()


@pytest.mark.parametrize("shape", SHAPES)
def test_which_rules_are_driven(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not goes in rounds: values read beside the driver, and strings."""
    ran = []

    def run(*args: Any) -> None:
        ran.append(args)
        fixpoint.run_fixpoint(*args)

    monkeypatch.setattr("dlog.engine.evaluate.evaluate.run_fixpoint", run)
    dlog.Database(source="road(1, 2, 3). link(1, 2). start(1).\n" + SHAPES[shape].format("min"))
    assert bool(ran) == DRIVEN[shape]


def dijkstra(edges: np.ndarray, source: int) -> dict[int, int]:
    """By a heap: shares nothing with queues, sets or joins."""
    out: dict[int, list[tuple[int, int]]] = {}
    for x, y, w in edges.tolist():
        out.setdefault(x, []).append((y, w))
    known: dict[int, int] = {}
    heap = [(0, source)]
    while heap:
        distance, x = heapq.heappop(heap)
        if x not in known:
            known[x] = distance
            for y, w in out.get(x, ()):
                heapq.heappush(heap, (distance + w, y))
    return known


@pytest.mark.parametrize("rounds", [False, True])
def test_oracle_many_replaced_values(rounds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long paths of light edges beside heavy short ones: most values are replaced, and their rows dropped."""
    monkeypatch.setattr(fixpoint, "OUTPUT_ROWS", 64)
    dropped = []

    class Queues(fixpoint.RowQueues):
        def drop_stale(self, q: int) -> np.ndarray:
            dropped.append(self.count(q) - self.live(q))
            return super().drop_stale(q)

    monkeypatch.setattr(fixpoint, "RowQueues", Queues)
    n, rng = 400, np.random.default_rng(3)
    chain = np.stack([np.arange(n - 1), np.arange(1, n), np.ones(n - 1, np.int64)], axis=1)
    jumps = np.sort(rng.integers(0, n, (6 * n, 2)), axis=1)
    jumps = np.column_stack([jumps, 1 + 3 * (jumps[:, 1] - jumps[:, 0]) + rng.integers(0, 9, len(jumps))])
    edges = np.unique(np.concatenate([chain, jumps]), axis=0)
    made = dlog.Database(
        source="road(x, y, w) -> int(x), int(y), int(w). start(0).\n" + SHAPES["paths"].format("min"),
        evaluated=False,
    )
    made.store.relations["road"].apply_in_place(inserts=edges)
    evaluate(made.program, made.store, Evaluation(rounds=rounds))
    assert dict(made["d"].rows()) == dijkstra(edges, 0)
    assert rounds or sum(n > 0 for n in dropped) > 2, "stale rows were dropped on the way"
    made.check()


def test_oracle_labels_by_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least label that reaches a node, with output so small that rows are left unfinished."""
    monkeypatch.setattr(fixpoint, "OUTPUT_ROWS", 3)
    n, rng = 300, np.random.default_rng(4)
    links = np.unique(rng.integers(0, n, (5 * n, 2)), axis=0)
    labels = np.stack([np.arange(n), rng.permutation(n)], axis=1)[: n // 2]
    text = "link(x, y) -> int(x), int(y). label(x, v) -> int(x), int(v). d[x] = v <- label(x, v)."
    made = dlog.Database(source=text + "d[y] = m <- agg<<m = min(e)>> d[x] = e, link(x, y).", evaluated=False)
    made.store.relations["link"].apply_in_place(inserts=links)
    made.store.relations["label"].apply_in_place(inserts=labels)
    evaluate(made.program, made.store, Evaluation())
    expected: dict[int, int] = {}
    for x, v in sorted(labels.tolist(), key=lambda pair: pair[1]):
        reached = [x]
        while reached:
            if (y := reached.pop()) not in expected:
                expected[y] = v
                reached += links[links[:, 0] == y, 1].tolist()
    assert dict(made["d"].rows()) == expected


def test_a_row_that_drove_drives_again() -> None:
    """The last row of a round is improved by one before it, after both drove."""
    roads = "road(0, 1, 1). road(0, 2, 10). road(1, 2, 1). road(2, 3, 1). start(0).\n"
    made = dlog.Database(source=roads + SHAPES["paths"].format("min"))
    assert made["d"].rows() == [(0, 0), (1, 1), (2, 2), (3, 3)]
