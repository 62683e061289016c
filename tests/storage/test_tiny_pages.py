"""The storage tests once more with leaves of 8 rows and nodes of 4 entries, uncompiled.

Few rows then make trees of many nodes, and splits and joins happen all the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.conftest import TINY

TESTS = Path(__file__).parent


@pytest.mark.skipif(TINY, reason="this is the run with tiny pages")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "name",
    [
        "index/test_index_model.py",
        "diff/test_difference_model.py",
        "relation/test_relation_model.py",
        "arena/test_arena.py",
        "scan/test_interval_tree.py",
        "diff/test_complement.py",
    ],
)
def test_tiny_pages(name: str) -> None:
    env = os.environ | {"NUMBA_DISABLE_JIT": "1", "DLOG_TINY_PAGES": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-W", "error::RuntimeWarning", str(TESTS / name)]
    run = subprocess.run(command, env=env, cwd=TESTS.parents[1], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
