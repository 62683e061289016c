"""`python -m benchmarks.turns CHECKOUT [NAME ...]`: this code against that of another checkout, turn by turn.

Runs every benchmark in its own process, alternating between the two checkouts, and compares the medians
of each row.  A speed above 1 means that this code is faster, or takes less memory.  Rows that only one of the
two has are left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parents[1]
SLOW = 0.9  # rows below this speed are printed as slow

RUN = """
import json, sys
from benchmarks.__main__ import find
for row in find()[sys.argv[1]](float(sys.argv[2])):
    print("ROW", json.dumps([row.name, row.size, row.peer, row.ours]), flush=True)
"""

Key = tuple[str, str, str]  # name, size and peer of a row
Times = dict[Key, list[float]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.turns", description=__doc__)
    parser.add_argument("checkout", type=Path, help="the folder of the other checkout")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks (default: all that both have)")
    parser.add_argument("--turns", type=int, default=3, help="runs of each side (default: 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="sizes as a fraction of the full ones")
    arguments = parser.parse_intermixed_args()  # options may stand between names
    speeds: dict[str, dict[Key, float]] = {}
    for name in arguments.names or common(arguments.checkout):
        before, after = measure(name, arguments.checkout, arguments.turns, arguments.scale)
        speeds[name] = compare(before, after)
        for key, speed in speeds[name].items():
            print(
                f"{name:14} {key[0]:42.42} {key[1]:26.26} {key[2]:14.14} {speed:6.2f}{mark(speed)}",
                flush=True,
            )
    print(summary([speed for rows in speeds.values() for speed in rows.values()]))


def common(checkout: Path) -> list[str]:
    """Modules that have a benchmark in both checkouts."""
    return [
        path.stem
        for path in sorted((HERE / "benchmarks").glob("*.py"))
        if "def benchmark(" in path.read_text() and (checkout / "benchmarks" / path.name).exists()
    ]


def measure(name: str, checkout: Path, turns: int, scale: float) -> tuple[Times, Times]:
    """(Rows of the other checkout, rows of this one), a value for each turn."""
    sides: tuple[Times, Times] = ({}, {})
    for _ in range(turns):
        for folder, times in zip((checkout, HERE), sides, strict=True):
            for key, value in rows(name, folder, scale):
                times.setdefault(key, []).append(value)
    return sides


def rows(name: str, folder: Path, scale: float) -> Iterator[tuple[Key, float]]:
    command = [sys.executable, "-c", RUN, name, str(scale)]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        if line.startswith("ROW "):
            *key, value = json.loads(line.removeprefix("ROW "))
            yield (key[0], key[1], key[2]), value


def compare(before: Times, after: Times) -> dict[Key, float]:
    """The speed of each row that both sides have."""
    return {
        key: statistics.median(before[key]) / max(statistics.median(values), 1e-9)
        for key, values in after.items()
        if key in before
    }


def mark(speed: float) -> str:
    return "  SLOW" if speed < SLOW else ""


def summary(speeds: Sequence[float]) -> str:
    """
    >>> summary([0.5, 2.0])
    '2 rows, geometric mean 1.000, 1 below 0.9'
    """
    mean = math.exp(statistics.fmean(map(math.log, speeds)))
    slow = sum(speed < SLOW for speed in speeds)
    return f"{len(speeds)} rows, geometric mean {mean:.3f}, {slow} below {SLOW}"


if __name__ == "__main__":
    main()
