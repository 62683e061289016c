"""Random programs: that they are accepted, have results, and mean the same to DuckDB; and simple models of
recursion that are no Datalog at all."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dlog
from dlog.errors import ConstraintError, DlogError

from . import sql
from .accepted import accepted
from .bodies import Features
from .changes import apply_all, statement, transactions
from .compare import same_program
from .functors import AGGREGATES, PLAIN
from .naive import base_facts, evaluate, evaluate_base
from .programs import ALL, CONJUNCTIVE, NONRECURSIVE, RECURSIVE, programs
from .values import DoesNotFit

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SAMPLE = settings(SLOW, max_examples=150, derandomize=True, database=None)
SAID = tuple(t for t in NONRECURSIVE.types if t not in ("timestamp", "duration"))  # DuckDB has other ones
SQL = NONRECURSIVE.with_("linear_recursion", "mutual_recursion", types=SAID)


def test_random_programs_are_accepted_and_have_results() -> None:
    """At least 98 of 100 are accepted, and more than half of their derived predicates have rows."""
    refused: list[str] = []
    sizes: list[int] = []

    @SAMPLE
    @given(programs(ALL))
    def sample(text: str) -> None:
        try:
            program = dlog.check(text)
        except DlogError as error:
            refused.append(f"{text}\n{error.render()}")
            return
        try:
            facts = evaluate(program)
        except DoesNotFit:
            return
        sizes.extend(
            len(facts[name]) for name in program.predicates if name.startswith("p") and "'" not in name
        )

    sample()
    assert len(refused) <= 3, refused[0]
    assert len(sizes) > 150 and sum(size > 0 for size in sizes) > len(sizes) / 2


@pytest.mark.parametrize("feature", [f for f in vars(ALL) if f != "types"])
def test_every_feature_is_generated(feature: str) -> None:
    """Programs of one feature alone have what it promises, and conjunctive ones have it never."""
    mark = {
        "comparisons": lambda p: any(f"{op} " in p for op in ("!=", "<=", ">=", "> ")),
        "arithmetic": lambda p: any(op in p for op in (" + ", " * ", " % ", "abs(", "max(")),
        "negation": lambda p: ", !" in p,
        "negated_conjunctions": lambda p: "!(" in p,
        "disjunctions": lambda p: " ; " in p,
        "inline_aggregates": lambda p: " : {" in p,
        "primitives": lambda p: any(
            f"{name}(" in p for name in ("range", "split", "upper", "to_string", "contains")
        ),
        "functions": lambda p: "f2[" in p or "p1[" in p,
        "aggregates": lambda p: "agg<<" in p,
        "several_heads": lambda p: any("), p" in line.split("<-")[0] for line in p.splitlines()),
        "linear_recursion": lambda p: _recursive(p),
        "nonlinear_recursion": lambda p: _recursive(p),
        "mutual_recursion": lambda p: _recursive(p),
        "recursive_min": lambda p: _recursive(p),
        "deltas": lambda p: "\n+" in p or "\n-" in p,
        "witnesses": lambda p: any("'witnesses" in name for name in dlog.check(p).predicates),
        "functors": lambda p: any(f"@{name}(" in p for name in PLAIN),
        "functor_aggregates": lambda p: any(name in p for name, _, _ in AGGREGATES),
    }[feature]
    needs = {"functor_aggregates": ("functors", "aggregates")}.get(feature, ())
    assert any(map(mark, _sample(CONJUNCTIVE.with_(feature, *needs))))
    assert not any(map(mark, _sample(CONJUNCTIVE)))


@cache
def _sample(features: Features) -> list[str]:
    texts: list[str] = []

    @settings(SAMPLE, max_examples=30)
    @given(programs(features))
    def sample(text: str) -> None:
        texts.append(text)

    sample()
    return texts


def _recursive(text: str) -> bool:
    return any(stratum.recursive for stratum in dlog.check(text).strata)


@settings(SLOW, max_examples=60)
@given(programs(SQL))
def test_oracle_duckdb(text: str) -> None:
    program = accepted(text)
    queries = sql.translate(program)
    if queries is None:
        return
    base = base_facts(program)
    try:
        facts = evaluate_base(program, base)
    except (DoesNotFit, ConstraintError):
        return
    rows = sql.run(program, queries, base)
    assert rows is None or same_program(rows, facts, program)


def test_most_programs_can_be_expressed_in_sql() -> None:
    said = [sql.translate(dlog.check(text)) is not None for text in _sample(SQL)]
    assert sum(said) > len(said) * 0.6


def test_sql_reports_what_it_cannot_express() -> None:
    graph = "e(x, y) -> int(x), int(y). e(1, 2). "
    assert sql.translate(dlog.check(graph + "p(x, z) <- p(x, y), p(y, z). p(x, y) <- e(x, y).")) is None
    assert sql.translate(dlog.check("q(x) -> float(x). q(1.0). p[] = s <- agg<<s = sum(x)>> q(x).")) is None
    wrapping = dlog.check("q(9223372036854775807). p(y) <- q(x), y = x + 1.")
    queries = sql.translate(wrapping)
    assert queries is not None and sql.run(wrapping, queries, base_facts(wrapping)) is None


@settings(SLOW, max_examples=60)
@given(st.data(), programs(NONRECURSIVE, derived=2))
def test_transactions_mean_the_same_as_text(data: st.DataObject, text: str) -> None:
    """Transactions on sets end where their statements, added to the program, end."""
    program = accepted(text)
    base = base_facts(program)
    changes = data.draw(transactions(program, derived=True))
    for transaction in changes:
        apply_all(base, transaction)
    longer = dlog.check(text + "\n".join(map(statement, changes)))
    assert base_facts(longer) == base


EDGES = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)
WEIGHTS = st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.integers(0, 5), max_size=14)


@settings(SLOW, max_examples=50)
@given(EDGES)
def test_oracle_closure(edges: set[tuple[int, int]]) -> None:
    """Warshall's algorithm, against linear, non-linear and mutual recursion."""
    closure = set(edges)
    for k, i, j in itertools.product(range(7), repeat=3):
        if (i, k) in closure and (k, j) in closure:
            closure.add((i, j))
    program = dlog.check("""
        e(x, y) -> int(x), int(y).
        a(x, y) <- e(x, y).  a(x, z) <- a(x, y), e(y, z).
        b(x, y) <- e(x, y).  b(x, z) <- b(x, y), b(y, z).
        c(x, y) <- e(x, y).  c(x, z) <- d(x, y), e(y, z).  d(x, y) <- c(x, y).
    """)
    facts = evaluate(program, {"e": edges})
    assert facts["a"] == facts["b"] == facts["c"] == closure


