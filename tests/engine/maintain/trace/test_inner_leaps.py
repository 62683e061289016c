"""Exact traces of leaps that no guide restricts, as those inside negations: what they note is found again by
running them again, so a run under a guide must note what a whole run notes."""

from __future__ import annotations

from random import Random

import pytest

import dlog
from dlog.engine.maintain.trace.offer import TRACE_EXACT

DECLARATIONS = """
e(x, y) -> int(x), int(y).  f(x, y, z) -> int(x), int(y), int(z).
g(x, y) -> int(x), int(y).  h(x) -> int(x).
"""
RULES = (
    "p(y) <- e(x, x), g(y, x).",
    "p(x) <- f(y, y, y), g(x, y).",
    "p(y) <- e(x, x), g(y, x), g(x, y).",
    "p(y) <- e(3, 3), h(x), g(y, x), !e(2, x).",
)


@pytest.mark.parametrize("rule", RULES)
def test_oracle_indices_are_those_of_a_fresh_evaluation(rule: str) -> None:
    for seed in range(8):
        rng = Random(seed)
        db = dlog.Database(source=DECLARATIONS + rule, strategy=TRACE_EXACT)
        for _ in range(16):
            rows = {
                name: [tuple(rng.randrange(1, 4) for _ in range(arity)) for _ in range(rng.choice((1, 1, 4)))]
                for name, arity in (("e", 2), ("f", 3), ("g", 2), ("h", 1))
                if name in db.predicates() and rng.random() < 0.6
            }
            db.apply(**{rng.choice(("insert", "insert", "erase")): rows})
            db.check()
        db.verify()
