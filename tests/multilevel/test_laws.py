"""Every law before and after, on random expressions whose hidden variables are called like others on
purpose.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.m3.syntax import ast
from dlog.multilevel import binding, names
from dlog.multilevel.notation import text
from dlog.multilevel.simplify import LAWS, everywhere, simplify
from tests.examples import relaxed
from tests.multilevel.expressions import Expressions, binding_of, database
from tests.oracle.agca_naive import Naive, scheme

SEEDS = st.integers(0, 2**32)
SCOPE = ("a", "d")
MAX_NODES = 60


def sample(seed: int, lifts: bool = True, nesting: int = 3):
    rng = random.Random(seed)
    while True:
        node = Expressions(rng, nesting, lifts).closed(SCOPE)
        if sum(1 for _ in node.walk()) <= MAX_NODES:
            return node, Naive(database(rng)), binding_of(rng, SCOPE)


def assert_same_meaning(before: ast.Expression, after: ast.Expression, naive: Naive, bound: dict) -> None:
    outs = sorted(scheme(before)[1] - bound.keys())
    assert scheme(after)[0] <= bound.keys(), text(after)
    assert naive.table(before, outs, bound) == naive.table(after, outs, bound), text(after)


@pytest.mark.parametrize("law", LAWS)
def test_oracle_a_law_changes_no_value(law: str) -> None:
    """Each law alone, everywhere in the expression, and again on what results."""
    changed = 0

    @given(SEEDS)
    @relaxed(300)
    def check(seed: int) -> None:
        nonlocal changed
        node, naive, bound = sample(seed)
        once = everywhere(node, frozenset(SCOPE), LAWS[law])
        assert_same_meaning(node, once, naive, bound)
        twice = everywhere(once, frozenset(SCOPE), LAWS[law])
        assert_same_meaning(node, twice, naive, bound)
        changed += once != node

    check()
    assert changed >= (5 if law != "inline" else 1), "the examples do not show the law"


@given(SEEDS)
@relaxed(1000)
def test_oracle_simplification_changes_no_value(seed: int) -> None:
    node, naive, bound = sample(seed)
    assert_same_meaning(node, simplify(node, frozenset(SCOPE)), naive, bound)


@given(SEEDS)
@relaxed(300)
def test_invariant_simplification_is_a_fixpoint(seed: int) -> None:
    node, _, _ = sample(seed)
    once = simplify(node, frozenset(SCOPE))
    assert simplify(once, frozenset(SCOPE)) == once


@given(SEEDS)
@relaxed(500)
def test_oracle_binding(seed: int) -> None:
    node, _, _ = sample(seed)
    for inner in node.walk():
        if not isinstance(inner, ast.TypeRef):
            needed, bound = scheme(inner)
            assert (binding.inputs(inner), binding.outputs(inner)) == (needed, bound)


@given(SEEDS)
@relaxed(500)
def test_oracle_names_apart_and_canonical_forms_mean_the_same(seed: int) -> None:
    node, naive, bound = sample(seed)
    assert_same_meaning(node, names.apart(node, SCOPE), naive, bound)
    assert_same_meaning(node, names.canonical(node), naive, bound)


@given(SEEDS)
@relaxed(300)
def test_oracle_renaming(seed: int) -> None:
    """Under a renaming of the visible variables, values are the same by the new names."""
    node, naive, bound = sample(seed)
    pool = ["a", "b", "c", "d", "u", "v", "w", "x"]
    shuffled = random.Random(seed + 1).sample(pool, len(pool))
    mapping = dict(zip(pool, shuffled, strict=True))
    renamed = names.rename(node, mapping)
    outs = sorted(scheme(node)[1] - bound.keys())
    moved = {mapping[n]: v for n, v in bound.items()}
    assert naive.table(node, outs, bound) == naive.table(renamed, [mapping[n] for n in outs], moved)
    found = names.same(node, renamed)
    assert found is not None
    again, moved = names.rename(node, found), {found[n]: v for n, v in bound.items() if n in found}
    assert naive.table(node, outs, bound) == naive.table(again, [found[n] for n in outs], moved)


@given(SEEDS)
@relaxed(300)
def test_oracle_singletons_and_binaries(seed: int) -> None:
    node, naive, bound = sample(seed)
    values = naive.evaluate(node, bound)
    if binding.is_singleton(node, frozenset(SCOPE)):
        assert len(values) <= 1
    if binding.is_binary(node):
        assert set(values.values()) <= {1}
