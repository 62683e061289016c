"""Sums in view trees: exact sums of floats against plain floats, and two threads against one.

The queries and data are those of benchmarks/views.py: the star of house prices and the snowflake of retail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.harness import RUNS, Row, at_least, faster, timed, within
from benchmarks.views import SNOWFLAKE, STAR, cut, query_over, snowflake_data, star_data, value
from dlog.jit import Words
from dlog.m3.syntax import ast
from dlog.storage.values import float_codes
from dlog.views.query import Query, total
from dlog.views.run.maintained import Maintained

BATCHES = 1000, 100_000


def benchmark(scale: float) -> Iterator[Row]:
    for name, relations, column, facts, data in (
        (
            "star",
            STAR,
            "h2",
            "HOUSE",
            star_data(at_least(300, 200_000 * scale), at_least(20, 25_000 * scale)),
        ),
        ("snowflake", SNOWFLAKE, "units", "INVENTORY", snowflake_data(at_least(2000, 300_000 * scale))),
    ):
        whole = query_over(relations, total("total", ast.Variable(column)))
        yield from exact(
            name, with_floats(whole, column), prices(data, facts, relations[facts].index(column))
        )
        yield from threads(name, whole, data, facts)


def with_floats(query: Query, column: str) -> Query:
    """The query where one column has floats."""
    double = ast.TypeRef("double")
    sources = (
        replace(s, columns=tuple(replace(c, type=double) if c.name == column else c for c in s.columns))
        for s in query.sources
    )
    return replace(query, sources=tuple(sources))


def prices(data: dict[str, Words], relation: str, column: int) -> dict[str, Words]:
    words = data[relation].copy()
    rng = np.random.default_rng(5)
    words[column] = float_codes(np.round(rng.uniform(1, 1000, words.shape[1]), 2))
    return {**data, relation: words}


def parts_of(data: dict[str, Words], facts: str, batch: int) -> list[tuple[str, Words]]:
    """Batches: of a star in turns, of a snowflake first those of dimensions."""
    if facts == "HOUSE":
        return cut(data, batch)
    small = {name: words for name, words in data.items() if name != facts}
    return [*cut(small, batch), *cut({facts: data[facts]}, batch)]


def fed(query: Query, parts: list[tuple[str, Words]], **how: object) -> Callable[[], float]:
    """A run over all batches; programs are compiled before."""
    waiting = [Maintained(query, **how) for _ in range(max(RUNS, 2))]  # type: ignore[arg-type]

    def run() -> float:
        kept = waiting.pop()
        for name, words in parts:
            kept.runtime.apply_words(name, words)
        return value(kept)

    return run


def exact(name: str, query: Query, data: dict[str, Words]) -> Iterator[Row]:
    tuples, facts = sum(words.shape[1] for words in data.values()), "HOUSE" if name == "star" else "INVENTORY"
    for batch in BATCHES:
        parts = parts_of(data, facts, batch)
        measured = timed({f: fed(query, parts, floats=f) for f in ("exact", "doubled", "plain")})
        assert np.isclose(measured["exact"].result, measured["plain"].result, rtol=1e-9)
        title, size = f"{name}, exact float sum, batches of {batch:,}", f"{tuples:,} tuples"
        ours = measured["exact"].seconds
        yield Row(title, size, ours, measured["plain"].seconds, "plain floats", within(2))
        yield Row(title, size, ours, measured["doubled"].seconds, "106 bits")


def threads(name: str, query: Query, data: dict[str, Words], facts: str) -> Iterator[Row]:
    tuples = sum(words.shape[1] for words in data.values())
    for batch, aim in ((1000, faster(1)), (100_000, faster(1.6)), (tuples, faster(1.6))):
        parts = parts_of(data, facts, batch)
        clock = time.perf_counter
        measured = timed({str(n): fed(query, parts, threads=n) for n in (1, 2)}, clock=clock)
        assert measured["1"].result == measured["2"].result
        how = "bulk" if batch == tuples else f"batches of {batch:,}"
        seconds = measured["2"].seconds, measured["1"].seconds
        yield Row(f"{name} on two threads, {how}", f"{tuples:,} tuples", *seconds, "one thread", aim)
