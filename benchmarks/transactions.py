"""Transactions of a few rows: cost that follows the change.

One edge in and out of a graph under the triangle rule, and of a forest under a recursion; group sums over a
stream of facts in transactions of several sizes, growing and as a window; one sale in and out of a star that
view trees maintain; 300 rules of which one matters;
bulk changes, which must not cost much more than evaluating again; memory after many transactions that return
to the start.  Times of single transactions are medians of processor time, end to end from Python; random and
hub keys apart.  For the peer of group sums see `streams`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

import dlog
from benchmarks.harness import Row, at_least, below, derive_again, faster, within
from benchmarks.streams import SHOPS, stream

TRIANGLE = """
edge(x, y) -> int(x), int(y).
triangle(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).
"""

REACH = "edge(x, y) -> int(x), int(y).  reach(x, y) <- edge(x, y).  reach(x, z) <- reach(x, y), edge(y, z)."
STAR = """
sales(s, p, q) -> int(s), int(p), int(q).  shop(s, r) -> int(s), int(r).  product(p, c) -> int(p), int(c).
"""
SOLD = {
    "group sums": "sold[r, c] = t <- agg<<t = sum(q)>> sales(s, p, q), shop(s, r), product(p, c).",
    "a total": "sold[] = t <- agg<<t = sum(q)>> sales(s, p, q), shop(s, r), product(p, c).",
}
FARTHEST = " farthest[x] = d <- agg<<d = max(y)>> reach(x, y)."


def benchmark(scale: float) -> Iterator[Row]:
    yield from triangles(scale)
    yield from recursion()
    yield from group_sums(scale)
    yield from star(scale)
    yield from many_rules(scale)
    yield from bulk(scale)
    yield from memory(scale)


# One edge in and out


def triangles(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(5)
    operations = []
    sizes = sorted({at_least(100, n * scale) for n in (10_000, 100_000, 1_000_000)})
    for n in sizes:
        edges = graph(n, rng)
        database = loaded(TRIANGLE, edge=edges)
        largest = n == sizes[-1]
        scratch = recompute(TRIANGLE, edge=edges) if largest else None
        for keys, pairs in (("random", rng.integers(0, vertices(n), (500, 2))), ("hub", at_hub(edges, rng))):
            seconds, counted = in_and_out(database, pairs.tolist())
            name, size = f"triangles: one edge, {keys}", f"{len(edges):,} edges"
            if keys == "random":
                operations.append(counted)
            if largest:
                aim = faster(10_000) if keys == "random" else None
                yield Row(
                    name, size, float(np.median(seconds)), aim=below(50e-6) if keys == "random" else None
                )
                yield Row(f"{name}, p99", size, float(np.percentile(seconds, 99)))
                yield Row(name, size, float(np.median(seconds)), scratch, "recomputing", aim)
    for n, counted in zip(sizes, operations, strict=True):
        yield Row("triangles: operations of one edge", f"{n:,} edges", counted, aim=below(200), unit="steps")


def recursion() -> Iterator[Row]:
    """One edge in and out of a forest of 1,000 edges, where at most 10 derived rows change."""
    rng = np.random.default_rng(8)
    edges = forest(1000, rng)
    for name, rules, aim in (("reach", REACH, below(100e-6)), ("reach and farthest", REACH + FARTHEST, None)):
        database = loaded(rules, edge=np.array(edges))
        seconds: dict[str, list[float]] = {"erase": [], "insert": []}
        for number in rng.integers(0, len(edges), 1000).tolist():
            for change, found in seconds.items():
                started = time.process_time()
                with database.transaction() as tx:
                    getattr(tx, change)("edge", [edges[number]])
                spent = time.process_time() - started
                assert tx.commit_info is not None
                derived = tx.commit_info.changes["reach"]
                if len(derived.inserted) + len(derived.erased) <= 10:
                    found.append(spent)
        for change, found in seconds.items():
            yield Row(f"{name}: one edge, {change}", "forest, 1,000 edges", float(np.median(found)), aim=aim)


def forest(n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Edges of random trees with up to eight vertices."""
    edges: list[tuple[int, int]] = []
    first = 0
    while len(edges) < n:
        size = int(rng.integers(2, 9))
        edges += [(first + int(rng.integers(0, i)), first + i) for i in range(1, size)]
        first += size
    return edges[:n]


