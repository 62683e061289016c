"""The queries of the thesis on GraphIVM (chapter 9) over a social network, in transactions: join graphs
against deltas, view trees, levels of maps, loops written by hand, the full outer join as a table, and DuckDB.

The network is that of `programs/generators/social.py`, with 10,000 users at scale 1; for fan-outs and chains
of followers, users with a given number of followers.  Times are for one transaction, of one row, or for a
row of a batch.  Under mode `changes` there is a subscriber, on both sides, who does not read the rows unless
it is said.  Loops written by hand and the table of the full outer join are no transactions: they are compared
with a join graph by itself.

    python -m benchmarks.social --full [--write]        100,000 users
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import table
from benchmarks.harness import Aim, Row, at_least, below, faster, within
from benchmarks.join_graph import graph_of, retweets
from benchmarks.social_by_hand import NestedLoops, OuterJoin
from benchmarks.social_changes import batches, modifications
from benchmarks.social_sides import (
    DELTA,
    GRAPH,
    RUNS,
    Change,
    Side,
    again,
    against,
    all_equal,
    in_batches,
    inserting,
    network,
    seconds,
)  # fmt: skip
from dlog.jit import Words
from dlog.joingraph.body import Atom, Body

SIMPLE = {  # query, what comes last, and the same in SQL
    "q1": ("q1(u, t, d) <- user(u), tweet[u, t] = d.", "tweet", "user natural join tweet"),
    "q2": ("q2(f, u, t) <- follower(u, f), tweet[u, t] = _.", "tweet", "follower natural join tweet"),
    "q3": (
        "q3(u, t, v, r) <- user(u), tweet[u, t] = _, retweet[v, r, t] = _.",
        "retweet",
        "user natural join tweet join retweet using (t)",
    ),
}
SUMS = {  # the same, with the column by which SQL groups
    "q1_agg": ("q1_agg[u] = n <- agg<<n = count()>> user(u), tweet[u, _] = _.", "tweet", "u"),
    "q2_agg": ("q2_agg[f] = n <- agg<<n = count()>> follower(u, f), tweet[u, _] = _.", "tweet", "f"),
    "q3_agg": (
        "q3_agg[u] = n <- agg<<n = count()>> user(u), tweet[u, t] = _, retweet[_, _, t] = _.",
        "retweet",
        "tweet.u",
    ),
}
FAN_OUT = "q_fan_out(f, g, u, t, d) <- follower(g, f), follower(u, g), tweet[u, t] = d."
FAN_OUT_SQL = """select count(*), sum(x.f + y.f + t.t)
    from follower x join follower y on x.u = y.f join tweet t on y.u = t.u"""
FAN_OUTS = 1, 10, 100, 1000
AIMS = {10: faster(2), 100: faster(4)}
MANY = 100
STREAM = 1000  # rows of a transaction whose fixed cost does not count
JOINS = 2, 3, 4, 5
ALL = 0.001  # scale from which all of these are measured: maps for the longest chain compile for seconds
AUTHORS = 50
ALONE, LOOPS, OUTER = "graph by itself", "nested loops", "outer-join table"  # which are no transactions


def benchmark(scale: float) -> Iterator[Row]:
    n = at_least(10, 300 * min(scale, 1.0))
    yield from simple(scale, n)
    yield from fan_outs(FAN_OUTS if scale >= ALL else FAN_OUTS[:3], n)
    joins = JOINS if scale >= ALL else JOINS[:2]
    yield from follower_chains(joins, n)
    yield from retweet_chains(joins, scale, n)
    yield from batches(scale, *SIMPLE["q3"])
    yield from modifications(n)
    yield from memory(joins, scale)


# Q1 to Q3


def simple(scale: float, n: int) -> Iterator[Row]:
    """The last tweets, or retweets, one by one."""
    data = network(at_least(60, 10_000 * scale))
    size = f"{sum(map(len, data.values())):,} rows"
    last = RUNS * n
    for name, (query, relation, joined) in SIMPLE.items():
        measured = of_strategies(query, relation, data, last, n, (GRAPH, DELTA))
        peers = {
            "deltas": (measured[DELTA], within(1 / 0.9)),
            "DuckDB again": (again(f"select count(*), sum(t) from {joined}", data), faster(20)),
        }
        yield from against(f"{name}: one row", size, measured[GRAPH], peers)
    for name, (query, relation, group) in SUMS.items():
        measured = of_strategies(query, relation, data, last, n, (GRAPH, DELTA, "views", "multilevel"))
        words = {DELTA: "deltas", "views": "view trees", "multilevel": "levels of maps"}
        others: dict[str, tuple[float, Aim | None]] = {words[way]: (measured[way], None) for way in words}
        joined = SIMPLE[name.removesuffix("_agg")][2]
        sql = f"select count(*), sum(n) from (select {group}, count(*) n from {joined} group by {group})"
        others["DuckDB again"] = again(sql, data), None
        yield from against(f"{name}: one row", size, measured[GRAPH], others)


def of_strategies(
    query: str, relation: str, data: Mapping[str, Any], last: int, n: int, ways: Sequence[str]
) -> dict[str, float]:
    rows = data[relation]
    last = min(last, len(rows) - 1)
    read = {r: data[r] for r in data if f"{r}(" in query or f"{r}[" in query} | {relation: rows[:-last]}
    databases = {way: Side(way).open(query, read) for way in ways}
    changes = {way: inserting(db, relation, rows[-last:], n) for way, db in databases.items()}
    measured = seconds(changes, n)
    all_equal(databases, query)
    return measured


# Fan-out


def fan_out_facts(n: int) -> list[tuple[int, int]]:
    """Authors with one follower each, who has n followers."""
    found = [(u, AUTHORS + u) for u in range(AUTHORS)]
    return found + [(AUTHORS + u, 2 * AUTHORS + u * n + i) for u in range(AUTHORS) for i in range(n)]


def tweets(number: int) -> list[tuple[int, int, int]]:
    return [(t % AUTHORS, t, t % 365) for t in range(number)]


def fan_outs(numbers: Sequence[int], n: int) -> Iterator[Row]:
    """A tweet with so many rows, by mode."""
    sides = {
        "graph, changes": Side(GRAPH, "changes", True),
        "graph, on_read": Side(GRAPH, "on_read"),
        "graph, always": Side(GRAPH, "always", True),
        "deltas, changes": Side(DELTA, "changes", True),
        "deltas, always": Side(DELTA, "always", True),
        "deltas, without subscribers": Side(DELTA),
    }
    rows, found = tweets(RUNS * n), dict[int, dict[str, float]]()
    for fan_out in numbers:
        size, followers = f"{n:,} transactions", fan_out_facts(fan_out)
        databases = {name: side.open(FAN_OUT, {"follower": followers}) for name, side in sides.items()}
        changes = {name: inserting(db, "tweet", rows, n) for name, db in databases.items()}
        users = AUTHORS * (2 + fan_out)
        alone = by_itself(np.array(followers), users, rows)
        changes |= {name: each(tweet, rows, n, fan_out) for name, tweet in alone.items()}
        measured = found[fan_out] = seconds(changes, n)
        all_equal(databases, FAN_OUT)
        name, told = f"fan-out {fan_out}", measured["graph, changes"]
        peers = {
            "deltas, always": (measured["deltas, always"], AIMS.get(fan_out)),
            "deltas, changes": (measured["deltas, changes"], None),
        }
        if fan_out == MANY:
            seconds_again = again(FAN_OUT_SQL, {"follower": followers, "tweet": rows})
            peers["DuckDB again"] = (seconds_again, faster(20))
        yield from against(f"{name}, mode changes", size, told, peers)
        peer = {"deltas, always": (measured["deltas, always"], within(1 / 0.9))}
        yield from against(f"{name}, mode always", size, measured["graph, always"], peer)
        aim = faster(10) if fan_out == MANY else None
        quiet = {"deltas, always": (measured["deltas, without subscribers"], aim)}
        yield from against(f"{name}, mode on_read", size, measured["graph, on_read"], quiet)
        peers = {"outer-join table": (measured[OUTER], None), "nested loops": (measured[LOOPS], None)}
        yield from against(f"{name}, graph by itself", size, measured[ALONE], peers)
    yield from fan_outs_in_batches([fan_out for fan_out in numbers if fan_out in AIMS], n)
    one, many = found[1], found[MANY]
    ratio = many["graph, on_read"] / one["graph, on_read"]
    yield Row("fan-out 100 to 1, mode on_read", "", ratio, aim=below(1.3), unit="times")
    for side in ("graph, changes", "deltas, changes"):
        further = (many[side] - one[side]) / (MANY - 1)
        aim = below(40.0) if side == "graph, changes" else None
        yield Row(f"each further row of a fan-out: {side}", "", max(further * 1e9, 0.1), aim=aim, unit="ns")


def fan_outs_in_batches(numbers: Sequence[int], n: int) -> Iterator[Row]:
    """A tweet with so many rows, of a transaction that has many of them."""
    batch, taken = min(STREAM, 10 * n), 2
    sides = {
        "graph": Side(GRAPH, "changes", True),
        "graph, on_read": Side(GRAPH, "on_read"),
        "deltas, changes": Side(DELTA, "changes", True),
        "deltas, always": Side(DELTA, "always", True),
        "without subscribers": Side(DELTA),
        "graph, read": Side(GRAPH, "changes", True, True),
        "deltas, read": Side(DELTA, "changes", True, True),
    }
    rows = tweets(RUNS * taken * batch)
    for fan_out in numbers:
        facts = {"follower": fan_out_facts(fan_out)}
        measured = in_sides(sides, FAN_OUT, facts, "tweet", rows, taken, batch)
        peers = {
            "deltas, always": (measured["deltas, always"], AIMS[fan_out]),
            "deltas, changes": (measured["deltas, changes"], None),
        }
        size, name = f"{batch:,} tweets in a transaction", f"a tweet of a batch, fan-out {fan_out}"
        yield from against(f"{name}, mode changes", size, measured["graph"], peers)
        peer: dict[str, tuple[float, Aim | None]] = {"deltas, changes": (measured["deltas, read"], None)}
        yield from against(f"{name}, the subscriber reads", size, measured["graph, read"], peer)
        aim = faster(10) if fan_out == MANY else None
        quiet = {"deltas, always": (measured["without subscribers"], aim)}
        yield from against(f"{name}, mode on_read", size, measured["graph, on_read"], quiet)


def by_itself(followers: Words, users: int, rows: Sequence[Any]) -> dict[str, Callable[..., int]]:
    """What a tweet gives, without transactions."""
    body = Body(
        (Atom("follower", ("g", "f")), Atom("follower", ("u", "g")), Atom("tweet", ("u", "t", "d"))),
        ("f", "g", "u", "t", "d"),
    )
    graph = graph_of(body, follower=followers, tweet=np.zeros((0, 3), np.int64))

    def enter(row: Sequence[int]) -> int:
        found = len(graph.apply("tweet", inserted=np.array([row])).counts)
        graph.settle()
        return found

    loops, outer = NestedLoops(followers, users), OuterJoin(followers, users, len(rows))
    return {ALONE: enter, LOOPS: loops.tweet, OUTER: outer.tweet}


def each(tweet: Callable[[Sequence[int]], int], rows: Sequence[Any], n: int, expected: int) -> Change:
    waiting = iter(rows)

    def run() -> None:
        for _ in range(n):
            assert tweet(next(waiting)) == expected

    return run


# Chains


def follower_chain(joins: int, head: str = "") -> str:
    """The followers of followers of an author, and the tweet."""
    names = [f"f{i}" for i in range(joins)]
    atoms = [f"follower({a}, {b})" for a, b in zip(["u", *names], names, strict=False)]
    shown = f"chain({', '.join(names)}, u, t, d)"
    return f"{head or shown} <- {', '.join(atoms)}, tweet[u, t] = d."


def followers_of(fan_out: int, users: int) -> list[tuple[int, int]]:
    """Each user has so many followers among the others, so rows of chains grow, and facts do not."""
    return [(u, (fan_out * u + i) % users) for u in range(users) for i in range(1, fan_out + 1)]


def follower_chains(lengths: Sequence[int], n: int) -> Iterator[Row]:
    """A tweet is seen over 2 to 5 joins; each has three times as many rows."""
    rows = [(t % 5, t, t % 365) for t in range(RUNS * n)]
    for joins in lengths:
        query, facts = follower_chain(joins), {"follower": followers_of(3, 1000)}
        sides = {
            "graph": Side(GRAPH, "changes", True),
            "deltas, changes": Side(DELTA, "changes", True),
            "deltas, always": Side(DELTA, "always", True),
        }
        measured = in_sides(sides, query, facts, "tweet", rows, n)
        peers = {
            "deltas, changes": (measured["deltas, changes"], faster(1.5)),
            "deltas, always": (measured["deltas, always"], None),
        }
        size = f"{3**joins} rows for a tweet"
        yield from against(f"followers, {joins} joins, mode changes", size, measured["graph"], peers)
        batch = min(STREAM, 10 * n)
        many = [(t % 5, t, t % 365) for t in range(RUNS * batch)]
        measured = in_sides(sides, query, facts, "tweet", many, 1, batch)
        peers = {
            "deltas, changes": (measured["deltas, changes"], faster(1.5)),
            "deltas, always": (measured["deltas, always"], None),
        }
        size = f"{batch:,} tweets in a transaction"
        yield from against(f"a tweet of a batch, followers, {joins} joins", size, measured["graph"], peers)


def in_sides(
    sides: Mapping[str, Side],
    query: str,
    facts: Mapping[str, Any],
    relation: str,
    rows: Sequence[Any],
    n: int,
    batch: int = 1,
) -> dict[str, float]:
    """Seconds for one row."""
    databases = {name: side.open(query, facts) for name, side in sides.items()}
    if batch == 1:
        changes = {name: inserting(db, relation, rows, n) for name, db in databases.items()}
    else:
        changes = {name: in_batches(db, relation, rows, batch, n) for name, db in databases.items()}
    measured = seconds(changes, n * batch)
    all_equal(databases, query)
    return measured


def retweet_chain(joins: int) -> str:
    atoms = [f"retweet[u{i}, t{i}, t{i - 1}] = _" for i in range(1, joins + 1)]
    shown = ", ".join(f"u{i}, t{i}" for i in range(1, joins + 1))
    return f"chain(t0, {shown}, f) <- {', '.join(atoms)}, follower(u{joins}, f)."


def retweet_chains(lengths: Sequence[int], scale: float, n: int) -> Iterator[Row]:
    """New followers of one user see what is retweeted over 2 to 5 joins."""
    number = at_least(2000, 20_000 * scale)
    retweeted = [(*map(int, row), 0) for row in retweets(at_least(300, 0.3 * number), number)]
    retweeted += [(0, -i, -i - 1, 0) for i in range(1, JOINS[-1] + 1)]  # there is one of every length
    rows = [(0, 10**6 + i) for i in range(RUNS * n)]
    first = 0.0
    for joins in lengths:
        sides = {"graph": Side(GRAPH, "changes", True), "deltas": Side(DELTA, "changes", True)}
        measured = in_sides(sides, retweet_chain(joins), {"retweet": retweeted}, "follower", rows, n)
        first = first or measured["graph"]
        peers: dict[str, tuple[float, Aim | None]] = {"deltas, changes": (measured["deltas"], None)}
        if joins > lengths[0]:
            peers["2 joins"] = (first, faster(1) if joins == lengths[-1] else None)
        size = f"{number:,} retweets"
        yield from against(f"retweets, {joins} joins, mode changes", size, measured["graph"], peers)


# Memory


def memory(lengths: Sequence[int], scale: float) -> Iterator[Row]:
    """Of all rows, indices and state, after tweets that are seen over 2 to 5 joins."""
    rows, first = [(t % 5, t, t % 365) for t in range(at_least(10, 300 * scale))], 0
    for joins in lengths:
        query, facts = follower_chain(joins), {"follower": followers_of(3, 1000)}
        count = follower_chain(joins, f"chain[f{joins - 1}] = n")
        count = count.replace("<-", "<- agg<<n = count()>>").replace("= d.", "= _.")
        used = {
            "graph": used_memory(Side(GRAPH, "changes", True), query, facts, rows),
            "deltas, always": used_memory(Side(DELTA), query, facts, rows),
            "levels of maps, a count": used_memory(Side("multilevel"), count, facts, rows),
        }
        size, name = f"{3**joins * len(rows):,} rows", f"followers, {joins} joins: memory"
        for peer in list(used)[1:]:
            yield Row(name, size, used["graph"] / 1e3, used[peer] / 1e3, peer, unit="KB")
        first = first or used["graph"]
    times = 3 ** (lengths[-1] - lengths[0])
    name, size = f"followers, {lengths[-1]} joins to {lengths[0]}: memory", f"{times} times the rows"
    yield Row(name, size, used["graph"] / first, aim=below(times / 2), unit="times")


def used_memory(side: Side, query: str, facts: Mapping[str, Any], rows: Sequence[Any]) -> int:
    db = side.open(query, facts)
    for row in rows[:2]:
        db.apply(insert={"tweet": [row]})
    db.apply(insert={"tweet": rows[2:]})
    return db.memory()


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.social", description=__doc__)
    parser.add_argument("--full", action="store_true", help="ten times as large")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/RESULTS.md")
    given = parser.parse_args()
    scale = 10.0 if given.full else 1.0
    rows = []
    for row in benchmark(scale):
        rows.append(row)
        print(table.line(row.cells()), flush=True)
    if given.write:
        table.write({"social": rows}, scale)


if __name__ == "__main__":
    main()
