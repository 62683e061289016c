"""Recursion under insertion and deletion: after each transaction everything is as from scratch."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterable

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import dlog
from dlog.engine.evaluate import chunks, fixpoint
from dlog.engine.maintain.stages import expansion, keep, rounds
from dlog.errors import ConstraintError, DataError
from dlog.heads.stages import table as stage_table
from tests.engine.maintain.stages.staged import Staged, check_counts
from tests.examples import relaxed
from tests.oracle.accepted import accepted
from tests.oracle.changes import Change, Transaction, apply_all, transactions
from tests.oracle.compare import same_program
from tests.oracle.naive import base_facts, evaluate_base
from tests.oracle.programs import ALL, programs

LOWER = """
e(x, y) -> int(x), int(y).   f(x, y) -> int(x), int(y).   n(x) -> int(x).
g(x, y, w) -> int(x), int(y), int(w).   near(x) -> int(x).
r(x, y) -> int(x), int(y).   s(x, y) -> int(x), int(y).
q(x, y) <- e(x, y), !n(y).
c[x] = k <- agg<<k = count()>> e(x, _).
"""
PLAIN = (
    "r(x, y) <- e(x, y).",
    "r(x, z) <- r(x, y), e(y, z).",
    "r(x, z) <- r(x, y), r(y, z).",
    "r(x, z) <- e(x, y), r(y, z), !n(x).",
    "r(x, y) <- s(y, x).",
    "r(x, y) <- s(x, y), n(x).",
    "r(x, z) <- s(x, y), r(y, z).",
    "r(x, y) <- r(y, x), (e(x, _) ; n(y)).",
    "r(x, z) <- (r(x, y) ; s(y, x)), f(y, z).",
    "r(x, x) <- r(x, y), r(y, x), s(x, y).",
    "r(x, z) <- r(x, y), f(y, z), !(e(z, w), n(w)).",
    "r(x, y) <- r(x, z), y = z + 1, y < 5.",
    "r(x, y) <- r(x, z), f(z, y), g(x, y, _).",
    "r(x, y), s(y, x) <- s(x, y), q(x, y).",
    "s(x, y) <- r(x, y), f(x, y).",
    "s(x, y) <- q(x, y).",
    "s(x, z) <- r(x, y), s(y, z), y != z.",
    "s(1, y) <- r(y, y).",
    "s(x, x) <- r(x, 2), c[x] = k, k > 1.",
    "t() <- r(x, x), n(x).",
    "r(x, y) <- t(), f(x, y).",
    "s(x, y) <- r(x, y), (f(x, y) ; !n(x)).",
)
LEAST = (
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, g(x, y, w), w >= 0, b = a + w.",
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, e(x, y), b = a + 1.",
    "d[y] = m <- agg<<m = min(b)>> d[x] = b, f(x, y).",
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, g(x, y, w), b = max(a, w).",
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, g(x, y, w), x < y, b = a + w.",
    "d[y] = m <- agg<<m = min(b)>> d[x] = a, d[z] = a2, g(x, y, z), b = max(a, a2).",
    "d[y] = m <- agg<<m = min(b)>> k[x] = b, f(x, y).",
    "k[y] = m <- agg<<m = min(b)>> d[x] = a, e(x, y), b = a + 2.",
    "k[y] = m <- agg<<m = min(b)>> g(x, y, b), near(x).",
    "near(x) <- d[x] = a, a < 3.",
    "near(x) <- near(y), e(y, x), n(x).",
    "d[x] = m <- agg<<m = min(b)>> near(x), b = 2.",
    "d[x] = m <- agg<<m = min(w)>> g(x, _, w).",
)
# Values that improve themselves: no derivation from lower stages.
CLAMPED = "d[y] = m <- agg<<m = min(b)>> d[x] = a, g(x, y, w), b = max(a - 1, w)."
MOST = (
    "d[y] = m <- agg<<m = max(b)>> d[x] = a, g(x, y, w), b = min(a, w).",
    "d[y] = m <- agg<<m = max(b)>> d[x] = a, e(x, y), b = a - 1.",
    "d[y] = m <- agg<<m = max(b)>> d[x] = b, f(x, y), !n(y).",
    "d[x] = m <- agg<<m = max(w)>> g(x, _, w).",
)
SMALL = st.integers(0, 4)
_ROWS = {"e": 2, "f": 2, "n": 1, "g": 3}


@st.composite
def recursions(draw: st.DrawFn, rules: tuple[str, ...], declared: str = "") -> str:
    """A program with some of the rules, at least one of them recursive, and facts."""
    chosen = draw(st.lists(st.sampled_from(rules), min_size=2, max_size=6, unique=True))
    lines = [LOWER, declared, *chosen]
    for name, arity in _ROWS.items():
        rows = draw(st.lists(st.tuples(*[SMALL] * arity), max_size=8, unique=True))
        lines.append(" ".join(f"{name}({', '.join(map(str, row))})." for row in rows))
    if "d[" in declared:
        lines += [f"d[{x}] = {v}." for x, v in draw(st.dictionaries(SMALL, SMALL, max_size=2)).items()]
    return "\n".join(lines)


def follow(text: str, changes: list[Transaction], *, counts: bool = True) -> Staged:
    """Apply transactions one by one; after each the naive evaluator, and the counts by definition, agree."""
    program = accepted(text)
    base = base_facts(program)
    try:
        evaluate_base(program, base)
    except (ConstraintError, DataError):
        reject()
    staged = Staged(text)
    for transaction in changes:
        trial = {name: set(rows) for name, rows in base.items()}
        apply_all(trial, transaction)
        try:
            expected = evaluate_base(program, trial)
        except (ConstraintError, DataError):
            with pytest.raises((ConstraintError, DataError)):
                staged.apply(transaction)
            continue
        staged.apply(transaction)
        base = trial
        same_program({name: staged.rows(name) for name in program.predicates}, expected, program)
        staged.check()
        if counts:
            check_counts(staged, expected)
    return staged


@relaxed(60)
@given(st.data())
def test_oracle_plain_recursion(data: st.DataObject) -> None:
    text = data.draw(recursions(PLAIN))
    follow(text, data.draw(transactions(accepted(text), most=8, derived=True)))


@relaxed(45)
@given(st.data())
def test_oracle_least_values(data: st.DataObject) -> None:
    text = data.draw(recursions(LEAST, "d[x] = v -> int(x), int(v).  k[x] = v -> int(x), int(v)."))
    follow(text, data.draw(transactions(accepted(text), most=8, derived=True)))


@relaxed(40)
@given(st.data())
def test_oracle_greatest_values(data: st.DataObject) -> None:
    text = data.draw(recursions(MOST, "d[x] = v -> int(x), int(v)."))
    follow(text, data.draw(transactions(accepted(text), most=8, derived=True, conflicts=True)))


@relaxed(30)
@given(st.data())
def test_oracle_values_that_improve_themselves(data: st.DataObject) -> None:
    declared = f"d[x] = v -> int(x), int(v).  k[x] = v -> int(x), int(v).  {CLAMPED}"
    text = data.draw(recursions(LEAST, declared))
    follow(text, data.draw(transactions(accepted(text), most=5, derived=True)))


@relaxed(45)
@given(st.data())
def test_oracle_random_programs(data: st.DataObject) -> None:
    """All types, column primitives in recursive rules among them."""
    text = data.draw(programs(ALL, derived=3))
    follow(text, data.draw(transactions(accepted(text), most=4, derived=True)), counts=False)


VALUES = "d[x] = v -> int(x), int(v).  k[x] = v -> int(x), int(v)."


@pytest.mark.fuzz
@relaxed(3000, random=True)
@given(st.data())
def test_fuzz_recursion(data: st.DataObject) -> None:
    rules, declared = data.draw(st.sampled_from([(PLAIN, ""), (LEAST, VALUES), (MOST, VALUES)]))
    text = data.draw(recursions(rules, declared))
    follow(text, data.draw(transactions(accepted(text), most=20, derived=True, conflicts=True)))


@pytest.mark.fuzz
@relaxed(2000, random=True)
@given(st.data())
def test_fuzz_random_programs(data: st.DataObject) -> None:
    text = data.draw(programs(ALL, derived=4))
    follow(text, data.draw(transactions(accepted(text), most=10, derived=True)), counts=False)


# The same in other ways: none of them changes an answer

WAYS: tuple[dict[str, object], ...] = (
    {"row_sets": "bitmap"},
    {"row_sets": "hash"},
    {"row_sets": "wide"},
    {"rounds": True},
)


@relaxed(60)
@given(recursions(PLAIN), st.sampled_from(WAYS), st.sampled_from([1, 1000, 1 << 40]))
def test_oracle_counts_of_an_evaluation(text: str, way: dict[str, object], scale: int) -> None:
    """Stages and counts that come with the rows, whatever set tells what is new, also of large values."""
    text = re.sub(r"\b[1-4]\b", lambda found: str(int(found[0]) * scale), text)
    expected = evaluate_base(accepted(text), base_facts(accepted(text)))
    staged = Staged(text, way)
    assert staged.applied == 0
    check_counts(staged, expected)


@pytest.mark.parametrize("rule", ["r(x, y), e(y, z)", "e(x, y), r(y, z)", "r(x, y), r(y, z)"])
def test_counts_of_a_larger_evaluation(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks, growing queues and tables, the output cut anywhere: all ways find the same counts."""
    rng = random.Random(5)
    edges = facts({(rng.randrange(60) * 7, rng.randrange(60) * 7) for _ in range(110)})
    text = f"e(x, y) -> int(x), int(y).  r(x, y) <- e(x, y).  r(x, z) <- {rule}.  {edges}"
    monkeypatch.setattr(fixpoint, "OUTPUT_ROWS", 64)
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 300)
    monkeypatch.setattr(chunks, "FIRST_SEEDS", 4)
    found = [Staged(text, way).strategies[0][1] for way in WAYS]
    tables = [strategy.recursion.table.stages(0).tolist() for strategy in found if strategy is not None]
    assert len(tables[0]) > 1000 and tables[0] == tables[1]
    naive_counts = evaluate_base(accepted(text), base_facts(accepted(text)))
    for way in WAYS:
        check_counts(Staged(text, way), naive_counts)


