"""Owns how many random examples a property gets, and of which kind."""

from __future__ import annotations

from hypothesis import HealthCheck, settings


def relaxed(examples: int, random: bool = False) -> settings:
    """The same examples in every run, unless `random`: new ones are what `make fuzz` is for."""
    return settings(
        max_examples=examples,
        derandomize=not random,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        print_blob=True,
    )
