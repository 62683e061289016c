"""`python -m benchmarks [NAME ...]`: runs benchmarks one after the other and prints them as one table."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Callable, Iterator

import benchmarks
from benchmarks import table
from benchmarks.harness import HEADER, Row

SMALL = 0.01


def find() -> dict[str, Callable[[float], Iterator[Row]]]:
    """Every module here that has a function `benchmark`, by name."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__"]
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    return {name: module.benchmark for name, module in modules.items() if hasattr(module, "benchmark")}


def main() -> None:
    found = find()
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(found)} (default: all)")
    parser.add_argument("--small", action="store_true", help=f"a quick try: the same as --scale {SMALL}")
    parser.add_argument("--scale", type=float, default=1.0, help="sizes as a part of the full ones")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/RESULTS.md")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in found]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(found)}")
    scale = SMALL if arguments.small else arguments.scale
    measured = run({name: found[name] for name in arguments.names or found}, scale)
    if arguments.write:
        table.write(measured, scale)


def run(chosen: dict[str, Callable[[float], Iterator[Row]]], scale: float) -> dict[str, list[Row]]:
    """Runs and prints them, each row as soon as it is ready."""
    print(f"{table.machine()}\n\n{table.line(HEADER)}", flush=True)
    measured: dict[str, list[Row]] = {}
    for name, benchmark in chosen.items():
        print(f"== {name}", flush=True)
        measured[name] = []
        for row in benchmark(scale):
            measured[name].append(row)
            print(table.line(row.cells()), flush=True)
    print(table.summary([row for rows in measured.values() for row in rows]))
    if scale < 1:
        print(f"sizes are {scale:g} of the full ones, which the aims are about")
    return measured


if __name__ == "__main__":
    main()
