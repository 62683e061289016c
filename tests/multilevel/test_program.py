"""Compiled programs in the runtime of M3 against the naive evaluator: random definitions and streams."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.m3.types.typecheck import check
from dlog.multilevel.names import same
from dlog.multilevel.notation import read
from dlog.multilevel.program import Limits, Program, compile
from tests.examples import relaxed
from tests.multilevel.expressions import SCHEMA, Expressions, bag
from tests.multilevel.running import Running, batches, source, stream

SEEDS = st.integers(0, 2**32)
MAX_NODES = 45
COLUMNS = {"R": "R(x, y)", "S": "S(x, z)", "T": "T(w)"}
LIMITS = Limits(maps=40, rewrites=20_000)


def sources(tables: tuple[str, ...] = ()) -> list[ast.Source]:
    return [source(t, ast.TABLE if n in tables else ast.STREAM) for n, t in COLUMNS.items()]


def definition(rng: random.Random) -> ast.Expression:
    while True:
        node = Expressions(rng, 3).closed()
        if 5 <= sum(1 for _ in node.walk()) <= MAX_NODES and any(
            isinstance(n, ast.Relation) for n in node.walk()
        ):
            return node


def compiled(rng: random.Random, tables: tuple[str, ...] = (), **options) -> Program:
    """A program for one or two definitions."""
    while True:
        found = {f"q{i}": definition(rng) for i in range(rng.randint(1, 2))}
        program = compile(found, sources(tables), **options)
        if isinstance(program, Program):
            return program


def follow(rng: random.Random, program: Program, tables: tuple[str, ...] = (), size: int = 5) -> None:
    """Every map is right after each change, and empty in the end, unless tables fill it."""
    kept = {name: {r: abs(c) for r, c in bag(rng, SCHEMA[name], 4).items()} for name in tables}
    running = Running(program, kept)
    running.check()
    start = {m.name: running.content(m.name) for m in program.maps}
    events = stream(rng, {n: w for n, w in SCHEMA.items() if n not in tables}, rng.randint(2, 8))
    single = not any(t.event == ast.BATCH for t in program.m3.triggers)
    for relation, rows in batches(rng, events, 1 if single else size):
        running.apply(relation, rows)
        running.check()
    assert start == {m.name: running.content(m.name) for m in program.maps}


@given(SEEDS)
@relaxed(90)
def test_oracle_batches(seed: int) -> None:
    rng = random.Random(seed)
    follow(rng, compiled(rng, limits=LIMITS))


@given(SEEDS)
@relaxed(90)
def test_oracle_single_rows(seed: int) -> None:
    rng = random.Random(seed)
    follow(rng, compiled(rng, batch=False, limits=LIMITS))


@given(SEEDS)
@relaxed(60)
def test_oracle_depths(seed: int) -> None:
    rng = random.Random(seed)
    follow(rng, compiled(rng, depth=rng.choice((0, 1, 2)), batch=rng.random() < 0.5, limits=LIMITS))


@given(SEEDS)
@relaxed(60)
def test_oracle_tables(seed: int) -> None:
    rng = random.Random(seed)
    tables = tuple(rng.sample(sorted(SCHEMA), rng.randint(1, 2)))
    follow(rng, compiled(rng, tables=tables, batch=rng.random() < 0.5, limits=LIMITS), tables)


@given(SEEDS)
@relaxed(60)
def test_oracle_maps_with_input_variables(seed: int) -> None:
    rng = random.Random(seed)
    follow(rng, compiled(rng, inputs=True, batch=False, limits=LIMITS))


BOUNDS = (
    "AggSum([], P(k) * L(k, q, e) * e * {q < (0.3 * AggSum([], L(j, r, f) * r * {j = k}))})",
    "L(k, q, e) * {e > (0.1 * AggSum([], L(j, r, f) * r))}",
    "AggSum([k], L(k, q, e) * q * {AggSum([k], L(k, r, f) * f) > (e + e)} * {1.5 < e})",
)


@given(SEEDS)
@relaxed(40)
def test_oracle_bounds_of_floats(seed: int) -> None:
    """Old and new bounds are computed alike, so nothing is counted twice or left when all rows are gone."""
    rng = random.Random(seed)
    sources = [source("P(k)"), source("L(k, q, e double)")]
    program = compile({"q": read(rng.choice(BOUNDS))}, sources, batch=rng.random() < 0.5)
    assert isinstance(program, Program)
    running = Running(program)
    for relation, row, sign in stream(rng, {"P": 1, "L": 3}, 12, range(1, 9)):
        running.apply(relation, {(*row[:2], *(x / 8 for x in row[2:])): sign})
        running.check_numbers()
    assert not any(running.content(m.name) for m in program.maps)


@pytest.mark.fuzz
@given(SEEDS)
@relaxed(1000, random=True)
def test_oracle_programs_at_length(seed: int) -> None:
    rng = random.Random(seed)
    batch = rng.random() < 0.5
    follow(rng, compiled(rng, batch=batch, depth=rng.choice((None, None, 0, 1, 2)), limits=LIMITS))


def test_what_was_compared_can_be_run() -> None:
    """Comparing expressions leaves notes in their nodes, one of them the node itself; the runtime reads none
    of these.
    """
    node = read("AggSum([a], R(a, b) * {a < (1 + AggSum([], S(c, d) * d))})")
    program = compile({"q": node}, sources())
    assert isinstance(program, Program)
    checked = check(program.m3)
    for part in checked.walk():
        if isinstance(part, ast.Constant):
            same(part, part)
    runtime = Runtime(checked, checked=True)
    runtime.apply("R", [(1, 1), (5, 1)])
    runtime.apply("S", [(1, 2)])
    assert runtime["q"].to_pylist() == [{"a": 1, "value": 1}]
