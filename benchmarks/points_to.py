"""Andersen's points-to analysis on generated statements: rows per second, and how time grows with the input.

The program has modules of variables; statements stay in their module except for four in a thousand, so that
the result grows about as the input does.  A variable points to a handful of objects on average, and every row
is derived some three times.  Two predicates recur through each other and are read while they grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import dlog
from benchmarks.harness import Row, timed
from dlog.engine.evaluate.evaluate import Evaluation, evaluate

PROGRAM = """
new(v, o) -> int(v), int(o).
assign(v, w) -> int(v), int(w).
load(v, b, f) -> int(v), int(b), int(f).
store(b, f, w) -> int(b), int(f), int(w).
points_to(v, o) <- new(v, o).
points_to(v, o) <- assign(v, w), points_to(w, o).
points_to(v, o) <- load(v, b, f), points_to(b, base), heap_points_to(base, f, o).
heap_points_to(base, f, o) <- store(b, f, w), points_to(b, base), points_to(w, o).
"""
VARIABLES = 12_500
MODULE = 100
FIELDS = 8


def benchmark(scale: float) -> Iterator[Row]:
    for times in (1, 4, 16):
        statements = generate(max(MODULE, int(VARIABLES * times * scale)))
        rows = analyse(statements)
        seconds = timed({"": partial(analyse, statements)})[""].seconds
        yield Row(f"points-to, {times}x", f"{rows:,} rows", seconds)
        yield Row(f"points-to, {times}x, per million rows", f"{rows:,} rows", seconds / rows * 1e6)


def generate(variables: int) -> dict[str, np.ndarray]:
    """Statements over this many variables."""
    rng = np.random.default_rng(3)

    def other(base: np.ndarray) -> np.ndarray:
        """A variable of the same module, or sometimes of any."""
        near = base // MODULE * MODULE + rng.integers(0, MODULE, len(base))
        return np.where(rng.random(len(base)) < 0.004, rng.integers(0, variables, len(base)), near)

    def some(share: float) -> np.ndarray:
        return rng.integers(0, variables, int(variables * share))

    new, assign, load, store = some(0.3), some(1.0), some(0.25), some(0.2)
    return {
        "new": np.stack([new, np.arange(len(new))], axis=1),
        "assign": np.stack([assign, np.minimum(other(assign), variables - 1)], axis=1),
        "load": np.stack([load, other(load) % variables, rng.integers(0, FIELDS, len(load))], axis=1),
        "store": np.stack([store, rng.integers(0, FIELDS, len(store)), other(store) % variables], axis=1),
    }


def analyse(statements: dict[str, np.ndarray]) -> int:
    """The number of rows derived."""
    database = dlog.Database(source=PROGRAM, evaluated=False)
    for name, rows in statements.items():
        database.store.relations[name].apply_in_place(inserts=rows)
    evaluate(database.program, database.store, Evaluation())
    return sum(len(database.store.relations[name]) for name in ("points_to", "heap_points_to"))
