"""Comparisons solved for a key hold for the same values."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from dlog.m3.syntax import ast
from dlog.multilevel.notation import read, text
from dlog.multilevel.ranges import bounds, solved
from tests.examples import relaxed
from tests.oracle.agca_naive import Naive

KEYS = frozenset("k")


def linear(rng: random.Random, depth: int) -> ast.Expression:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return (
            ast.Variable(rng.choice("kpqr"))
            if rng.random() < 0.7
            else ast.Constant("int", rng.randint(-5, 5))
        )
    parts = [linear(rng, depth - 1) for _ in range(2)]
    if kind < 0.6:
        return ast.total(parts)
    return ast.product([ast.Constant("int", rng.choice((-1, -1, 1, 2))), parts[0]])


@given(st.integers(0, 2**32))
@relaxed(400)
def test_oracle_solved(seed: int) -> None:
    rng = random.Random(seed)
    node = ast.Comparison(rng.choice(("=", "!=", "<", "<=", ">", ">=")), linear(rng, 3), linear(rng, 3))
    found = solved(node, KEYS, lambda _: True)
    for _ in range(10):
        bound = {name: rng.randint(-6, 6) for name in "kpqr"}
        assert Naive({}).number(node, bound) == Naive({}).number(found, bound), text(found)


def test_vectors() -> None:
    for before, after in [
        ("{(k + (-1 * p)) > 10}", "{k > (10 + p)}"),
        ("{(p + (-1 * k)) > 10}", "{k < (-10 + p)}"),
        ("{p < k}", "{p < k}"),
        ("{(2 * k) < p}", "{(2 * k) < p}"),
        ("{(k * p) < 1}", "{(k * p) < 1}"),
        ("{(k + p) = (k + q)}", "{(k + p) = (k + q)}"),
    ]:
        assert text(solved(read(before), KEYS, lambda _: True)) == after


def test_floats_stay_as_they_are() -> None:
    node = read("AggSum([], M[][k] * {(k + (-1 * p)) > 10})")
    assert bounds(node, frozenset("p"), lambda _: False) == node
