"""Where traces are shared, exact or coarse: what a change costs does not follow the number of contexts that a
changed row may meet, and memory stays within some times the relations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pytest

import dlog
from benchmarks.triangles import power_law
from dlog.engine.maintain.trace import granularity, rule_traces
from dlog.engine.maintain.trace.keep import TraceStrategy
from dlog.engine.maintain.trace.rule_traces import TraceDeltas
from tests.oracle.shipped import PROGRAMS
from tests.test_errors import command

Rows = list[tuple[int, ...]]

# z depends on y alone, and runs for each x that has the y.
NEAR = """
s(x) -> int(x).  a(x, y) -> int(x), int(y).  b(y, z) -> int(y), int(z).  c(z) -> int(z).
near(x, y, z) <- s(x), a(x, y), b(y, z), c(z).
"""
# z depends on x and y.
TRIANGLE = """
edge(x, y) -> int(x), int(y).
triangle(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).
"""


def traced(db: dlog.Database) -> TraceDeltas:
    (found,) = [
        deltas
        for strategy in db._maintenance.strategies.values()
        if isinstance(strategy, TraceStrategy)
        for deltas in strategy.traced
    ]
    return found


def near(n: int, hub: int, strategy: str = "trace") -> dlog.Database:
    rng, db = Random(n), dlog.Database(source=NEAR, strategy=strategy)
    others: Rows = [(rng.randrange(n), 1 + rng.randrange(n)) for _ in range(n)]
    facts: dict[str, Rows] = {
        "s": [(x,) for x in range(n)],
        "a": [*((x, 0) for x in range(hub)), *others],
        "b": [*((0, 100 * i) for i in range(10)), *((y, z) for z, y in others)],
        "c": [(z,) for z in range(0, n, 2)],
    }
    db.apply(insert=facts)
    db.apply(insert={"s": [(n + 1,)]})
    return db


def around(n: int, hub: int, strategy: str = "trace") -> dlog.Database:
    """Edges lead to vertex 0 from each x up to `hub`, which has a few more, and from 0 to every hundredth
    vertex: what is inserted in between is sought from few x."""
    rng, db = Random(n), dlog.Database(source=TRIANGLE, strategy=strategy)
    edges = [(x, 0) for x in range(1, hub + 1)]
    edges += [(x, 10_000 + rng.randrange(90_000)) for x in range(1, hub + 1) for _ in range(3)]
    edges += [(0, y) for y in range(10_000, 100_000, 100)]
    edges += [(200_000 + rng.randrange(n), 200_000 + rng.randrange(n)) for _ in range(n)]
    db.apply(insert={"edge": edges})
    db.apply(insert={"edge": [(500_000, 500_001)]})
    return db


SIZES = [(n, hub) for n in (1_000, 10_000, 60_000) for hub in (50, 200, 800)]


def test_a_leap_that_does_not_depend_on_the_hub_costs_the_same_for_any_hub() -> None:
    """Inserted rows of b whose z is not in c; if the leap is not shared, up to 14,000 operations."""
    found = {}
    for n, hub in SIZES:
        db, operations = near(n, hub), []
        assert n > 1_000 or traced(db).shown_granularity == "shared at z"
        for z in (n + 1, 501, 333):
            for change in ("insert", "erase"):
                commit = db.apply(**{change: {"b": [(0, z)]}})
                assert commit.ways == {"near": "trace"} and "near" not in commit.changes
                operations.append(commit.operations)
        found[n, hub] = max(operations)
        derived = db.apply(insert={"b": [(0, 502)]})
        assert derived.operations <= 40 * len(derived.changes["near"].inserted) + 40, "a few for each x"
        if n == 1_000:
            db.verify()
            db.check()
    assert max(found.values()) <= 40, found


def test_a_leap_that_depends_on_the_hub_costs_what_changes_in_its_exact_trace() -> None:
    """Of 800 contexts a coarse leap would meet nearly all, with a dozen operations each."""
    found = {}
    for n, hub in SIZES[:6]:
        db, exact = around(n, hub), around(n, hub, "trace-exact")
        assert hub < 800 or traced(db).shown_granularity == "exact at z"
        for y in range(20_050, 80_000, 10_000):
            operations = [own.apply(insert={"edge": [(0, y)]}).operations for own in (db, exact)]
            found[n, hub, y] = operations
            assert operations[0] <= 2 * operations[1] + 12 * granularity.CONTEXTS
        if n == 1_000:
            db.verify()
            db.check()
    assert max(ours for ours, _ in found.values()) <= 400, found


def test_a_crowd_is_noticed_when_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_traces, "LEAST_LED", 256)
    db, rng = dlog.Database(source=NEAR, strategy="trace"), Random(2)
    for facts in (
        {
            "s": [(x,) for x in range(200)],
            "a": [(x, 1 + x) for x in range(200)],
            "b": [(rng.randrange(3000), rng.randrange(9000)) for _ in range(6000)],
            "c": [(2 * z,) for z in range(4500)],
        },
        {"b": [(0, 9000)]},
    ):
        db.apply(insert=facts)
    assert traced(db).shown_granularity == "coarse"
    for x in range(200):
        db.apply(insert={"a": [(x, 0)]})
        db.apply(insert={"b": [(0, 1001 + 2 * x)]})
    assert traced(db).shown_granularity == "shared at z"
    assert db.apply(insert={"b": [(0, 777)]}).operations <= 40
    db.verify()
    db.check()


@pytest.mark.parametrize("spare", [0.0, 4e6])
def test_memory_of_triangles(spare: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within four times the edges, or what is always there; an exact trace of all takes fifty times."""
    monkeypatch.setattr(granularity, "SPARE", spare)
    source, target = power_law(8_000, 800)
    db = dlog.Database(
        source="edge(x, y) -> int(x), int(y).  t(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).",
        strategy="trace",
    )
    db.apply(insert={"edge": list(zip(source.tolist(), target.tolist(), strict=True))})
    db.apply(insert={"edge": [(0, 1)]})
    deltas = traced(db)
    _, size = deltas.size(db.store)
    assert 0 < size <= max(4 * 16 * len(source), spare)
    assert deltas.traces is not None and deltas.traces.crowds
    text = db.explain("t")
    assert ("exact at" in text) == any(crowd.is_exact for crowd in deltas.traces.crowds)
    assert ("an exact trace would take" in text) == (not all(c.is_exact for c in deltas.traces.crowds))
    db.verify()


