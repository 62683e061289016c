"""Policy of all tests: no deadlines, the same random examples in every run, long random runs by `-m fuzz`.

`make fuzz` draws new examples each time.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("new", deadline=None, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("new" if _fuzz(config) else "same")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _fuzz(config):
        return
    long_runs = [item for item in items if item.get_closest_marker("fuzz")]
    if long_runs:
        config.hook.pytest_deselected(items=long_runs)
        items[:] = [item for item in items if not item.get_closest_marker("fuzz")]


def _fuzz(config: pytest.Config) -> bool:
    return "fuzz" in (config.getoption("markexpr") or "")
