"""Random bodies under random changes: the graph against its definitions, the view against an evaluation."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.errors import LimitError
from dlog.joingraph import graph as graph_module
from tests.examples import relaxed
from tests.joingraph.following import Followed, as_rows, random_body, random_change, random_start

SEEDS = st.integers(0, 2**32)


def follow(random: Random, lookahead: str, indexed: int = 16, changes: int = 25, checked: float = 0.3) -> int:
    """A random stream that ends empty: then no word is in use.  Returns the number of changes."""
    codes = random.randint(2, 5)
    followed = Followed(random_body(random), lookahead, indexed)
    random_start(random, followed, codes)
    n = random.randint(1, changes)
    for _ in range(n):
        random_change(random, followed, codes)
        if random.random() < checked:
            followed.check()
    for relation, rows in followed.relations.items():
        followed.erase(relation, *rows)
    followed.check()
    assert followed.is_empty()
    return n


@pytest.mark.parametrize("lookahead", ["none", "local", "marks"])
@relaxed(60)
@given(seed=SEEDS, indexed=st.sampled_from([1, 2, 16]))
def test_oracle_random_changes(lookahead: str, seed: int, indexed: int) -> None:
    follow(Random(seed), lookahead, indexed)


@relaxed(60)
@given(seed=SEEDS)
def test_oracle_searches_resume(seed: int) -> None:
    """With room for two rows of the view at first, then a few more, and indices that begin small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_module, "OUT_ROWS", 2)
        patch.setattr(graph_module, "GROWTH", 1.5)
        patch.setattr(graph_module, "SMALLEST", 2)
        follow(Random(seed), "marks", indexed=2)


@relaxed(100)
@given(seed=SEEDS)
def test_oracle_look_ahead_loses_nothing(seed: int) -> None:
    """Long streams of small changes, so that what is marked is often revived."""
    follow(Random(seed), "marks", changes=100, checked=0.02)


@pytest.mark.fuzz
@pytest.mark.timeout(3600)
@given(seed=SEEDS)
@relaxed(1, random=True)
def test_fuzz_look_ahead_loses_nothing(seed: int) -> None:
    """100,000 changes."""
    random, changes = Random(seed), 0
    while changes < 100_000:
        changes += follow(random, "marks", changes=400, checked=0.01)


@relaxed(60)
@given(seed=SEEDS, fails=st.booleans())
def test_oracle_undo(seed: int, fails: bool) -> None:
    """Also of a change that fails half-way, because there is no more memory."""
    random = Random(seed)
    followed = Followed(random_body(random), indexed=2)
    random_start(random, followed, 3)
    for _ in range(4):
        followed.graph.settle()
        before = {relation: set(rows) for relation, rows in followed.relations.items()}, followed.view
        for _ in range(random.randint(0, 4)):
            random_change(random, followed, 3)
        if fails:
            fail(followed, random)
        followed.graph.undo()
        followed.relations, followed.view = before
        followed.check()
        random_change(random, followed, 3)


def fail(followed: Followed, random: Random) -> None:
    """Changes one index of which cannot grow any more."""
    relation = random.choice(list(followed.relations))
    arity, there = followed.arity[relation], followed.relations[relation]
    rows = {tuple(random.randrange(100) for _ in range(arity)) for _ in range(200)} - there
    allowed = random.randint(0, 5)
    grow = followed.graph._grow

    def stop(index: int) -> None:
        nonlocal allowed
        allowed -= 1
        if allowed < 0:
            raise LimitError("no more memory")
        grow(index)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(followed.graph, "_grow", stop)
        try:
            followed.graph.apply(relation, inserted=as_rows(rows, arity), wanted=False)
        except LimitError:
            assert allowed < 0
