"""The same kernel text without compilation: tests the compilation, and array bounds, which numpy checks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_differential_uncompiled():
    """A fixed sample of the tests of this folder passes with kernels run as plain Python."""
    tests = [HERE / f"test_lftj_{name}.py" for name in ("join", "primitives")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--hypothesis-seed=0",
        "-p",
        "no:cacheprovider",
        *map(str, tests),
    ]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "DLOG_LFTJ_EXAMPLES": "60"}
    done = subprocess.run(command, cwd=HERE.parent.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