def test_an_exact_trace_that_is_larger_than_expected_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granularity, "_exact_bytes", lambda evidence, slot: 0.0)
    monkeypatch.setattr(granularity, "SPARE", 0.0)
    monkeypatch.setattr(granularity, "MEMORY", 0.1)
    db = around(1_000, 200)
    assert traced(db).shown_granularity == "coarse"
    assert "an exact trace takes too much memory" in db.explain("triangle")
    db.apply(insert={"edge": [(0, 20_050)]})
    db.verify()


# c(z) is taken out of a coarse leap and sought for each z of b: see `dlog.sensitivity.watches`.
WALK = """
a(x) -> int(x).  b(x, z) -> int(x), int(z).  c(z) -> int(z).  d(z, w) -> int(z), int(w).
"""
WALKS = {
    "at the top": "p(x, z) <- a(x), b(x, z), c(z).",
    "up to the first match": "p(x) <- a(x), b(x, z), d(z, w).",
    "negated": "p(x) <- a(x), !(b(x, z), c(z)).",
}


def walk(rule: str, strategy: str, many: int) -> list[int]:
    """Operations of rows of a with `many` z in b, of which the first and the last are in c and d."""
    db = dlog.Database(source=WALK + rule, strategy=strategy)
    c = [many - 1, *range(many, 2 * many)]
    db.apply(
        insert={
            "a": [(x,) for x in range(1, 10)],
            "b": [(x, z) for x in range(20) for z in range(many)],
            "c": [(z,) for z in c],
            "d": [(z, 0) for z in c],
        }
    )
    db.apply(insert={"a": [(11,)]})
    operations = []
    for name, row in (("a", (12,)), ("b", (3, 2 * many)), ("a", (13,)), ("c", (many // 2,)), ("d", (1, 1))):
        for change in ("insert", "erase"):
            commit = db.apply(**{change: {name: [row]}})
            operations += [commit.operations] if name == "a" else []
            db.verify()
            db.check()
    return operations


@pytest.mark.parametrize("rule", WALKS.values(), ids=WALKS)
def test_a_leap_visits_few_more_keys_than_an_exact_one(rule: str) -> None:
    """If it were coarse, all keys of b."""
    few, many = walk(rule, "trace", 100), walk(rule, "trace", 3_000)
    assert max(many) <= 60, (few, many)
    assert max(many) <= 3 * max(walk(rule, "trace-exact", 3_000))


def test_explain_says_where_a_walk_is_exact() -> None:
    db = dlog.Database(source=WALK + WALKS["at the top"], strategy="trace")
    db.apply(insert={"b": [(0, z) for z in range(1000)], "a": [(0,)], "c": [(5000,)]})
    db.apply(insert={"a": [(1,)]})
    text = db.explain("p")
    assert "trace (exact at z)" in text
    assert re.search(r"exact at z, since a coarse trace would take \d+ times the operations", text)


def test_a_shipped_program_has_shared_and_exact_traces() -> None:
    """They are chosen without a request; `dlog explain` says where a trace is which, and why."""
    folder = PROGRAMS / "recalls"
    arguments = ["explain", f"{PROGRAMS}/recalls.dl", "-F", f"{folder}/facts"]
    text, _, _ = command(*arguments)
    assert text.count("maintained by strategy trace, because deltas need 2 additional column orders") == 2
    text, _, _ = command(*arguments, "--tx", f"{folder}/deliveries.tx")
    assert "line 16: trace (shared at supplier) in the key order [site, part, supplier]" in text
    assert re.search(r"shared at supplier, since up to \d\d contexts differ only in", text)
    assert "elsewhere coarse, since a changed row meets at most 16 contexts in vain" in text
    assert "in the shared leap of supplier, recalled(supplier) by supplier: sensitivity index" in text
    assert "line 20: trace (exact at other) in the key order [site, part, other]" in text
    assert re.search(r"exact at other, since a changed row may meet \d\d contexts", text)
    assert re.search(r"measured: from scratch in 1 transaction, .*; trace in \d transactions", text)


def test_a_shipped_program_costs_what_its_traces_promise() -> None:
    db = dlog.Database(PROGRAMS / "recalls.dl", facts=PROGRAMS / "recalls" / "facts")
    for name in ("supplies", "clash"):
        db.apply(insert={name: [(2, 3001)]})
        commit = db.apply(insert={name: [(2, 3003)]})
        assert set(commit.ways.values()) == {"trace"} and commit.operations <= 40


# The search for what a head does not show (maintenance paper, 2.2.1).


SHOWN = {
    "last": "s(x, y) <- a(x, y), b(y, z).",
    "last two": "s(x) <- a(x, y), b(y, z).",
    "behind another": "s(x, y) <- a(x, y), b(y, z), c(z, w).",
    "in a comparison": "s(x, y) <- a(x, y), b(y, z), z > 0.",
}


def shown(rule: str, strategy: str, many: int) -> Iterator[int]:
    db = dlog.Database(
        source=f"a(x, y) -> int(x), int(y).  b(y, z) -> int(y), int(z).  c(z, w) -> int(z), int(w).  {rule}",
        strategy=strategy,
    )
    rows = {"a": [(x, x % 9) for x in range(50)], "b": [(y, z) for y in range(9) for z in range(many)]}
    db.apply(insert={**rows, "c": [(z, w) for z in range(many) for w in range(3)]})
    db.apply(insert={"a": [(100, 1)]})
    for change, name, row in (
        ("insert", "a", (101, 2)),
        ("erase", "a", (101, 2)),
        ("insert", "b", (3, many + 7)),
        ("erase", "b", (3, many // 2)),
        ("insert", "a", (102, 10)),
        ("insert", "b", (10, 1)),
        ("erase", "b", (10, 1)),
    ):
        yield db.apply(**{change: {name: [row]}}).operations
        db.verify()
        db.check()
    for z in range(3):  # each time the first match goes
        db.apply(erase={"b": [(4, z)]})
        db.verify()


@pytest.mark.parametrize("strategy", ["trace", "trace-exact"])
@pytest.mark.parametrize("rule", SHOWN.values(), ids=SHOWN)
def test_the_search_for_what_is_not_shown_ends_at_the_first_match(rule: str, strategy: str) -> None:
    few, many = list(shown(rule, strategy, 30)), list(shown(rule, strategy, 1_000))
    assert max(many) <= 80 and many[0] <= 25, many
    assert all(b <= a + 5 for a, b in zip(few, many, strict=True)), (few, many)
