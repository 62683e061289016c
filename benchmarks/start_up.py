"""Start-up: the first run after installation, a warm start, and `--help`, as seconds of whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Row, below

PROGRAM = "edge(1, 2). reach(x, y) <- edge(x, y). reach(x, z) <- reach(x, y), edge(y, z).\n.output reach\n"


def benchmark(scale: float) -> Iterator[Row]:
    """Below full size kernels are not compiled anew: that takes a minute at any scale."""
    runs = 5 if scale >= 1 else 1
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "p.dl"
        program.write_text(PROGRAM)
        environment = dict(os.environ)
        command = [sys.executable, "-m", "dlog"]
        run = [*command, "run", str(program), "-D", folder]
        if scale >= 1:
            environment["DLOG_CACHE_DIR"] = str(Path(folder) / "cache")
            yield Row("first run, kernels compiled", "3 facts", seconds(run, environment))
        warm = min(seconds(run, environment) for _ in range(runs))
        yield Row("warm start", "3 facts", warm, aim=below(1.0))
        for name, rest in (("check", ["check", str(program)]), ("--help", ["--help"])):
            least = min(seconds([*command, *rest], environment) for _ in range(runs))
            yield Row(name, "", least)


def seconds(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started
