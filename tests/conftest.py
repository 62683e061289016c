"""Policy of all tests: no deadlines, the same random examples in every run, long random runs by `-m fuzz`.

`make fuzz` draws new examples each time, all from one seed, which is printed at the end: the same examples
come again by `./run fuzz --hypothesis-seed SEED`.
"""

from __future__ import annotations

import secrets

import pytest
from hypothesis import core, settings

settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("new", deadline=None, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("new" if _fuzz(config) else "same")
    if _fuzz(config) and config.getoption("hypothesis_seed", None) is None and not _is_worker(config):
        seed = secrets.randbits(32)
        config.option.hypothesis_seed = str(seed)  # for workers
        core.global_force_seed = seed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _fuzz(config):
        return
    long_runs = [item for item in items if item.get_closest_marker("fuzz")]
    if long_runs:
        config.hook.pytest_deselected(items=long_runs)
        items[:] = [item for item in items if not item.get_closest_marker("fuzz")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if _fuzz(config):
        seed = config.getoption("hypothesis_seed", None)
        terminalreporter.write_line(
            f"random examples from seed {seed}: --hypothesis-seed {seed} repeats them"
        )


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _fuzz(config: pytest.Config) -> bool:
    return "fuzz" in (config.getoption("markexpr") or "")
