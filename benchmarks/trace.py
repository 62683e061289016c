"""Rules maintained by their traces, against deltas: time, operations and bytes.

The paper's four atoms with one fact of R retracted and inserted again; one edge in and out of a graph under
the triangle rule, by default and exact; a row that many contexts have in common; a rule whose changes matter
in few places, where a trace beats deltas; the cost of recording.  Times of single transactions are medians of
processor time, end to end from Python; those of triangles the best of ROUNDS medians of 600 transactions
each, as all times here are the best of some runs.

Where a trace wins: `near` begins with few x, and `open` is read at the far end, three steps on.  From one w
deltas go back over all edges into w, and join for each of them and each x what leads there with what comes
from x, to find hardly anything; the trace has only the places where w was reached.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

import dlog
from benchmarks.harness import Row, at_least, below, faster, timed, within
from benchmarks.transactions import TRIANGLE, graph, in_and_out, vertices
from benchmarks.triangles import TRIANGLE as TRIANGLE_STEPS
from benchmarks.triangles import power_law
from dlog.engine.maintain.trace.granularity import Evidence, crowds
from dlog.engine.maintain.trace.keep import TraceStrategy
from dlog.lftj.assemble import assemble
from dlog.lftj.plan import Emit, Plan
from dlog.lftj.triejoin import NO_WORDS, Join
from dlog.sensitivity.upkeep import Upkeep
from dlog.sensitivity.watches import COARSE, EXACT, watched
from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index

FOUR_ATOMS = """
G(x, z) -> int(x), int(z).  H(y, z) -> int(y), int(z).  I(x, y, z) -> int(x), int(y), int(z).  R(z) -> int(z).
F(x, y) <- G(x, z), H(y, z), I(x, y, z), R(z).
"""
NEAR = """
start(x) -> int(x).  edge(x, y) -> int(x), int(y).  open(w) -> int(w).
near(x, y, z, w) <- start(x), edge(x, y), edge(y, z), edge(z, w), open(w).
"""
HUB = """
s(x) -> int(x).  a(x, y) -> int(x), int(y).  b(y, z) -> int(y), int(z).  c(z) -> int(z).
hub(x, y, z) <- s(x), a(x, y), b(y, z), c(z).
"""
ROUNDS = 5
STRATEGIES = {"trace": "trace", "trace-exact": "trace-exact"}


def benchmark(scale: float) -> Iterator[Row]:
    yield from four_atoms(scale)
    yield from triangles(scale)
    yield from hubs(scale)
    yield from near(scale)
    yield from recording(scale)


# The paper's example


def four_atoms(scale: float) -> Iterator[Row]:
    n = at_least(300, 300_000 * scale)
    rng = np.random.default_rng(3)
    m = max(10, int(n**0.5 / 2))
    facts = {
        "I": np.unique(rng.integers(0, m, (n, 3)), axis=0),
        "G": np.unique(rng.integers(0, m, (n // 10, 2)), axis=0),
        "H": np.unique(rng.integers(0, m, (n // 10, 2)), axis=0),
        "R": np.arange(0, m, 2)[:, None],
    }
    size = f"{len(facts['I']):,} rows of I"
    keys = [(int(z),) for z in facts["R"][: min(60, m // 2), 0]]
    found = {}
    for strategy in ("delta", "trace", "trace-exact"):
        database = loaded(FOUR_ATOMS, strategy, **facts)
        first = toggled(database, "R", keys[:1])[0][0]
        seconds, operations = toggled(database, "R", keys)
        found[strategy] = (float(np.median(seconds)), operations, first, extra_bytes(database))
    used = uses(facts, [key[0] for key in keys])
    deltas = found["delta"]
    for strategy, name in STRATEGIES.items():
        own = found[strategy]
        what = f"four atoms: a fact of R, {name}"
        yield Row(what, size, own[0], deltas[0], "delta, indices there")
        yield Row(what, size, own[0], deltas[2], "delta, indices made")
        yield Row(
            f"{what}: operations", size, own[1], max(used, 1.0), "assignments that used it", unit="steps"
        )
        yield Row(f"{what}: state", size, max(own[3], 1) / 1e6, max(deltas[3], 1) / 1e6, "delta", unit="MB")


def uses(facts: dict[str, np.ndarray], keys: Sequence[int]) -> float:
    """How many assignments use a fact of R, on the average."""
    g, h = ({tuple(row) for row in facts[name].tolist()} for name in "GH")
    wanted = set(keys)
    total = sum((x, z) in g and (y, z) in h for x, y, z in facts["I"].tolist() if z in wanted)
    return total / len(keys)


# One edge in and out


def triangles(scale: float) -> Iterator[Row]:
    rng = np.random.default_rng(5)
    sizes = sorted({at_least(100, n * scale) for n in (10_000, 100_000, 1_000_000)})
    for strategy, name in STRATEGIES.items():
        for n in sizes:
            database = loaded(TRIANGLE, strategy, edge=graph(n, rng))
            rounds = [
                in_and_out(database, rng.integers(0, vertices(n), (300, 2)).tolist()) for _ in range(ROUNDS)
            ]
            what, size = f"triangles: one edge, {name}", f"{n:,} edges"
            median = min(float(np.median(seconds)) for seconds, _ in rounds)
            yield Row(what, size, median, aim=below(100e-6))
            operations = float(np.mean([operations for _, operations in rounds]))
            yield Row(f"{what}: operations", size, operations, unit="steps")


# A row that many contexts have in common


def hubs(scale: float) -> Iterator[Row]:
    """Rows of b for the one y that a tenth of all x have; their z is not in c, so that nothing follows."""
    for n in sorted({at_least(1000, n * scale) for n in (1_000, 10_000, 100_000, 1_000_000)}):
        database = loaded(HUB, "trace", **hub_facts(n))
        rows = [(0, z) for z in (101, 333, 501, 777)]
        toggled(database, "b", rows[:1])
        seconds, operations = toggled(database, "b", rows)
        size = f"{n:,} rows, {n // 10:,} contexts"
        yield Row("a hub", size, float(np.median(seconds)))
        yield Row("a hub: operations", size, operations, float(n // 10), "contexts", unit="steps")


def hub_facts(n: int) -> dict[str, np.ndarray]:
    rng, hub = np.random.default_rng(9), n // 10
    pairs = [rng.integers(1, n // 5, (n // 3, 2)) for _ in range(2)]
    facts = {
        "a": np.concatenate([np.stack([np.arange(hub), np.zeros(hub, np.int64)], axis=1), pairs[0]]),
        "b": np.concatenate([[(0, 100 * i) for i in range(10)], pairs[1]]),
        "c": np.arange(0, n // 5, 2)[:, None],
        "s": np.arange(n // 5)[:, None],
    }
    return {name: np.unique(rows, axis=0) for name, rows in facts.items()}


# Where a trace wins


def near(scale: float) -> Iterator[Row]:
    n = at_least(1000, 1_000_000 * scale)
    v = max(40, n // 20)
    rng = np.random.default_rng(7)
    facts = {
        "edge": np.unique(rng.integers(0, v, (n, 2)), axis=0),
        "start": np.arange(0, v, v // 20)[:, None],
        "open": np.arange(0, v, 2)[:, None],
    }
    keys = [(int(z),) for z in facts["open"][:100, 0]]
    measured = {}
    for strategy in ("delta", "trace"):
        database = loaded(NEAR, strategy, **facts)
        toggled(database, "open", keys[:2])
        seconds, operations = toggled(database, "open", keys)
        measured[strategy] = (float(np.median(seconds)), operations, extra_bytes(database))
    size = f"{len(facts['edge']):,} edges"
    (ours, steps, mb), (theirs, their_steps, their_mb) = measured["trace"], measured["delta"]
    yield Row("near: a fact of open", size, ours, theirs, "delta", faster(2))
    yield Row("near: operations", size, max(steps, 1), max(their_steps, 1), "delta", faster(2), unit="steps")
    yield Row("near: state", size, max(mb, 1) / 1e6, max(their_mb, 1) / 1e6, "delta", faster(1), unit="MB")


# What recording costs


def recording(scale: float) -> Iterator[Row]:
    """Exact traces are sixty times the size of the data: they are measured on a fifth of it.  A coarse one is
    searched for crowds, as by the engine."""
    for edges, granularity in ((200_000, EXACT), (1_000_000, COARSE)):
        yield from recorded(at_least(2000, edges * scale), granularity)


def recorded(edges: int, granularity: str) -> Iterator[Row]:
    source, target = power_law(edges, edges // 10)
    arena = Arena()
    index = Index.from_columns(arena, [source, target])
    plan = Plan((2,) * 3, (*TRIANGLE_STEPS, Emit((0, 1, 2))))
    plain = assemble(plan)
    roots = [index.root] * 3
    base, kept = 16 * edges, {}

    def roams(depths: tuple[int, ...]) -> bool:
        return granularity == COARSE

    upkeep = Upkeep(watched(plan, granularity, roams))

    def record() -> int:
        traced = upkeep.record(arena.A, roots, rows=1 << 15)
        intervals = upkeep.intervals(arena, traced)
        kept[granularity] = sum(i.bytes for i in intervals)
        if granularity == COARSE:
            evidence = Evidence(
                plan, roams, upkeep, arena.A, roots, NO_WORDS, intervals, traced.parts.__getitem__
            )
            assert not any(crowd.is_exact for crowd in crowds(evidence, 4.0 * base)), "it does not fit"
        return len(traced.rows)

    actions = {"off": lambda: len(Join(plain, arena.A, roots).rows()), granularity: record}
    measured = timed(actions)
    assert len({m.result for m in measured.values()}) == 1
    size = f"{edges:,} edges"
    for name in kept:
        aims = (within(1.3), within(4)) if name == "coarse" else (None, None)
        seconds = measured[name].seconds, measured["off"].seconds
        yield Row(f"triangles with recording, {name}", size, *seconds, "without", aims[0])
        yield Row(f"sensitivity indices, {name}", size, kept[name] / 1e6, base / 1e6, "edges", aims[1], "MB")


# Helpers


def loaded(program: str, strategy: str, **facts: np.ndarray) -> dlog.Database:
    database = dlog.Database(source=program, strategy=strategy)
    database.apply(insert={name: rows.tolist() for name, rows in facts.items()})
    return database


def toggled(database: dlog.Database, name: str, rows: Sequence[tuple[int, ...]]) -> tuple[list[float], float]:
    """Seconds of each transaction that erases or reinserts a fact, and the operations of one."""
    seconds, operations = [], 0
    for row in rows:
        for change in ("erase", "insert"):
            started = time.process_time()
            commit = database.apply(**{change: {name: [row]}})
            seconds.append(time.process_time() - started)
            operations += commit.operations
    return seconds, operations / (2 * len(rows))


def extra_bytes(database: dlog.Database) -> int:
    """Of column orders besides a predicate's own, and of sensitivity indices."""
    relations = database.store.relations
    orders = sum(
        8 * r.arity * len(r) * (len(r.orders) - 1)
        for name, r in relations.items()
        if name in database.program.predicates
    )
    traced = [
        index
        for strategy in database._maintenance.strategies.values()
        if isinstance(strategy, TraceStrategy)
        for deltas in strategy.traced
        for index in deltas.intervals(database.store)
    ]
    return orders + sum(index.bytes for index in traced)
