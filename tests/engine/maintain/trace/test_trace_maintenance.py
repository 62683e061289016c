"""Random programs under random transactions, maintained by their traces: the same answers as evaluation from
scratch, the naive evaluator and other strategies; coarse indices are at any time what a fresh run notes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.maintain.trace import granularity, rule_traces, triggers
from dlog.engine.maintain.trace.keep import TraceStrategy
from dlog.engine.maintain.trace.offer import TRACE, TRACE_EXACT
from dlog.engine.maintain.trace.row_kernels import TOO_LARGE, fire_traced
from dlog.engine.maintain.triggers.trigger_search import NEVER
from tests.engine.followed import follow, follow_single_rows
from tests.engine.machine import ways
from tests.engine.mixed import mixed
from tests.examples import relaxed
from tests.oracle.programs import ALL, CONJUNCTIVE, NONRECURSIVE, programs

WANTED = (TRACE, TRACE_EXACT)
CROWDED, GROWING = "every leap a crowd", "crowds that come and go"


@pytest.fixture(params=(*WANTED, CROWDED, GROWING))
def wanted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A strategy.  Small databases have crowds only where few contexts are many."""
    wanted = str(request.param)
    if wanted in WANTED:
        return wanted
    monkeypatch.setattr(granularity, "CONTEXTS", -1 if wanted == CROWDED else 1)
    monkeypatch.setattr(rule_traces, "LEAST_LED", 1)
    return TRACE


def test_oracle_bodies(wanted: str) -> None:
    @relaxed(35)
    @given(st.data(), programs(CONJUNCTIVE.with_("negation", "disjunctions", "negated_conjunctions")))
    def check(data: st.DataObject, text: str) -> None:
        follow(data, text, wanted)

    check()


# Disjunctions, and conjunctions inside a negation or of a branch that begins otherwise than the others.
NESTED = [
    "near(x, y) <- edge(x, y) ; edge(y, x).",
    "near(x, y) <- (edge(x, y) ; edge(y, x)), x < y.",
    "near(x, y) <- edge(x, y) ; edge(x, z), edge(z, y) ; edge(y, x).",
    "near(x, y) <- g(x), (edge(x, y) ; edge(y, x)).",
    "near(x, y) <- (edge(x, z), edge(z, y) ; edge(y, x)), g(x).",
    "near(x, y) <- g(x), (edge(x, y) ; edge(y, x), (g(y) ; edge(y, y))).",
    "near(x, y) <- edge(x, y), !(edge(y, z), g(z)).",
    "near(x, y) <- edge(x, y), (g(x) ; edge(y, z), g(z)).",
    "near(x, y) <- edge(x, y), !(edge(y, z), g(z), edge(z, v), g(v)).",
    "near(x, y) <- edge(x, y), !(edge(y, z), !(edge(z, v), g(v))).",
]


@pytest.mark.parametrize("rule", NESTED)
@pytest.mark.parametrize("wanted", (*WANTED, "delta"))
def test_the_cost_of_a_nested_body_follows_the_rows_it_matches(wanted: str, rule: str) -> None:
    """Whichever of its atoms changes, and however many rows there are."""
    worst = {}
    for n in (1_000, 16_000):
        rng, vertices = Random(1), range(n // 5)
        source = f"g(x) -> int(x).  edge(x, y) -> int(x), int(y).  {rule}"
        db = dlog.Database(source=source, strategy=wanted)
        edges = [(rng.choice(vertices), rng.choice(vertices)) for _ in range(n)]
        db.apply(insert={"edge": edges, "g": [(x,) for x in vertices[::2]]})
        operations = []
        for _ in range(4):
            row, mark = (rng.choice(vertices), rng.choice(vertices)), rng.choice(vertices[1::2])
            for change in ({"edge": [row]}, {"g": [(mark,)]}):
                operations += [db.apply(insert=change).operations, db.apply(erase=change).operations]
        db.verify()
        worst[n] = max(operations)
    assert worst[16_000] <= 6 * worst[1_000] + 100, worst


def test_oracle_nonrecursive(wanted: str) -> None:
    @relaxed(35)
    @given(st.data(), programs(NONRECURSIVE))
    def check(data: st.DataObject, text: str) -> None:
        with ways(data.draw(st.booleans()), 64, 0.5):
            follow(data, text, wanted)

    check()


def test_oracle_one_row(wanted: str) -> None:
    short = follow_single_rows(25, wanted)
    assert sum(short) > len(short) / 10


SHORT = """
edge(x, y) -> int(x), int(y).  mark(x) -> int(x).
{rule}
"""
RULES = (
    "r(x, y, z) <- edge(x, y), edge(y, z), edge(x, z).",
    "r(x, z) <- edge(x, y), edge(y, z), mark(y), !edge(x, z).",
    "r(x, z) <- edge(x, y), mark(z), edge(z, y), x < z.",
    "r(x) <- edge(x, y), edge(3, y), mark(y).",
    "r(x, y) <- edge(x, x), edge(x, y), edge(y, 2).",
)


# What a key that goes must not take with it: contexts in which something else failed, too.
GONE = {
    "another seek": (
        "s(y) -> int(y).  b(y, x, v) -> int(y), int(x), int(v).  a(x, v, w) -> int(x), int(v), int(w)."
        "r(y, x, w) <- s(y), b(y, x, x), a(x, x, w).",
        {"s": [(1,), (2,)], "b": [(1, 3, 7), (2, 2, 2)], "a": [(3, 3, 9), (3, 5, 1), (2, 2, 1)]},
        [("erase", "a", (3, 3, 9)), ("insert", "b", (1, 3, 3)), ("insert", "a", (3, 3, 9))],
        (1, 3, 9),
    ),
    "two seeks": (
        "s(y) -> int(y).  b(y, x) -> int(y), int(x).  c(x) -> int(x).  a(x, w) -> int(x), int(w)."
        "r(y, x, w) <- s(y), b(y, x), a(x, w), c(x).",
        {"s": [(1,)], "b": [(1, 3)], "a": [(3, 9)], "c": [(4,)]},
        [("erase", "a", (3, 9)), ("insert", "c", (3,)), ("insert", "a", (3, 9))],
        (1, 3, 9),
    ),
    "an empty span": (
        "s(y) -> int(y).  b(y, x) -> int(y), int(x).  a(x, w) -> int(x), int(w)."
        "r(y, x, w) <- s(y), b(y, x), a(x, w), b(y, w), w > x.",
        {"s": [(1,)], "b": [(1, 3)], "a": [(3, 9)]},
        [("erase", "a", (3, 9)), ("insert", "b", (1, 9)), ("insert", "a", (3, 9))],
        (1, 3, 9),
    ),
}


@pytest.mark.parametrize("case", GONE)
def test_keys_that_go_while_something_else_fails(wanted: str, case: str) -> None:
    text, facts, changes, expected = GONE[case]
    many = {
        name: [(100 + i, *range(i, i + len(rows[0]) - 1)) for i in range(2000)]
        for name, rows in facts.items()
    }
    del many["s"]
    db = dlog.Database(source=text, strategy=wanted)
    db.apply(insert=many)
    db.apply(insert=facts)
    db.apply(insert={"b": [tuple([9] * len(facts["b"][0]))]})
    for change, name, row in changes:
        db.apply(**{change: {name: [row]}})
        db.verify()
        db.check()
    assert expected in db["r"].rows()


@pytest.mark.parametrize(
    "bound", ["x < 0", "x > 18446744073709551615u", "y < 0", "y > 18446744073709551615u"]
)
def test_nothing_is_beyond_the_ends_of_all_keys(wanted: str, bound: str) -> None:
    """The least and the greatest unsigned number have the least and the greatest code."""
    db = dlog.Database(
        source=f"e(x, y) -> unsigned(x), unsigned(y).  r(x, y) <- e(x, y), e(x, x), {bound}.", strategy=wanted
    )
    db.apply(insert={"e": [(3, 1), (2, 3)]})
    for row in ((1, 1), (0, 0), (2**64 - 1, 2**64 - 1), (0, 2**64 - 1), (2**64 - 1, 0)):
        db.apply(insert={"e": [row]})
        db.check()
        db.verify()
    assert not db["r"].rows()


CHANGED = st.tuples(st.sampled_from(("edge", "edge", "mark")), st.integers(0, 5), st.integers(0, 5))
EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30, unique=True)


