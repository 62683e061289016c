"""Operations of a transaction of one row, by the number of rows: what follows the change does not grow.

Rows are inserted and erased, and the operations of both (seeks and nexts, of all rules) are averaged, after a
first transaction that makes the state.  Counts do not depend on the machine.

    python -m benchmarks.operations --table FILE.md [--scale 0.1]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import dlog
from benchmarks.harness import Row, at_least, below
from benchmarks.trace import HUB, hub_facts
from benchmarks.transactions import TRIANGLE, graph, vertices

STRATEGIES = ("delta", "trace", "trace-exact")
SIZES = (1_000, 10_000, 100_000, 1_000_000)
EACH = 1000  # z for each y
Facts = dict[str, Any]
Change = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """`most`: operations that are enough under `delta` and `trace`, whatever the size is."""

    name: str
    rules: str
    facts: Callable[[int], Facts]
    changes: Callable[[int], Sequence[Change]]
    most: int
    strategies: Sequence[str] = STRATEGIES


def projected(n: int) -> Facts:
    """As many rows of b, EACH for each y."""
    y, z = np.divmod(np.arange(n), EACH)
    many = max(1, n // EACH)
    a = np.stack([np.arange(5 * many), np.arange(5 * many) % many], axis=1)
    return {"a": a, "b": np.stack([y, z], axis=1), "c": np.stack([np.arange(EACH)] * 2, axis=1)}


def texts(n: int) -> Facts:
    i = np.arange(n)
    small, large = (pc.binary_join_element_wise(letter, pc.cast(i, pa.string()), "") for letter in "kK")
    return {"a": pa.table({"x": i, "s": small}), "b": pa.table({"t": large, "z": i})}


def decimals(n: int) -> Facts:
    i = pa.array(np.arange(n))
    wide, type_ = pa.decimal128(21, 2), pa.decimal128(18, 2)  # a cast of an int needs room for any int
    values, doubled = (pc.cast(pc.cast(pc.multiply(i, k), wide), type_) for k in (1, 2))
    return {"d": pa.table({"x": i, "v": values}), "e": pa.table({"v": doubled, "w": i})}


def days(n: int) -> Facts:
    i = np.arange(n)
    return {"day": pa.table({"x": i, "u": i.astype("datetime64[D]")})}


def pairs(n: int) -> Facts:
    return {"g": np.stack([np.arange(n)] * 2, axis=1)}


def pieces(n: int) -> Facts:
    i = np.arange(n)
    return {"d": pa.table({"g": np.zeros(n, np.int64), "i": 2 * i, "s": pc.cast(i, pa.string())})}


def edges(n: int) -> Facts:
    return {"edge": graph(n, np.random.default_rng(5))}


def some_edges(n: int) -> list[Change]:
    pairs = np.random.default_rng(6).integers(0, vertices(n), (50, 2)).tolist()
    present = set(map(tuple, edges(n)["edge"].tolist()))
    return [("edge", tuple(pair)) for pair in pairs if tuple(pair) not in present]


def always(*changes: Change) -> Callable[[int], Sequence[Change]]:
    return lambda n: changes


ATOMS = "a(x, y) -> int(x), int(y).  b(y, z) -> int(y), int(z).  c(z, w) -> int(z), int(w).\n"
TEXTS = "a(x, s) -> int(x), string(s).  b(t, z) -> string(t), int(z).\n"
DECIMALS = "d(x, v) -> int(x), decimal[18, 2](v).  e(v, w) -> decimal[18, 2](v), int(w).\n"
NEW = 10**7
CASES = (
    Case("`hub`, a row of `b` with no `c`", HUB, hub_facts, always(("b", (0, 101)), ("b", (0, 333))), 40),
    Case("triangles, one edge", TRIANGLE, edges, some_edges, 1000),
    Case("`s(x, y) <- a(x, y), b(y, z).`, a row of `a`", f"{ATOMS}s(x, y) <- a(x, y), b(y, z).",
         projected, always(("a", (NEW, 0))), 40),
    Case("`s(x) <- a(x, y), b(y, z).`, a row of `a`", f"{ATOMS}s(x) <- a(x, y), b(y, z).",
         projected, always(("a", (NEW, 0))), 40),
    Case("`s(x, y) <- a(x, y), b(y, z), c(z, w).`, a row of `a`",
         f"{ATOMS}s(x, y) <- a(x, y), b(y, z), c(z, w).", projected, always(("a", (NEW, 0))), 40),
    Case("a piece of a `concat` of all rows",
         "d(g, i, s) -> int(g), int(i), string(s).\nh[g] = t <- agg<<t = concat(s)>> d(g, i, s).",
         pieces, always(("d", (0, 501, "new"))), 40),
    Case("`p(x, z) <- a(x, s), t = upper(s), b(t, z).`", f"{TEXTS}p(x, z) <- a(x, s), t = upper(s), b(t, z).",
         texts, always(("a", (NEW, "k7")), ("b", ("K7", NEW))), 60),
    Case("`p(x) <- a(x, s), !(t = upper(s), b(t, _)).`",
         f"{TEXTS}p(x) <- a(x, s), !(t = upper(s), b(t, _)).",
         texts, always(("a", (NEW, "k7")), ("b", ("K7", NEW))), 60),
    Case("`p(x, w) <- d(x, v), y = v * 2, e(y, w).`, decimals",
         f"{DECIMALS}p(x, w) <- d(x, v), y = v * 2, e(y, w).", decimals, always(("e", (14, NEW))), 60),
    Case("`p(x, y) <- day(x, u), v = add_days(u, 1), day(y, v).`",
         "day(x, u) -> int(x), date(u).\np(x, y) <- day(x, u), v = add_days(u, 1), day(y, v).",
         days, always(("day", (NEW, "1970-02-01"))), 100),
    Case("`p(x, y) <- x = range(1, 1000000), g(x, y).`",
         "g(x, y) -> int(x), int(y).\np(x, y) <- x = range(1, 1000000), g(x, y).",
         pairs, always(("g", (7, 9))), 40),
)  # fmt: skip


def benchmark(scale: float) -> Iterator[Row]:
    sizes = sorted({at_least(1000, n * scale) for n in SIZES})
    for case in CASES:
        for strategy in case.strategies:
            for n in sizes:
                aim = None if strategy == "trace-exact" else below(case.most)
                name = case.name.replace("|", "or")
                steps = max(operations(case, strategy, n), 1e-3)
                yield Row(f"{name}, {strategy}", f"{n:,} rows", steps, aim=aim, unit="steps")


def operations(case: Case, strategy: str, n: int) -> float:
    """Of a transaction, on the average."""
    database = dlog.Database(source=case.rules, strategy=strategy)
    facts = case.facts(n)
    with database.transaction() as tx:
        for name in facts.keys() & database.program.predicates.keys():
            tx.insert(name, facts[name])
    found, changes = [], case.changes(n)
    for relation, row in (*changes, *changes):
        for change in ("insert", "erase"):
            commit = database.apply(**{change: {relation: [row]}})
            found.append(commit.operations)
    half = found[len(found) // 2 :]
    return sum(half) / len(half)


def table(scale: float) -> str:
    """In Markdown: a line for each case and strategy."""
    sizes = sorted({at_least(1000, n * scale) for n in SIZES})
    lines = [f"| a changed row | strategy | {' | '.join(f'{n:,} rows' for n in sizes)} |"]
    lines.append("| --- | --- | " + "--- | " * len(sizes))
    for case in CASES:
        for strategy in case.strategies:
            cells = (f"{operations(case, strategy, n):,.0f}" for n in sizes)
            lines.append(f"| {case.name} | `{strategy}` | {' | '.join(cells)} |")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.operations", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="rows as a part of the full ones")
    parser.add_argument("--table", type=Path, metavar="FILE.md", required=True, help="write the table")
    arguments = parser.parse_args()
    arguments.table.write_text(table(arguments.scale), encoding="utf-8")


if __name__ == "__main__":
    main()
