"""A graph that is built from sorted rows is the one that inserting these rows gives, and goes on like it."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dlog.joingraph import graph as joingraph
from dlog.joingraph.body import Atom, Body, Comparison
from dlog.joingraph.graph import JoinGraph, grouped
from tests.joingraph.following import Followed, as_counter, as_rows, random_body, random_change
from tests.oracle.join_graph_naive import view


def built(body: Body, relations: dict[str, set[tuple[int, ...]]], indexed: int) -> Followed:
    """The same as `Followed` after all rows have come."""
    followed = Followed(body, indexed=indexed)
    followed.relations = {name: set(rows) for name, rows in relations.items()}
    rows = {name: as_rows(relations[name], arity) for name, arity in followed.arity.items()}
    followed.graph.build({name: np.random.default_rng(1).permutation(r) for name, r in rows.items()})
    followed.view = view(body, followed.relations)
    return followed


@pytest.mark.parametrize("seed", range(60))
def test_oracle_built_graphs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joingraph, "FEW", 1)
    monkeypatch.setattr(joingraph, "SMALLEST", 4)  # so that indices grow in the middle
    random = Random(seed)
    body = random_body(random)
    arity = {atom.relation: len(atom.args) for atom in body.atoms}
    most = random.choice((1, 5, 40))
    relations = {
        name: {tuple(random.randrange(4) for _ in range(k)) for _ in range(random.randint(0, most))}
        for name, k in arity.items()
    }
    followed = built(body, relations, random.choice((1, 3, 16)))
    followed.check()
    for _ in range(15):
        random_change(random, followed, 4)
    followed.check()
    for name, rows in followed.relations.items():
        followed.change(name, erased=set(rows))
    followed.check()
    assert followed.is_empty()


def test_a_hub_and_many_payload_rows() -> None:
    """Lists and blocks have the size that inserting gives them at most, and shrink as usual."""
    n = 20_000
    body = Body((Atom("r", ("a",)), Atom("s", ("a", "h", "x")), Atom("t", ("h", "c"))), ("a", "c", "x"))
    some = np.arange(n)
    rows = np.stack([some, np.zeros(n, np.int64), some], axis=1)
    tables = {"r": some[:, None], "s": rows, "t": np.stack([np.zeros(n, np.int64), some], axis=1)}
    plan = Followed(body).plan
    graph, other = JoinGraph(plan), JoinGraph(plan)
    graph.build(tables)
    for name, table in tables.items():
        other.apply(name, inserted=table, wanted=False)
    graph.check()
    used, expected = graph.memory(), other.memory()
    assert all(used[kind] <= expected[kind] for kind in ("lists", "payload rows", "join tuples", "free"))
    graph.apply("s", erased=rows[5:], wanted=False)
    graph.apply("t", erased=tables["t"][3:])
    graph.check()
    assert as_counter(graph.whole()) == {(a, c, a): 1 for a in range(5) for c in range(3)}


def test_rows_that_do_not_pass_are_not_built() -> None:
    body = Body(
        (Atom("r", ("a", "a", 3)), Atom("s", ("a", "b"))),
        ("a", "b"),
        (Comparison("<", "b", 50), Comparison(">", "a", 1)),
    )
    followed = Followed(body)
    rows = np.array([[a, b, c] for a in range(6) for b in range(6) for c in range(6)])
    assert sorted(grouped(followed.plan, 0, rows).tolist()) == [[a, a, 3] for a in range(2, 6)]
    graph = JoinGraph(followed.plan)
    graph.build({"r": rows, "s": np.array([[i % 7, i] for i in range(100)])})
    graph.check()
    assert as_counter(graph.whole()) == {(i % 7, i): 1 for i in range(50) if 2 <= i % 7 <= 5}


def test_interrupted_where_there_is_no_room() -> None:
    """As inserting: an error, after which the graph is not used any more."""
    from dlog.errors import LimitError
    from dlog.storage.arena.arena_kernels import BUMP, LIMIT

    graph = JoinGraph(Followed(Body((Atom("r", ("a", "b")), Atom("s", ("b", "c"))), ("a", "c"))).plan)
    graph.arena.words[LIMIT] = graph.arena.words[BUMP] + 400_000
    rows = np.stack([np.arange(100_000)] * 2, axis=1)
    with pytest.raises(LimitError, match="memory"):
        graph.build({"r": rows, "s": rows})
