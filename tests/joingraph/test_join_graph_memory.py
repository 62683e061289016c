"""Hubs, ids that are used again, memory that stays flat, and bytes for each row as computed."""

from __future__ import annotations

import numpy as np
import pytest

from dlog.errors import LimitError
from dlog.joingraph import layout as at
from dlog.joingraph.body import Atom, Body
from dlog.joingraph.check import GraphReader
from dlog.joingraph.graph import JoinGraph
from dlog.joingraph.plan import Plan, plan_graph
from dlog.storage.arena.arena_kernels import BUMP, LIMIT

CHAIN = Body((Atom("R", ("a",)), Atom("S", ("a", "h", "x")), Atom("T", ("h", "c"))), ("a", "c", "x"))


def graph_of(body: Body) -> JoinGraph:
    plan = plan_graph(body)
    assert isinstance(plan, Plan)
    return JoinGraph(plan)


def pairs(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> np.ndarray:
    return np.stack([first, second, third], axis=1)


def test_hub_with_many_join_tuples() -> None:
    """100,000 join tuples at one vertex value, removed in another order than they came in."""
    n, random = 100_000, np.random.default_rng(1)
    graph = graph_of(CHAIN)
    rows = pairs(random.permutation(n), np.zeros(n, np.int64), np.arange(n))
    graph.build({"R": np.arange(n)[:, None], "S": rows, "T": np.zeros((0, 2), np.int64)})
    order = random.permutation(n)
    gone, left = rows[order[: n // 2]], rows[order[n // 2 :]]
    assert len(graph.apply("S", erased=gone).counts) == 0
    columns, counts = graph.apply("T", inserted=np.array([[0, 7]]))
    assert (counts == 1).all() and set(columns[1].tolist()) == {7}
    assert sorted(columns[0].tolist()) == sorted(left[:, 0].tolist())
    assert len(graph.apply("S", erased=left[10:]).counts) == n // 2 - 10
    graph.check()
    assert sorted(graph.whole().columns[0].tolist()) == sorted(left[:10, 0].tolist())
    assert graph.memory()["lists"] < 8 * 100, "the list of the hub has shrunk"


def test_join_tuple_with_many_payload_rows() -> None:
    n, random = 50_000, np.random.default_rng(2)
    graph = graph_of(Body((Atom("R", ("h",)), Atom("S", ("h", "x", "y"))), ("x", "y")))
    rows = pairs(np.zeros(n, np.int64), random.permutation(n), np.arange(n))
    graph.build({"R": np.zeros((1, 1), np.int64), "S": rows})
    order = random.permutation(n)
    columns, counts = graph.apply("S", erased=rows[order[:-5]])
    assert sorted(columns[1].tolist()) == sorted(order[:-5].tolist()) and (counts == -1).all()
    graph.check()
    assert sorted(graph.whole().columns[1].tolist()) == sorted(order[-5:].tolist())


def test_place_and_revoke_keeps_memory_flat() -> None:
    """One row moves between two join tuples, a million times; so ids are used again."""
    graph = graph_of(CHAIN)
    graph.build({"R": np.array([[1], [2]]), "S": np.array([[1, 5, 9]]), "T": np.array([[5, 6], [7, 8]])})
    taken, bytes_before = int(graph.words[at.G_SLABS]), sum(graph.memory().values())
    one, other = np.array([[1, 5, 9]]), np.array([[2, 7, 9]])
    before, after = (
        np.tile(np.concatenate([one, other]), (500_000, 1)),
        np.tile(np.concatenate([other, one]), (500_000, 1)),
    )
    graph.apply("S", updated=(before, after), wanted=False)
    assert int(graph.words[at.G_SLABS]) == taken and sum(graph.memory().values()) == bytes_before
    graph.check()
    columns, counts = graph.apply("S", erased=one)
    assert [c.tolist() for c in columns] == [[1], [6], [9]] and counts.tolist() == [-1]


@pytest.mark.parametrize("payload", [0, 1, 2])
def test_bytes_of_a_middle_row(payload: int) -> None:
    """At most 80 + 8p bytes for each row of a middle atom, beside vertex values, indices among them."""
    n = 100_000
    extra = tuple(f"p{i}" for i in range(payload))
    body = Body((Atom("R", ("a",)), Atom("S", ("a", "b", *extra)), Atom("T", ("b",))), ("a", *extra))
    graph = graph_of(body)
    random = np.random.default_rng(3)
    rows = np.stack([random.integers(0, n // 4, n), random.integers(0, n // 4, n), *[np.arange(n)] * payload])
    rows = np.unique(rows.T, axis=0)
    graph.build({"R": np.zeros((0, 1), np.int64), "S": rows, "T": np.zeros((0, 1), np.int64)})
    used = graph.memory()
    index = graph.encoded.atoms[1] + at.T_INDEX
    own = used["lists"] + used["join tuples"] + used["payload rows"] + 8 * (int(graph.words[index + 1]) + 1)
    assert own / len(rows) <= 80 + 8 * payload


def test_a_row_that_is_not_there_cannot_be_erased() -> None:
    graph = graph_of(CHAIN)
    graph.build({"R": np.array([[1]]), "S": np.array([[1, 5, 9]]), "T": np.array([[5, 6]])})
    for row in ([2, 5, 9], [1, 5, 8]):
        with pytest.raises(AssertionError, match="not in the join graph"):
            graph.apply("S", erased=np.array([row]))


@pytest.mark.parametrize("room", [20_000, at.RESERVED + 20_000, at.RESERVED + 300_000])
def test_no_more_memory_is_an_error_that_can_be_undone(room: int) -> None:
    """At once, for an index, and for records; what was erased before comes back without more memory."""
    graph, some = graph_of(CHAIN), np.arange(100)
    rows = np.stack([some, some, some], axis=1)
    graph.build({"R": some[:, None], "S": rows, "T": rows[:, :2]})
    graph.arena.words[LIMIT] = graph.arena.words[BUMP] + room
    graph.apply("S", erased=rows[:70])
    graph.apply("T", erased=rows[:, :2], wanted=False)
    more = np.arange(1000, 101_000)
    with pytest.raises(LimitError, match="memory"):
        graph.apply("S", inserted=np.stack([more, more, more], axis=1))
    graph.undo()
    graph.check()
    assert sorted(graph.whole().columns[0].tolist()) == some.tolist()


def test_numbers_of_assignments_that_do_not_fit_are_an_error() -> None:
    body = Body(tuple(Atom(name, ("a", f"{name}x")) for name in "rstu"), ("a",))
    graph = graph_of(body)
    graph.build({name: np.array([[1, 2]]) for name in "rstu"})
    reader = GraphReader(graph)
    for e, (value,) in enumerate(reader.values):
        for side in (0, 1):
            if reader.is_leaf(e, side):
                graph.arena.words[value + reader.keys(e) + 2 * side + 1] = 1 << 39
    assert sum(atom.is_leaf for atom in graph.plan.atoms) >= 2
    with pytest.raises(LimitError, match="assignments"):
        graph.apply("u", inserted=np.array([[1, 3]]))
        graph.whole()
