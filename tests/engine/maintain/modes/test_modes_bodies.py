"""Random joins without a cycle under modes that switch: against the naive evaluator, and against deltas."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.engine.maintain.modes.following import follow, named


def run(seeds: range, steps: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        with named(seed):
            follow(seed, steps, seen)
    return seen


def test_oracle_joins_under_modes_that_switch() -> None:
    seen = run(range(12), 20)
    for kind in ("changes", "on_read", "always", "interrupted", "violate", "checkout", "reopen", "why"):
        assert seen[kind], (kind, seen)


@pytest.mark.fuzz
@pytest.mark.timeout(7200)
def test_fuzz_joins_under_modes_that_switch() -> None:
    start = Random().randrange(10**9)
    print(dict(run(range(start, start + 1000), 60)))
