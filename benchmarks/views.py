"""View trees on streams: a star, its cofactor, a snowflake; against kernels by hand and DuckDB.

The measured programs are those that dlog makes from the queries, with the orders that it chooses.
Time is that of changes, as F-IVM defines it: reading, parsing and compiling are not measured, by any side.
Kernels written by hand for exactly one query, with presized tables and without overflow checks, are the
limit: see `views_by_hand`; that of the star is the one of benchmarks/m3.py, whose query looks up the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from benchmarks.harness import RUNS, Aim, Row, at_least, below, duck, faster, timed, within
from benchmarks.m3 import (
    BATCH,
    BY_HAND,
    NAMES,
    RELATIONS,
    arrow,
    columns,
    in_batches,
    in_turn,
    tuple_by_tuple,
)
from benchmarks.views_by_hand import cofactor_by_hand, snowflake_by_hand
from dlog.jit import Words
from dlog.m3.runtime.runtime import Step
from dlog.m3.syntax import ast
from dlog.views.m3.program import Style
from dlog.views.query import Aggregate, Atom, Query, total
from dlog.views.regression import Cofactor, cofactor_query
from dlog.views.run.maintained import Maintained

SAMPLES = 3
STAR = {name: columns(prefix, n) for name, prefix, n in RELATIONS}
SNOWFLAKE = {
    "INVENTORY": ["locn", "dateid", "ksn", "units"],
    "LOCATION": ["locn", "zip", *(f"l{i}" for i in range(13))],
    "CENSUS": ["zip", *(f"c{i}" for i in range(14))],
    "ITEM": ["ksn", "prize", *(f"i{i}" for i in range(3))],
    "WEATHER": ["locn", "dateid", *(f"w{i}" for i in range(6))],
}


def benchmark(scale: float) -> Iterator[Row]:
    yield from star(scale)
    yield from cofactor(scale)
    yield from snowflake(scale)
    yield from wide_schema(scale)


def query_over(relations: dict[str, list[str]], *aggregates: Aggregate) -> Query:
    int_ = ast.TypeRef("int")
    sources = (
        ast.Source(ast.STREAM, name, tuple(ast.Column(c, int_) for c in names))
        for name, names in relations.items()
    )
    return Query(tuple(sources), tuple(Atom(n, tuple(c)) for n, c in relations.items()), aggregates)


def waiting(query: Query, style: Style | None = None) -> list[Maintained]:
    """One for each run, compiled before."""
    return [Maintained(query) if style is None else Maintained(query, style=style) for _ in range(RUNS)]


def value(kept: Maintained) -> int:
    return kept.result()[0][0].as_py()


def fed(
    found: list[Maintained], batches: list[tuple[str, Words]], sizes: Mapping[str, int] | None = None
) -> Callable[[], int]:
    """With `sizes` it first gets the numbers of rows of some relations to come."""

    def run() -> int:
        kept = found.pop()
        for relation, rows in (sizes or {}).items():
            kept.runtime.expect(relation, rows)
        for name, words in batches:
            kept.runtime.apply_words(name, words)
        return value(kept)

    return run


def cut(data: dict[str, Words], size: int) -> list[tuple[str, Words]]:
    """Batches of all relations in turns."""
    longest = max(words.shape[1] for words in data.values())
    return [
        (name, np.ascontiguousarray(words[:, start : start + size]))
        for start in range(0, longest, size)
        for name, words in data.items()
        if start < words.shape[1]
    ]


# The star: SELECT SUM(h2) over six relations on postcode


def star_data(rows: int, postcodes: int, seed: int = 1) -> dict[str, Words]:
    rng = np.random.default_rng(seed)
    data = {}
    for name, names in STAR.items():
        words = rng.integers(0, 10, (len(names) + 1, rows))
        words[0], words[-1] = rng.integers(0, postcodes, rows), 1
        data[name] = words
    return data


def star(scale: float) -> Iterator[Row]:
    rows, postcodes = at_least(300, 200_000 * scale), at_least(20, 25_000 * scale)
    data = star_data(rows, postcodes)
    query = query_over(STAR, total("total", ast.Variable("h2")))
    size = max(1 << 10, 1 << int(4 * postcodes).bit_length())
    size_text, parts, whole = f"{6 * rows:,} tuples", cut(data, BATCH), list(data.values())
    numbered = [(NAMES.index(name), words) for name, words in parts]

    def by_turns(found: list[Maintained]) -> Callable[[], int]:
        def run() -> int:
            kept = found.pop()
            steps = [Step(name, words) for name, words in data.items()]
            kept.runtime.apply_steps(steps, *in_turn(rows))
            return value(kept)

        return run

    single = Style(batch=False)
    for name, ours, by_hand, aim in (
        ("star sum, batches of 1,000", fed(waiting(query), parts), in_batches, within(2)),
        ("star sum, tuple by tuple", by_turns(waiting(query, single)), tuple_by_tuple, within(2)),
    ):
        measured = timed({"dlog": ours, BY_HAND: lambda hand=by_hand: hand(numbered, whole, size)})
        assert measured["dlog"].result == measured[BY_HAND].result
        seconds = measured["dlog"].seconds
        yield Row(name, size_text, seconds, measured[BY_HAND].seconds, BY_HAND, aim)
        yield Row(f"{name}: rate", size_text, 6 * rows / seconds / 1e6, unit="M tuples/s")
    few = {name: np.ascontiguousarray(words[:, : 2 * postcodes]) for name, words in data.items()}
    sql = f"SELECT sum(h2) FROM {' NATURAL JOIN '.join(n.lower() for n in STAR)}"
    yield from against_duck("star sum, one batch", query, sql, few, faster(20))


def against_duck(
    name: str, query: Query, sql: str, data: dict[str, Words], aim: Aim, order: tuple[str, ...] = ()
) -> Iterator[Row]:
    """The last batches of some relations: ours as they come, DuckDB's query again after each."""
    kept = Maintained(query)
    order = (order or tuple(data))[:SAMPLES]
    rest, last = {}, {}
    for relation, words in data.items():
        n, times = words.shape[1], max(order.count(relation), 1)
        at, size = max(n - times * BATCH, n // 2), min(BATCH, (n - n // 2) // times)
        rest[relation] = words[:, :at]
        last[relation] = [w for _, w in cut({relation: words[:, at : at + times * size]}, size)]
    for relation, words in cut(rest, BATCH):
        kept.runtime.apply_words(relation, words)
    named = {s.name: [c.name for c in s.columns] for s in query.sources}
    connection = duck(**{r.lower(): arrow(w, named[r]) for r, w in rest.items()})
    ours, theirs = [], []
    for relation in order:
        batch = last[relation].pop()
        started = time.process_time()
        kept.runtime.apply_words(relation, batch)
        ours.append(time.process_time() - started)
        connection.register("given", arrow(batch, named[relation]))
        connection.execute(f"insert into {relation.lower()} select * from given")
        started = time.process_time()
        found = connection.execute(sql).fetchall()
        theirs.append(time.process_time() - started)
        assert value(kept) == (found[0][0] or 0)
    tuples = sum(words.shape[1] for words in data.values())
    size = f"{BATCH:,} of {tuples:,} tuples"
    yield Row(name, size, float(np.median(ours)), float(np.median(theirs)), "DuckDB again", aim)


# The cofactor of all 27 variables


def cofactor(scale: float) -> Iterator[Row]:
    rows, postcodes = at_least(200, 100_000 * scale), at_least(20, 25_000 * scale)
    data = star_data(rows, postcodes)
    bare = query_over(STAR)
    query = cofactor_query(bare, bare.variables)
    parts, size = cut(data, BATCH), f"{6 * rows:,} tuples"
    numbered = [(NAMES.index(name), words) for name, words in parts]
    turns = [(NAMES.index(name), words) for name, words in data.items()]

    def by_turns(found: list[Maintained]) -> Callable[[], list[float]]:
        def run() -> list[float]:
            kept = found.pop()
            kept.runtime.apply_steps([Step(name, words) for name, words in data.items()], *in_turn(rows))
            return numbers(kept)

        return run

    def by_batches(found: list[Maintained]) -> Callable[[], list[float]]:
        def run() -> list[float]:
            kept = found.pop()
            for name, words in parts:
                kept.runtime.apply_words(name, words)
            return numbers(kept)

        return run

    for name, ours, given, turn in (
        ("batches of 1,000", by_batches(waiting(query)), numbered, 0),
        ("tuple by tuple", by_turns(waiting(query, Style(batch=False))), turns, 1),
    ):
        measured = timed({"dlog": ours, BY_HAND: lambda g=given, t=turn: cofactor_by_hand(g, t, postcodes)})
        assert np.allclose(measured["dlog"].result, measured[BY_HAND].result, rtol=1e-12)
        seconds = measured["dlog"].seconds
        name = f"star cofactor of 27 variables, {name}"
        yield Row(name, size, seconds, measured[BY_HAND].seconds, BY_HAND, within(2))
        yield Row(f"{name}: rate", size, 6 * rows / seconds / 1e6, unit="M tuples/s")


def numbers(kept: Maintained) -> list[float]:
    """The count, the sums and the upper triangle of an element."""
    found = Cofactor.of(kept)
    return [found.count, *found.sums.tolist(), *found.products[np.triu_indices(27)].tolist()]


# The snowflake: SELECT SUM(units) over inventory, its stores and their surroundings, items, weather


def snowflake_data(rows: int) -> dict[str, Words]:
    rng = np.random.default_rng(4)
    locations, dates = at_least(5, rows // 2000), at_least(10, rows // 1000)
    items, zips = at_least(20, rows // 100), 50
    domains = {"locn": locations, "dateid": dates, "ksn": items, "zip": zips}

    def relation(name: str, n: int) -> Words:
        names = SNOWFLAKE[name]
        words = rng.integers(0, 10, (len(names) + 1, n))
        for j, column in enumerate(names):
            if column in domains:
                words[j] = rng.integers(0, domains[column], n)
        words[-1] = 1
        return words

    data = {
        "INVENTORY": relation("INVENTORY", rows),
        "LOCATION": relation("LOCATION", locations),
        "CENSUS": relation("CENSUS", zips),
        "ITEM": relation("ITEM", items),
        "WEATHER": relation("WEATHER", locations * dates),
    }
    data["LOCATION"][0], data["CENSUS"][0], data["ITEM"][0] = range(locations), range(zips), range(items)
    pairs = np.arange(locations * dates)
    data["WEATHER"][0], data["WEATHER"][1] = pairs // dates, pairs % dates
    return data


def snowflake(scale: float) -> Iterator[Row]:
    rows = at_least(2000, 300_000 * scale)
    data = snowflake_data(rows)
    query = query_over(SNOWFLAKE, total("total", ast.Variable("units")))
    # Dimensions first, then the facts, as a warehouse is loaded.
    small = {name: words for name, words in data.items() if name != "INVENTORY"}
    parts = [*cut(small, BATCH), *cut({"INVENTORY": data["INVENTORY"]}, BATCH)]
    tuples = sum(words.shape[1] for words in data.values())
    # By hand the tables are as large as the rows and keys of the data say.
    sizes = {name: words.shape[1] for name, words in data.items()}
    name, size = "snowflake sum, batches of 1,000", f"{tuples:,} tuples"
    for how, ours in (
        ("", fed(waiting(query), parts)),
        (", sizes told", fed(waiting(query), parts, sizes)),
    ):
        measured = timed({"dlog": ours, BY_HAND: lambda: snowflake_by_hand(data)})
        assert measured["dlog"].result == measured[BY_HAND].result
        seconds = measured["dlog"].seconds
        yield Row(f"{name}{how}", size, seconds, measured[BY_HAND].seconds, BY_HAND, within(2))
        yield Row(f"{name}{how}: rate", size, tuples / seconds / 1e6, unit="M tuples/s")
    sql = f"SELECT sum(units) FROM {' NATURAL JOIN '.join(n.lower() for n in SNOWFLAKE)}"
    yield from against_duck(
        "snowflake sum, one batch", query, sql, data, faster(20), SAMPLES * ("INVENTORY",)
    )


# Compiling


def wide_schema(scale: float) -> Iterator[Row]:
    """From a query over many relations to a program that is ready to run."""
    number = at_least(5, 100 * scale)
    relations = {f"R{i}": [f"k{(i - 1) // 3}", f"k{i}", f"x{i}", f"y{i}"] for i in range(1, number + 1)}
    query = query_over(relations, total("total", ast.Variable(f"x{number}")))
    started = time.perf_counter()
    Maintained(query)
    seconds = time.perf_counter() - started
    yield Row("order, views and code of a schema", f"{number} relations", seconds, aim=below(10))
