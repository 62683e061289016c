"""Policy of all tests: no deadlines, the same random examples in every run, long random runs by `-m fuzz`.

`make fuzz` draws new examples each time, all from one seed, which is printed at the end: the same examples
come again by `./run fuzz --hypothesis-seed SEED`.  `make planner` runs the tests that evaluate programs with
all features of the planner forced, and again without any.
"""

from __future__ import annotations

import gc
import os
import secrets
import subprocess
import sys

import pytest
from hypothesis import core, settings

settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("new", deadline=None, print_blob=True)

# Some hundred processes are started here: without kept bytecode each compiles the engine's text for a second.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):  # all at once, on all cores: else workers would wait for each other
        subprocess.run([sys.executable, "-m", "dlog.jit"], check=False)
    settings.load_profile("new" if _fuzz(config) else "same")
    if _fuzz(config) and config.getoption("hypothesis_seed", None) is None and not _is_worker(config):
        seed = secrets.randbits(32)
        config.option.hypothesis_seed = str(seed)  # for workers
        core.global_force_seed = seed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _leave_out(config, items, [] if _fuzz(config) else ["fuzz"])
    _leave_out(config, items, ["plan"] if os.environ.get("DLOG_PLANNER") else [])


def pytest_collection_finish() -> None:
    """All that was imported stays: a look through it for garbage takes a quarter of a second, each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def what_earlier_tests_left_is_not_looked_through() -> None:
    """Otherwise each call of `gc.collect` takes up to a second after some thousand tests: the benchmark of
    storage took 50 s instead of 5, a test of memory 100 s instead of 2.
    """
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # some libraries complain of what is left when the process ends


def _leave_out(config: pytest.Config, items: list[pytest.Item], markers: list[str]) -> None:
    left_out = {id(item) for item in items if any(map(item.get_closest_marker, markers))}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
        items[:] = [item for item in items if id(item) not in left_out]


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
