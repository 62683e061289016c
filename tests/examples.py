"""Owns how many random examples a property gets, and of which kind."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# `make fuzz` sets it: properties then get so many times their examples, and new ones.
TIMES = int(os.environ.get("DLOG_EXAMPLES", "1"))


def relaxed(examples: int, random: bool = False) -> settings:
    """The same examples in every run, unless `random`, which is for tests that only `make fuzz` runs."""
    return settings(
        max_examples=examples if random else examples * TIMES,
        derandomize=not random and TIMES == 1,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        print_blob=True,
    )
