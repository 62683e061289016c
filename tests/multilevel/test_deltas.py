"""[[e]](D + u) = [[e]](D) + [[delta(e, u)]](D), against the naive evaluator, and what deltas look like."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.m3.syntax import ast
from dlog.multilevel.binding import degree
from dlog.multilevel.decompose import expand
from dlog.multilevel.deltas import Event, delta
from dlog.multilevel.domains import domain
from dlog.multilevel.notation import text
from dlog.multilevel.simplify import simplify
from dlog.multilevel.values import is_zero, times
from tests.examples import relaxed
from tests.multilevel.expressions import NAMES, SCHEMA, VALUES, Expressions, bag, binding_of, database
from tests.oracle.agca_naive import Naive, add, scheme

SEEDS = st.integers(0, 2**32)
SCOPE = ("a", "d")
MAX_NODES = 70


def sample(rng: random.Random, lifts: bool = True):
    """An expression that reads a relation, and the relation."""
    while True:
        node = Expressions(rng, 3, lifts).closed(SCOPE)
        read = sorted({n.name for n in node.walk() if isinstance(n, ast.Relation)})
        if read and sum(1 for _ in node.walk()) <= MAX_NODES:
            return node, rng.choice(read)


def change(rng: random.Random, relation: str):
    """An event, the rows that it adds, and the values of its parameters."""
    width, sign = SCHEMA[relation], rng.choice((1, -1, 0, 0))
    if not sign:
        return Event(relation), bag(rng, width, rng.randint(1, 3)), {}
    row = tuple(rng.choice(VALUES) for _ in range(width))
    names = tuple(f"x{i}" for i in range(width))
    return Event(relation, sign, names), {row: sign}, dict(zip(names, row, strict=True))


def check_delta(seed: int) -> None:
    rng = random.Random(seed)
    node, relation = sample(rng)
    event, rows, values = change(rng, relation)
    bags, bound = database(rng), binding_of(rng, SCOPE)
    if rng.random() < 0.3:  # rows that cancel what is there
        rows = {row: -count for row, count in list(bags[relation].items())[: rng.randint(1, 3)]} or rows
        event, values = Event(relation), {}
    changed = delta(node, event)
    for found in (changed, simplify(changed, event.scope | set(SCOPE))):
        assert scheme(found)[0] <= {*SCOPE, *event.parameters}, text(found)
        outs = sorted(scheme(node)[1] - set(SCOPE))
        before = Naive(bags).table(node, outs, bound)
        after = Naive({**bags, relation: add(bags[relation], rows)}).table(node, outs, bound)
        difference = Naive(bags, {relation: rows}).table(found, outs, {**bound, **values})
        assert after == add(before, difference), text(found)


@given(SEEDS)
@relaxed(600)
def test_oracle_delta(seed: int) -> None:
    check_delta(seed)


@pytest.mark.fuzz
@given(SEEDS)
@relaxed(10_000, random=True)
def test_oracle_delta_of_ten_thousand(seed: int) -> None:
    check_delta(seed)


@given(SEEDS)
@relaxed(400)
def test_theorem_3_1(seed: int) -> None:
    """Without nested aggregates the degree of a delta is one less, for one relation at least."""
    rng = random.Random(seed)
    node, _ = sample(rng, lifts=False)
    node = expression_of_degree(node)
    found = []
    for relation, width in SCHEMA.items():
        names = tuple(f"x{i}" for i in range(width))
        for event in (Event(relation), Event(relation, 1, names)):
            changed = delta(node, event)
            found.append(degree(changed))
            assert degree(simplify(changed, event.scope)) <= max(degree(node) - 1, 0)
    assert max(found) == max(degree(node) - 1, 0), text(node)


def expression_of_degree(node: ast.Expression) -> ast.Expression:
    """Without factors 0, which have a degree and no delta."""
    return simplify(node, laws=("fold",))


@given(SEEDS)
@relaxed(400)
def test_oracle_a_domain_is_1_wherever_a_change_is_not_0(seed: int) -> None:
    rng = random.Random(seed)
    node, relation = sample(rng)
    event, rows, values = change(rng, relation)
    changed = simplify(delta(node, event), event.scope)
    factors = domain(changed, event.scope)
    if is_zero(changed) or not factors:
        return
    naive = Naive(database(rng), {relation: rows})
    bound = {**binding_of(rng, SCOPE), **values}
    outs = sorted(scheme(changed)[1] - bound.keys())
    restricted = times([*factors, changed])
    assert naive.table(restricted, outs, bound) == naive.table(changed, outs, bound), text(restricted)
    assert set(naive.evaluate(times(factors), bound).values()) <= {1}
    assert not any(isinstance(n, ast.Relation) for f in factors for n in f.walk())


def test_domains_are_found_in_the_examples() -> None:
    """Else the property above shows nothing."""
    rng = random.Random(1)
    found = 0
    for _ in range(300):
        node, relation = sample(rng)
        event, _, _ = change(rng, relation)
        found += bool(domain(simplify(delta(node, event), event.scope), event.scope))
    assert found > 60


def test_monomials_are_the_expression() -> None:
    rng = random.Random(2)
    for _ in range(200):
        node, _ = sample(rng)
        naive, bound = Naive(database(rng)), binding_of(rng, SCOPE)
        outs = sorted(scheme(node)[1] - set(SCOPE))
        kept = tuple(map(ast.Variable, (*outs, *SCOPE)))
        total: dict = {}
        for monomial in expand(node, frozenset(SCOPE)):
            given = scheme(ast.product(monomial))[1]
            keys = tuple(k for k in kept if k.name in given)
            total = add(total, naive.table(ast.AggSum(keys, ast.product(monomial)), outs, bound))
        assert total == naive.table(node, outs, bound), text(node)


assert set(SCOPE) < set(NAMES)
