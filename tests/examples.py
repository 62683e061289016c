"""Owns how many random examples a property gets, and of which kind."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Of the examples that a test names, how many times as many it gets: two thirds in `make test`, so that all of
# it takes ten minutes; `make fuzz` sets more, and has new ones.
TIMES = float(os.environ.get("DLOG_EXAMPLES", "0.67"))


def relaxed(examples: int, random: bool = False) -> settings:
    """The same examples in every run, unless `random`, which is for tests that only `make fuzz` runs."""
    return settings(
        max_examples=examples if random else max(1, round(examples * TIMES)),
        derandomize=not random and TIMES <= 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        print_blob=True,
    )