def graph(n: int, rng: np.random.Generator) -> np.ndarray:
    """Targets follow a power law, so there are hubs."""
    source = rng.integers(0, vertices(n), n)
    target = (vertices(n) * rng.random(n) ** 3).astype(np.int64)
    return np.unique(np.stack([source, target], axis=1), axis=0)


def vertices(n: int) -> int:
    return max(200, n // 10)


def at_hub(edges: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """New edges into the vertex that most edges lead to."""
    values, counts = np.unique(edges[:, 1], return_counts=True)
    hub = values[np.argmax(counts)]
    return np.stack([rng.integers(0, vertices(len(edges)), 200), np.full(200, hub)], axis=1)


def in_and_out(database: dlog.Database, pairs: list[list[int]]) -> tuple[list[float], float]:
    """Seconds of each transaction, and the operations of one."""
    seconds, operations = [], 0
    present = {tuple(row) for row in database.store.relations["edge"].rows().tolist()}
    rows = [tuple(p) for p in pairs if tuple(p) not in present]
    for row in rows[:1] * 2 + rows:
        started = time.process_time()
        with database.transaction() as tx:
            tx.insert("edge", [row])
        middle = time.process_time()
        with database.transaction() as back:
            back.erase("edge", [row])
        seconds += [middle - started, time.process_time() - middle]
        assert tx.commit_info is not None and back.commit_info is not None
        operations += tx.commit_info.operations + back.commit_info.operations
    return seconds[4:], operations / (2 * len(rows) + 4)


# Group sums over a stream


def group_sums(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(6)
    n = at_least(2000, 1_000_000 * scale)
    shops, amounts = rng.integers(0, SHOPS, n), rng.integers(1, 100, n)
    for size in (1, 100, 10_000):
        yield from stream("group sums", shops, amounts, size, 1000)


# View trees


def star(scale: float) -> Iterator[Row]:
    """One sale in and out, by view trees and by deltas, which have one assignment for it."""
    rng = np.random.default_rng(9)
    n, size = at_least(500, 200_000 * scale), at_least(20, 1000 * scale)
    sales = np.stack([rng.integers(0, size, n), rng.integers(0, size, n), rng.integers(0, 100, n)], axis=1)
    ids = np.arange(size)
    facts = {
        "sales": sales,
        "shop": np.stack([ids, ids % 100], axis=1),
        "product": np.stack([ids, ids % 50], axis=1),
    }
    new = np.stack([rng.integers(0, size, 300), rng.integers(0, size, 300), np.arange(300) + 100], axis=1)
    for name, rule in SOLD.items():
        medians = {}
        for strategy in ("views", "delta"):
            database = dlog.Database(source=STAR + rule, strategy=strategy)
            database.apply(insert=facts)
            medians[strategy] = float(np.median(sale_in_and_out(database, new.tolist())))
        title = f"view tree, {name}: one sale"
        yield Row(title, f"{n:,} sales", medians["views"], medians["delta"], "deltas", below(40e-6))


def sale_in_and_out(database: dlog.Database, rows: list[list[int]]) -> list[float]:
    seconds = []
    for row in rows:
        for change in ("insert", "erase"):
            started = time.process_time()
            with database.transaction() as tx:
                getattr(tx, change)("sales", [tuple(row)])
            seconds.append(time.process_time() - started)
    return seconds[20:]


# Rules that are not affected


def many_rules(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(7)
    n = at_least(50, 10_000 * scale)
    medians = []
    for rules in (1, 300):
        text = "".join(
            f"e{i}(x, y) -> int(x), int(y). p{i}(x, y, z) <- e{i}(x, y), e{i}(y, z).\n" for i in range(rules)
        )
        database = dlog.Database(source=text)
        database.apply(insert={"e0": rng.integers(0, n, (n, 2))})
        seconds = []
        for row in rng.integers(n, 2 * n, (300, 2)).tolist():
            for change in ("insert", "erase"):
                started = time.process_time()
                with database.transaction() as tx:
                    getattr(tx, change)("e0", [tuple(row)])
                seconds.append(time.process_time() - started)
        medians.append(float(np.median(seconds)))
    yield Row("one row, 300 rules", "1 concerned", medians[1], medians[0], "one rule alone", within(2))


# Bulk changes


def bulk(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(8)
    edges = graph(at_least(500, 200_000 * scale), rng)
    programs: list[tuple[str, str]] = [
        ("triangles", TRIANGLE),
        ("projection", "edge(x, y) -> int(x), int(y). two(x, z) <- edge(x, y), edge(y, z), x < 100."),
        ("group counts", "edge(x, y) -> int(x), int(y). into[y] = n <- agg<<n = count()>> edge(_, y)."),
    ]
    for name, program in programs:
        for percent in (1, 10, 50):
            chosen = edges[rng.random(len(edges)) < percent / 100]
            database = loaded(program, edge=edges)
            database.apply(erase={"edge": edges[:1]})
            database.apply(insert={"edge": edges[:1]})
            size, title = f"{len(edges):,} edges", f"bulk: {percent}% {{}}, {name}"
            best = {"erase": 1e9, "insert": 1e9}
            for _ in range(2):
                for change in best:
                    seconds = processor(lambda: database.apply(**{change: {"edge": chosen}}))  # noqa: B023
                    best[change] = min(best[change], seconds)
            for change, seconds in best.items():
                again = recomputed(program, edges, chosen, change)
                what = "out" if change == "erase" else "in"
                yield Row(title.format(what), size, seconds, again, "evaluating again", within(2))


def recomputed(program: str, edges: np.ndarray, chosen: np.ndarray, change: str) -> float:
    """Processor seconds to change the facts, in the orders that evaluation reads, and to derive all again."""
    before, after = edges, without(edges, chosen)
    if change == "insert":
        before, after = after, before
    facts = loaded(program, edge=before).store.relations["edge"]
    rows = {f"{change}s": chosen}
    changing = min(processor(lambda: facts.apply(**rows)) for _ in range(2))
    return changing + recompute(program, edge=after)


def without(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    gone = {tuple(row) for row in others.tolist()}
    return np.array([row for row in rows.tolist() if tuple(row) not in gone], np.int64)


# Memory


def memory(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(9)
    edges = graph(at_least(500, 100_000 * scale), rng)
    database = loaded(TRIANGLE, edge=edges)
    rounds = at_least(20, 5000 * scale)
    pairs = [tuple(p) for p in rng.integers(0, vertices(len(edges)), (rounds, 2)).tolist()]

    def turn(pair: tuple[int, ...]) -> None:
        if pair in present:
            return
        database.apply(insert={"edge": [pair]})
        database.apply(erase={"edge": [pair]})

    present = {tuple(row) for row in edges.tolist()}
    for pair in pairs[: rounds // 2]:  # freshly loaded indices become pages
        turn(pair)
    before = database.store.arena.usage().used_words
    for pair in pairs:
        turn(pair)
    after = database.store.arena.usage().used_words
    yield Row(
        "memory after and before", f"{2 * rounds:,} transactions", after / before, aim=below(1.2), unit="x"
    )


def loaded(program: str, **facts: np.ndarray) -> dlog.Database:
    database = dlog.Database(source=program)
    database.apply(insert=facts)
    return database


def recompute(program: str, **facts: np.ndarray) -> float:
    """Processor seconds to derive everything again, that is without loading the facts."""
    database = loaded(program, **facts)
    return min(processor(lambda: derive_again(database)) for _ in range(3))


def processor(action: Callable[[], object]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started