@pytest.mark.parametrize("rule", RULES)
def test_differential_short_way(wanted: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row at a time, in one kernel call and in steps: the same rows and the same sensitivity indices."""
    fired: list[int] = []

    def counted(*args: Any) -> int:
        fired.append(fire_traced(*args))
        return fired[-1]

    monkeypatch.setattr(triggers, "fire_traced", counted)

    @relaxed(12)
    @given(EDGES, st.lists(CHANGED, max_size=16))
    def check(edges: list[tuple[int, int]], changes: list[tuple[str, int, int]]) -> None:
        kernel, steps = (dlog.Database(source=SHORT.format(rule=rule), strategy=wanted) for _ in range(2))
        steps._maintenance.triggers.update(
            {(name, sign): NEVER for name in ("edge", "mark") for sign in (1, -1)}
        )
        for db in (kernel, steps):
            db.apply(insert={"edge": edges, "mark": [(1,), (2,)]})
            db.apply(insert={"edge": [(6, 6)]})
        for name, x, y in changes:
            row = (x, y) if name == "edge" else (x,)
            change = "erase" if row in kernel[name].rows() else "insert"
            for db in (kernel, steps):
                db.apply(**{change: {name: [row]}})
            kernel.check()
            assert sorted(kernel["r"].rows()) == sorted(steps["r"].rows())
            if crowds_of(kernel) == crowds_of(steps):  # each checks when changes have led it to enough
                assert noted(kernel) == noted(steps)

    check()
    assert sum(found != TOO_LARGE for found in fired) > 10


def crowds_of(db: dlog.Database) -> list[object]:
    """Where traces are shared or exact."""
    traced = (
        t for s in db._maintenance.strategies.values() if isinstance(s, TraceStrategy) for t in s.traced
    )
    return [t.shown_granularity for t in traced]


def noted(db: dlog.Database) -> list[tuple[tuple[int, ...], bytes]]:
    """The rows of all sensitivity indices, as shapes and bytes: thousands of them are compared often."""
    strategy = next(s for s in db._maintenance.strategies.values() if isinstance(s, TraceStrategy))
    rows = [index.rows() for traced in strategy.traced for index in traced.intervals(db.store)]
    return [(found.shape, found.tobytes()) for found in rows]


@relaxed(30)
@given(st.data(), programs(ALL), st.integers(0, 99))
def test_oracle_mixed(data: st.DataObject, text: str, seed: int) -> None:
    """Different ways in one program."""
    with mixed(seed):
        follow(data, text, TRACE)


@pytest.mark.fuzz
@relaxed(1000, random=True)
@given(st.data(), programs(ALL, derived=6), st.sampled_from((*WANTED, "mixed")), st.integers(0, 99))
def test_fuzz_traces(data: st.DataObject, text: str, wanted: str, seed: int) -> None:
    if wanted != "mixed":
        follow(data, text, wanted, most=20, least=20)
        return
    with mixed(seed):
        follow(data, text, TRACE, most=20, least=20)
