"""Join graphs by themselves, without transactions: searches against loops written by hand, update changes
against erasing and inserting, look-ahead on chains of retweets, memory.

Data as in the thesis on join graphs (chapter 9), made smaller: users with n followers each who tweet once,
and one user whose followers see chains of retweets.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Row, at_least, below, compare, faster, within
from benchmarks.join_graph_by_hand import fan_out
from benchmarks.joins import loaded
from dlog.engine.body.bodies import BodyRunner
from dlog.engine.head.heads import body_outputs
from dlog.engine.state.limits import Watch
from dlog.engine.state.measure import Measures
from dlog.jit import Words
from dlog.joingraph import layout as at
from dlog.joingraph.body import Atom, Body
from dlog.joingraph.graph import JoinGraph
from dlog.joingraph.plan import Plan, plan_graph
from dlog.planning.pipeline import plan_pipeline

FAN_OUT = Body(
    (Atom("f", ("u", "f1")), Atom("f", ("f2", "u")), Atom("tweet", ("f2", "t"))), ("u", "f1", "f2", "t")
)
RULES = """
    f(x, y) -> int(x), int(y). tweet(x, y) -> int(x), int(y).
    view(u, f1, f2, t) <- f(u, f1), f(f2, u), tweet(f2, t).
"""
NEW_USERS = 1_000_000


def benchmark(scale: float) -> Iterator[Row]:
    for n in (10, 100):
        yield from fan_outs(n, at_least(200, 60_000 * scale))
    yield from whole_view(100, at_least(200, 300_000 * scale))
    yield from updates(at_least(1000, 200_000 * scale))
    yield from chains(at_least(20_000, 200_000 * scale))
    yield from building(at_least(1000, 500_000 * scale))
    yield from memory(at_least(1000, 1_000_000 * scale))


def graph_of(body: Body, lookahead: str = "marks", **relations: Words) -> JoinGraph:
    plan = plan_graph(body)
    assert isinstance(plan, Plan)
    graph = JoinGraph(plan, lookahead)
    graph.build(relations)
    return graph


def building(rows: int) -> Iterator[Row]:
    """All rows of an atom at once, sorted by what they join on, against inserting one after the other."""
    random = np.random.default_rng(5)
    many, few = random.integers(0, rows // 20, rows), random.integers(0, rows // 4, rows)
    middle = Body((Atom("r", ("a",)), Atom("s", ("a", "b", "x")), Atom("t", ("b", "c"))), ("a", "x", "c"))
    shapes = {
        "a leaf": (Body((Atom("s", ("u", "f")), Atom("t", ("u", "t"))), ("t",)), (many, np.arange(rows))),
        "one vertex": (Body((Atom("s", ("u", "f")), Atom("t", ("u", "t"))), ("f", "t")), (many, few)),
        "two vertices": (middle, (few, random.permutation(few), np.arange(rows))),
    }
    for name, (body, columns) in shapes.items():
        table = distinct(*columns)
        arity = {atom.relation: len(atom.args) for atom in body.atoms}
        tables = {relation: np.zeros((0, k), np.int64) for relation, k in arity.items()} | {"s": table}

        def build(body: Body = body, tables: dict[str, Words] = tables) -> int:
            return rows_of(graph_of(body, **tables), "s")

        def insert(body: Body = body, tables: dict[str, Words] = tables) -> int:
            plan = plan_graph(body)
            assert isinstance(plan, Plan)
            graph = JoinGraph(plan)
            graph.apply("s", inserted=tables["s"], wanted=False)
            return rows_of(graph, "s")

        size = f"{len(table):,} rows"
        yield from compare(f"graph, building {name}", size, build, {"insertion": insert}, runs=5)


def rows_of(graph: JoinGraph, relation: str) -> int:
    return sum(int(graph.words[graph.encoded.atoms[a] + at.T_ROWS]) for a in graph.plan.atoms_of(relation))


def distinct(*columns: Words) -> Words:
    return np.unique(np.stack(columns, axis=1), axis=0)


# ---- fan-out


def fan_outs(n: int, rows: int) -> Iterator[Row]:
    """Users with n followers each, of which each has three, tweet once."""
    follows, tweets = users_with(n, rows)
    graph = graph_of(FAN_OUT, f=follows, tweet=tweets[:0])
    by_hand = HandWritten(graph, tweets, 10 * rows)

    def ours() -> int:
        found = len(graph.apply("tweet", inserted=tweets).counts)
        graph.undo()
        return found

    def hand() -> int:
        graph.apply("tweet", inserted=tweets, wanted=False)
        found = by_hand.run()
        graph.undo()
        return found

    size = f"{len(tweets):,} tweets"
    yield from compare(f"graph, fan-out {n}", size, ours, {"by hand": hand}, {"by hand": within(2)}, runs=5)


def users_with(n: int, rows: int) -> tuple[Words, Words]:
    """Who follows whom, and a tweet of each new user."""
    random, users = np.random.default_rng(1), NEW_USERS + np.arange(rows // n)
    follows = distinct(*random.integers(0, rows, (2, 3 * rows)))
    new = distinct(np.repeat(users, n), random.integers(0, rows, n * len(users)))
    return np.concatenate([follows, new]), np.stack([users, users], axis=1)


def whole_view(n: int, rows: int) -> Iterator[Row]:
    """All rows of the view, without a relation for them, against leapfrog triejoin over indices."""
    follows, tweets = users_with(n, rows)
    graph = graph_of(FAN_OUT, f=follows, tweet=tweets)
    database = loaded(RULES, {"f": list(follows.T), "tweet": list(tweets.T)})
    rule = database.program.rules[0]
    plan = plan_pipeline(rule.body.forms, body_outputs(rule), rule.types, bag=True)

    def joined() -> int:
        return BodyRunner(database.store, rule, Watch(), Measures()).run(plan).n

    size, aim = f"{len(tweets):,} tweets", {"leapfrog triejoin": faster(1)}
    yield from compare(
        f"graph, whole view, fan-out {n}",
        size,
        lambda: len(graph.whole().counts),
        {"leapfrog triejoin": joined},
        aim,
        runs=5,
    )


class HandWritten:
    """Where the loops find what they need."""

    def __init__(self, graph: JoinGraph, tweets: Words, room: int):
        plan, encoded = graph.plan, graph.encoded
        e = next(e for e, vertex in enumerate(plan.vertices) if vertex.variables == ("f2",))
        assert plan.vertices[e].atoms == (1, 2), "the loops know the sides"
        join = int(graph.words[encoded.atoms[2] + at.T_JOINS_AT])
        self.graph, self.vertex, self.room = graph, encoded.vertices[e], room
        self.columns = int(graph.words[join + at.J_COLUMNS_AT])
        self.tweets, self.out = tweets, np.zeros(5 * room, np.int64)

    def run(self) -> int:
        graph, tweets = self.graph, self.tweets
        return fan_out(
            graph.arena.A,
            graph.words,
            self.vertex,
            self.columns,
            tweets.reshape(-1),
            len(tweets),
            self.out,
            self.room,
        )


# ---- updates


def updates(rows: int) -> Iterator[Row]:
    """A column of tweets changes that is in the view and does not join."""
    random, n = np.random.default_rng(2), 20
    users = at_least(20, rows / n)
    atoms = Atom("tweet", ("f2", "t", "d")), Atom("f", ("f2", "u")), Atom("g", ("u", "f1"))
    tables = {"f": distinct(np.repeat(np.arange(users), n), random.integers(0, rows, n * users))}
    tables["g"] = np.stack([np.arange(rows), random.permutation(rows)], axis=1)
    before = np.stack([random.permutation(users), np.arange(users), np.zeros(users, np.int64)], axis=1)
    after = before + np.array([0, 0, 1])
    graph = graph_of(Body(atoms, ("f1", "t", "d")), tweet=before, **tables)

    def update() -> int:
        found = len(graph.apply("tweet", updated=(before, after)).counts)
        found += len(graph.apply("tweet", updated=(after, before)).counts)
        graph.settle()
        return found

    def both() -> int:
        found = len(graph.apply("tweet", erased=before, inserted=after).counts)
        found += len(graph.apply("tweet", erased=after, inserted=before).counts)
        graph.settle()
        return found

    peer, size = "erase, insert", f"{users:,} tweets"
    yield from compare(
        f"graph, updates, fan-out {n}", size, update, {peer: both}, {peer: faster(1.7)}, runs=5
    )


# ---- chains of retweets


def retweets(tweets: int, n: int) -> Words:
    """User, retweet, what is retweeted: for a third an earlier retweet.  User 0 has one of 200."""
    random, ids = np.random.default_rng(3), tweets + np.arange(n)
    users = np.where(random.random(n) < 0.005, 0, random.integers(1, at_least(10, n / 20), n))
    earlier = tweets + (random.random(n) * np.maximum(ids - tweets, 1)).astype(np.int64)
    of_retweets = (random.random(n) < 0.35) & (ids > tweets)
    return np.stack([users, ids, np.where(of_retweets, earlier, random.integers(0, tweets, n))], axis=1)


def chain(joins: int) -> Body:
    atoms = [Atom("r", (f"u{i}", f"t{i}", f"t{i - 1}")) for i in range(1, joins + 1)]
    return Body((*atoms, Atom("f", (f"u{joins}", "f"))), ("t0", f"u{joins}", "f"))


def chains(n: int) -> Iterator[Row]:
    """New followers of one user see what is retweeted over 2 to 5 joins."""
    table, rows = retweets(at_least(300, 0.3 * n), n), at_least(50, n / 100)
    followers = np.stack([np.zeros(rows, np.int64), np.arange(rows)], axis=1)
    first = 0.0
    for joins in (2, 3, 4, 5):
        seconds, visits = {}, {}
        for lookahead in ("none", "local", "marks"):
            graph = graph_of(chain(joins), lookahead, r=table, f=np.zeros((0, 2), np.int64))
            seconds[lookahead], visits[lookahead] = follow(graph, followers)
        first = first or seconds["marks"]
        size, name = f"{n:,} retweets", f"graph, retweets, {joins} joins"
        yield Row(name, size, seconds["marks"], first, "2 joins", faster(0.9))
        for peer in ("none", "local"):
            yield Row(
                f"{name}: tuples entered for a row",
                size,
                visits["marks"],
                visits[peer],
                f"look-ahead {peer}",
                unit="tuples",
            )


def follow(graph: JoinGraph, followers: Words) -> tuple[float, float]:
    """Seconds for all rows, one by one, and join tuples entered for each."""
    best = 1e9
    for _ in range(3):
        before, started = graph.visits, time.process_time()
        for i in range(len(followers)):
            graph.apply("f", inserted=followers[i : i + 1])
        best = min(best, time.process_time() - started)
        visits = (graph.visits - before) / len(followers)
        graph.undo()
    return best, visits


# ---- memory


def memory(n: int) -> Iterator[Row]:
    """Bytes for each row of a middle atom, beside vertex values, with its index."""
    random = np.random.default_rng(4)
    for payload in (0, 2):
        extra = tuple(f"p{i}" for i in range(payload))
        body = Body((Atom("r", ("a",)), Atom("s", ("a", "b", *extra)), Atom("t", ("b",))), ("a", *extra))
        rows = distinct(*random.integers(0, n // 4, (2, n)), *[np.arange(n)] * payload)
        none = np.zeros((0, 1), np.int64)
        graph = graph_of(body, r=none, s=rows, t=none)
        used = graph.memory()
        index = 8 * (int(graph.words[graph.encoded.atoms[1] + at.T_INDEX + at.I_MASK]) + 1)
        own = used["lists"] + used["join tuples"] + used["payload rows"] + index
        aim = below(80 + 8 * payload)
        yield Row(
            f"graph, a middle row, payload {payload}", f"{n:,} rows", own / len(rows), aim=aim, unit="bytes"
        )
