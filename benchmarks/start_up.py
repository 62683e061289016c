"""Start-up: the first run after installation, a warm start, and `--help`, as seconds of whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = "edge(1, 2). reach(x, y) <- edge(x, y). reach(x, z) <- reach(x, y), edge(y, z).\n.output reach\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "p.dl"
        program.write_text(PROGRAM)
        environment = {**os.environ, "DLOG_CACHE_DIR": str(Path(folder) / "cache")}
        run = [sys.executable, "-m", "dlog", "run", str(program), "-D", folder]
        print(f"first run, kernels compiled   {seconds(run, environment):6.2f} s")
        print(f"warm start (best of 5)        {min(seconds(run, environment) for _ in range(5)):6.2f} s")
        check = [sys.executable, "-m", "dlog", "check", str(program)]
        print(f"check (best of 5)             {min(seconds(check, environment) for _ in range(5)):6.2f} s")
        help_ = [sys.executable, "-m", "dlog", "--help"]
        print(f"--help (best of 5)            {min(seconds(help_, environment) for _ in range(5)):6.2f} s")


def seconds(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
