"""Recursion under single changes: one fact erased, then inserted again, against recomputing.

Reachability on a tree, on a layered graph and on a random graph with a giant component; points-to with one
statement less and one more; role inheritance with one grant of a role revoked; least distances with one road
closed.  A transaction erases a fact and the next one inserts it again: a row is the median of all, another
the 99th percentile.  Hub keys are the facts at the vertex with most of them, random ones are drawn from all.
Pathway, if it is installed (see `pathway_reach`), gets the same stream of edges on smaller graphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import dlog
from benchmarks.harness import Aim, Row, at_least, derive_again, faster, timed
from benchmarks.pathway_reach import interpreter, replay

REACH = """
edge(x, y) -> int(x), int(y).
reach(x, y) <- edge(x, y).
reach(x, z) <- reach(x, y), edge(y, z).
"""
POINTS_TO = """
new(v, o) -> int(v), int(o).  assign(v, w) -> int(v), int(w).
load(v, b, f) -> int(v), int(b), int(f).  store(b, f, w) -> int(b), int(f), int(w).
points_to(v, o) <- new(v, o).
points_to(v, o) <- assign(v, w), points_to(w, o).
points_to(v, o) <- load(v, b, f), points_to(b, base), heap_points_to(base, f, o).
heap_points_to(base, f, o) <- store(b, f, w), points_to(b, base), points_to(w, o).
"""
ROLES = """
member(u, r) -> int(u), int(r).  extends(r, s) -> int(r), int(s).
inherits(r, s) <- extends(r, s).
inherits(r, t) <- inherits(r, s), extends(s, t).
has_role(u, r) <- member(u, r).
has_role(u, s) <- member(u, r), inherits(r, s).
"""
DISTANCE = """
road(x, y, w) -> int(x), int(y), int(w).  depot(x) -> int(x).  dist[s, x] = d -> int(s), int(x), int(d).
dist[s, s] = 0 <- depot(s).
dist[s, y] = d <- agg<<d = min(e)>> dist[s, x] = a, road(x, y, w), e = a + w.
"""
CHANGES = 100  # facts erased and inserted again


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    facts: dict[str, np.ndarray]
    changed: str  # the predicate whose facts are erased and inserted
    derived: str
    aim: Aim | None


def benchmark(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(11)
    changes = max(3, int(CHANGES * min(1.0, scale * 10)))
    for case in cases(scale, rng):
        yield from stream(case, rng, changes)
    if python := interpreter():
        for case in graphs(scale * 0.1, rng):
            yield against_pathway(python, case, rng, changes)


def graphs(scale: float, rng: np.random.Generator) -> Iterator[Case]:
    root = scale**0.5
    giant = rng.integers(0, at_least(10, 1500 * root), (at_least(25, 3500 * root), 2))
    for name, edges, aim in (
        ("tree", tree(at_least(20, 200_000 * scale), rng), faster(100)),
        ("layered", layered(at_least(4, 400 * root), 16, rng), faster(100)),
        ("giant component", giant, faster(1)),
    ):
        yield Case(f"reach, {name}", REACH, {"edge": np.unique(edges, axis=0)}, "edge", "reach", aim)


def cases(scale: float, rng: np.random.Generator) -> Iterator[Case]:
    yield from graphs(scale, rng)
    root = scale**0.5
    program = statements(at_least(30, 6000 * scale), rng)
    yield Case("points-to", POINTS_TO, program, "assign", "points_to", faster(1))
    roles = at_least(10, 2000 * root)
    extends = np.stack([rng.integers(0, np.arange(1, roles)), np.arange(1, roles)], axis=1)
    facts = {"extends": extends[:, ::-1].copy(), "member": rng.integers(0, roles, (20 * roles, 2))}
    yield Case("role inheritance", ROLES, facts, "extends", "has_role", faster(1))
    towns = at_least(10, 3000 * root)
    lengths = rng.integers(0, 20, (3 * towns, 1))
    roads = np.concatenate([rng.integers(0, towns, (3 * towns, 2)), lengths], axis=1)
    depots = np.arange(at_least(2, 40 * root)).reshape(-1, 1)
    yield Case("distances", DISTANCE, {"road": roads, "depot": depots}, "road", "dist", faster(1))


def tree(n: int, rng: np.random.Generator) -> np.ndarray:
    """Every vertex is below a random earlier one."""
    return np.stack([rng.integers(0, np.arange(1, n)), np.arange(1, n)], axis=1)


def layered(width: int, layers: int, rng: np.random.Generator) -> np.ndarray:
    """Three edges for each vertex, into the next layer."""
    starts = np.arange(layers) * width
    source = rng.integers(0, width, (layers, 3 * width)) + starts[:, None]
    target = rng.integers(0, width, (layers, 3 * width)) + starts[:, None] + width
    return np.stack([source.reshape(-1), target.reshape(-1)], axis=1)


def statements(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A random program over n variables, in proportions that keep sets of objects small."""

    def pairs(m: int) -> np.ndarray:
        return rng.integers(0, n, (m, 2))

    fields = lambda m: rng.integers(0, 20, (m, 1))  # noqa: E731
    loads, stores = pairs(n // 3), pairs(n // 3)
    return {
        "new": np.stack([rng.integers(0, n, n // 2), np.arange(n // 2)], axis=1),
        "assign": pairs(int(n * 0.7)),
        "load": np.concatenate([loads, fields(n // 3)], axis=1),
        "store": np.concatenate([stores[:, :1], fields(n // 3), stores[:, 1:]], axis=1),
    }


def stream(case: Case, rng: np.random.Generator, changes: int) -> Iterator[Row]:
    database = load(case)
    rows = np.unique(case.facts[case.changed], axis=0)
    erase_and_insert(database, case, rows[:1])  # the state for changes is built with the first of them
    size = f"{len(database.store.relations[case.derived]):,} rows"
    scratch = recompute(case)
    values, counts = np.unique(rows[:, 0], return_counts=True)
    hub = rows[rows[:, 0] == values[np.argmax(counts)]][:changes]
    for keys, chosen in (("random", rows[rng.integers(0, len(rows), changes)]), ("hub", hub)):
        times = erase_and_insert(database, case, chosen)
        for what, seconds in zip(("erase", "insert"), times, strict=True):
            title = f"{case.name}: {what}, {keys}"
            yield Row(title, size, float(np.median(seconds)), scratch, "recomputing", case.aim)
            yield Row(f"{title}, p99", size, float(np.percentile(seconds, 99)), scratch, "recomputing")
    assert database[case.derived].rows() == load(case)[case.derived].rows()


def against_pathway(python: str, case: Case, rng: np.random.Generator, changes: int) -> Row:
    """The median of all changes, in wall-clock time."""
    rows = case.facts["edge"]
    chosen = rows[rng.integers(0, len(rows), changes)]
    database = load(case)
    erase_and_insert(database, case, rows[:1])
    times = erase_and_insert(database, case, chosen, time.perf_counter)
    theirs, pairs = replay(python, rows, chosen)
    assert pairs == len(database["reach"])
    size = f"{pairs:,} rows"
    return Row(
        f"{case.name}: both", size, float(np.median(times)), float(np.median(theirs)), "Pathway", faster(5)
    )


def load(case: Case) -> dlog.Database:
    database = dlog.Database(source=case.program)
    database.apply(insert=case.facts)
    return database


def recompute(case: Case) -> float:
    """Processor seconds for the derived facts from scratch, over loaded base facts, without any state for
    changes."""
    database = load(case)
    return timed({"again": lambda: derive_again(database)})["again"].seconds


def erase_and_insert(
    database: dlog.Database,
    case: Case,
    rows: np.ndarray,
    clock: Callable[[], float] = time.process_time,
) -> tuple[list[float], list[float]]:
    """Seconds of each erasure and of each insertion, one fact a transaction."""
    times: tuple[list[float], list[float]] = ([], [])
    for i in range(len(rows)):
        for number, change in enumerate(("erase", "insert")):
            started = clock()
            database.apply(**{change: {case.changed: rows[i : i + 1]}})
            times[number].append(clock() - started)
    return times