@relaxed(25)
@given(st.data())
def test_aborted_transactions_leave_no_trace(data: st.DataObject) -> None:
    rules, declared = data.draw(st.sampled_from([(PLAIN, ""), (LEAST, VALUES)]))
    text = data.draw(recursions(rules, declared))
    accepted(text)
    try:
        staged = Staged(text)
    except ConstraintError:
        reject()
    before = {name: staged.rows(name) for name in staged.program.predicates}
    for transaction in data.draw(transactions(staged.program, most=4, derived=True)):
        with contextlib.suppress(ConstraintError):
            staged.apply(transaction, abort=True)
        assert {name: staged.rows(name) for name in staged.program.predicates} == before
        staged.apply([])  # brings the stages back
        check_counts(staged, evaluate_base(staged.program, base_facts(staged.program)))


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is full again and again, and joins stop in the middle of a fact."""
    for module in (stage_table, expansion, rounds):
        monkeypatch.setattr(module, "CHUNK", 3)
    monkeypatch.setattr(stage_table, "_LEAST_SLOTS", 128)
    monkeypatch.setattr(stage_table, "_LEAST_RECORDS", 4)


@pytest.mark.usefixtures("little_room")
def test_oracle_with_little_room() -> None:
    for seed in range(12):
        compare_random_graph(seed, nodes=9, edges=20, transactions=8)


def test_oracle_evaluation_from_scratch_when_that_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keep, "_LEAST_WORK", 20)
    monkeypatch.setattr(keep, "_SHARE", 1000)
    staged = compare_random_graph(3, nodes=9, edges=20, transactions=20)
    assert 0 < staged.rebuilt < staged.applied + staged.rebuilt


def test_oracle_larger_graphs() -> None:
    for text in (REACH, REACH_TWICE, DISTANCE):
        compare_random_graph(5, nodes=60, edges=150, transactions=12, text=text)


REACH = "e(x, y) -> int(x), int(y).  r(x, y) <- e(x, y).  r(x, z) <- r(x, y), e(y, z).\n"
REACH_TWICE = "e(x, y) -> int(x), int(y).  r(x, y) <- e(x, y).  r(x, z) <- r(x, y), r(y, z).\n"
DISTANCE = """
e(x, y) -> int(x), int(y).  r[x, y] = d -> int(x), int(y), int(d).
r[x, y] = 1 <- e(x, y).
r[x, z] = d <- agg<<d = min(f)>> r[x, y] = a, e(y, z), w = (x + y * z) % 4, w >= 0, f = a + w.
"""


def compare_random_graph(
    seed: int, nodes: int, edges: int, transactions: int, text: str = REACH_TWICE
) -> Staged:
    """Edges come and go; after each transaction the derived facts are those of a new evaluation."""
    rng = random.Random(seed)
    staged = Staged(text + facts({(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(edges)}))
    for _ in range(transactions):
        present = [tuple(row) for row in staged.relations["e"].rows().tolist()]
        gone = [Change("-", "e", row) for row in rng.sample(present, min(len(present), rng.randrange(4)))]
        come = [
            Change("+", "e", (rng.randrange(nodes), rng.randrange(nodes))) for _ in range(rng.randrange(3))
        ]
        staged.apply([*gone, *come])
        staged.check()
        now = {tuple(row) for row in staged.relations["e"].rows().tolist()}
        assert staged.rows("r") == dlog.Database(source=text + facts(now))["r"].rows()
    return staged


def facts(edges: Iterable[tuple[int, ...]]) -> str:
    return "".join(f"e({x}, {y}). " for x, y in sorted(edges))


@pytest.mark.parametrize(
    ("op", "value", "expected"), [("max", 2, 2), ("max", -2, 0), ("min", -2, -2), ("min", 2, 0)]
)
def test_a_key_with_several_base_facts_has_the_best(op: str, value: int, expected: int) -> None:
    rule = f"d[y] = m <- agg<<m = {op}(a)>> d[x] = a, e(x, y)."
    declared = "d[x] = v -> int(x), int(v).  e(x, y) -> int(x), int(y).  "
    db = dlog.Database(source=f"{declared} {rule}  e(1, 2).  d[1] = 0.", strategy="delta")
    db.execute("+e(7, 8).")
    assert db.execute(f"+d[1] = {value}.").ways == {"d": "stages"}  # type: ignore[union-attr]
    assert db["d"].rows() == [(1, expected), (2, expected)]
    db.execute("-d[1] = 0.")
    assert db["d"].rows() == [(1, value), (2, value)]
    db.check()


# No circular support, and no more work than there is

CYCLE = [(i, i % 50 + 1) for i in range(1, 51)]


@pytest.mark.parametrize(
    "text",
    [
        "r(0).  r(y) <- r(x), e(x, y).\n",
        "s(0).  r(x) <- s(x).  r(y) <- s(x), e(x, y).  s(y) <- r(x), e(x, y).\n",
        "r[0] = 5.  r[y] = m <- agg<<m = min(a)>> r[x] = a, e(x, y).\n",
        "r[0] = 5.  r[y] = m <- agg<<m = min(b)>> r[x] = a, e(x, y), b = a + 1.\n",
    ],
    ids=["plain", "mutual", "zero weights", "weights"],
)
def test_what_only_a_bridge_reaches_is_erased_with_it(text: str) -> None:
    """Both ways around a cycle, and the cycle's vertices derive each other."""
    cycle = {*CYCLE, *((y, x) for x, y in CYCLE)}
    staged = Staged("e(x, y) -> int(x), int(y). " + text + facts({(0, 1), (0, 20), *cycle}))
    size = len(staged.rows("r"))
    staged.apply([Change("-", "e", (0, 1))])
    assert len(staged.rows("r")) == size
    staged.check()
    staged.apply([Change("-", "e", (0, 20))])
    assert len(staged.rows("r")) == 1
    staged.apply([Change("+", "e", (0, 7))])
    assert len(staged.rows("r")) == size
    staged.check()