@settings(SLOW, max_examples=50)
@given(WEIGHTS)
def test_oracle_shortest_and_widest_paths(roads: dict[tuple[int, int], int]) -> None:
    """Floyd's algorithm in two semirings, against recursive min and max."""
    inf = float("inf")
    near = {(i, j): 0 if i == j else roads.get((i, j), inf) for i in range(7) for j in range(7)}
    wide = {(i, j): inf if i == j else roads.get((i, j), -inf) for i in range(7) for j in range(7)}
    for k, i, j in itertools.product(range(7), repeat=3):
        near[i, j] = min(near[i, j], near[i, k] + near[k, j])
        wide[i, j] = max(wide[i, j], min(wide[i, k], wide[k, j]))
    program = dlog.check("""
        road[x, y] = w -> int(x), int(y), int(w).
        near[0] = 0.  near[y] = m <- agg<<m = min(v)>> near[x] = a, road[x, y] = w, v = a + w.
        wide[0] = 99.  wide[y] = m <- agg<<m = max(v)>> wide[x] = a, road[x, y] = w, v = min(a, w).
    """)
    facts = evaluate(program, {"road": {(x, y, w) for (x, y), w in roads.items()}})
    assert facts["near"] == {(j, near[0, j]) for j in range(7) if near[0, j] < inf}
    assert facts["wide"] == {(j, min(wide[0, j], 99)) for j in range(7) if wide[0, j] > -inf}


@settings(SLOW, max_examples=40)
@given(programs(ALL.without(*RECURSIVE)))
def test_order_of_statements_does_not_matter(text: str) -> None:
    """Facts, declarations and rules mean the same in any order."""
    program = accepted(text)
    try:
        facts = evaluate(program)
    except (DoesNotFit, ConstraintError):
        return
    lines = [line for line in text.splitlines() if not line.startswith(("+", "-", "^"))]
    deltas = text.splitlines()[len(lines) :]
    again = evaluate(dlog.check("\n".join([*reversed(lines), *deltas])))
    shown = {name for name, p in program.predicates.items() if not p.auxiliary}
    assert {n: facts[n] for n in shown} == {n: again[n] for n in shown}
