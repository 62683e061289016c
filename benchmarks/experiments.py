"""The experiments of P0, chapter 6, by scale factor: view trees, levels of maps, first-order IVM and
re-evaluation.

Housing: six relations that share the postcode.  House, Shop and Restaurant have as many rows for each
postcode as the scale factor says, the others one, so the join has its cube.  Retailer: a snowflake around
an inventory. A sum is maintained while all relations get batches of 1,000 rows in turns.

    python -m benchmarks.experiments [--scale 0.1] [--plot FILE.svg] [--table FILE.md]

An algorithm is one entry of `ALGORITHMS`.  All but DuckDB run as M3 programs on the same runtime, over the
same variable order.  Algorithms whose batches cost as much as all data are measured over the last batches.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import harness
from benchmarks.baselines import again, first_order
from benchmarks.harness import Aim, Row, at_least, duck, faster
from benchmarks.m3 import BATCH, arrow
from benchmarks.plot import Panel, chart
from benchmarks.views import SNOWFLAKE, STAR, cut, query_over, snowflake_data
from dlog.jit import Words
from dlog.m3.runtime.runtime import Runtime
from dlog.m3.syntax import ast
from dlog.multilevel.notation import read, text
from dlog.multilevel.program import Program, compile
from dlog.views.m3.program import NATIVE, m3_program
from dlog.views.orders.orders import find_order
from dlog.views.query import Query, total
from dlog.views.tree.build import view_tree
from dlog.views.tree.tree import VariableOrder

POSTCODES = 25_000
FACTORS = (1, 2, 4, 8, 16, 20)
GROWING = ("HOUSE", "SHOP", "RESTAURANT")
SAMPLES = 5  # batches of an algorithm that computes everything again
VIEWS, LEVELS, FIRST, AGAIN, DUCK = (
    "F-IVM (view trees)", "levels of maps", "first-order IVM", "re-evaluation", "DuckDB again",
)  # fmt: skip

Batches = list[tuple[str, Words]]


@dataclass(frozen=True)
class Experiment:
    """A query over a schema, with the data of one scale factor in the order in which they come."""

    name: str
    factor: int
    query: Query
    data: dict[str, Words]
    batches: Batches

    @property
    def tuples(self) -> int:
        return sum(words.shape[1] for words in self.data.values())

    @property
    def sql(self) -> str:
        (aggregate,) = self.query.aggregates
        (column,) = (factor.name for factor in aggregate.terms[0].factors if isinstance(factor, ast.Variable))
        return f"SELECT sum({column}) FROM {' NATURAL JOIN '.join(name.lower() for name in self.data)}"


@dataclass(frozen=True)
class Measured:
    """Processor time for each row, memory in bytes, and the result, which must be the same for all."""

    seconds: float
    memory: int
    result: int


# What is measured


def housing(factor: int, postcodes: int) -> Experiment:
    rng = np.random.default_rng(factor)
    data = {}
    for name, columns in STAR.items():
        rows = postcodes * (factor if name in GROWING else 1)
        words = rng.integers(0, 1000, (len(columns) + 1, rows))
        words[0], words[-1] = rng.permutation(np.arange(rows) % postcodes), 1
        data[name] = words
    query = query_over(STAR, total("total", ast.Variable("postcode")))
    return Experiment("Housing", factor, query, data, cut(data, BATCH))


def retailer(rows: int) -> Experiment:
    data = snowflake_data(rows)
    facts = {"INVENTORY": data["INVENTORY"]}
    rest = {name: words for name, words in data.items() if name not in facts}
    query = query_over(SNOWFLAKE, total("total", ast.Variable("units")))
    return Experiment("Retailer", 1, query, data, [*cut(rest, BATCH), *cut(facts, BATCH)])


# How


def of_program(
    make: Callable[[Query, VariableOrder], ast.Program], whole: bool
) -> Callable[[Experiment], Measured]:
    """An M3 program: over all batches, or over the last after the others came at once."""

    def measure(experiment: Experiment) -> Measured:
        runtime = Runtime(make(experiment.query, find_order(experiment.query)))
        last = len(experiment.batches) if whole else SAMPLES
        first = experiment.batches[: len(experiment.batches) - last]
        for name, words in merged(first):
            runtime.apply_words(name, words)
        seconds = rows = 0.0
        for name, words in experiment.batches[len(first) :]:
            started = time.process_time()
            runtime.apply_words(name, words)
            seconds += time.process_time() - started
            rows += words.shape[1]
        return Measured(seconds / rows, runtime.maps.memory(), _value(runtime))

    return measure


def merged(batches: Batches) -> Batches:
    """The batches of each relation as one."""
    names = dict.fromkeys(name for name, _ in batches)
    return [(n, np.concatenate([words for name, words in batches if name == n], axis=1)) for n in names]


def _value(runtime: Runtime) -> int:
    (query,) = runtime.program.queries
    return runtime[query.name]["value"][0].as_py()


def in_duck(experiment: Experiment) -> Measured:
    """The query again after each of the last batches."""
    names = {s.name: [c.name for c in s.columns] for s in experiment.query.sources}
    first, last = experiment.batches[:-SAMPLES], experiment.batches[-SAMPLES:]
    tables = {name: arrow(words, names[name]) for name, words in merged(first)}
    missing = {name: arrow(experiment.data[name][:, :0], names[name]) for name in names if name not in tables}
    connection = duck(**{name.lower(): table for name, table in (tables | missing).items()})
    seconds = rows = 0.0
    for name, words in last:
        connection.register("given", arrow(words, names[name]))
        started = time.process_time()
        connection.execute(f"insert into {name.lower()} select * from given")
        (found,) = connection.execute(experiment.sql).fetchall()
        seconds += time.process_time() - started
        rows += words.shape[1]
    memory = connection.execute("select sum(memory_usage_bytes) from duckdb_memory()").fetchall()[0][0]
    return Measured(seconds / rows, int(memory), int(found[0] or 0))


def _with_views(query: Query, order: VariableOrder) -> ast.Program:
    return m3_program(query, view_tree(query, order), NATIVE)


def _with_levels(query: Query, order: VariableOrder) -> ast.Program:
    (aggregate,) = query.aggregates
    atoms = [f"{atom.relation}({', '.join(atom.variables)})" for atom in query.atoms]
    values = [text(factor) for factor in aggregate.terms[0].factors]
    definition = read(f"AggSum([], {' * '.join([*atoms, *values])})")
    program = compile({aggregate.name: definition}, query.sources)
    assert isinstance(program, Program), program
    return program.m3


# A further algorithm is a further line; it must give the same results.
ALGORITHMS: dict[str, Callable[[Experiment], Measured]] = {
    VIEWS: of_program(_with_views, whole=True),
    LEVELS: of_program(_with_levels, whole=True),
    FIRST: of_program(first_order, whole=True),
    AGAIN: of_program(again, whole=False),
    DUCK: in_duck,
}
AIMS = {FIRST: faster(1), AGAIN: faster(20), DUCK: faster(20)}  # of view trees, on Housing at its full size

Results = dict[tuple[str, int, int], dict[str, Measured]]  # by name, factor and number of tuples


def run(experiment: Experiment) -> dict[str, Measured]:
    """The best of several rounds, in which all take turns."""
    best: dict[str, Measured] = {}
    begin = time.perf_counter()
    for round in range(harness.RUNS):
        if round and time.perf_counter() - begin > harness.PATIENCE:
            break
        for name, measure in ALGORITHMS.items():
            found = measure(experiment)
            best[name] = min(best.get(name, found), found, key=lambda measured: measured.seconds)
    assert len({measured.result for measured in best.values()}) == 1, (experiment.name, best)
    return best


def experiments(scale: float, factors: Sequence[int] = FACTORS) -> Iterator[Experiment]:
    for factor in factors:
        yield housing(factor, at_least(40, POSTCODES * scale))
    yield retailer(at_least(1000, 300_000 * scale))


def benchmark(scale: float) -> Iterator[Row]:
    for experiment in experiments(scale, (1, 4, 16)):
        found = run(experiment)
        size = f"factor {experiment.factor}, {experiment.tuples:,} tuples"
        if experiment.name == "Retailer":
            size = f"{experiment.tuples:,} tuples"
        ours = found[VIEWS]
        yield Row(f"{experiment.name}: rate", size, 1e-6 / ours.seconds, unit="M tuples/s")
        for name, other in found.items():
            if other is not ours:
                label = f"{experiment.name}, batches of 1,000"
                is_large = experiment.name == "Housing" and experiment.factor == 16
                yield Row(
                    label, size, BATCH * ours.seconds, BATCH * other.seconds, name, _aim(name, is_large)
                )


def _aim(name: str, is_large: bool) -> Aim | None:
    return AIMS.get(name) if is_large else None


# The table and the picture


def table(results: Results) -> str:
    """Throughput, in tuples a second, and memory in Markdown."""
    head = ["dataset", "scale factor", "tuples", *ALGORITHMS]
    lines = ["| " + " | ".join(head) + " |", "| " + "--- | " * (len(head) - 1) + "--- |"]
    for (name, factor, tuples), found in results.items():
        cells = (f"{_rate(1 / m.seconds)}, {m.memory / 1e6:,.0f} MB" for m in map(found.get, ALGORITHMS) if m)
        lines.append(f"| {' | '.join([name, str(factor), f'{tuples:,}', *cells])} |")
    return "\n".join(lines) + "\n"


def _rate(tuples: float) -> str:
    """
    >>> _rate(19_740_000.0), _rate(660_100.0), _rate(481.6)
    ('19.7 M/s', '660 k/s', '482 /s')
    """
    for size, unit in ((1e6, " M/s"), (1e3, " k/s")):
        if tuples >= size:
            return f"{tuples / size:.3g}{unit}"
    return f"{tuples:.3g} /s"


def picture(results: Results) -> str:
    """Throughput and memory on Housing by scale factor."""
    found = {factor: measured for (name, factor, _), measured in results.items() if name == "Housing"}
    rates = {a: [(float(f), 1 / m[a].seconds) for f, m in found.items()] for a in ALGORITHMS}
    memory = {a: [(float(f), m[a].memory / 1e6) for f, m in found.items()] for a in ALGORITHMS}
    return chart(
        "Housing: throughput and memory by scale factor",
        [
            Panel("Throughput", "scale factor", "tuples/s", rates),
            Panel("Memory", "scale factor", "MB", memory),
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.experiments", description=__doc__)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="postcodes and rows as a part of the full ones"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw throughput and memory")
    parser.add_argument("--table", type=Path, metavar="FILE.md", help="write the table")
    arguments = parser.parse_args()
    results: Results = {}
    for experiment in experiments(arguments.scale):
        results[experiment.name, experiment.factor, experiment.tuples] = run(experiment)
        print(table(results).splitlines()[-1], flush=True)
    print(f"\n{table(results)}", end="")
    if arguments.table is not None:
        arguments.table.write_text(table(results), encoding="utf-8")
    if arguments.plot is not None:
        arguments.plot.write_text(picture(results), encoding="utf-8")


if __name__ == "__main__":
    main()