def test_a_fact_with_another_low_support_ends_the_deaths() -> None:
    """On a strongly connected graph nearly nothing is examined when an edge that no one needs goes."""
    n = 60
    edges = {(x, (x + d) % n) for x in range(n) for d in (1, 2, 3, 5)}
    staged = Staged(REACH + facts(edges))
    (strategy,) = [s for _, s in staged.strategies if s is not None]
    assert len(staged.rows("r")) == n * n
    staged.apply([Change("-", "e", (7, 9))])
    assert staged.rows("r") and strategy.recursion.table.touched < n * n / 4


def test_column_orders_stay_where_nothing_is_derived() -> None:
    """A change of edges that everyone can do without asks for reach by its second column, and finds it the
    next time."""
    n = 20
    staged = Staged(REACH + facts({(x, (x + d) % n) for x in range(n) for d in (1, 2, 3, 5)}))
    before = staged.rows("r")
    staged.apply([Change("-", "e", (7, 9))])
    orders = staged.relations["r"].orders
    assert staged.rows("r") == before and any(order[0] == 1 for order in orders)
    staged.apply([Change("-", "e", (8, 10))])
    assert staged.relations["r"].orders == orders


def test_no_dead_state() -> None:
    """Many transactions that return to the start: the stages are as large as new ones."""
    rng = random.Random(4)
    edges = {(rng.randrange(40), rng.randrange(40)) for _ in range(60)}
    staged = Staged(REACH + facts(edges))
    (strategy,) = [s for _, s in staged.strategies if s is not None]
    for _ in range(150):
        row = rng.choice(sorted(edges))
        staged.apply([Change("-", "e", row)])
        staged.apply([Change("+", "e", row)])
    staged.check()
    new = Staged(REACH + facts(edges))
    (fresh,) = [s for _, s in new.strategies if s is not None]
    fresh.check(new.store)
    table, other = strategy.recursion.table, fresh.recursion.table
    assert staged.rows("r") == new.rows("r")
    assert (len(table), len(table.table), len(table.records)) == (
        len(other),
        len(other.table),
        len(other.records),
    )
