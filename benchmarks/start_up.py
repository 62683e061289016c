"""Start-up, as seconds of whole processes: with an empty cache, with a full one, and without the engine.

Bytecode and machine code are stored in a folder of the benchmark, as in an installation; the first
process of each kind, which writes its bytecode, is measured only as the first run.  A process has the
processor to itself only on a quiet machine, so the seconds of processor time are given, too.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Row, below

PROGRAM = "edge(1, 2). reach(x, y) <- edge(x, y). reach(x, z) <- reach(x, y), edge(y, z).\n.output reach\n"
WARM = 1.0  # seconds that a warm start may take
TINY = 0.001  # below, each command is run once, with whatever bytecode exists


def benchmark(scale: float) -> Iterator[Row]:
    """Below full size kernels are not compiled again: that takes half a minute at any scale."""
    runs = 7 if scale >= 1 else 1
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "p.dl"
        program.write_text(PROGRAM)
        environment = dict(os.environ)
        if scale > TINY:
            environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
        dlog = [sys.executable, "-m", "dlog"]
        run = [*dlog, "run", str(program), "-D", folder]
        if scale >= 1:
            environment["DLOG_CACHE_DIR"] = str(Path(folder) / "cache")
            wall, busy = measure(run, environment)
            yield Row("first run: all kernels compiled", "1 fact", wall)
            yield Row("first run, processor time", "1 fact", busy)
        elif scale > TINY:
            measure(run, environment)
        wall, busy = best(run, environment, runs)
        yield Row("warm start of run", "1 fact", wall, aim=below(WARM))
        yield Row("warm start of run, processor time", "1 fact", busy)
        for rest in (["check", str(program)], ["format", str(program)], ["--help"]):
            if scale > TINY:
                measure([*dlog, *rest], environment)
            yield Row(f"warm start of {rest[0]}", "", best([*dlog, *rest], environment, runs)[0])


def best(command: list[str], environment: dict[str, str], runs: int) -> tuple[float, float]:
    """The least seconds, and the least processor seconds, of several processes."""
    measured = [measure(command, environment) for _ in range(runs)]
    return min(wall for wall, _ in measured), min(busy for _, busy in measured)


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    before, started = _busy(), time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started, _busy() - before


def _busy() -> float:
    """Processor seconds of all processes that this one has started and that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
