"""`python -m benchmarks [NAME ...]`: runs the benchmarks one after the other and prints their tables."""

from __future__ import annotations

import importlib
import os
import platform
import sys
import time

NAMES = ("storage", "triangles", "closure", "parse_facts", "csv_load", "group_by", "start_up")


def main(names: list[str]) -> None:
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in names or NAMES:
        print(f"\n== {name}", flush=True)
        started = time.perf_counter()
        importlib.import_module(f"benchmarks.{name}").main()
        print(f"({time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
